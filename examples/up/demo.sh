#!/bin/sh
# A cluster in one command, something to run on it, where it went and why, and the cluster down again. The first argument
# is the command `situate`; the cluster lives in a directory of its own, which is deleted at the end.
set -eu
situate=${1:-situate}
here=$(cd "$(dirname "$0")" && pwd)
home=$(mktemp -d)
trap '$situate down --dir "$home/cluster" --delete >/dev/null 2>&1 || true; rm -rf "$home"' EXIT INT TERM

say() { printf '\n── %s\n' "$*"; }
ask() { command=$1; shift; $situate "$command" --kubeconfig "$home/cluster/kubeconfig" "$@"; }

say "situate up: five hollow nodes, in three zones"
$situate up --dir "$home/cluster" --port 0 --nodes 5 --zones 3 | head -n 1

say "situate apply: a Deployment, a Job, a gang, and a pod that is too big"
ask apply -f "$here/first-steps.yaml"

# Until the Deployment is whole and the Job done: a second or two.
tries=0
until ask get deploy,jobs | grep -q '^deployment.apps/web *6/6' && ask get jobs | grep -q '^report *Complete'; do
    tries=$((tries + 1))
    if [ $tries -gt 60 ]; then echo "the Deployment and the Job are not done after 60 tries" >&2; exit 1; fi
    sleep 0.25
done

say "situate get: where everything went"
ask get pods -o wide | awk '{ printf "%-24s %-12s %s\n", $1, $3, ($1 == "NAME" ? "NODE" : $7) }' | sed 's/RESTARTS.*//'

say "situate get placementdecisions: one for each decision"
ask get placementdecisions | head -n 4

say "situate status: what each node holds, and what waits"
ask status | tail -n +2

say "situate describe: why it waits"
ask describe pod too-big | sed -n '/^Placement:/,/^Events:/p' | grep -v '^Events:'

say "situate down"
$situate down --dir "$home/cluster" --delete | sed "s|$home/||"
