"""NodeSnapshot: a node's ledger. Only server/placing writes it."""

from typing import Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

_POD: Final = FieldChecks("situate.v1alpha1.BoundPod")


def _validate_snapshot(obj: Object, causes: Causes) -> None:
    for index, pod in enumerate(obj.get("spec", {}).get("pods", ())):
        _POD.check(pod, f"spec.pods[{index}]", causes)


KIND: Final = Kind(
    "situate.dev/v1alpha1 nodesnapshots NodeSnapshot C nsnap situate ! get list watch",
    strategy=Strategy(validate=_validate_snapshot, validate_update=again(_validate_snapshot)),
    columns="Name!, Version = metadata.resourceVersion, Pods# = count(spec.pods), Age",
    rights={"view": "R", "situate:node": "R", "situate:scheduler": "R"},
    description="NodeSnapshot is a node's ledger: the pods that are bound to it, and the resources that they take.",
    words={
        "BoundPod.bindingVersion": "The number of this binding of the pod, from 1.",
        "BoundPod.gpus": "Its shares of the node's GPUs: `3/500` is 500 thousandths of device 3.",
        "BoundPod.hostPorts": "The node's ports that it takes: `TCP/80`, or `TCP/80/10.0.0.1` on one address.",
        "NodeSnapshotSpec.pods": "The pods that are bound to the node.",
        "NodeSnapshotStatus.allocated": "The exact sum of their requests.",
    },
)
