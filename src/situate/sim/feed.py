"""How the scheduler hears of what was written: in order for each kind, after a while, at times late or merged."""

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
"""How many of the last writes a list may be behind."""


@dataclass(slots=True)
class _Pending:
    written: StoreEvent
    merged: bool = False
    """A younger one tells all that this one would."""


class WatchFeed:
    """One reader's watches. Kinds have nothing to do with one another: a pod may be seen before its node."""

    def __init__(self, timeline: Timeline, rng: Random, deliver: Callable[[str, Change], None]) -> None:
        self.faults = Faults()
        self._timeline = timeline
        self._rng = rng
        self._deliver = deliver
        self._streams: dict[str, deque[_Pending]] = {}
        self._last_due: dict[str, Millis] = {}
        self._told: dict[tuple[str, str], StoreEvent] = {}
        """The last that the reader was told of each object."""
        self._generation = 0
        self._recent: deque[StoreEvent] = deque()
        """The last writes, and what there was before them, by kind and name."""
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
        # What was written later is never told earlier: a late one holds up those behind it.
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
            # A reader is told that what it knows is gone; if it missed a younger one of that name, it missed it.
            known = self._told.pop(name, None)
            if known is None:
                return
            written = StoreEvent(kind, known.key, written.version, known.item, gone=True)
        else:
            self._told[name] = written
        self._deliver(label(written), change_of(written))

    def relist(self, *, pods_first: bool) -> list[tuple[str, Change]]:
        """Forget what was on its way, and tell all that there is: a scheduler starts.

        At times that is all that there was a while ago, as of a server that is behind; the rest comes as news.
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
        """How many changes have been written and not told."""
        return sum(map(len, self._streams.values()))


def _apply(there: dict[tuple[str, str], StoreEvent], written: StoreEvent) -> None:
    """What there is after one more write."""
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
    """A change in a few words, for the trace."""
    what = "gone" if written.gone else "seen"
    uid = f" {written.item.metadata.uid}" if written.item.metadata.uid else ""
    return f"{written.kind} {what} {written.key}{uid} v{written.version}"
