"""The watches of a scheduler: ordered per kind, delayed, sometimes late or merged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from situate.core.changes import Change, Millis, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodSeen
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.sim.faults import Faults
from situate.sim.store import StoreEvent, ref_of
from situate.sim.timeline import Timeline

SOON_MS: Final = (1, 40)
LATE_MS: Final = (500, 6_000)
REMEMBERED: Final = 60
"""How many writes a stale list may miss."""


@dataclass(slots=True)
class _Pending:
    written: StoreEvent
    merged: bool = False
    """A newer change supersedes this one."""


class WatchFeed:
    """Kinds are independent: a pod may be seen before its node."""

    def __init__(self, timeline: Timeline, rng: Random, deliver: Callable[[str, Change], None]) -> None:
        self.faults = Faults()
        self._timeline = timeline
        self._rng = rng
        self._deliver = deliver
        self._streams: dict[str, deque[_Pending]] = {}
        self._last_due: dict[str, Millis] = {}
        self._told: dict[tuple[str, str], StoreEvent] = {}
        """The last change of each object that the reader saw."""
        self._generation = 0
        self._recent: deque[StoreEvent] = deque()
        """The last writes; `_before` has the state before them, by kind and name."""
        self._before: dict[tuple[str, str], StoreEvent] = {}

    def hear(self, written: StoreEvent) -> None:
        self._recent.append(written)
        if len(self._recent) > REMEMBERED:
            _apply(self._before, self._recent.popleft())
        self._send(written)

    def _send(self, written: StoreEvent) -> None:
        stream = self._streams.setdefault(written.kind, deque())
        if self.faults.news_is_merged and self._rng.random() < self.faults.news_is_merged:
            for pending in stream:
                pending.merged |= pending.written.key == written.key
        stream.append(_Pending(written))
        late = self._rng.random() < self.faults.news_is_late
        delay = self._rng.randint(*(LATE_MS if late else SOON_MS))
        # Order is kept: a late change holds up those behind it.
        due = max(self._timeline.now + delay, self._last_due.get(written.kind, 0))
        self._last_due[written.kind] = due
        self._timeline.after(due - self._timeline.now, self._tell, written.kind, self._generation)

    def _tell(self, kind: str, generation: int) -> None:
        if generation != self._generation:
            return
        pending = self._streams[kind].popleft()
        if pending.merged:
            return
        written, name = pending.written, (kind, pending.written.key)
        if written.gone:
            # The reader learns that the object it knows is gone, even if it missed a newer one of that name.
            known = self._told.pop(name, None)
            if known is None:
                return
            written = StoreEvent(kind, known.key, written.version, known.item, gone=True)
        else:
            self._told[name] = written
        self._deliver(label(written), change_of(written))

    def relist(self, *, pods_first: bool) -> list[tuple[str, Change]]:
        """Drop pending changes and list everything: a scheduler starts.

        A stale list shows an old state, as from a lagging server; the rest comes as changes.
        """
        self._generation += 1
        self._streams.clear()
        self._last_due.clear()
        recent = list(self._recent)
        stale = self._rng.random() < self.faults.list_is_stale
        behind = self._rng.randint(1, len(recent)) if stale and recent else 0
        there = dict(self._before)
        for written in recent[: len(recent) - behind]:
            _apply(there, written)
        pods = [one for one in there.values() if isinstance(one.item, Pod)]
        nodes = [one for one in there.values() if isinstance(one.item, Node)]
        others = [one for one in there.values() if not isinstance(one.item, Pod | Node)]
        listed = [*pods, *others, *nodes] if pods_first else [*nodes, *others, *pods]
        self._told = {(one.kind, one.key): one for one in listed}
        for written in recent[len(recent) - behind :]:
            self._send(written)
        return [(label(one), change_of(one)) for one in listed]

    @property
    def waiting(self) -> int:
        """The number of undelivered changes."""
        return sum(map(len, self._streams.values()))


def _apply(there: dict[tuple[str, str], StoreEvent], written: StoreEvent) -> None:
    if written.gone:
        there.pop((written.kind, written.key), None)
    else:
        there[written.kind, written.key] = written


def change_of(written: StoreEvent) -> Change:
    match written.item:
        case Node() as node:
            return NodeGone(node.metadata.name) if written.gone else NodeSeen(node)
        case Pod() as pod:
            return PodGone(ref_of(pod)) if written.gone else PodSeen(pod)
        case item:
            return ObjectGone(item) if written.gone else ObjectSeen(item)


def label(written: StoreEvent) -> str:
    """A short form for the trace."""
    what = "gone" if written.gone else "seen"
    uid = f" {written.item.metadata.uid}" if written.item.metadata.uid else ""
    return f"{written.kind} {what} {written.key}{uid} v{written.version}"
