"""A waiting pod, and what is remembered of it between attempts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, unique

from situate.core.changes import Millis, PodRef
from situate.core.model.pod import Pod
from situate.core.state.classes import PodClass


@unique
class QueueState(Enum):
    """A waiting pod is in exactly one state at any time."""

    ACTIVE = "active"
    """Decided as soon as its turn comes."""
    BACKOFF = "backoff"
    """Was refused or failed a moment ago: active again when its backoff ends."""
    UNSCHEDULABLE = "unschedulable"
    """Fits nowhere: active again when an event comes that may help."""
    GATED = "gated"
    """Must not be scheduled yet: its own gates or its gang hold it, or a claim of it is missing."""
    IN_FLIGHT = "in flight"
    """Taken out of the queue: it is being decided, or extenders are being asked."""
    RESERVED = "reserved"
    """Counted on a node; its bind is under way."""


@dataclass(eq=False, slots=True)
class QueuedPod:
    ref: PodRef
    pod: Pod
    kind: PodClass
    since_ms: Millis
    """When it last came to the queue. Among pods of equal priority, the one that has waited longest goes first."""
    order: int
    """The order of arrival, for what is still equal."""
    state: QueueState = QueueState.ACTIVE
    attempts: int = 0
    retries: int = 0
    """How many of its attempts only retried a bind."""
    refusals: int = 0
    """How often in a row filters refused it. Its backoff grows with it."""
    errors: int = 0
    """How often in a row something failed, such as its bind."""
    retry_at_ms: Millis = 0
    first_ready_ms: Millis | None = None
    """When it first could have been decided. Metrics are measured from here; no decision depends on it."""
    unschedulable_plugins: tuple[str, ...] = ()
    """The plugins that refused it. Empty: any event may help."""
    unschedulable_since_ms: Millis = 0
    message: str = ""
    """What its condition last said."""
    nominated: str = ""
    """The node that is nominated for it."""
    rejected: str = ""
    """The node of its last bind, if that was rejected."""
    flushed: bool = False
    """The five-minute flush put it back, and no event that it waits for has come since."""
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.ref.key  # read ten times on the way to a node

    @property
    def priority(self) -> int:
        return self.kind.priority
