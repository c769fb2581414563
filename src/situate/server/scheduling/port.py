"""Writes what a scheduler decides through the registry of its own process, and returns the outcomes.

A bind is guarded by the binding version that it was decided for and by the scheduler's term. The `Scheduled` event is
part of the bind's transaction: it is there if and only if the pod is bound. A note carries the decision's details.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from situate.core.changes import BindDone, BindFailed, EvictDone, EvictFailed, PodRef
from situate.core.effects import Bind, Evict, Report, SetCondition, SetGroupCondition
from situate.core.model.base import Model
from situate.core.model.devices import ResourceClaim
from situate.core.model.group import POD_GROUP_INITIALLY_SCHEDULED
from situate.core.model.pod import Pod
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim
from situate.core.state.pods import DISRUPTION_TARGET
from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.loop.scheduling import port as values
from situate.loop.scheduling.port import NOT_LEADER, RUNNING, VolumeError, VolumeOutcome, WriteOutcome
from situate.loop.scheduling.view import EngineView
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import PODS
from situate.server.placing.binding import Binder, BindRequest, with_condition
from situate.server.placing.decisions import PLACEMENT_DECISIONS, Details
from situate.server.placing.ledger_repair import read_decision
from situate.server.placing.write_request import CacheReader, ExtraWrites, PodWriteRequest
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND, Resource
from situate.server.scheduling.events import EVENTS, SCHEDULED, event_object, scheduled_event, series_of
from situate.server.scheduling.explainer import Explainer
from situate.server.scheduling.resource_claims import read_pod, read_resource_claim, write_resource_claim
from situate.server.scheduling.volumes import CLAIMS, VOLUMES, bind_claim, mark_bound, release, reserve, select_node
from situate.store.transactions import Guard, Put, Write
from situate.wire.bodies import seconds_time
from situate.wire.errors import InputError
from situate.wire.objects import decode

SCHEDULER: Final = Caller("system:kube-scheduler", ("system:authenticated",), agent="situate-scheduler")
IN_FLIGHT: Final = values.InFlightLimits(
    binds=512, notes=64, evictions=32, volumes=16, claims=128, events=4, binds_together=32
)
"""So many binds that the store commits many together."""
REMEMBERED: Final = 1 << 16
"""How many pods to remember whose `Scheduled` event was written with the bind."""
PENDING: Final = (None, "pending", "reserved", "rebinding")
"""Phases of a pod that has no node."""
WAITING_FOR_PROVISIONER: Final = "WaitingForProvisioner"
NOT_FOUND, CONFLICT, TOO_MANY, SERVER_ERRORS = 404, 409, 429, 500

POD_GROUPS: Final = BY_KIND["scheduling.k8s.io/v1beta1", "PodGroup"]

M = TypeVar("M", bound=Model)

_log = Log(__name__)


class _UnchangedError(Exception):
    """There is nothing to write, or what was to be written is not true any more."""


class RegistrySchedulingPort:
    """The SchedulingPort of a registry."""

    limits = IN_FLIGHT
    nominates_reserved = True

    def __init__(
        self,
        registry: Registry,
        binder: Binder,
        objects: EngineView,
        wall_ns: Callable[[], int],
        *,
        component: str,
        host: str = "",
        term: Callable[[], int | None] = lambda: None,
        may_write: Callable[[], bool] = lambda: True,
        explainer: Explainer | None = None,
    ) -> None:
        """`term` is sent with every bind; None where there is no lease to hold."""
        self._registry = registry
        self._binder = binder
        self._objects = objects
        self._wall_ns = wall_ns
        self.names = values.EventNames(host)
        self._component = component
        self._term = term
        self._may_write = may_write
        self._explainer = explainer
        self._scheduled: OrderedDict[str, None] = OrderedDict()
        """Uids of pods whose `Scheduled` event was written with the bind."""

    # -- binds -------------------------------------------------------------------------------------------------------

    async def bind(self, bind: Bind, pod: Pod | None) -> BindDone | BindFailed:
        try:
            await self._binder.bind_one(self._request(bind, pod), SCHEDULER)
        except StatusError as error:
            return self._answer(bind, error)
        return self._answer(bind, None)

    async def bind_each(self, binds: Sequence[tuple[Bind, Pod | None]]) -> Sequence[BindDone | BindFailed]:
        asked = [self._request(bind, pod) for bind, pod in binds]
        try:
            outcomes: Sequence[Exception | None] = await self._binder.bind_each(asked, SCHEDULER)
        except StatusError as error:
            outcomes = [error] * len(binds)
        return [self._answer(bind, outcome) for (bind, _), outcome in zip(binds, outcomes, strict=True)]

    def _request(self, bind: Bind, pod: Pod | None) -> BindRequest:
        ref, controller = bind.pod, self._component if pod is None else pod.spec.scheduler_name
        return BindRequest(
            namespace=ref.namespace,
            name=ref.name,
            node=bind.node,
            uid=ref.uid,
            binding_version=self._binding_version(ref),
            term=self._term(),
            scheduler=controller,
            details=None if self._explainer is None else self._explainer.take(ref.uid),
            annotations=dict(bind.annotations),
            extra_writes=self._write_scheduled(ref, bind.node, controller),
        )

    def _answer(self, bind: Bind, problem: Exception | None) -> BindDone | BindFailed:
        ref = bind.pod
        if problem is None:
            return BindDone(ref, bind.attempt)
        self._scheduled.pop(ref.uid, None)
        if isinstance(problem, StatusError):
            return BindFailed(ref, bind.attempt, RUNNING + problem.message, final=not _may_pass(problem))
        _log.error("A bind failed", pod=ref.key, node=bind.node, err=describe_error(problem))
        return BindFailed(ref, bind.attempt, f"{RUNNING}{problem!r}")

    def _binding_version(self, ref: PodRef) -> int:
        """The version that the pod's binding will have; or has, if this bind was made before and its answer lost."""
        held = self._registry.cache.get(PLACEMENT_DECISIONS, ref.namespace, ref.name)
        decision = None if held is None else read_decision(held.value)
        if decision is None:
            return 1
        pending = decision.spec.pod_uid != ref.uid or decision.phase in PENDING
        return decision.spec.binding_version + pending

    def _write_scheduled(self, pod: PodRef, node: str, controller: str) -> ExtraWrites:
        key, value = scheduled_event(pod, node, controller, self.names, self._wall_ns())
        self._scheduled[pod.uid] = None
        if len(self._scheduled) > REMEMBERED:
            self._scheduled.popitem(last=False)

        def join(_cache: CacheReader, _before: Object | None, _after: Object | None) -> tuple[list[Guard], list[Write]]:
            return [], [Put(key, value)]

        return join

    # -- notes -------------------------------------------------------------------------------------------------------

    def details(self, condition: SetCondition) -> Details | None:
        return None if self._explainer is None else self._explainer.rejected(condition)

    async def note(self, note: values.PodNote, superseded: Callable[[], bool]) -> WriteOutcome:
        def change(pod: Object, held: StoredObject) -> Object:
            if held.uid != note.ref.uid or pod["spec"].get("nodeName") or not self._may_write():
                raise _UnchangedError
            if not self._add(note, pod):
                raise _UnchangedError
            return pod

        scheduler = self._objects.scheduler_of(note.ref)[0] or self._component
        request = PodWriteRequest(scheduler=scheduler, details=note.details or self._waits_for_volumes(note))
        return await self._write_note(Target(PODS, note.ref.namespace, note.ref.name), change, request)

    def _waits_for_volumes(self, note: values.PodNote) -> Details | None:
        """A pod with a node, no bind and no refusal: its volumes come first."""
        lines = self._objects.waiting_claims(note.ref, note.nominated) if note.nominated and not note.conditions else ()
        return Details(reason=WAITING_FOR_PROVISIONER, message="; ".join(lines)) if lines else None

    def _add(self, note: values.PodNote, pod: Object) -> bool:
        """Put a note into a pod; whether that changed anything."""
        status: dict[str, Any] = pod.setdefault("status", {})
        at, changed = seconds_time(self._wall_ns()), False
        for one in note.conditions.values():
            changed |= with_condition(status, _condition(one.type, one, pod), at)
        if note.nominated is not None and note.nominated != status.get("nominatedNodeName", ""):
            changed = True
            if note.nominated:
                status["nominatedNodeName"] = note.nominated
            else:
                del status["nominatedNodeName"]
        return changed

    async def note_group(self, condition: SetGroupCondition) -> WriteOutcome:
        def change(group: Object, _held: StoredObject) -> Object:
            made = _condition(POD_GROUP_INITIALLY_SCHEDULED, condition, group)
            if not with_condition(group.setdefault("status", {}), made, seconds_time(self._wall_ns()), probed=False):
                raise _UnchangedError
            return group

        return await self._write_note(Target(POD_GROUPS, condition.namespace, condition.name), change)

    async def _write_note(
        self, target: Target, change: Callable[[Object, StoredObject], Object], request: PodWriteRequest | None = None
    ) -> WriteOutcome:
        try:
            await self._registry.modify(target, change, SCHEDULER, request=request)
        except _UnchangedError:
            pass
        except StatusError as error:
            if error.code not in (NOT_FOUND, CONFLICT):
                name = f"{target.namespace}/{target.name}"
                _log.error("A status cannot be written", kind=target.resource.kind, object=name, err=error.message)
                return WriteOutcome.BUSY if _may_pass(error) else WriteOutcome.REFUSED
        return WriteOutcome.DONE

    # -- evictions ---------------------------------------------------------------------------------------------------

    async def evict(self, evict: Evict) -> EvictDone | EvictFailed:
        victim = evict.victim
        said = {**_fields(DISRUPTION_TARGET), "type": DISRUPTION_TARGET.type, "message": evict.message}

        def change(pod: Object, held: StoredObject) -> Object:
            if held.uid != victim.uid:
                raise _UnchangedError
            with_condition(pod.setdefault("status", {}), said, seconds_time(self._wall_ns()))
            return pod

        target = Target(PODS, victim.namespace, victim.name)
        try:
            await self._registry.modify(target, change, SCHEDULER)
            if not self._may_write():
                return EvictFailed(victim, NOT_LEADER)
            await self._registry.delete(target, SCHEDULER, DeleteOptions(uid=victim.uid))
        except _UnchangedError:
            pass  # another pod has its name: the victim is gone
        except StatusError as error:
            if error.code != NOT_FOUND:
                return EvictFailed(victim, error.message)
        return EvictDone(victim)

    # -- volumes -----------------------------------------------------------------------------------------------------

    async def read_volume(self, name: str) -> PersistentVolume | None:
        return _decoded(PersistentVolume, VOLUMES, self._registry.cache.get(VOLUMES, "", name))

    async def read_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return _decoded(PersistentVolumeClaim, CLAIMS, self._registry.cache.get(CLAIMS, namespace, name))

    async def write_volume(self, write: values.VolumeWrite) -> VolumeOutcome:
        try:
            match write:
                case values.ReserveVolume(volume, claim):
                    held = self._registry.cache.get(CLAIMS, claim.metadata.namespace, claim.metadata.name)
                    await self._modify(VOLUMES, volume, lambda obj, _: reserve(obj, held, claim))
                case values.ReleaseVolume(volume):
                    await self._modify(VOLUMES, volume, lambda obj, _: release(obj))
                case values.SelectNode(claim, node):
                    await self._modify(CLAIMS, claim, lambda obj, _: select_node(obj, node))
                case values.BindClaim(claim, name):
                    meta, volume_target = claim.metadata, Target(VOLUMES, "", name)
                    shown = (await self._registry.get(volume_target)).object(VOLUMES)
                    claim_target = Target(CLAIMS, meta.namespace, meta.name)
                    await self._registry.modify(
                        claim_target, lambda obj, _: bind_claim(obj, shown), SCHEDULER, uid=meta.uid
                    )
                    await self._registry.modify(volume_target, lambda obj, _: mark_bound(obj), SCHEDULER)
        except VolumeError as error:
            return VolumeOutcome(str(error))
        except StatusError as error:
            return VolumeOutcome(error.message, retry=error.code == CONFLICT or _may_pass(error))
        return VolumeOutcome()

    async def _modify(
        self,
        resource: Resource,
        read: PersistentVolume | PersistentVolumeClaim,
        change: Callable[[Object, StoredObject], Object],
    ) -> None:
        """Change an object in the version that was read."""
        meta = read.metadata
        target = Target(resource, meta.namespace if resource is CLAIMS else "", meta.name)
        await self._registry.modify(target, change, SCHEDULER, uid=meta.uid, resource_version=meta.resource_version)

    # -- claims for devices ------------------------------------------------------------------------------------------

    async def read_resource_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return read_resource_claim(self._registry, namespace, name)

    async def read_pod(self, ref: PodRef) -> Pod | None:
        return read_pod(self._registry, ref)

    async def write_resource_claim(self, write: values.ClaimWrite) -> values.ClaimOutcome:
        return await write_resource_claim(self._registry, write, SCHEDULER, self._wall_ns())

    # -- events ------------------------------------------------------------------------------------------------------

    def wrote_event(self, report: Report) -> bool:
        return report.reason == SCHEDULED and self._scheduled.pop(report.pod.uid, report) is None

    async def write_event(self, event: values.EventSeries) -> WriteOutcome:
        namespace, created = event.report.pod.namespace or "default", event.written > 0

        def count(obj: Object, _held: StoredObject) -> Object:
            obj["series"] = series_of(event)
            return obj

        try:
            if created:
                await self._registry.modify(Target(EVENTS, namespace, event.name), count, SCHEDULER)
            else:
                await self._registry.create(Target(EVENTS, namespace), event_object(event), SCHEDULER)
        except StatusError as error:
            if error.code == NOT_FOUND and created:
                return WriteOutcome.MISSING
            if error.code == CONFLICT and not created:
                return WriteOutcome.EXISTS
            return WriteOutcome.REFUSED  # nothing is lost on the way here, so another try is not worth the wait
        return WriteOutcome.DONE


def _may_pass(error: StatusError) -> bool:
    """Whether the same request may succeed later."""
    return error.code >= SERVER_ERRORS or error.code == TOO_MANY


def _decoded(model: type[M], resource: Resource, held: StoredObject | None) -> M | None:
    """As a client would read it. Raises VolumeError."""
    if held is None:
        return None
    try:
        return decode(model, held.to_json(resource))
    except InputError as error:
        raise VolumeError(f"{resource.kind} {held.name} cannot be read: {error}") from None


def _condition(name: str, said: SetCondition | SetGroupCondition, obj: Object) -> Object:
    made: Object = {"type": name, **_fields(said)}
    if generation := obj["metadata"].get("generation", 0):
        made["observedGeneration"] = generation
    return made


def _fields(said: Any) -> Object:
    fields = {"status": said.status, "reason": said.reason, "message": said.message}
    return {key: value for key, value in fields.items() if value != ""}
