"""Events about pods, as kube-scheduler's recorder writes them, kept in the form of core/v1.

`Scheduled` joins the transaction that binds: it is said if and only if the pod is bound. Others are written by and by;
nothing waits for them, and when there are too many they are dropped and counted. What is said again becomes a series:
the second time is written at once, later ones are counted, and the count is written when nothing was said for a while.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import uuid4

import msgspec

from situate.core.changes import PodRef
from situate.core.effects import Report
from situate.server.errors import StatusError
from situate.server.placing.write_request import CacheReader, ExtraWrites
from situate.server.registry.codec import encode_compact
from situate.server.registry.keys import key_of
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.crew import Crew
from situate.server.uids import new_uid
from situate.store.transactions import Guard, Put, Write
from situate.wire.bodies import NANOS, micro_time, seconds_time

__all__ = ["EVENTS", "Events"]

EVENTS: Final = BY_KIND["v1", "Event"]
AT_ONCE: Final = 4
WAITING: Final = 16_384
"""How many events may wait to be written. More are dropped."""
REMEMBERED: Final = 1 << 16
"""How many events are remembered, to know them when they come again."""
FINISH_S: Final = 6 * 60
"""After how long without a word a series is over."""
NAME_CHARS: Final = 253
INSTANCE_CHARS: Final = 128
SCHEDULED: Final = "Scheduled"
CONFLICTS: Final = (404, 409)

Same: TypeAlias = tuple[str, str, str, str, str, str, str]
"""Events that have all of this in common are one series."""


@dataclass(slots=True, eq=False)
class _Event:
    """An event, and how often it came."""

    report: Report
    controller: str
    name: str
    at_ns: int
    last_ns: int
    count: int = 1
    written: int = 0


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str
    namespace: str
    uid: str
    creation_timestamp: str


class _Reference(msgspec.Struct, rename="camel", gc=False):
    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str


class _Stored(msgspec.Struct, rename="camel", gc=False):
    """An event that was said once, in its stored form."""

    metadata: _Meta
    involved_object: _Reference
    reason: str
    message: str
    source: dict[str, str]
    first_timestamp: None
    last_timestamp: None
    type: str
    event_time: str
    action: str
    reporting_component: str
    reporting_instance: str


class Events:
    """Writes events through one registry."""

    def __init__(
        self, registry: Registry, wall_ns: Callable[[], int], caller: Caller, host: str, may_write: Callable[[], bool]
    ) -> None:
        self._registry = registry
        self._wall_ns = wall_ns
        self._caller = caller
        self._host = host
        self._may_write = may_write
        self._crew = Crew(AT_ONCE, self._write)
        self._known: OrderedDict[Same, _Event] = OrderedDict()
        self._joined: OrderedDict[str, None] = OrderedDict()
        self._last_name_ns = 0
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False
        self.dropped = 0

    # -- with a bind ---------------------------------------------------------------------------------------------------

    def extra_writes(self, pod: PodRef, node: str, controller: str) -> ExtraWrites:
        """What has `Scheduled` written in the transaction of a bind to this node."""
        key, value = self._scheduled(pod, node, controller)
        self._joined[pod.uid] = None
        if len(self._joined) > REMEMBERED:
            self._joined.popitem(last=False)

        def join(_cache: CacheReader, _before: Object | None, _after: Object | None) -> tuple[list[Guard], list[Write]]:
            return [], [Put(key, value)]

        return join

    def did_not_join(self, pod: PodRef) -> None:
        self._joined.pop(pod.uid, None)

    def joined(self, said: Report) -> bool:
        """Whether it has been said with the bind."""
        return said.reason == SCHEDULED and self._joined.pop(said.pod.uid, said) is None

    # -- by and by -----------------------------------------------------------------------------------------------------

    def report(self, said: Report, controller: str) -> None:
        """Have an event written."""
        if self._closed or not self._may_write():
            return
        now, same = self._wall_ns(), _same(said, controller)
        known = self._known.get(same)
        if known is not None and now - known.last_ns < FINISH_S * NANOS:
            known.count += 1
            known.last_ns = now
            if known.count == 2:  # later ones are counted only
                self._put(known)
            return
        made = self._made(said, controller)
        self._put(made)
        if said.related is None:
            self._known[same] = made
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            self._sweep_later()

    async def drain(self, timeout_s: float) -> bool:
        """Take no more; wait for those that are here. False if some had to be given up."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        done = await self._crew.idle(timeout_s)
        self.dropped += sum(1 for _ in self._crew.drop_all())
        self._crew.cancel()
        return done

    def sweep(self) -> None:
        """Write the counts of what was not said for a while, and forget it."""
        now = self._wall_ns()
        for same, known in list(self._known.items()):
            if now - known.last_ns >= FINISH_S * NANOS:
                del self._known[same]
                if known.count > max(known.written, 1):
                    self._put(known)

    def _sweep_later(self) -> None:
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(FINISH_S, self._swept)

    def _swept(self) -> None:
        self._sweeping = None
        if not self._closed:
            self.sweep()
            if self._known:
                self._sweep_later()

    def _put(self, one: _Event) -> None:
        if self._crew.waiting >= WAITING:
            self.dropped += 1
        else:
            self._crew.put(one)

    async def _write(self, one: _Event) -> None:
        """Once: where it cannot be written, as in a namespace that goes away, it is dropped."""
        namespace, count = one.report.pod.namespace or "default", one.count
        try:
            if one.written:
                await self._registry.modify(Target(EVENTS, namespace, one.name), self._counted(one), self._caller)
            else:
                await self._registry.create(Target(EVENTS, namespace), self._body(one), self._caller)
            one.written = count
        except StatusError:
            self.dropped += 1

    def _counted(self, one: _Event) -> Callable[[Object, StoredObject], Object]:
        def change(event: Object, _held: StoredObject) -> Object:
            event["series"] = _series(one)
            return event

        return change

    # -- the words for it ----------------------------------------------------------------------------------------------

    def _made(self, said: Report, controller: str) -> _Event:
        now = self._wall_ns()
        return _Event(said, controller, self._name(said.pod, now), now, now)

    def _name(self, pod: PodRef, now: int) -> str:
        """Unique, and a name that the server takes."""
        self._last_name_ns = max(now, self._last_name_ns + 1)
        name = f"{pod.name}.{self._last_name_ns:x}"
        return name if len(name) <= NAME_CHARS else str(uuid4())

    def _scheduled(self, pod: PodRef, node: str, controller: str) -> tuple[str, bytes]:
        """Its key and its stored form, with what the registry would fill in. Most events are made here, one with each
        bind, so it is encoded from structs and not from an object."""
        now, namespace = self._wall_ns(), pod.namespace or "default"
        name = self._name(pod, now)
        made = _Stored(
            _Meta(name, namespace, new_uid(), seconds_time(now)),
            _Reference("Pod", pod.namespace, pod.name, pod.uid, "v1"),
            SCHEDULED,
            f"Successfully assigned {pod.key} to {node}",
            {},
            None,
            None,
            "Normal",
            micro_time(now),
            "Binding",
            controller,
            f"{controller}-{self._host}"[:INSTANCE_CHARS],
        )
        return key_of(EVENTS, namespace, name), encode_compact(made)

    def _body(self, one: _Event) -> Object:
        said = one.report
        body: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": one.name, "namespace": said.pod.namespace or "default"},
            "involvedObject": _reference(said.pod),
            "reason": said.reason,
            "message": said.note,
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "type": said.type,
            "eventTime": micro_time(one.at_ns),
            "action": said.action,
            "reportingComponent": one.controller,
            "reportingInstance": f"{one.controller}-{self._host}"[:INSTANCE_CHARS],
        }
        if said.related is not None:
            body["related"] = _reference(said.related)
        if one.count > 1:
            body["series"] = _series(one)
        return body


def _series(one: _Event) -> Object:
    return {"count": one.count, "lastObservedTime": micro_time(one.last_ns)}


def _reference(ref: PodRef) -> Object:
    return {"kind": "Pod", "namespace": ref.namespace, "name": ref.name, "uid": ref.uid, "apiVersion": "v1"}


def _same(said: Report, controller: str) -> Same:
    related = said.related.uid if said.related is not None else ""
    return (controller, said.pod.uid, related, said.type, said.reason, said.action, said.note)
