"""Carries out an engine's effects through a port, and reports the outcomes to the engine, as changes.

Nothing here holds up deciding: `perform` only queues work. Work on one pod runs in order, different pods side by side,
each kind of work within the port's limits. Every Bind, BindVolumes, BindClaims, Evict and AskExtender is answered once.
A scheduler that may not write (any more) writes nothing, and answers so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias, assert_never

from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    ClaimsBound,
    ClaimsFailed,
    EvictDone,
    EvictFailed,
    ExtenderSaid,
    PodRef,
    VolumesBound,
    VolumesFailed,
)
from situate.core.effects import (
    AskExtender,
    Bind,
    BindClaims,
    BindVolumes,
    Effect,
    Evict,
    Nominate,
    ReleaseClaim,
    Report,
    SetCondition,
    SetGroupCondition,
    UnreserveClaims,
)
from situate.core.model.pod import Pod
from situate.loop.drive import describe_error
from situate.loop.extenders import Extenders
from situate.loop.logs import Log
from situate.loop.metrics import Metrics
from situate.loop.scheduling.claims import SETTLED_S, ClaimBinder
from situate.loop.scheduling.events import EventSeriesRecorder
from situate.loop.scheduling.lanes import Lanes, Together
from situate.loop.scheduling.port import NOT_LEADER, RUNNING, STOPPING, PodNote, SchedulingPort, WriteOutcome
from situate.loop.scheduling.view import EngineView
from situate.loop.scheduling.volumes import VolumeBinder

PENDING: Final = "BindingConditionsPending"
WAITING: Final = "waiting for binding conditions for device on node {}"
NO_EXTENDERS: Final = "no extenders are configured"

_log = Log(__name__)


class _NoMetrics:
    def in_flight(self, operation: str, change: int) -> None: ...

    def failed(self, operation: str) -> None: ...

    def dropped(self, operation: str) -> None: ...


@dataclass(slots=True, eq=False)
class _BindWork:
    kind: ClassVar[str] = "bind"
    bind: Bind
    pod: Pod | None
    """As it was decided on."""


@dataclass(slots=True, eq=False)
class _GroupNote:
    kind: ClassVar[str] = "note"
    condition: SetGroupCondition


@dataclass(slots=True, eq=False)
class _EvictWork:
    kind: ClassVar[str] = "evict"
    evict: Evict


_Work: TypeAlias = _BindWork | PodNote | _GroupNote | _EvictWork


class Performer:
    """Performs for one engine, in the running event loop. It calls `tell` there, too, which must not block."""

    def __init__(
        self,
        port: SchedulingPort,
        objects: EngineView,
        tell: Callable[[list[Change]], None],
        *,
        component: str,
        may_write: Callable[[], bool] = lambda: True,
        now_ns: Callable[[], int] = time.time_ns,
        extenders: Extenders | None = None,
        volume_timeouts_s: Mapping[str, float] | None = None,
        device_timeouts_s: Mapping[str, float] | None = None,
        devices_settled_s: float = SETTLED_S,
        metrics: Metrics | None = None,
    ) -> None:
        """`component` reports events about pods whose scheduler is not known. `devices_settled_s`: see ClaimBinder."""
        self._port = port
        self._objects = objects
        self._tell = tell
        self._component = component
        self._may_write = may_write
        self._extenders = extenders
        self._metrics: Metrics | _NoMetrics = metrics or _NoMetrics()
        self._volumes = VolumeBinder(port, objects, self._answer_volumes, may_write, volume_timeouts_s)
        self._claims = ClaimBinder(
            port,
            objects,
            self._answer_claims,
            may_write,
            now_ns,
            waits=self._waits_for_devices,
            timeouts_s=device_timeouts_s,
            settled_s=devices_settled_s,
        )
        self._events = EventSeriesRecorder(port, may_write, now_ns, dropped=lambda: self._metrics.dropped("event"))
        limits = port.limits
        self._lanes: Lanes[_Work] = Lanes(
            {
                "bind": Together(limits.binds, limits.binds_together, self._run_binds),
                "note": (limits.notes, self._run_note),
                "evict": (limits.evictions, self._run_evict),
            }
        )
        self._binding: dict[str, int] = {}
        """By pod: the attempt whose bind has no answer yet."""
        self._evicting: set[str] = set()
        self._asking: dict[int, asyncio.Task[None]] = {}
        """Calls of extenders that have no answer yet."""
        self._closed = False

    @property
    def binds_waiting(self) -> int:
        """How many binds have no answer yet, and for how many pods devices are being written before. The drive pauses
        when there are too many."""
        return len(self._binding) + self._claims.writing

    @property
    def busy(self) -> bool:
        """Whether work waits or runs. Claims that are waited for do not count."""
        others = self._volumes.busy or self._claims.busy or self._events.busy
        return self._lanes.busy or others or bool(self._asking)

    def perform(self, effects: Sequence[Effect]) -> None:
        """Queue the effects of a step. To be called after every step, also after one without effects."""
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
                    self._bind_volumes(effect)
                case BindClaims():
                    self._claims.bind(effect)
                case UnreserveClaims():
                    self._claims.unreserve(effect)
                case ReleaseClaim():
                    self._claims.release(effect)
                case AskExtender():
                    self._ask(effect)
                case _:
                    assert_never(effect)
        self._volumes.look()
        self._claims.look()

    async def drain(self, timeout_s: float) -> bool:
        """Begin nothing more; let what runs finish. False if something did not in time, and was cut off."""
        self._closed = True
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        for work in self._lanes.drop_all():
            if isinstance(work, _BindWork):
                self._answer_bind(work.bind, _refused(work.bind, STOPPING))
            elif isinstance(work, _EvictWork):
                self._answer_evict(EvictFailed(work.evict.victim, STOPPING))
        done = await self._lanes.idle(timeout_s)
        await self._lanes.cancel()
        for number, task in list(self._asking.items()):
            task.cancel()
            self._answer_ask(ExtenderSaid(number, problem=STOPPING))
        done &= await self._volumes.drain(max(0.0, deadline - clock()))
        done &= await self._claims.drain(max(0.0, deadline - clock()))
        return await self._events.drain(max(0.0, deadline - clock())) and done

    def _refusal(self) -> str:
        """Why nothing may be written now; empty if it may."""
        if self._closed:
            return STOPPING
        return "" if self._may_write() else NOT_LEADER

    # -- binds -----------------------------------------------------------------------------------------------------

    def _bind(self, bind: Bind) -> None:
        if refusal := self._refusal():
            self._tell([_refused(bind, refusal)])
            return
        key = _key(bind.pod)
        if self._binding.get(key) == bind.attempt:
            return  # it is under way, and will be answered once
        for work in self._lanes.of(key):
            if isinstance(work, _BindWork | PodNote):
                self._lanes.drop(key, work)  # of an older decision; and a bound pod has no reason to wait
        self._binding[key] = bind.attempt
        self._lanes.put(key, _BindWork(bind, self._objects.pod(bind.pod)))

    async def _run_binds(self, works: Sequence[_BindWork]) -> None:
        if len(works) == 1 or any(work.bind.extender is not None for work in works) or not self._may_write():
            await asyncio.gather(*(self._run_bind(work) for work in works))
            return
        answers: Sequence[BindDone | BindFailed] | None = None
        try:
            answers = await self._port.bind_each([(work.bind, work.pod) for work in works])
        except Exception as error:  # noqa: BLE001 - a fault of ours: the engine has its answers all the same
            _log.error("Binds failed", pods=len(works), err=describe_error(error))
            answers = [_refused(work.bind, f"{RUNNING}{error!r}") for work in works]
        finally:
            if answers is None:
                answers = [_refused(work.bind, STOPPING) for work in works]
            self._answer_binds(works, answers)

    def _answer_binds(self, works: Sequence[_BindWork], answers: Sequence[BindDone | BindFailed]) -> None:
        for work, answer in zip(works, answers, strict=True):
            self._answer_bind(work.bind, answer)

    async def _run_bind(self, work: _BindWork) -> None:
        bind = work.bind
        answer: BindDone | BindFailed | None = None
        try:
            if not self._may_write():
                answer = _refused(bind, NOT_LEADER)
            elif bind.extender is None:
                answer = await self._port.bind(bind, work.pod)
            elif self._extenders is None:
                answer = BindFailed(bind.pod, bind.attempt, NO_EXTENDERS, final=True)
            else:
                answer = await self._extenders.bind(bind)
        except Exception as error:  # noqa: BLE001 - a fault of ours: the engine has its answer all the same
            _log.error("A bind failed", pod=bind.pod.key, node=bind.node, err=describe_error(error))
            answer = _refused(bind, f"{RUNNING}{error!r}")
        finally:
            self._answer_bind(bind, _refused(bind, STOPPING) if answer is None else answer)

    def _answer_bind(self, bind: Bind, answer: BindDone | BindFailed) -> None:
        key = _key(bind.pod)
        if self._binding.get(key) == bind.attempt:
            del self._binding[key]
        if isinstance(answer, BindFailed):
            self._metrics.failed("binding")
        self._tell([answer])

    # -- notes -----------------------------------------------------------------------------------------------------

    def _note(self, effect: SetCondition | Nominate) -> None:
        if self._refusal():
            return
        key = _key(effect.pod)
        waiting = self._lanes.of(key)
        last = waiting[-1] if waiting else None
        note = last if isinstance(last, PodNote) else PodNote(effect.pod)
        note.add(effect)
        if isinstance(effect, SetCondition):
            note.details = self._port.details(effect)
        if note is not last:
            self._lanes.put(key, note)

    def _note_group(self, condition: SetGroupCondition) -> None:
        if self._refusal():
            return
        key = f"group {condition.namespace}/{condition.name}"
        for work in self._lanes.of(key):
            self._lanes.drop(key, work)  # only the latest counts
        self._lanes.put(key, _GroupNote(condition))

    async def _run_note(self, work: PodNote | _GroupNote) -> None:
        if not self._may_write():
            return
        self._metrics.in_flight("status", 1)
        outcome = WriteOutcome.REFUSED
        try:
            if isinstance(work, PodNote):
                outcome = await self._port.note(work, lambda: bool(self._lanes.of(_key(work.ref))))
            else:
                outcome = await self._port.note_group(work.condition)
        finally:
            self._metrics.in_flight("status", -1)
            if outcome is not WriteOutcome.DONE:
                self._metrics.failed("status")

    # -- evictions -------------------------------------------------------------------------------------------------

    def _evict(self, evict: Evict) -> None:
        key = _key(evict.victim)
        if refusal := self._refusal():
            self._tell([EvictFailed(evict.victim, refusal)])
        elif key not in self._evicting:
            self._evicting.add(key)
            self._lanes.put(key, _EvictWork(evict))

    async def _run_evict(self, work: _EvictWork) -> None:
        victim = work.evict.victim
        answer: EvictDone | EvictFailed | None = None
        self._metrics.in_flight("preemption", 1)
        try:
            answer = await self._port.evict(work.evict) if self._may_write() else EvictFailed(victim, NOT_LEADER)
        except Exception as error:  # noqa: BLE001 - a fault of ours: the engine has its answer all the same
            _log.error("An eviction failed", pod=victim.key, err=describe_error(error))
            answer = EvictFailed(victim, repr(error))
        finally:
            self._metrics.in_flight("preemption", -1)
            self._answer_evict(EvictFailed(victim, STOPPING) if answer is None else answer)

    def _answer_evict(self, answer: EvictDone | EvictFailed) -> None:
        self._evicting.discard(_key(answer.pod))
        if isinstance(answer, EvictFailed):
            self._metrics.failed("preemption")
        self._tell([answer])

    # -- volumes, devices, events, extenders -------------------------------------------------------------------------

    def _bind_volumes(self, effect: BindVolumes) -> None:
        if self._port.nominates_reserved:
            self._note(Nominate(effect.pod, effect.node))
        self._volumes.bind(effect)

    def _answer_volumes(self, answer: VolumesBound | VolumesFailed) -> None:
        if isinstance(answer, VolumesFailed):
            self._metrics.failed("volumes")
            if self._port.nominates_reserved:
                self._note(Nominate(answer.pod, ""))
        self._tell([answer])

    def _waits_for_devices(self, effect: BindClaims) -> None:
        """The devices of a pod are written, and have to become ready."""
        self._report(Report(effect.pod, "Normal", PENDING, "Scheduling", WAITING.format(effect.node)))
        if self._port.nominates_reserved:
            self._note(Nominate(effect.pod, effect.node))

    def _answer_claims(self, answer: ClaimsBound | ClaimsFailed) -> None:
        if isinstance(answer, ClaimsFailed):
            self._metrics.failed("claims")
            if self._port.nominates_reserved:
                self._note(Nominate(answer.pod, ""))
        self._tell([answer])

    def _report(self, report: Report) -> None:
        if self._closed or self._port.wrote_event(report):
            return
        controller, version = self._objects.scheduler_of(report.pod)
        if report.related is not None:  # the preemptor's scheduler reports what becomes of the victim
            controller, _ = self._objects.scheduler_of(report.related)
        self._events.record(report, controller or self._component, version)

    def _ask(self, ask: AskExtender) -> None:
        if self._closed or self._extenders is None:
            self._tell([ExtenderSaid(ask.ask, problem=STOPPING if self._closed else NO_EXTENDERS)])
            return
        self._asking[ask.ask] = asyncio.get_running_loop().create_task(self._run_ask(self._extenders, ask))

    async def _run_ask(self, extenders: Extenders, ask: AskExtender) -> None:
        self._metrics.in_flight("extender", 1)
        try:
            answer = await extenders.ask(ask)
        except Exception as error:  # noqa: BLE001 - a fault of ours: the engine has its answer all the same
            _log.error("An extender could not be called", pod=ask.pod.key, err=describe_error(error))
            answer = ExtenderSaid(ask.ask, problem=repr(error))
        finally:
            self._metrics.in_flight("extender", -1)
        self._answer_ask(answer)

    def _answer_ask(self, answer: ExtenderSaid) -> None:
        if self._asking.pop(answer.ask, None) is not None:
            if answer.problem:
                self._metrics.failed("extender")
            self._tell([answer])


def _refused(bind: Bind, problem: str) -> BindFailed:
    return BindFailed(bind.pod, bind.attempt, problem)


def _key(ref: PodRef) -> str:
    return ref.uid or ref.key
