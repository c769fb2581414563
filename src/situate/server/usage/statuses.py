"""The status of a HorizontalPodAutoscaler: its conditions, and what its metrics are. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.base import INT32_MAX, INT64_MAX
from situate.core.reconcile.autoscaling import Proposal
from situate.server.kinds.quantities import written
from situate.server.requests import Object

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
NANOS_IN_MILLI: Final = 1_000_000
UNKNOWN_METRIC: Final[Object] = {"type": ""}


class Conditions:
    """The conditions of one status, in their order."""

    def __init__(self, found: Sequence[Mapping[str, Any]], now: str) -> None:
        self._found = [dict(one) for one in found]
        self._now = now

    def set(self, kind: str, is_true: bool, reason: str, message: str) -> None:
        status = "True" if is_true else "False"
        said = {"status": status, "reason": reason, "message": message}
        for one in self._found:
            if one.get("type") == kind:
                if one.get("status") != status:
                    one["lastTransitionTime"] = self._now
                one.update(said)
                return
        self._found.append({"type": kind, "lastTransitionTime": self._now, **said})

    def listed(self) -> list[Object]:
        return self._found


def metric_status(kind: str, field: str, source: Mapping[str, Any], found: Proposal) -> Object:
    """Of a metric of a resource. A client could not read what is more than its field holds."""
    name, average = source["name"], min(found.average, INT64_MAX)
    current: Object = {"averageValue": written(average * NANOS_IN_MILLI, binary=name == "memory")}
    if found.utilization is not None:
        current["averageUtilization"] = min(found.utilization, INT32_MAX)
    said: Object = {"name": name, "current": current}
    if "container" in source:
        said["container"] = source["container"]
    return {"type": kind, field: said}
