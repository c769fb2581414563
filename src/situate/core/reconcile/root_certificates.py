"""The ConfigMap `kube-root-ca.crt` of every namespace: the certificates of the authorities that the server's own is
from. The server publishes them in `kube-public/cluster-info`; where nobody did, there are none to copy."""

from situate.core.model.managed import ManagedConfigMap, ManagedNamespace
from situate.core.model.refs import Millis
from situate.core.reconcile.effects import CreateObject, ObjectRef, ReconcileResult, UpdateObject
from situate.core.reconcile.objects import KINDS, ObjectLister, ref_of

ROOT_CERTIFICATES = "kube-root-ca.crt"
CERTIFICATES = "ca.crt"
"""The key in the ConfigMap, and in the one where the server publishes them."""
PUBLISHED = ("kube-public", "cluster-info")
DESCRIPTION = "kubernetes.io/description"
PURPOSE = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def root_certificates(one: ManagedNamespace, objects: ObjectLister, now: Millis) -> ReconcileResult:
    published = objects.get(ManagedConfigMap, *PUBLISHED)
    wanted = None if published is None else published.data.certificates
    if one.metadata.deletion_timestamp is not None or not wanted:
        return ReconcileResult()
    name = one.metadata.name
    held = objects.get(ManagedConfigMap, name, ROOT_CERTIFICATES)
    data, annotations = {CERTIFICATES: wanted}, {DESCRIPTION: PURPOSE}
    if held is None:
        api_version, kind = KINDS[ManagedConfigMap]
        body = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": ROOT_CERTIFICATES, "namespace": name, "annotations": annotations},
            "data": data,
        }
        return ReconcileResult((CreateObject(ObjectRef(api_version, kind, name, ROOT_CERTIFICATES), body),))
    if held.data.certificates == wanted and held.metadata.annotations.get(DESCRIPTION) == PURPOSE:
        return ReconcileResult()
    patch = {"metadata": {"annotations": annotations}, "data": data}
    return ReconcileResult((UpdateObject(ref_of(held), held.metadata.resource_version, patch),))
