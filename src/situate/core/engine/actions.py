"""What gangs and extenders decide. They return these values; only the cycle carries them out."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from situate.core.changes import Millis, PodRef
from situate.core.effects import AskExtender, SetGroupCondition
from situate.core.engine.in_flight import Reservation
from situate.core.engine.state import EventTexts
from situate.core.place.bind_annotations import BindAnnotations
from situate.core.preempt.fit_failure import FitFailure
from situate.core.queue.queued_pod import QueuedPod


class StartAttempt(Struct, frozen=True):
    """Take these pods out of the queue, to decide on them together."""

    entries: tuple[QueuedPod, ...]


class Reserve(Struct, frozen=True):
    """Count a pod on a node, and bind it."""

    entry: QueuedPod
    row: int
    annotations: BindAnnotations | None = None
    """What the bind writes on the pod; None: the assigners have not been asked."""


class Release(Struct, frozen=True):
    """Give up a reservation, and try the pod again later."""

    reservation: Reservation
    problem: str


class Refuse(Struct, frozen=True):
    """The pod fits nowhere: find out why, and whom to evict."""

    entry: QueuedPod


class MarkUnschedulable(Struct, frozen=True):
    """The pod fits nowhere for this reason. `asked_at` is the event count when extenders were first asked about it."""

    entry: QueuedPod
    failure: FitFailure
    asked_at: int


class MarkGangUnschedulable(Struct, frozen=True):
    """The pod's gang fits nowhere."""

    entry: QueuedPod
    message: str
    plugins: tuple[str, ...]
    """Those that refused it; empty: any change may help."""


class Fail(Struct, frozen=True):
    """Something failed: back off, and try again whatever changes. `reason` is the one in the pod's condition."""

    entry: QueuedPod
    problem: str
    reason: str = "SchedulerError"


class Retry(Struct, frozen=True):
    """The cluster changed while extenders were asked: decide again at once."""

    entry: QueuedPod


class Activate(Struct, frozen=True):
    """Put a pod back into the queue; `at_once`: without the rest of its backoff."""

    entry: QueuedPod
    at_once: bool = True


class Hold(Struct, frozen=True):
    """Gate a pod, and report why; an empty message reports nothing."""

    entry: QueuedPod
    message: str = ""


class Ask(Struct, frozen=True):
    """Ask an extender, and let the question time out after a while."""

    entry: QueuedPod
    effect: AskExtender
    within_ms: Millis


class HoldNode(Struct, frozen=True):
    """Nominate a node for a pod."""

    entry: QueuedPod
    node: str


class EndNomination(Struct, frozen=True):
    """No node is nominated for the pod of this name any more."""

    key: str


class EvictPod(Struct, frozen=True):
    """Evict a victim, unless it is being evicted already."""

    victim: PodRef
    node: str
    preemptor: PodRef
    message: str
    event: EventTexts


class ReviewGang(Struct, frozen=True):
    """Look at a gang again after a while."""

    gang_id: str
    after_ms: Millis


ExtenderAction: TypeAlias = Reserve | Refuse | MarkUnschedulable | Fail | Retry | Activate | Ask
GangAction: TypeAlias = (
    StartAttempt
    | Reserve
    | Release
    | MarkGangUnschedulable
    | Fail
    | Activate
    | Hold
    | HoldNode
    | EndNomination
    | EvictPod
    | ReviewGang
    | SetGroupCondition
)
