#!/bin/sh
# Put the scheduler into the cluster of the current kubeconfig context, or take it away; first say which cluster that is.
#   scheduler.sh deploy|remove     by `make deploy-scheduler` and `make remove-scheduler`
# IMAGE    the image; if not given, the one that the manifests name
# VARIANT  base (beside kube-scheduler), preemption (the same, and it may evict), instead (takes kube-scheduler's pods)
# YES=1    do not ask       WAIT    how long to wait for it to be ready, or gone; 0: not at all
set -eu
cd "$(dirname "$0")/.."

die() { echo "$*" >&2; exit 1; }

kubectl=$(command -v kubectl || true)
own=${KUBE_ASSETS:-tests/kubernetes/bin}/kubectl
[ -n "$kubectl" ] || { [ -x "$own" ] && kubectl=$own; } ||
    die "there is no kubectl on the path: install one, or have \`make kubernetes\` build it"

wait=${WAIT:-120s}
case ${VARIANT:-base} in
    base) folder=deploy/kustomize/base ;;
    preemption | instead) folder=deploy/kustomize/overlays/$VARIANT ;;
    *) die "VARIANT is $VARIANT; it can be base, preemption or instead" ;;
esac

context=$("$kubectl" config current-context 2>/dev/null) ||
    die "there is no current kubeconfig context: choose one with \`kubectl config use-context\`, or set KUBECONFIG"
server=$("$kubectl" config view --minify --output 'jsonpath={.clusters[0].cluster.server}')

confirm() {
    echo "$1 the context $context, $server" >&2
    if [ -t 0 ] && [ "${YES:-}" != 1 ]; then
        printf 'Go on? [y/N] ' >&2
        read -r answer || answer=
        case $answer in y | Y | yes) ;; *) die "nothing was done" ;; esac
    fi
}

manifests=$(mktemp)
trap 'rm -f "$manifests"' EXIT
render() { "$kubectl" kustomize "$1" > "$manifests"; }

deploy() {
    render "$folder"
    if [ -n "${IMAGE:-}" ]; then
        sed "s|^\( *image: \).*|\1$IMAGE|" "$manifests" > "$manifests.new"
        mv "$manifests.new" "$manifests"
    fi
    image=$(sed -n 's|^ *image: ||p' "$manifests")
    confirm "deploying $image, ${VARIANT:-base}, to"
    "$kubectl" apply --server-side --field-manager=situate-deploy -f "$manifests"
    forget_other_variants
    [ "$wait" = 0 ] || "$kubectl" --namespace situate-system rollout status deployment/situate --timeout="$wait"
}

# Rights that an earlier deployment of another variant had, and this one has not.
forget_other_variants() {
    if [ "${VARIANT:-base}" = base ]; then
        "$kubectl" delete --ignore-not-found clusterrole,clusterrolebinding situate-preemption
    fi
    elsewhere=kube-system
    [ "${VARIANT:-base}" != instead ] || elsewhere=situate-system
    "$kubectl" delete --ignore-not-found --namespace "$elsewhere" role,rolebinding situate-lease
}

# The largest variant has what the others have, but for the Lease's role; whatever was deployed, nothing stays.
remove() {
    confirm "removing situate from"
    for folder in deploy/kustomize/overlays/instead deploy/kustomize/base; do
        render "$folder"
        if [ "$wait" = 0 ]; then
            "$kubectl" delete --ignore-not-found --wait=false -f "$manifests"
        else
            "$kubectl" delete --ignore-not-found --timeout="$wait" -f "$manifests"
        fi
    done
}

case ${1:-} in
    deploy) deploy ;;
    remove) remove ;;
    *) die "usage: $0 deploy|remove" ;;
esac
