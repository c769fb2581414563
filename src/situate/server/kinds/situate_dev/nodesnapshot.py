"""NodeSnapshot: a node's ledger. Only server/placing writes it."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

__all__ = ["KIND"]

_POD: Final = FieldChecks("situate.v1alpha1.BoundPod")


def _validate_snapshot(obj: Object, causes: Causes) -> None:
    for index, pod in enumerate(obj.get("spec", {}).get("pods", ())):
        _POD.check(pod, f"spec.pods[{index}]", causes)


KIND: Final = Kind(
    "situate.dev/v1alpha1 nodesnapshots NodeSnapshot C nsnap situate ! get list watch",
    strategy=Strategy(validate=_validate_snapshot, validate_update=again(_validate_snapshot)),
    columns="Name!, Version = metadata.resourceVersion, Pods# = count(spec.pods), Age",
    rights={"view": "R", "situate:node": "R", "situate:scheduler": "R"},
    description="NodeSnapshot is a node's ledger: which pods are bound to it, and what is taken of its resources.",
    words={
        "BoundPod.bindingVersion": "The number of this binding of the pod, from 1.",
        "BoundPod.gpus": "What it was given of single GPUs of the node: `3/500` is 500 thousandths of device 3.",
        "BoundPod.hostPorts": "Ports of the node that are taken: `TCP/80`, or `TCP/80/10.0.0.1` on one address.",
        "NodeSnapshotSpec.pods": "Who is bound to the node.",
        "NodeSnapshotStatus.allocated": "The exact sum of what they ask for.",
    },
)
