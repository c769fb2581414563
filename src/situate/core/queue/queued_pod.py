"""A pod that waits, and all that is remembered of it between attempts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, unique

from situate.core.changes import Millis, PodRef
from situate.core.model.pod import Pod
from situate.core.state.classes import PodClass


@unique
class QueueState(Enum):
    """Where a waiting pod is. It is in exactly one place at any time."""

    ACTIVE = "active"
    """To be decided as soon as its turn comes."""
    BACKOFF = "backoff"
    """Was refused or failed a moment ago: ready again when its backoff is over."""
    UNSCHEDULABLE = "unschedulable"
    """Fits nowhere: ready again when a change comes that may help."""
    GATED = "gated"
    """Somebody has said that it must not be scheduled yet."""
    IN_FLIGHT = "in flight"
    """Taken out of the queue: an extender is being asked, or it is about to be placed."""
    RESERVED = "reserved"
    """Has a node, counted there, and the bind is under way."""


@dataclass(eq=False, slots=True)
class QueuedPod:
    """One waiting pod."""

    ref: PodRef
    pod: Pod
    kind: PodClass
    since_ms: Millis
    """When it came to the queue the last time: among equals in priority, the longest waiting goes first."""
    order: int
    """Settles what is left: the order of arrival."""
    state: QueueState = QueueState.ACTIVE
    attempts: int = 0
    retries: int = 0
    """How many of its attempts decided nothing: a bind had failed, and was asked for again."""
    refusals: int = 0
    """How often in a row it was refused by filters: its backoff grows with it."""
    errors: int = 0
    """How often in a row something failed, such as its bind."""
    retry_at_ms: Millis = 0
    first_ready_ms: Millis | None = None
    """When it first could have been decided: what its scheduling is measured from. Nothing is decided by it."""
    unschedulable_plugins: tuple[str, ...] = ()
    """The plugins whose refusal parked it. Empty: any change may help."""
    unschedulable_since_ms: Millis = 0
    message: str = ""
    """What it was last told."""
    nominated: str = ""
    """The node that is being freed for it."""
    rejected: str = ""
    """The node that its last bind went to, if that was rejected."""
    flushed: bool = False
    """The five-minute flush put it back, and nothing that it waits for has happened since."""
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.ref.key  # asked for ten times on the way to a node

    @property
    def priority(self) -> int:
        return self.kind.priority
