"""Withholds objects on which an engine failed from the next engine, so that one object does not stop scheduling.

An engine that raised is not used again. Before the next one begins, other engines try the changes of the step that
failed, in halves, together with everything else, until each object that makes them fail is known. What is withheld is
as if it did not exist: a pod stays pending, a node gets no pods. The server's own checks of every bind still count it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from situate.core.changes import Change, Leading, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodSeen
from situate.core.engine.engine import Engine
from situate.loop.drive import EngineError, describe_error
from situate.loop.logs import Log

MOST_TRIALS: Final = 64
"""How many engines to try after one failure."""
STEPS: Final = 4
"""Steps of a trial: the first takes the changes, and the others decide on them."""
HELD_FIRST_S: Final = 60.0
HELD_LAST_S: Final = 3_600.0
"""How long an object is withheld at least: twice as long with each failure. After that, it is tried again."""
MOST_HELD: Final = 10_000
"""How many objects are withheld. Those withheld first are tried again first."""

Identity: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""
MakeEngine: TypeAlias = Callable[[], Engine]

_log = Log(__name__)


class _Held(NamedTuple):
    until: float
    times: int


class Quarantine:
    """It outlives the engines. `blame` it for a failure; `settle` before the next engine begins."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._suspects: dict[Identity, None] | None = None
        self._held: dict[Identity, _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def blame(self, error: EngineError) -> None:
        """The changes of the step that failed are suspects."""
        self._suspects = {one: None for change in error.changes if (one := identity(change)) is not None}

    def withholds(self, change: Change) -> bool:
        one = identity(change) if self._held else None
        held = None if one is None else self._held.get(one)
        return held is not None and held.until > self._clock()

    def released(self) -> list[Identity]:
        """Objects that have been withheld for long enough, each once. One that fails again is withheld for longer."""
        now = self._clock()
        over = [one for one, held in self._held.items() if 0 < held.until <= now]
        for one in over:
            self._held[one] = self._held[one]._replace(until=0.0)
        return over

    async def settle(
        self, make: MakeEngine, objects: Callable[[], Sequence[Change]], now: int
    ) -> list[tuple[Identity, str]]:
        """Find out which of all objects an engine fails on, if one has failed. They are withheld from now on."""
        suspects, self._suspects = self._suspects, None
        if suspects is None:
            return []
        stop = threading.Event()
        try:
            guilty = await asyncio.to_thread(find_guilty, make, objects(), suspects, now, stop.is_set)
        finally:
            stop.set()  # we may be cancelled, and the process waits for the thread
        for one, why in guilty:
            before = self._held.pop(one, None)
            times = 1 if before is None else before.times + 1
            seconds = min(HELD_FIRST_S * 2.0 ** min(times - 1, 30), HELD_LAST_S)
            self._held[one] = _Held(self._clock() + seconds, times)
            kind, namespace, name = one
            text = "The scheduler fails on an object; continuing without it"
            _log.error(text, kind=kind, namespace=namespace, name=name, err=why, seconds=seconds)
        while len(self._held) > MOST_HELD:
            del self._held[next(iter(self._held))]
        return guilty


def identity(change: Change) -> Identity | None:
    """The object of a change; None: it is about none that is stored."""
    match change:
        case PodSeen(pod):
            return "Pod", pod.metadata.namespace, pod.metadata.name
        case PodGone(ref):
            return "Pod", ref.namespace, ref.name
        case NodeSeen(node):
            return "Node", "", node.metadata.name
        case NodeGone(name):
            return "Node", "", name
        case ObjectSeen(item) | ObjectGone(item):
            return type(item).__name__, getattr(item.metadata, "namespace", ""), item.metadata.name
        case _:
            return None


def find_guilty(
    make: MakeEngine,
    objects: Sequence[Change],
    suspects: dict[Identity, None],
    now: int,
    stopped: Callable[[], bool] = lambda: False,
) -> list[tuple[Identity, str]]:
    """The suspects that make an engine fail beside everything else, and how; any object, if it fails without them."""
    innocent = [one for one in objects if identity(one) not in suspects]
    accused = [one for one in objects if identity(one) in suspects]
    if _failure(make, innocent, now):
        innocent, accused = [], list(objects)
    guilty: list[tuple[Identity, str]] = []
    groups, trials = [accused] if accused else [], 0
    while groups and trials < MOST_TRIALS and not stopped():
        group, trials = groups.pop(), trials + 1
        why = _failure(make, [*innocent, *group], now)
        if not why:
            innocent += group
        elif len(group) > 1:
            half = len(group) // 2
            groups += [group[half:], group[:half]]
        elif (one := identity(group[0])) is not None:
            guilty.append((one, why))
    return guilty


def _failure(make: MakeEngine, changes: Sequence[Change], now: int) -> str:
    """How an engine fails when it decides on these changes; "" if it does not."""
    try:
        engine = make()
        engine.step(now, [Leading(True), *changes])
        for later in range(1, STEPS):
            engine.step(now + later, [])
    except Exception as error:  # noqa: BLE001 - whatever it is, we look for its cause
        return describe_error(error)
    return ""
