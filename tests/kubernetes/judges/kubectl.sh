#!/usr/bin/env bash
# Runs one group of kubectl's test/cmd: kubectl.sh CHECKOUT GROUP. SECURE_API_PORT and CERTIFICATE are the control plane's.
# A group is a function that runTests records, or one of the three blocks that stand in runTests itself.

cd "$1" || exit
export SED=sed
source hack/lib/init.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh

inline() {  # a function of what stands in runTests from one comment to the next
  eval "$1() {
    set -o nounset -o errexit
    $(sed -n "/^  *# $2\$/,/^  *#* *$3 *#*\$/p" test/cmd/legacy-script.sh)
  }"
}
inline api_resources 'find all resources' 'Cluster Role'
inline auth_can_i 'kubectl auth can-i' 'kubectl auth reconcile'
inline auth_reconcile 'kubectl auth reconcile' 'Retrieve multiple'

KUBE_TEMP=$(mktemp -d)
export HOME=$KUBE_TEMP TMPDIR=$KUBE_TEMP KUBE_TEMP
cp "$CERTIFICATE" "$TMPDIR/apiserver.crt"
trap 'stop-proxy; rm -rf "$KUBE_TEMP"' EXIT
SUPPORTED_RESOURCES=("*")
ALLOW_SKEW=true  # kubectl --match-server-version compares commits, and the server is no build of Kubernetes
CONTEXT=test
kubectl config set-credentials test-admin --token admin-token
kubectl config set-cluster local --insecure-skip-tls-verify --server "https://127.0.0.1:$SECURE_API_PORT"
kubectl config set-context "$CONTEXT" --user test-admin --cluster local
kubectl config use-context "$CONTEXT"
create_and_use_new_namespace

run_selected_tests() { "$GROUP"; }
GROUP=$2
WHAT=selected
runTests
