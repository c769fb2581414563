"""Events about pods, as client-go's recorder writes them.

An event that occurs again becomes a series. The second occurrence is written at once and later ones are counted; the
count is written when the event has not occurred for a while (FINISH_S), and now and then before (REFRESH_S), so that
the server does not expire the event. A series has one text; client-go counts different texts together and shows the
first.

Events are for people: nothing waits for them. When there are too many, or they cannot be written, they are dropped and
counted.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from situate.core.effects import Report
from situate.loop.scheduling.lanes import Lanes
from situate.loop.scheduling.port import EventSeries, SchedulingPort, WriteOutcome
from situate.wire.bodies import NANOS

WAITING: Final = 16_384
"""How many events may wait to be written. More are dropped."""
REMEMBERED: Final = 1 << 16
"""How many events are remembered, to recognise them when they occur again."""
TRIES: Final = {WriteOutcome.UNREACHABLE: 12, WriteOutcome.BUSY: 3}
"""How often to write an event in all. Not often, if the server answers: the other events have to wait."""
RETRY_S: Final = 10.0
"""How long to wait before writing an event again, and up to a quarter more."""
FINISH_S: Final = 6 * 60
REFRESH_S: Final = 30 * 60
ONCE: Final = frozenset(("Scheduled", "Preempted"))
"""Reasons that a pod has once, and that need not be remembered."""

SeriesKey: TypeAlias = tuple[str, str, str, str, str, str, str]
"""Events that have all of this in common are one series."""


@dataclass(slots=True, eq=False)
class _EventWrite:
    kind: ClassVar[str] = "event"
    event: EventSeries
    refresh: bool


class EventSeriesRecorder:
    """Writes events through a port; those about one pod in order."""

    def __init__(
        self,
        port: SchedulingPort,
        may_write: Callable[[], bool],
        now_ns: Callable[[], int],
        *,
        dropped: Callable[[], None] = lambda: None,
        waiting: int = WAITING,
        retry_s: float = RETRY_S,
    ) -> None:
        self._port = port
        self._may_write = may_write
        self._now_ns = now_ns
        self._dropped = dropped
        self._waiting = waiting
        self._retry_s = retry_s
        self._lanes: Lanes[_EventWrite] = Lanes({"event": (port.limits.events, self._write)})
        self._known: OrderedDict[SeriesKey, EventSeries] = OrderedDict()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closing = asyncio.Event()

    @property
    def busy(self) -> bool:
        """Whether events wait or are being written."""
        return self._lanes.busy

    def record(self, report: Report, controller: str, version: str = "") -> None:
        """Have an event written. `version`: of the pod, as the engine knows it."""
        if self._closing.is_set() or not self._may_write():
            return
        now, key = self._now_ns(), _series_key(report, controller)
        known = self._known.get(key)
        if known is not None and now - known.last_ns < FINISH_S * NANOS:
            known.count += 1
            known.last_ns = now
            if known.count == 2:
                self._put(known)
            return
        names = self._port.names
        made = EventSeries(
            report, controller, names.instance(controller), version, names.next(report.pod, now), now, now
        )
        made.refreshed_ns = now
        if not self._put(made) or report.reason in ONCE:
            return
        self._known[key] = made
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        self._sweep_later()

    def sweep(self) -> None:
        """Write the counts of series that are over, and forget them; refresh those that go on."""
        now = self._now_ns()
        for key, known in list(self._known.items()):
            over = now - known.last_ns >= FINISH_S * NANOS
            refresh = known.count > 1 and now - known.refreshed_ns >= REFRESH_S * NANOS
            if over:
                del self._known[key]
            if refresh or (over and known.count > max(known.written, 1)):
                known.refreshed_ns = now
                self._put(known, refresh=refresh)

    async def drain(self, timeout_s: float) -> bool:
        """Take no more, and write those that wait. False if some had to be dropped."""
        self._closing.set()
        if self._sweeper is not None:
            self._sweeper.cancel()
        done = await self._lanes.idle(timeout_s)
        for _ in self._lanes.drop_all():
            self._dropped()
        await self._lanes.cancel()
        return done

    def _put(self, event: EventSeries, *, refresh: bool = False) -> bool:
        if self._lanes.waiting >= self._waiting:
            self._dropped()
            return False
        pod = event.report.pod
        self._lanes.put(pod.uid or pod.key, _EventWrite(event, refresh))
        return True

    def _sweep_later(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(FINISH_S, self._sweep_due)

    def _sweep_due(self) -> None:
        self._sweeper = None
        if not self._closing.is_set():
            self.sweep()
            if self._known:
                self._sweep_later()

    async def _write(self, work: _EventWrite) -> None:
        event, tried = work.event, 0
        while True:
            count = event.count
            if not self._may_write() or (event.written >= count and not work.refresh):
                return
            outcome = await self._port.write_event(event)
            tried += 1
            if outcome is WriteOutcome.DONE:
                event.written = count
                return
            if tried >= max(TRIES.values()):
                break
            if outcome is WriteOutcome.EXISTS:
                event.written = 1  # and there may be more to count
            elif outcome is WriteOutcome.MISSING:
                event.written = 0
            elif tried < TRIES.get(outcome, 1) and not self._closing.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._retry_s * (1 + random.random() / 4)):  # noqa: S311 - no secret
                        await self._closing.wait()
            else:
                break  # as in a namespace that is being deleted, or where nobody may write events
        self._dropped()


def _series_key(report: Report, controller: str) -> SeriesKey:
    related = report.related.uid if report.related is not None else ""
    return (controller, report.pod.uid, related, report.type, report.reason, report.action, report.note)
