"""Evicts a pod if its disruption budget allows it: the eviction subresource.

    1. one transaction: the pod's condition DisruptionTarget and, if the pod uses up a disruption, the budget's status,
       checked at that revision
    2. another: the pod's deletion with its grace period, and its decision `evicted`

After a crash between the two, the budget waits for the pod to go; after DELETION_TIMEOUT it gets the disruption back,
as in Kubernetes. Pending and finished pods need no budget. A pod that needs none because it is pending or not ready is
deleted only at the version that was checked: a pod that became ready meanwhile is decided anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from situate.core.model.managed import Budget, ManagedPod
from situate.core.reconcile.disruption import CAUSE, EvictionDecision, budgets_of, decide_eviction, granted
from situate.core.reconcile.objects import to_json
from situate.server.errors import Cause, StatusError, bad_request, invalid
from situate.server.kinds.field_errors import not_supported
from situate.server.placing.bind_transaction import PODS
from situate.server.placing.binding import SUCCESS, with_condition
from situate.server.placing.refusals import other_revision, other_uid
from situate.server.placing.write_request import CacheReader, PodWriteRequest
from situate.server.registry import codec
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND
from situate.store.entries import Revision
from situate.store.transactions import At, Guard, Put, Write
from situate.wire.bodies import seconds_time

if TYPE_CHECKING:
    from situate.server.http.ports import CreateRequest

OTHER_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"
BUDGETS: Final = BY_KIND["policy/v1", "PodDisruptionBudget"]
EVICTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
NUMBERS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
REASONS: Final = {403: "Forbidden", 429: "TooManyRequests", 500: "InternalError"}
MILLION: Final = 1_000_000
OK: Final = 200
ATTEMPTS: Final = 20
"""How often to retry an eviction whose pod changes between its mark and its deletion; then 409."""

T = TypeVar("T")


class Evictor:
    def __init__(self, registry: Registry, wall_ns: Callable[[], int]) -> None:
        self._registry = registry
        self._wall_ns = wall_ns

    async def evict(self, namespace: str, name: str, caller: Caller, options: DeleteOptions = DeleteOptions()) -> None:  # noqa: B008
        """Raises StatusError: 404; 409 for another uid or revision; 429 if the budget does not allow it."""
        target = Target(PODS, namespace, name)
        found = await self._registry.get(target)
        _check(found, options)
        if options.dry_run:
            self._decide(self._registry.cache, found.object(PODS))
            await self._registry.delete(target, caller, options)
            return
        for attempt in count(1):
            marked, same_version = await self._mark(target, found.uid, caller, options)
            version = str(marked.revision) if same_version or options.resource_version else ""
            try:
                await self._registry.delete(target, caller, replace(options, uid=marked.uid, resource_version=version))
                return
            except StatusError as no:
                own_check = same_version and not options.resource_version
                if no.code != HTTPStatus.CONFLICT or not own_check or attempt == ATTEMPTS:
                    raise

    async def _mark(
        self, target: Target, uid: str, caller: Caller, options: DeleteOptions
    ) -> tuple[StoredObject, bool]:
        """Mark the pod, and charge its budget. Returns it, and whether only this version of it may be deleted."""
        marks: list[bool] = []
        decisions: list[EvictionDecision] = []

        def change(pod: Object, held: StoredObject) -> Object:
            _check(held, options)
            marks.append(with_condition(pod.setdefault("status", {}), EVICTED, seconds_time(self._wall_ns())))
            return pod

        def charge(cache: CacheReader, before: Object | None, _after: Object | None) -> tuple[list[Guard], list[Write]]:
            decision, guards, writes = self._decide(cache, before)
            decisions.append(decision)
            return guards, writes

        request = PodWriteRequest(extra_writes=charge)
        marked = await self._registry.modify(target, change, caller, uid=uid, request=request)
        decision = decisions[-1] if marks[-1] else await self._charge_again(marked, caller)
        return marked, decision.same_version

    async def _charge_again(self, pod: StoredObject, caller: Caller) -> EvictionDecision:
        """The pod was marked before, and still exists: charge its budget again unless that still waits for the pod."""
        decision, guards, writes = self._decide(self._registry.cache, pod.object(PODS))
        for budget in [one for one in self._registry.cache.all(BUDGETS, pod.namespace) if writes]:
            if not any(isinstance(guard, At) and guard.key == budget.key for guard in guards):
                continue
            if pod.name in budget.object(BUDGETS).get("status", {}).get("disruptedPods", {}):
                return decision

            def change(obj: Object, _held: StoredObject) -> Object:
                one = msgspec.convert(obj, Budget)
                answer = decide_eviction(msgspec.convert(pod.object(PODS), ManagedPod), [one])
                if answer.code != OK:
                    raise _refused(answer)
                obj["status"] = to_json(granted(one, pod.name, self._wall_ns() // MILLION), *NUMBERS)
                return obj

            await self._registry.modify(Target(BUDGETS, budget.namespace, budget.name), change, caller)
        return decision

    def _decide(self, cache: CacheReader, before: Object | None) -> tuple[EvictionDecision, list[Guard], list[Write]]:
        """The decision, and the guards and writes for the pod's budget. Raises StatusError if the budget does not allow
        the eviction."""
        pod = msgspec.convert(before, ManagedPod)
        budgets = _Budgets(cache, pod.metadata.namespace)
        matching = budgets_of(pod, budgets)  # type: ignore[arg-type]
        answer = decide_eviction(pod, matching)
        if answer.code != OK:
            raise _refused(answer)
        if not answer.takes:
            return answer, [], []
        one = matching[0]
        held = budgets.held[one.metadata.name]
        status = granted(one, pod.metadata.name, self._wall_ns() // MILLION)
        body = held.object(BUDGETS)
        body["status"] = dict(to_json(status, *NUMBERS))
        return answer, [At(held.key, Revision(held.revision))], [Put(held.key, codec.encode(body))]

    async def create_eviction(self, asked: CreateRequest) -> Object:
        """POST of an Eviction of policy/v1 to a pod."""
        body, target = asked.body, asked.target
        meta = body.get("metadata", {})
        if meta.get("name", target.name) != target.name:
            raise bad_request("name in URL does not match name in Eviction object")
        if meta.get("namespace", target.namespace) != target.namespace:
            raise bad_request(OTHER_NAMESPACE)
        given = body.get("deleteOptions") or {}
        dry = list(given.get("dryRun") or ())
        if any(one != "All" for one in dry):
            cause = not_supported("dryRun", dry, ["All"])
            raise invalid("DeleteOptions", "meta.k8s.io", "", [cause])
        asked_dry = asked.dry_run or asked.options.dry_run
        before = given.get("preconditions") or {}
        options = DeleteOptions(
            dry_run=asked_dry or bool(dry),
            grace_s=given.get("gracePeriodSeconds"),
            uid=before.get("uid") or "",
            resource_version=before.get("resourceVersion") or "",
            propagation=given.get("propagationPolicy") or "",
        )
        await self.evict(target.namespace, target.name, asked.caller, options)
        return dict(SUCCESS)


class _Budgets:
    """The budgets of one namespace, decoded, in the form that controllers read."""

    def __init__(self, cache: CacheReader, namespace: str) -> None:
        self.held = {one.name: one for one in cache.all(BUDGETS, namespace)}

    def among(self, kind: type[T], _namespace: str | None = None) -> Sequence[T]:
        return [msgspec.json.decode(one.value, type=kind) for one in self.held.values()]


def _check(held: StoredObject, options: DeleteOptions) -> None:
    if options.uid and options.uid != held.uid:
        raise other_uid(held.name, options.uid, held.uid)
    if options.resource_version and options.resource_version != str(held.revision):
        raise other_revision(held.name, options.resource_version, str(held.revision))


def _refused(answer: EvictionDecision) -> StatusError:
    causes = (Cause("", answer.cause, CAUSE),) if answer.cause else ()
    return StatusError(
        answer.code, REASONS[answer.code], answer.message, causes=causes, retry_after_s=answer.retry_after or 0
    )
