"""Rebinds a pod whose node is lost: replaces it by a new pod of the same name that has no node, in one write.

The new pod has a uid of its own. So nothing that is about the old pod can concern it: no report, no container, no
checkpoint of the old node's agent. In the transaction (see `bind_transaction`), the old node's snapshot loses the pod,
and the decision goes through `evicted` to `rebinding`; its binding version counts on. A client that watches the pod
sees one MODIFIED with another uid, as an informer does that missed a deletion.
"""

from __future__ import annotations

from typing import Final

from situate.core.model.annotations import GPU_DEVICES
from situate.core.reconcile.nodes.reports import REPORT
from situate.server.placing.bind_transaction import BINDING_VERSION
from situate.server.requests import Object

OF_THE_BINDING: Final = (BINDING_VERSION, GPU_DEVICES, REPORT)
"""Annotations that a binding or the node's agent wrote."""
_NOT_KEPT: Final = ("deletionGracePeriodSeconds", "deletionTimestamp", "generation")
_STATUS_KEPT: Final = ("qosClass",)


def unbound(pod: Object, uid: str, now: str) -> Object:
    """A new pod with the specification of this one, as if it had been created now."""
    meta = {name: value for name, value in pod["metadata"].items() if name not in _NOT_KEPT}
    meta |= {"uid": uid, "creationTimestamp": now}
    if "generation" in pod["metadata"]:
        meta["generation"] = 1
    annotations = {key: value for key, value in meta.pop("annotations", {}).items() if key not in OF_THE_BINDING}
    if annotations:
        meta["annotations"] = annotations
    spec = {name: value for name, value in pod["spec"].items() if name not in ("ephemeralContainers", "nodeName")}
    status = {name: value for name, value in pod.get("status", {}).items() if name in _STATUS_KEPT}
    return {**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending", **status}}
