"""Carries out in a real cluster what the engine asks for, and tells what came of it, as changes.

Nothing here holds up deciding: `perform` only puts work where it waits for its turn. What concerns one pod is done in
order, different pods side by side, each kind of work within its own limit. Every Bind, BindVolumes, Evict and
AskExtender is answered once. A scheduler that may not write (any more) writes nothing, and answers so.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, assert_never

from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    EvictFailed,
    ExtenderSaid,
    PodRef,
    VolumesBound,
    VolumesFailed,
)
from situate.core.effects import (
    AskExtender,
    Bind,
    BindVolumes,
    Effect,
    Evict,
    Nominate,
    Report,
    SetCondition,
    SetGroupCondition,
)
from situate.core.model.group import PodGroup
from situate.core.model.pod import Pod
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from situate.kube.binding import NOT_LEADER, STOPPING, bind_pod
from situate.kube.client import Client
from situate.kube.conditions import Groups, Note, Notes
from situate.kube.events import Events
from situate.kube.eviction import evict_pod
from situate.kube.lanes import Lanes
from situate.kube.volumes import StorageView, Volumes
from situate.loop.extenders import EngineObjects, Extenders

BINDS_IN_FLIGHT: Final = 48
"""Enough: a server that answers in 10 ms does 4,800 a second. All limits together are a client's connections (64), so
that no request waits for one while its time runs."""
NOTES_IN_FLIGHT: Final = 8
"""Few, so that they leave the rate limit to binds."""
EVICTIONS_IN_FLIGHT: Final = 4


class ClusterView(StorageView, Protocol):
    """What is known of the cluster."""

    def scheduler_of(self, ref: PodRef) -> tuple[str, str]:
        """The scheduler that a pod asks for, and the version in which it was seen last; "" where that is not known."""

    def group(self, namespace: str, name: str) -> PodGroup | None: ...


class EngineView(EngineObjects):
    """The cluster as the engine knows it: what a ClusterView has to be."""

    @property
    def storage_version(self) -> int:
        return self._engine.cluster.objects.storage.version

    def volume(self, name: str) -> PersistentVolume | None:
        return self._engine.cluster.objects.storage.volumes.get(name)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._engine.cluster.objects.storage.claims.get((namespace, name))

    def csi_node(self, name: str) -> CSINode | None:
        return self._engine.cluster.objects.storage.csi_nodes.get(name)

    def scheduler_of(self, ref: PodRef) -> tuple[str, str]:
        entry = self._engine.queue.get(ref.key)
        if entry is not None:
            pod = entry.pod
            return (pod.spec.scheduler_name, pod.metadata.resource_version) if entry.ref == ref else ("", "")
        counted = self._engine.cluster.counted(ref.key)
        return ("", "") if counted is None else (counted[0].pod.spec.scheduler_name, "")

    def group(self, namespace: str, name: str) -> PodGroup | None:
        return self._engine.cluster.objects.pod_groups.get((namespace, name))


class Metrics(Protocol):
    """Counts what the performer does. Operations: binding, status, preemption, volumes, extender, event."""

    def under_way(self, operation: str, change: int) -> None:
        """One more, or one less. Volumes and events are not counted: they wait most of their time."""

    def failed(self, operation: str) -> None: ...

    def dropped(self, operation: str) -> None:
        """An event that nobody will see."""


class _NoMetrics:
    def under_way(self, operation: str, change: int) -> None: ...

    def failed(self, operation: str) -> None: ...

    def dropped(self, operation: str) -> None: ...


class KubePerformer:
    """Performs for one scheduler, in the running event loop. `tell` is called in it, too, and must not block."""

    def __init__(
        self,
        client: Client,
        events_client: Client,
        tell: Callable[[list[Change]], None],
        objects: ClusterView,
        *,
        component: str,
        host: str | None = None,
        may_write: Callable[[], bool],
        term: Callable[[], int | None] = lambda: None,
        now_ns: Callable[[], int] = time.time_ns,
        extenders: Extenders | None = None,
        groups: Callable[[], Groups] = Groups,
        volume_timeouts_s: Mapping[str, float] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._client = client
        self._tell = tell
        self._objects = objects
        self._component = component
        self._may_write = may_write
        self._term = term
        self._now_ns = now_ns
        self._extenders = extenders
        self._metrics = metrics or _NoMetrics()
        self._notes = Notes(client, objects, may_write, now_ns, groups=groups)
        self._volumes = Volumes(client, objects, self._answer_volumes, may_write, timeouts_s=volume_timeouts_s)
        self._events = Events(
            events_client,
            may_write,
            now_ns,
            socket.gethostname() if host is None else host,
            dropped=lambda: self._metrics.dropped("event"),
        )
        self._lanes = Lanes({"bind": BINDS_IN_FLIGHT, "note": NOTES_IN_FLIGHT, "evict": EVICTIONS_IN_FLIGHT})
        self._binding: dict[str, int] = {}
        """By the pod's uid: the attempt whose bind waits or is under way."""
        self._asking: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def binds_waiting(self) -> int:
        """How many binds have no answer yet: who decides may want to slow down."""
        return len(self._binding)

    @property
    def busy(self) -> bool:
        """Whether requests are to be made or under way; claims that are waited for do not count."""
        return self._lanes.busy or self._volumes.busy or self._events.busy or bool(self._asking)

    def perform(self, effects: Sequence[Effect]) -> None:
        """Have these carried out. Comes back at once."""
        for effect in effects:
            match effect:
                case Bind():
                    self._bind(effect)
                case Report():
                    self._report(effect)
                case SetCondition() | Nominate():
                    self._note(effect)
                case SetGroupCondition():
                    self._note_group(effect)
                case Evict():
                    self._evict(effect)
                case BindVolumes():
                    self._volumes.bind(effect)
                case AskExtender():
                    self._ask(effect)
                case _:
                    assert_never(effect)
        self._volumes.look()

    async def drain(self, timeout_s: float) -> bool:
        """Begin nothing more; let what is under way finish. False if it did not in time, and was cut off."""
        self._closed = True
        deadline = asyncio.get_running_loop().time() + timeout_s
        for work in self._lanes.drop_all():
            if isinstance(work, _BindWork):
                self._binding.pop(_key(work.ask.pod), None)
                self._answer_bind(BindFailed(work.ask.pod, work.ask.attempt, STOPPING))
            elif isinstance(work, _EvictWork):
                self._tell([EvictFailed(work.ask.victim, STOPPING)])
        done = await self._lanes.idle(timeout_s)
        self._lanes.cancel()
        for task in self._asking:
            task.cancel()
        clock = asyncio.get_running_loop().time
        done &= await self._volumes.drain(max(0.0, deadline - clock()))
        return await self._events.drain(max(0.0, deadline - clock())) and done

    # -- binds -----------------------------------------------------------------------------------------------------

    def _bind(self, ask: Bind) -> None:
        key, refusal = _key(ask.pod), self._refusal()
        if refusal:
            self._tell([BindFailed(ask.pod, ask.attempt, refusal)])
            return
        if self._binding.get(key) == ask.attempt:
            return  # it is under way, and will be answered once
        for work in self._lanes.of(key):
            if isinstance(work, _BindWork | _NoteWork):
                self._lanes.drop(key, work)  # of an older decision; and a bound pod has no reason to wait
        self._binding[key] = ask.attempt
        self._lanes.put(key, _BindWork(self, ask, self._objects.pod(ask.pod)))

    async def carry_out_bind(self, ask: Bind, pod: Pod | None) -> None:
        self._metrics.under_way("binding", 1)
        try:
            if ask.extender is not None:
                answer = await self._extender_binds(ask)
            else:
                version = "" if pod is None else self._notes.version(pod)
                answer = await bind_pod(self._client, ask, pod, version, self._may_write, self._term)
        finally:
            self._metrics.under_way("binding", -1)
            if self._binding.get(_key(ask.pod)) == ask.attempt:
                del self._binding[_key(ask.pod)]
        self._answer_bind(answer)

    async def _extender_binds(self, ask: Bind) -> BindDone | BindFailed:
        if not self._may_write():
            return BindFailed(ask.pod, ask.attempt, NOT_LEADER)
        if self._extenders is None:
            return BindFailed(ask.pod, ask.attempt, "no extenders are configured", final=True)
        return await self._extenders.bind(ask)

    def _answer_bind(self, answer: BindDone | BindFailed) -> None:
        if isinstance(answer, BindDone):
            self._notes.forget(answer.pod)
        else:
            self._metrics.failed("binding")
        self._tell([answer])

    # -- notes -----------------------------------------------------------------------------------------------------

    def _note(self, effect: SetCondition | Nominate) -> None:
        if self._refusal():
            return
        key = _key(effect.pod)
        waiting = self._lanes.of(key)
        if waiting and isinstance(last := waiting[-1], _NoteWork):
            last.note.add(effect)
            return
        work = _NoteWork(self, Note(effect.pod))
        work.note.add(effect)
        self._lanes.put(key, work)

    async def carry_out_note(self, note: Note) -> None:
        self._metrics.under_way("status", 1)
        try:
            written = await self._notes.write(note, lambda: bool(self._lanes.of(_key(note.ref))))
        finally:
            self._metrics.under_way("status", -1)
        if not written:
            self._metrics.failed("status")

    def _note_group(self, said: SetGroupCondition) -> None:
        key = f"group {said.namespace}/{said.name}"
        if self._refusal():
            return
        for work in self._lanes.of(key):
            self._lanes.drop(key, work)  # only the latest counts
        self._lanes.put(key, _GroupWork(self, said))

    async def carry_out_group_note(self, said: SetGroupCondition) -> None:
        self._metrics.under_way("status", 1)
        try:
            written = await self._notes.write_group(said)
        finally:
            self._metrics.under_way("status", -1)
        if not written:
            self._metrics.failed("status")

    def _answer_volumes(self, answer: VolumesBound | VolumesFailed) -> None:
        if isinstance(answer, VolumesFailed):
            self._metrics.failed("volumes")
        self._tell([answer])

    # -- evictions, events, extenders --------------------------------------------------------------------------------

    def _evict(self, ask: Evict) -> None:
        if refusal := self._refusal():
            self._tell([EvictFailed(ask.victim, refusal)])
        elif not any(isinstance(work, _EvictWork) for work in self._lanes.of(_key(ask.victim))):
            self._lanes.put(_key(ask.victim), _EvictWork(self, ask))

    async def carry_out_evict(self, ask: Evict) -> None:
        self._metrics.under_way("preemption", 1)
        try:
            answer = await evict_pod(self._client, ask, self._may_write, self._now_ns)
        finally:
            self._metrics.under_way("preemption", -1)
        if isinstance(answer, EvictFailed):
            self._metrics.failed("preemption")
        self._tell([answer])

    def _report(self, said: Report) -> None:
        if self._closed:
            return
        controller, version = self._objects.scheduler_of(said.pod)
        if said.related is not None:  # what is said of a victim is said by the preemptor's scheduler
            controller, _ = self._objects.scheduler_of(said.related)
        self._events.report(said, controller or self._component, version)

    def _ask(self, ask: AskExtender) -> None:
        if self._closed or self._extenders is None:
            self._tell([ExtenderSaid(ask.ask, problem=STOPPING if self._closed else "no extenders are configured")])
            return
        task = asyncio.get_running_loop().create_task(self._asked(self._extenders, ask))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _asked(self, extenders: Extenders, ask: AskExtender) -> None:
        self._metrics.under_way("extender", 1)
        try:
            said = await extenders.ask(ask)
        finally:
            self._metrics.under_way("extender", -1)
        if said.problem:
            self._metrics.failed("extender")
        self._tell([said])

    def _refusal(self) -> str:
        """Why nothing may be written now; empty if it may."""
        if self._closed:
            return STOPPING
        return "" if self._may_write() else NOT_LEADER


@dataclass(slots=True, eq=False)
class _BindWork:
    performer: KubePerformer
    ask: Bind
    pod: Pod | None
    """As it was decided on."""
    kind: str = "bind"

    async def run(self) -> None:
        await self.performer.carry_out_bind(self.ask, self.pod)


@dataclass(slots=True, eq=False)
class _NoteWork:
    performer: KubePerformer
    note: Note
    kind: str = "note"

    async def run(self) -> None:
        await self.performer.carry_out_note(self.note)


@dataclass(slots=True, eq=False)
class _GroupWork:
    performer: KubePerformer
    said: SetGroupCondition
    kind: str = "note"

    async def run(self) -> None:
        await self.performer.carry_out_group_note(self.said)


@dataclass(slots=True, eq=False)
class _EvictWork:
    performer: KubePerformer
    ask: Evict
    kind: str = "evict"

    async def run(self) -> None:
        await self.performer.carry_out_evict(self.ask)


def _key(ref: PodRef) -> str:
    return ref.uid or ref.key
