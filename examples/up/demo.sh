#!/bin/sh
# A cluster in one command, a pod that is pending, why, the change that helps, and the cluster down again. The first argument
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

say "situate why too-big: every reason, and a change that was tried"
ask why too-big

say "the change, made: 3 CPUs and 8Gi"
ask delete pod too-big >/dev/null 2>&1
{
    printf 'apiVersion: v1\nkind: Pod\nmetadata:\n'
    sed -n '/^  name: too-big/,$p' "$here/first-steps.yaml" | sed 's/cpu: "32", memory: 64Gi/cpu: "3", memory: 8Gi/'
} > "$home/smaller.yaml"
ask apply -f "$home/smaller.yaml" >/dev/null 2>&1
tries=0
until line=$(ask get pod too-big -o wide | grep Running); do
    tries=$((tries + 1))
    if [ $tries -gt 60 ]; then echo "the pod does not run after 60 tries" >&2; exit 1; fi
    sleep 0.25
done
echo "$line" | awk '{ printf "%-24s %-12s %s\n", $1, $3, $7 }'

say "situate get: where everything went"
ask get pods -o wide | awk '{ printf "%-24s %-12s %s\n", $1, $3, ($1 == "NAME" ? "NODE" : $7) }' | sed 's/RESTARTS.*//'

say "situate status: what each node holds, and what waits"
ask status | tail -n +3

say "situate down"
$situate down --dir "$home/cluster" --delete | sed "s|$home/||"

say "what next"
if $situate web --help >/dev/null 2>&1; then
    echo 'The same live in a browser: `situate up` prints the link to its page (docs/guides/web.md).'
fi
cat <<EOF
Tutorials of ten minutes each: docs/start/index.md. \`make site\` builds all pages as a site.
Put the command on your path (. .venv/bin/activate), then: situate up, situate why, situate --help.
EOF
