"""Carries out, through the registry, what the engine asks for, and tells what came of it, as changes.

Nothing here holds up deciding: `perform` only puts work in line. Every Bind, BindVolumes, Evict and AskExtender is
answered once. A bind is guarded by the binding version that it was decided for, and by the scheduler's term. What is
noted on a pod that waits is written with its decision, and not any more once it is bound or gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
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
    BindVolumes,
    Effect,
    Evict,
    Nominate,
    Report,
    SetCondition,
    SetGroupCondition,
)
from situate.core.engine.engine import Engine
from situate.core.model.group import POD_GROUP_INITIALLY_SCHEDULED
from situate.loop.extenders import Extenders
from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.placing import decisions
from situate.server.placing.bind_transaction import PODS
from situate.server.placing.binding import Binder, with_condition
from situate.server.placing.decisions import PLACEMENT_DECISIONS, Details
from situate.server.placing.write_request import PodWriteRequest
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.crew import Crew
from situate.server.scheduling.events import Events
from situate.server.scheduling.explaining import Explainer
from situate.server.scheduling.volumes import Volumes
from situate.wire.bodies import seconds_time

__all__ = ["SCHEDULER", "RegistryPerformer"]

SCHEDULER: Final = Caller("system:kube-scheduler", ("system:authenticated",), agent="situate-scheduler")
BINDS_AT_ONCE: Final = 512
"""Enough for the store to commit many together."""
NOTES_AT_ONCE: Final = 64
EVICTIONS_AT_ONCE: Final = 32
WAITING: Final = (None, "pending", "reserved", "rebinding")
"""Phases of a pod that has no node."""

NOT_LEADER: Final = "no longer the leader"
STOPPING: Final = "the scheduler is shutting down"
NO_EXTENDERS: Final = "no extenders are configured"
RUNNING: Final = 'running Bind plugin "DefaultBinder": '
NOT_FOUND, CONFLICT, SERVER_ERRORS, TOO_MANY = 404, 409, 500, 429

POD_GROUPS: Final = BY_KIND["scheduling.k8s.io/v1beta1", "PodGroup"]

_log = Log(__name__)


class _NotNowError(Exception):
    """There is nothing to be written, or nothing of it is true any more."""


@dataclass(slots=True, eq=False)
class _Note:
    """What is to be noted on a waiting pod; later notes of the same thing replace earlier ones."""

    ref: PodRef
    conditions: dict[str, SetCondition] = field(default_factory=dict)
    nominated: str | None = None
    details: Details | None = None


class RegistryPerformer:
    """Performs for one engine, in the running event loop. `tell` is called in it, too, and must not block."""

    def __init__(
        self,
        registry: Registry,
        binder: Binder,
        engine: Engine,
        tell: Callable[[list[Change]], None],
        wall_ns: Callable[[], int],
        *,
        component: str,
        host: str = "",
        term: Callable[[], int | None] = lambda: None,
        may_write: Callable[[], bool] = lambda: True,
        extenders: Extenders | None = None,
        explainer: Explainer | None = None,
        caller: Caller = SCHEDULER,
    ) -> None:
        """`term` is sent with every bind; None where there is no lease to hold."""
        self._registry = registry
        self._binder = binder
        self._engine = engine
        self._tell = tell
        self._wall_ns = wall_ns
        self._component = component
        self._term = term
        self._may_write = may_write
        self._extenders = extenders
        self._explainer = explainer
        self._caller = caller
        self._events = Events(registry, wall_ns, caller, host, may_write)
        self._volumes = Volumes(registry, engine, self._answer_volumes, caller, wall_ns)
        self._binds = Crew(BINDS_AT_ONCE, self._carry_out_bind)
        self._noting = Crew(NOTES_AT_ONCE, self._carry_out_note)
        self._evicting = Crew(EVICTIONS_AT_ONCE, self._carry_out_evict)
        self._grouping = Crew(1, self._carry_out_group_note)
        self._binding: dict[str, int] = {}
        """By the pod's uid: the attempt whose bind waits or is under way."""
        self._notes: dict[str, _Note] = {}
        self._leaving: set[str] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def binds_waiting(self) -> int:
        """How many binds have no answer yet: who decides may want to slow down."""
        return len(self._binding)

    @property
    def busy(self) -> bool:
        crews = (self._binds, self._noting, self._evicting, self._grouping)
        return any(crew.busy for crew in crews) or bool(self._asking)

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
                    if not self._refusal():
                        self._grouping.put(effect)
                case Evict():
                    self._evict(effect)
                case BindVolumes():
                    self._bind_volumes(effect)
                case AskExtender():
                    self._ask(effect)
                case _:
                    assert_never(effect)

    def look(self) -> None:
        """The engine heard of something: it may be what volumes were waited for."""
        self._volumes.look()

    async def drain(self, timeout_s: float) -> bool:
        """Begin nothing more; let what is under way finish. False if it did not in time, and was cut off."""
        self._closed = True
        deadline = asyncio.get_running_loop().time() + timeout_s
        for ask in self._binds.drop_all():
            self._answer_bind(ask, BindFailed(ask.pod, ask.attempt, STOPPING))
        for eviction in self._evicting.drop_all():
            self._tell([EvictFailed(eviction.victim, STOPPING)])
        done = True
        for crew in (self._binds, self._noting, self._evicting, self._grouping):
            done &= await crew.idle(max(0.0, deadline - asyncio.get_running_loop().time()))
            crew.cancel()
        for task in self._asking:
            task.cancel()
        self._volumes.close(STOPPING)
        return await self._events.drain(max(0.0, deadline - asyncio.get_running_loop().time())) and done

    def _refusal(self) -> str:
        """Why nothing may be written now; empty if it may."""
        if self._closed:
            return STOPPING
        return "" if self._may_write() else NOT_LEADER

    # -- binds -----------------------------------------------------------------------------------------------------

    def _bind(self, ask: Bind) -> None:
        if refusal := self._refusal():
            self._tell([BindFailed(ask.pod, ask.attempt, refusal)])
            return
        if self._binding.get(ask.pod.uid) == ask.attempt:
            return  # it is under way, and will be answered once
        self._notes.pop(ask.pod.uid, None)  # a bound pod has no reason to wait
        self._binding[ask.pod.uid] = ask.attempt
        self._binds.put(ask)

    async def _carry_out_bind(self, ask: Bind) -> None:
        answer: BindDone | BindFailed
        try:
            answer = await (self._bind_pod(ask) if ask.extender is None else self._extender_binds(ask))
        except Exception as error:  # noqa: BLE001 - whatever it is
            # A fault of ours. It is answered all the same: who is not answered waits.
            _log.error("A bind failed", pod=ask.pod.key, node=ask.node, err=repr(error))
            answer = BindFailed(ask.pod, ask.attempt, f"{RUNNING}{error!r}")
        self._answer_bind(ask, answer)

    async def _bind_pod(self, ask: Bind) -> BindDone | BindFailed:
        ref = ask.pod
        if refusal := self._refusal():
            return BindFailed(ref, ask.attempt, refusal)
        details = None if self._explainer is None else self._explainer.take(ref.uid)
        controller = self._controller(ref)
        try:
            await self._binder.bind(
                ref.namespace,
                ref.name,
                ask.node,
                uid=ref.uid,
                binding_version=self._version(ref),
                term=self._term(),
                caller=self._caller,
                scheduler=controller,
                details=details,
                annotations=dict(ask.annotations),
                extra_writes=self._events.extra_writes(ref, ask.node, controller),
            )
        except StatusError as error:
            self._events.did_not_join(ref)
            final = error.code < SERVER_ERRORS and error.code != TOO_MANY
            return BindFailed(ref, ask.attempt, RUNNING + error.message, final=final)
        return BindDone(ref, ask.attempt)

    def _version(self, ref: PodRef) -> int:
        """The version that the pod's binding has or will have. Of a bind that is asked for again because its answer
        was lost, it is the one that it got."""
        held = self._registry.cache.get(PLACEMENT_DECISIONS, ref.namespace, ref.name)
        if held is None:
            return 1
        decision = decisions.decoded(held.value)
        waits = decision.spec.pod_uid != ref.uid or decision.phase in WAITING
        return decision.spec.binding_version + waits

    async def _extender_binds(self, ask: Bind) -> BindDone | BindFailed:
        if refusal := self._refusal():
            return BindFailed(ask.pod, ask.attempt, refusal)
        if self._extenders is None:
            return BindFailed(ask.pod, ask.attempt, NO_EXTENDERS, final=True)
        return await self._extenders.bind(ask)

    def _answer_bind(self, ask: Bind, answer: BindDone | BindFailed) -> None:
        if self._binding.get(ask.pod.uid) == ask.attempt:
            del self._binding[ask.pod.uid]
        self._tell([answer])

    # -- notes -----------------------------------------------------------------------------------------------------

    def _note(self, effect: SetCondition | Nominate) -> None:
        uid = effect.pod.uid
        if self._refusal() or uid in self._binding:
            return
        note = self._notes.get(uid)
        if note is None:
            note = self._notes[uid] = _Note(effect.pod)
            self._noting.put(note)
        if isinstance(effect, Nominate):
            note.nominated = effect.node
        else:
            note.conditions[effect.type] = effect
            if self._explainer is not None:
                note.details = self._explainer.refused(effect)

    async def _carry_out_note(self, note: _Note) -> None:
        if self._notes.get(note.ref.uid) is not note:
            return  # dropped
        del self._notes[note.ref.uid]

        def change(pod: Object, held: StoredObject) -> Object:
            if held.uid != note.ref.uid or pod["spec"].get("nodeName") or self._refusal():
                raise _NotNowError
            if not self._noted(note, pod):
                raise _NotNowError
            return pod

        target = Target(PODS, note.ref.namespace, note.ref.name)
        try:
            request = PodWriteRequest(scheduler=self._controller(note.ref), details=note.details)
            await self._registry.modify(target, change, self._caller, request=request)
        except _NotNowError:
            pass
        except StatusError as error:
            if error.code not in (NOT_FOUND, CONFLICT):
                _log.error("A pod's status cannot be written", pod=note.ref.key, err=error.message)

    def _noted(self, note: _Note, pod: Object) -> bool:
        """Put it into the pod; whether that changed anything."""
        status: dict[str, Any] = pod.setdefault("status", {})
        at, changed = seconds_time(self._wall_ns()), False
        generation = pod["metadata"].get("generation", 0)
        for one in note.conditions.values():
            said: Object = {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
            if generation:
                said["observedGeneration"] = generation
            changed |= with_condition(status, {key: value for key, value in said.items() if value != ""}, at)
        if note.nominated is not None and note.nominated != status.get("nominatedNodeName", ""):
            changed = True
            if note.nominated:
                status["nominatedNodeName"] = note.nominated
            else:
                del status["nominatedNodeName"]
        return changed

    async def _carry_out_group_note(self, said: SetGroupCondition) -> None:
        def change(group: Object, _held: StoredObject) -> Object:
            made: Object = {
                "type": POD_GROUP_INITIALLY_SCHEDULED,
                "status": said.status,
                "reason": said.reason,
                "message": said.message,
            }
            if generation := group["metadata"].get("generation", 0):
                made["observedGeneration"] = generation
            if not with_condition(group.setdefault("status", {}), made, seconds_time(self._wall_ns()), probed=False):
                raise _NotNowError
            return group

        try:
            await self._registry.modify(Target(POD_GROUPS, said.namespace, said.name), change, self._caller)
        except _NotNowError:
            pass
        except StatusError as error:
            if error.code not in (NOT_FOUND, CONFLICT):
                _log.error(
                    "A group's status cannot be written", group=f"{said.namespace}/{said.name}", err=error.message
                )

    # -- evictions -------------------------------------------------------------------------------------------------

    def _evict(self, ask: Evict) -> None:
        if refusal := self._refusal():
            self._tell([EvictFailed(ask.victim, refusal)])
        elif ask.victim.uid not in self._leaving:
            self._leaving.add(ask.victim.uid)
            self._evicting.put(ask)

    async def _carry_out_evict(self, ask: Evict) -> None:
        try:
            answer = await self._evict_pod(ask)
        finally:
            self._leaving.discard(ask.victim.uid)
        self._tell([answer])

    async def _evict_pod(self, ask: Evict) -> EvictDone | EvictFailed:
        """Say in the victim's conditions why, then delete it, and no other pod of its name."""
        victim = ask.victim
        if refusal := self._refusal():
            return EvictFailed(victim, refusal)
        said = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": ask.message,
        }

        def change(pod: Object, held: StoredObject) -> Object:
            if held.uid != victim.uid:
                raise _NotNowError
            with_condition(pod.setdefault("status", {}), said, seconds_time(self._wall_ns()))
            return pod

        target = Target(PODS, victim.namespace, victim.name)
        try:
            await self._registry.modify(target, change, self._caller)
            await self._registry.delete(target, self._caller, DeleteOptions(uid=victim.uid))
        except _NotNowError:
            pass  # another of its name: it is gone
        except StatusError as error:
            if error.code != NOT_FOUND:
                return EvictFailed(victim, error.message)
        return EvictDone(victim)

    # -- volumes, events, extenders --------------------------------------------------------------------------------

    def _bind_volumes(self, ask: BindVolumes) -> None:
        if refusal := self._refusal():
            self._tell([VolumesFailed(ask.pod, ask.attempt, refusal)])
        else:
            # As kube-scheduler does for a pod that is not bound at once: others see where it is expected.
            self._note(Nominate(ask.pod, ask.node))
            self._volumes.bind(ask)

    def _answer_volumes(self, answer: VolumesBound | VolumesFailed) -> None:
        if isinstance(answer, VolumesFailed):
            self._note(Nominate(answer.pod, ""))
        self._tell([answer])

    def _report(self, said: Report) -> None:
        if self._closed or self._events.joined(said):
            return
        # What is said of a victim is said by the preemptor's scheduler.
        self._events.report(said, self._controller(said.pod if said.related is None else said.related))

    def _controller(self, ref: PodRef) -> str:
        entry = self._engine.queue.get(ref.key)
        if entry is not None and entry.ref == ref:
            return entry.pod.spec.scheduler_name
        counted = self._engine.cluster.counted(ref.key)
        return self._component if counted is None else counted[0].pod.spec.scheduler_name

    def _ask(self, ask: AskExtender) -> None:
        if self._closed or self._extenders is None:
            self._tell([ExtenderSaid(ask.ask, problem=STOPPING if self._closed else NO_EXTENDERS)])
            return
        task = asyncio.get_running_loop().create_task(self._asked(self._extenders, ask))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _asked(self, extenders: Extenders, ask: AskExtender) -> None:
        self._tell([await extenders.ask(ask)])
