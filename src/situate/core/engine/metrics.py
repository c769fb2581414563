"""What an engine did, for metrics. No decision depends on it.

Recording must cost next to nothing, so this is plain data: sums that only grow, and lists for the last step. The caller
reads it after every step. It may be passed from one engine to the next, so that a new configuration does not reset the
sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from situate.core.engine.in_flight import Reservation
from situate.core.model.refs import Millis
from situate.core.queue.incoming import Incoming

Result: TypeAlias = Literal["scheduled", "unschedulable", "error"]
"""The result of an attempt, in kube-scheduler's words. A pod is scheduled when its bind was carried out."""


class FailedAttempt(NamedTuple):
    profile: str
    result: Result
    took_ms: Millis | None = None
    """From the decision to the failure, if that came in a later step."""


class BindingResult(NamedTuple):
    """Volumes became ready, or they or a bind failed. Successful binds are in `bound`."""

    point: Literal["PreBind", "Bind"]
    profile: str
    took_ms: Millis
    success: bool


@dataclass(eq=False, slots=True)
class EngineMetrics:
    incoming: Incoming = field(default_factory=dict)
    """Pods that came to a part of the queue."""
    preemptions: int = 0
    """How often preemption ran."""
    # Of the last step:
    bound: list[Reservation] = field(default_factory=list)
    """The pods whose binds were carried out."""
    failed_attempts: list[FailedAttempt] = field(default_factory=list)
    binding_results: list[BindingResult] = field(default_factory=list)
    victims: list[int] = field(default_factory=list)
    """How many victims one pod or gang has."""

    def begin(self) -> None:
        self.bound.clear()
        self.failed_attempts.clear()
        self.binding_results.clear()
        self.victims.clear()
