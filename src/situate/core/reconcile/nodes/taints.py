"""The taints of a node's conditions, its zone, and other properties of a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from situate.core.model.managed_node import ManagedNode, TimedTaint
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition
from situate.core.model.tolerations import NO_EXECUTE, NO_SCHEDULE
from situate.core.reconcile.api_values import format_time, parse_time

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
LOST: Final = {"False": NOT_READY, "Unknown": UNREACHABLE}
"""By the status of Ready. With NoExecute, these taints give a node up."""
EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
"""A label: the node does not count for the health of its zone."""
_BY_CONDITION: Final = {
    "Ready": LOST,
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_OWN: Final = (UNSCHEDULABLE, *(key for keys in _BY_CONDITION.values() for key in keys.values()))
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def zone_of(node: ManagedNode) -> str:
    """Region and zone; "" for neither."""
    labels = node.metadata.labels
    if not labels:
        return ""
    zone = labels.get(_OLD_ZONE) if _OLD_ZONE in labels else labels.get(_ZONE, "")
    region = labels.get(_OLD_REGION) if _OLD_REGION in labels else labels.get(_REGION, "")
    return f"{region}:\0:{zone}" if region or zone else ""


def ready_report(node: ManagedNode) -> Condition | None:
    for report in node.status.conditions:
        if report.type == "Ready":
            return report
    return None


def is_up(node: ManagedNode) -> bool:
    report = ready_report(node)
    return report is not None and report.status == "True"


def counts(node: ManagedNode) -> bool:
    return EXCLUDED not in node.metadata.labels


def given_up(node: ManagedNode) -> TimedTaint | None:
    """The NoExecute taint of a lost node, if it has it."""
    for taint in node.spec.taints:
        if taint.effect == NO_EXECUTE and taint.key in (NOT_READY, UNREACHABLE):
            return taint
    return None


def given_up_at(node: ManagedNode) -> Millis | None:
    taint = given_up(node)
    return None if taint is None else parse_time(taint.time_added)


def repelled(node: ManagedNode) -> tuple[TimedTaint, ...]:
    """The NoExecute taints."""
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)


def wanted_taints(node: ManagedNode, now: Millis) -> tuple[TimedTaint, ...]:
    """The desired taints. Only those of conditions and cordons change.

    A node that is ready again loses its NoExecute taint; one that is lost in another way keeps the time of the first.
    Giving a node up is decided in `zones`.
    """
    wanted = dict.fromkeys(_wanted_keys(node))
    held: list[TimedTaint] = []
    for taint in node.spec.taints:
        if taint.effect == NO_SCHEDULE and taint.key in _OWN:
            if taint.key in wanted:
                del wanted[taint.key]
                held.append(taint)
        elif taint.effect == NO_EXECUTE:
            held += (
                one
                for one in _no_execute(node, taint, now)
                if not any(one.key == had.key and one.effect == had.effect for had in held)
            )
        else:
            held.append(taint)
    added = (TimedTaint(key=key, effect=NO_SCHEDULE, time_added=format_time(now)) for key in wanted)
    return (*held, *added)


def _wanted_keys(node: ManagedNode) -> Iterator[str]:
    for report in node.status.conditions:
        key = _BY_CONDITION.get(report.type, {}).get(report.status)
        if key is not None:
            yield key
    if node.spec.unschedulable:
        yield UNSCHEDULABLE


def _no_execute(node: ManagedNode, taint: TimedTaint, now: Millis) -> Iterator[TimedTaint]:
    """The desired form of a NoExecute taint. One without a time gets one, for tolerations."""
    report = ready_report(node)
    timed = taint if parse_time(taint.time_added) is not None else replace(taint, time_added=format_time(now))
    if taint.key not in (NOT_READY, UNREACHABLE) or report is None:
        yield timed
    elif report.status in LOST:
        yield replace(timed, key=LOST[report.status])


def with_no_execute(node: ManagedNode, now: Millis) -> tuple[TimedTaint, ...] | None:
    """The taints of a node that is given up; None: the node is not lost."""
    report = ready_report(node)
    key = None if report is None else LOST.get(report.status)
    if key is None:
        return None
    return (*without_no_execute(node), TimedTaint(key=key, effect=NO_EXECUTE, time_added=format_time(now)))


def without_no_execute(node: ManagedNode) -> tuple[TimedTaint, ...]:
    return tuple(
        taint for taint in node.spec.taints if taint.effect != NO_EXECUTE or taint.key not in (NOT_READY, UNREACHABLE)
    )
