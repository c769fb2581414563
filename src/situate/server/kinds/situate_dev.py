"""situate.dev/v1alpha1: what the placing part of the server writes, and nobody else. It is read, never asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.server.errors import Cause
from situate.server.kinds.strategy import Strategy
from situate.server.kinds.validating import Causes, at_least_zero, not_supported, required
from situate.server.requests import Object

__all__ = ["PHASES", "STRATEGIES"]

PHASES: Final = ("pending", "reserved", "bound", "running", "failed", "evicted", "rebinding")


def _validate_decision(obj: Object) -> list[Cause]:
    causes: Causes = []
    spec = obj.get("spec", {})
    if not spec.get("podUID"):
        causes.append(required("spec.podUID"))
    at_least_zero(spec.get("bindingVersion", 0), "spec.bindingVersion", causes)
    phase = obj.get("status", {}).get("phase")
    if phase is not None and phase not in PHASES:
        causes.append(not_supported("status.phase", phase, PHASES))
    return causes


def _validate_snapshot(obj: Object) -> list[Cause]:
    causes: Causes = []
    for index, pod in enumerate(obj.get("spec", {}).get("pods", ())):
        for name in ("namespace", "name", "uid"):
            if not pod.get(name):
                causes.append(required(f"spec.pods[{index}].{name}"))
    return causes


def _validate_decision_update(new: Object, _old: Object) -> list[Cause]:
    return _validate_decision(new)


def _validate_snapshot_update(new: Object, _old: Object) -> list[Cause]:
    return _validate_snapshot(new)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "situate.dev/PlacementDecision": Strategy(validate=_validate_decision, validate_update=_validate_decision_update),
    "situate.dev/NodeSnapshot": Strategy(validate=_validate_snapshot, validate_update=_validate_snapshot_update),
}
