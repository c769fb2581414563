"""What an engine did, for metrics: noted by the engine, and read by nobody in the core.

Noting must cost next to nothing, so this keeps plain data: sums that only grow, and of the last step, what came to an
end in it. Whoever wants to know more reads it after every step. One tally may be handed from an engine to the next, so
that a new configuration does not set the sums back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from situate.core.engine.in_flight import Reservation
from situate.core.model.refs import Millis
from situate.core.queue.incoming import Incoming

Result: TypeAlias = Literal["scheduled", "unschedulable", "error"]
"""What an attempt came to, in kube-scheduler's words. A pod is scheduled when its bind was carried out."""


class FailedAttempt(NamedTuple):
    """An attempt that came to nothing."""

    profile: str
    result: Result
    took_ms: Millis | None = None
    """From its decision to its end, where that came in a later step."""


class BindingResult(NamedTuple):
    """The world made volumes ready, or it could not do that or a bind. The binds that it made are in `bound`."""

    point: Literal["PreBind", "Bind"]
    profile: str
    took_ms: Millis
    success: bool


@dataclass(eq=False, slots=True)
class EngineMetrics:
    """Filled by the engine."""

    incoming: Incoming = field(default_factory=dict)
    """Pods that came to a part of the queue."""
    preemptions: int = 0
    """How often somebody was looked for to be evicted."""
    # Of the last step:
    bound: list[Reservation] = field(default_factory=list)
    """The pods whose binds were carried out."""
    failed_attempts: list[FailedAttempt] = field(default_factory=list)
    binding_results: list[BindingResult] = field(default_factory=list)
    victims: list[int] = field(default_factory=list)
    """How many were asked to leave for one pod or gang."""

    def begin(self) -> None:
        """A step begins."""
        self.bound.clear()
        self.failed_attempts.clear()
        self.binding_results.clear()
        self.victims.clear()
