"""Events about pods, in events.k8s.io/v1, as client-go's recorder writes them.

What is said again and again becomes a series: the second time is written at once, later ones are counted, and the
count is written when nothing was said for a while (FINISH_S), and now and then before (REFRESH_S), so that the server
does not forget the event. Here a series is of one text; client-go counts different texts together, and shows the first.

Events are for people: nothing waits for them, and when there are too many, or they cannot be written, they are dropped
and counted.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import uuid4

from situate.core.changes import PodRef
from situate.core.effects import Report
from situate.kube.client import Client
from situate.kube.lanes import Lanes
from situate.kube.problems import ApiError
from situate.wire.bodies import NANOS, event, series
from situate.wire.patches import STRATEGIC, series_patch

IN_FLIGHT: Final = 4
"""Few, so that the server has its time for binds first. kube-scheduler writes its events one by one."""
WAITING: Final = 16_384
"""How many events may wait to be written. More are dropped."""
REMEMBERED: Final = 1 << 16
"""How many events are remembered, to know them when they come again."""
TRIES: Final = 12
ANSWERED_TRIES: Final = 3
"""How often, if the server answers, and could not. Not for long: one that never can would hold up the others."""
RETRY_S: Final = 10.0
"""How long after the server was out of reach an event is tried again, and up to a quarter more."""
REQUEST_S: Final = 30.0
FINISH_S: Final = 6 * 60
REFRESH_S: Final = 30 * 60
NAME_CHARS: Final = 253
INSTANCE_CHARS: Final = 128
"""The server refuses an event whose reportingInstance is longer."""
ONCE: Final = frozenset(("Scheduled", "Preempted"))
"""These are said of a pod once, and not remembered."""

Same: TypeAlias = tuple[str, str, str, str, str, str, str]
"""Events that have all of this in common are one series."""


@dataclass(slots=True, eq=False)
class _Event:
    """An event, and how often it came."""

    report: Report
    controller: str
    version: str
    name: str
    at_ns: int
    last_ns: int
    count: int = 1
    written: int = 0
    """The count that the server has, as far as is known."""
    refreshed_ns: int = 0


class Events:
    """Writes events, of one pod in order."""

    def __init__(
        self,
        client: Client,
        may_write: Callable[[], bool],
        now_ns: Callable[[], int],
        host: str,
        *,
        dropped: Callable[[], None] = lambda: None,
        waiting: int = WAITING,
        retry_s: float = RETRY_S,
    ) -> None:
        self._client = client
        self._may_write = may_write
        self._now_ns = now_ns
        self._host = host
        self._dropped = dropped
        self._waiting = waiting
        self._retry_s = retry_s
        self._lanes = Lanes({"event": IN_FLIGHT})
        self._known: OrderedDict[Same, _Event] = OrderedDict()
        self._last_name_ns = 0
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    def report(self, said: Report, controller: str, version: str = "") -> None:
        """Have an event written, by and by. `version`: of the pod, as it was seen last."""
        if self._closed or not self._may_write():
            return
        now = self._now_ns()
        same = _same(said, controller)
        known = self._known.get(same)
        if known is not None and now - known.last_ns < FINISH_S * NANOS:
            known.count += 1
            known.last_ns = now
            if known.count == 2:
                self._put(known)
            return
        self._last_name_ns = max(now, self._last_name_ns + 1)
        made = _Event(said, controller, version, _name(said.pod, self._last_name_ns), now, now, refreshed_ns=now)
        if not self._put(made) or said.reason in ONCE:
            return
        self._known[same] = made
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        self._sweep_later()

    def sweep(self) -> None:
        """Write the counts of what was not said for a while, and forget it; refresh what goes on."""
        now = self._now_ns()
        for same, known in list(self._known.items()):
            over = now - known.last_ns >= FINISH_S * NANOS
            refresh = known.count > 1 and now - known.refreshed_ns >= REFRESH_S * NANOS
            if over:
                del self._known[same]
            if refresh or (over and known.count > max(known.written, 1)):
                known.refreshed_ns = now
                self._put(known, refresh=refresh)

    @property
    def busy(self) -> bool:
        """Whether requests are to be made or under way."""
        return self._lanes.busy

    async def drain(self, timeout_s: float) -> bool:
        """Take no more; wait for those that are here. False if some had to be given up."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        done = await self._lanes.idle(timeout_s)
        for _ in self._lanes.drop_all():
            self._dropped()
        self._lanes.cancel()
        return done

    def _put(self, one: _Event, *, refresh: bool = False) -> bool:
        if self._lanes.waiting >= self._waiting:
            self._dropped()
            return False
        self._lanes.put(one.report.pod.uid or one.report.pod.key, _Write(self, one, refresh))
        return True

    def _sweep_later(self) -> None:
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(FINISH_S, self._swept)

    def _swept(self) -> None:
        self._sweeping = None
        if not self._closed:
            self.sweep()
            if self._known:
                self._sweep_later()

    # -- writing -------------------------------------------------------------------------------------------------

    async def write(self, one: _Event, *, refresh: bool) -> None:
        """With a few tries; many, where the server is out of reach."""
        for tried in range(1, TRIES + 1):
            count = one.count
            if not self._may_write() or (one.written >= count and not refresh):
                return
            try:
                await self._send(one, count)
                one.written = count
                return
            except ApiError as error:
                if error.conflict and not one.written:
                    one.written = 1  # it is there: an answer was lost. There may be more to count
                    continue
                if tried >= (TRIES if error.status == 0 else ANSWERED_TRIES if error.temporary else 1):
                    self._dropped()  # also where its namespace goes away, or nobody may write events there
                    return
            await asyncio.sleep(self._retry_s * (1 + random.random() / 4))  # noqa: S311 - no secret

    async def _send(self, one: _Event, count: int) -> None:
        where = f"/apis/events.k8s.io/v1/namespaces/{one.report.pod.namespace or 'default'}/events"
        if one.written:
            try:
                patch = series_patch(count, one.last_ns)
                await self._request("PATCH", f"{where}/{one.name}", patch, STRATEGIC)
                return
            except ApiError as error:
                if not error.not_found:
                    raise
        await self._request("POST", where, self._body(one, count), "application/json")

    async def _request(self, method: str, path: str, body: bytes, content_type: str) -> None:
        await self._client.request(method, path, body=body, content_type=content_type, timeout_s=REQUEST_S)

    def _body(self, one: _Event, count: int) -> bytes:
        said = one.report
        return event(
            one.name,
            one.at_ns,
            said.pod,
            controller=one.controller,
            instance=f"{one.controller}-{self._host}"[:INSTANCE_CHARS],
            kind=said.type,
            reason=said.reason,
            action=said.action,
            note=said.note,
            version=one.version,
            related=said.related,
            repeated=series(count, one.last_ns) if count > 1 else b"",
        )


@dataclass(slots=True, eq=False)
class _Write:
    events: Events
    event: _Event
    refresh: bool
    kind: str = "event"

    async def run(self) -> None:
        await self.events.write(self.event, refresh=self.refresh)


def _same(said: Report, controller: str) -> Same:
    related = said.related.uid if said.related is not None else ""
    return (controller, said.pod.uid, related, said.type, said.reason, said.action, said.note)


def _name(pod: PodRef, at_ns: int) -> str:
    """Unique, and a name that the server takes."""
    name = f"{pod.name}.{at_ns:x}"
    return name if len(name) <= NAME_CHARS else str(uuid4())
