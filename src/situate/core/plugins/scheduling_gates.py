"""SchedulingGates: a pod with gates is not queued until the last gate is removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from situate.core.contract import Refusal, Wake
from situate.core.model.pod import PodSpec


@dataclass(frozen=True, slots=True)
class SchedulingGates:
    """Runs before a pod is queued; it does not filter or score nodes."""

    name: ClassVar[str] = "SchedulingGates"
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.POD_GATES_ELIMINATED})

    def admit(self, spec: PodSpec) -> Refusal | None:
        """Why the pod may not be queued yet; None if it may."""
        if not spec.scheduling_gates:
            return None
        return Refusal(f"waiting for scheduling gates: [{' '.join(gate.name for gate in spec.scheduling_gates)}]")
