"""What an engine knows, what it has decided and not seen confirmed, and what it asks the world to do.

The cycle and its parts write it. Gangs and extenders read it, and return actions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from situate.core.changes import Millis, PodRef
from situate.core.contract import WakeEvent
from situate.core.effects import Effect, Report
from situate.core.engine.assumed_claims import AssumedClaims
from situate.core.engine.assumed_volumes import AssumedVolumes
from situate.core.engine.in_flight import Eviction, Nominations, Reservation
from situate.core.engine.metrics import EngineMetrics
from situate.core.engine.timers import Timers
from situate.core.engine.wake_events import nomination_ended
from situate.core.gang.members import Gangs
from situate.core.queue.queue import SchedulingQueue
from situate.core.state.cluster import Cluster

NOTE_BYTES: Final = 1_024
"""kube-scheduler cuts the note of an event to this length."""
CUT: Final = " ..."

EventTexts: TypeAlias = tuple[Literal["Normal", "Warning"], str, str, str]
"""The type, reason, action and note of an event."""


@dataclass(eq=False, slots=True)
class EngineState:
    """Of one engine. `effects` and `events` start empty in every step."""

    cluster: Cluster
    queue: SchedulingQueue
    metrics: EngineMetrics
    now: Millis = 0
    effects: list[Effect] = field(default_factory=list)
    events: list[WakeEvent] = field(default_factory=list)
    """What happened since unschedulable pods were last woken."""
    event_count: int = 0
    """How many events they were woken for."""
    reservations: dict[str, Reservation] = field(default_factory=dict)
    evictions: dict[str, Eviction] = field(default_factory=dict)
    """By the victim's uid."""
    nominations: Nominations = field(default_factory=Nominations)
    gangs: Gangs = field(default_factory=Gangs)
    timers: Timers = field(default_factory=Timers)
    assumed: AssumedVolumes = field(init=False)
    assumed_claims: AssumedClaims = field(init=False)

    def __post_init__(self) -> None:
        self.assumed = AssumedVolumes(self.cluster)
        self.assumed_claims = AssumedClaims(self.cluster)

    def report(self, pod: PodRef, event: EventTexts, related: PodRef | None = None) -> None:
        kind, reason, action, note = event
        self.effects.append(Report(pod, kind, reason, action, cut(note), related))

    def end_nomination(self, key: str, *, taken: str = "") -> bool:
        """Whether a node was nominated for the pod. Unless the pod takes that node now, others may have it."""
        ended = self.nominations.remove(key)
        if ended is not None and ended.node != taken:
            self.events.append(nomination_ended(ended.kind, ended.node, self.cluster.objects))
        return ended is not None

    def known_uid(self, key: str) -> str | None:
        entry = self.queue.get(key)
        return entry.ref.uid if entry is not None else self.cluster.uid_of(key)


def cut(note: str) -> str:
    """A note that fits in an event."""
    raw = note.encode()
    if len(raw) <= NOTE_BYTES:
        return note
    return raw[: NOTE_BYTES - len(CUT)].decode(errors="ignore") + CUT
