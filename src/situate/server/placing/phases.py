"""The phases of a binding, and which may follow which. Pure.

                     ┌──────────► failed ──┐
    pending ─► reserved ─► bound ─► running ─► succeeded        rebinding ─► reserved, bound
       ▲___________│          └──────┴───► evicted ─┴──► rebinding

A binding's phase follows from its pod, in the transaction that writes the pod, so the two cannot differ, whatever a
crash interrupts. `rebinding` is the only way back. It begins only with another pod under the name of one that failed or
was evicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

Phase: TypeAlias = Literal["pending", "reserved", "bound", "running", "succeeded", "failed", "evicted", "rebinding"]

MOVES: Final[Mapping[Phase | None, frozenset[Phase]]] = MappingProxyType(
    {
        None: frozenset({"pending", "reserved", "bound", "running", "succeeded", "failed", "evicted", "rebinding"}),
        "pending": frozenset({"pending", "reserved", "bound", "failed", "evicted"}),
        "reserved": frozenset({"pending", "reserved", "bound", "failed", "evicted", "rebinding"}),
        # A node may report a pod done before it ever reported it running.
        "bound": frozenset({"bound", "running", "succeeded", "failed", "evicted"}),
        # Back to bound: its sandbox was lost, and its init containers run again on the same node.
        "running": frozenset({"running", "bound", "succeeded", "failed", "evicted"}),
        "succeeded": frozenset({"succeeded", "rebinding"}),
        "failed": frozenset({"failed", "evicted", "rebinding"}),
        # It may succeed or fail while it terminates; it was evicted all the same.
        "evicted": frozenset({"evicted", "rebinding"}),
        "rebinding": frozenset({"rebinding", "reserved", "bound", "failed", "evicted"}),
    }
)
"""Which phases may follow; None: no decision yet."""

_FINISHED: Final = ("Succeeded", "Failed")
_EVICTED: Final = ("Evicted", "Preempting", "NodeShutdown")
"""Reasons in a failed pod's status that mean eviction."""


def legal(before: Phase | None, after: Phase) -> bool:
    return after in MOVES[before]


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has ended, and takes no room of its node."""
    status = pod.get("status")
    return status is not None and status.get("phase") in _FINISHED


def holds_node(pod: Mapping[str, Any] | None) -> str:
    """The node that a pod takes room of, or ""."""
    if pod is None or is_finished(pod):
        return ""
    name: str = pod.get("spec", {}).get("nodeName", "")
    return name


def returns_from_end(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a write would change the phase of a pod that has ended."""
    ended = before.get("status", {}).get("phase", "")
    return ended in _FINISHED and after.get("status", {}).get("phase", "") != ended


def phase_of(pod: Mapping[str, Any], held: Phase | None) -> Phase:
    """The phase of a pod's binding, which was `held` so far."""
    status = pod.get("status", {})
    phase = status.get("phase", "")
    disrupted = _is_disrupted(status)
    if phase == "Succeeded":
        return "evicted" if held == "evicted" else "succeeded"
    if phase == "Failed":
        return "evicted" if held == "evicted" or disrupted or status.get("reason") in _EVICTED else "failed"
    if disrupted and "deletionTimestamp" in pod["metadata"]:
        return "evicted"
    if pod.get("spec", {}).get("nodeName"):
        return "running" if phase == "Running" else "bound"
    if status.get("nominatedNodeName"):
        return "reserved"
    return "rebinding" if held == "rebinding" else "pending"


def _is_disrupted(status: Mapping[str, Any]) -> bool:
    return any(
        one.get("type") == "DisruptionTarget" and one.get("status") == "True" for one in status.get("conditions", ())
    )
