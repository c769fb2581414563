"""What another version of Kubernetes would change: pods with another node, outcome or message. Prints nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from situate.cli.commands.place.rehearsal import Placement, Rehearsed
from situate.cli.commands.place.values import device_values
from situate.cli.output.text import columns, plural
from situate.core.versions import KubernetesRules

NONE: Final = "-"


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """One pod under both versions."""

    before: Placement
    after: Placement

    @property
    def kind(self) -> str:
        """What differs most: `outcome`, `node`, `victims`, `devices` or `message`."""
        if self.before.outcome is not self.after.outcome:
            return "outcome"
        if self.before.node != self.after.node:
            return "node"
        if self.before.evicted != self.after.evicted:
            return "victims"
        return "devices" if device_names(self.before) != device_names(self.after) else "message"


def changes(before: Rehearsed, after: Rehearsed) -> list[PlacementChange]:
    """The pods that differ, in the order of the queue."""
    found = (PlacementChange(*both) for both in zip(before.placements, after.placements, strict=True))
    return [one for one in found if _shown(one.before) != _shown(one.after)]


def _shown(placement: Placement) -> tuple[object, ...]:
    return placement.outcome, placement.node, placement.evicted, placement.message, device_names(placement)


def device_names(placement: Placement) -> list[str]:
    """`claim/request pool/device`, in order."""
    return [
        f"{one['claim']}/{one['request']} {one['pool']}/{one['device']}" for one in device_values(placement.devices)
    ]


def change_lines(found: list[PlacementChange], pods: int, rules: KubernetesRules, other: KubernetesRules) -> list[str]:
    """A row for each pod and version, and a line of totals."""
    counted = f"{plural(pods, 'pod')} decided: {len(found)} would change from {rules.version} to {other.version}"
    if not found:
        return [counted]
    rows = [row for one in found for row in _rows(one, rules, other)]
    return [*columns(("POD", "CHANGE", "VERSION", "NODE", "MESSAGE"), rows), "", counted]


def _rows(one: PlacementChange, rules: KubernetesRules, other: KubernetesRules) -> Iterator[tuple[str, ...]]:
    yield one.before.key, one.kind, rules.version, one.before.node or NONE, _told(one, one.before)
    yield "", "", other.version, one.after.node or NONE, _told(one, one.after)


def _told(one: PlacementChange, side: Placement) -> str:
    """The message; for devices that differ, the devices."""
    return (", ".join(device_names(side)) if one.kind == "devices" else side.message) or NONE


def change_values(
    found: list[PlacementChange], pods: int, rules: KubernetesRules, other: KubernetesRules
) -> dict[str, Any]:
    return {
        "pods": pods,
        "from": rules.version,
        "to": other.version,
        "changes": [
            {"pod": one.before.key, "change": one.kind, "before": _values(one.before), "after": _values(one.after)}
            for one in found
        ],
    }


def _values(placement: Placement) -> dict[str, Any]:
    return {
        "outcome": placement.outcome.value,
        "node": placement.node or None,
        "evicted": list(placement.evicted),
        "message": placement.message or None,
        "devices": device_values(placement.devices),
    }
