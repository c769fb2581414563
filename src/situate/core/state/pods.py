"""The bound pods: one row per pod, a few words each. What pods of a class have in common is in their PodClass."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from situate.core.model.annotations import GPU_DEVICES
from situate.core.model.base import Labels
from situate.core.model.pod import Pod, PodCondition, PodStatus
from situate.core.state.classes import PodClass


@dataclass(frozen=True, slots=True)
class BoundPod:
    row: int
    namespace: str
    name: str
    uid: str
    kind: PodClass
    node_row: int
    start_ms: int | None
    """When the kubelet accepted it, in milliseconds since the epoch; None if it has not."""
    created_ms: int | None
    leaving: bool
    """Whether it is being deleted."""
    preempted: bool
    """Whether it is deleted because a scheduler made room for another pod."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


NO_TIME: Final = -(1 << 63)

LEAVING: Final = 1
PREEMPTED: Final = 2
"""In `PodTable.leaving`: leaving because it was preempted."""

DISRUPTION_TARGET: Final = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


class PodTable:
    """Only the Cluster writes this."""

    __slots__ = (
        "_free", "classes", "created_ms", "devices", "keys", "leaving", "node_rows", "rows", "start_ms", "uids",
    )  # fmt: skip

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.keys: list[str] = []
        self.uids: list[str] = []
        self.classes: list[PodClass | None] = []
        self.node_rows = array("i")
        self.start_ms = array("q")
        self.created_ms = array("q")
        self.leaving = bytearray()
        self.devices: dict[int, str] = {}
        """Pod row -> the devices in the pod's annotation, where it has one."""
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, key: str, uid: str, kind: PodClass, node_row: int) -> int:
        if self._free:
            row = self._free.pop()
            self.keys[row] = key
            self.uids[row] = uid
            self.classes[row] = kind
            self.node_rows[row] = node_row
            self.start_ms[row] = self.created_ms[row] = NO_TIME
            self.leaving[row] = 0
        else:
            row = len(self.keys)
            self.keys.append(key)
            self.uids.append(uid)
            self.classes.append(kind)
            self.node_rows.append(node_row)
            self.start_ms.append(NO_TIME)
            self.created_ms.append(NO_TIME)
            self.leaving.append(0)
        self.rows[key] = row
        return row

    def remove(self, row: int) -> None:
        del self.rows[self.keys[row]]
        self.keys[row] = self.uids[row] = ""
        self.classes[row] = None
        self.devices.pop(row, None)
        self._free.append(row)

    def kind(self, row: int) -> PodClass:
        found = self.classes[row]
        if found is None:
            raise LookupError(f"pod row {row} is empty")
        return found

    def as_object(self, row: int, node_name: str) -> Pod:
        bound = self.bound(row)
        first = bound.kind.pod
        metadata = msgspec.structs.replace(
            first.metadata,
            name=bound.name,
            uid=bound.uid,
            annotations=self._annotations(row, first),
            creation_timestamp=None if bound.created_ms is None else timestamp_text(bound.created_ms),
            # Only that it is being deleted is kept, not since when.
            deletion_timestamp=timestamp_text(0) if bound.leaving else None,
            # Those of the first pod of its class: this one's own are not kept.
            resource_version="",
            generation=0,
        )
        start = None if bound.start_ms is None else timestamp_text(bound.start_ms)
        conditions = tuple(one for one in first.status.conditions if one.type != DISRUPTION_TARGET.type)
        if bound.preempted:
            conditions += (DISRUPTION_TARGET,)
        status: PodStatus = msgspec.structs.replace(
            first.status, phase="Running", start_time=start, conditions=conditions
        )
        spec = msgspec.structs.replace(first.spec, node_name=node_name)
        return msgspec.structs.replace(first, metadata=metadata, spec=spec, status=status)

    def _annotations(self, row: int, first: Pod) -> Labels:
        """Those of the first pod of its class, except for what is kept of this one."""
        annotations = first.metadata.annotations
        if row not in self.devices and GPU_DEVICES not in annotations:
            return annotations
        others = {key: value for key, value in annotations.items() if key != GPU_DEVICES}
        return {**others, GPU_DEVICES: self.devices[row]} if row in self.devices else others

    def bound(self, row: int) -> BoundPod:
        namespace, _, name = self.keys[row].partition("/")
        start, created = self.start_ms[row], self.created_ms[row]
        return BoundPod(
            row=row,
            namespace=namespace,
            name=name,
            uid=self.uids[row],
            kind=self.kind(row),
            node_row=self.node_rows[row],
            start_ms=None if start == NO_TIME else start,
            created_ms=None if created == NO_TIME else created,
            leaving=bool(self.leaving[row]),
            preempted=self.leaving[row] == PREEMPTED,
        )


def leaving_as(pod: Pod) -> int:
    """The value in `PodTable.leaving`: 0 while the pod is not being deleted."""
    if pod.metadata.deletion_timestamp is None:
        return 0
    for condition in pod.status.conditions:
        if condition.type == DISRUPTION_TARGET.type:
            found = (condition.status, condition.reason)
            return PREEMPTED if found == (DISRUPTION_TARGET.status, DISRUPTION_TARGET.reason) else LEAVING
    return LEAVING


def timestamp_text(ms: int) -> str:
    """Milliseconds since the epoch, as an object writes them."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).isoformat().removesuffix("+00:00") + "Z"
