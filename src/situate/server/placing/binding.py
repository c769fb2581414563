"""Binds a pod to a node in one transaction, with every check in it.

    BindWorkload(pod uid, expected binding version, node)

A 409 says which check failed: another uid or revision, a stale binding version or term, a pod that is bound,
terminating or gated, a node that does not exist, is not eligible or is full. A bind writes the pod, the node's snapshot
and the decision at one revision, and returns when that is durable. The same (uid, binding version, node) again gets the
same response: a caller that lost the response retries.

A crash before the commit leaves a pending pod; after it, a bound one. There is nothing in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from situate.core.model.integers import parse_count
from situate.server.errors import Cause, StatusError, bad_request, invalid
from situate.server.placing.bind_transaction import BINDING_VERSION, PODS
from situate.server.placing.decisions import PLACEMENT_DECISIONS, Details
from situate.server.placing.ledger_repair import read_decision
from situate.server.placing.node_locks import NodeLocks
from situate.server.placing.refusals import already_assigned, being_deleted, gated, other_revision, other_uid
from situate.server.placing.write_request import ExtraWrites, PodWriteRequest, no_extra_writes
from situate.server.registry.batch import Modification
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Caller, Object, Target
from situate.wire.bodies import seconds_time

if TYPE_CHECKING:
    from situate.server.http.ports import CreateRequest

TERM: Final = "situate.dev/term"
"""Annotation of a Binding: the term of the scheduler's lease when it was decided."""
SUCCESS: Final[Mapping[str, Any]] = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
_OURS: Final = (BINDING_VERSION, TERM)


class _SameError(Exception):
    """This very bind was done before."""

    def __init__(self, held: StoredObject) -> None:
        self.held = held


class BindRequest(Struct, frozen=True, kw_only=True):
    """A pod, its node, and what is expected of them."""

    namespace: str
    name: str
    node: str
    uid: str = ""
    resource_version: str = ""
    binding_version: int | None = None
    term: int | None = None
    scheduler: str = ""
    details: Details | None = None
    annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    extra_writes: ExtraWrites = no_extra_writes


class Binder:
    def __init__(self, registry: Registry, wall_ns: Callable[[], int], locks: NodeLocks) -> None:
        self._registry = registry
        self._wall_ns = wall_ns
        self._locks = locks

    async def bind(
        self,
        namespace: str,
        name: str,
        node: str,
        *,
        uid: str = "",
        resource_version: str = "",
        binding_version: int | None = None,
        term: int | None = None,
        caller: Caller = SYSTEM,
        scheduler: str = "",
        annotations: Mapping[str, str] | None = None,
        extra_writes: ExtraWrites = no_extra_writes,
        dry_run: bool = False,
    ) -> StoredObject:
        """The bound pod. Raises StatusError: 404, or 409 that says which check failed."""
        asked = BindRequest(
            namespace=namespace,
            name=name,
            node=node,
            uid=uid,
            resource_version=resource_version,
            binding_version=binding_version,
            term=term,
            scheduler=scheduler,
            annotations=annotations or {},
            extra_writes=extra_writes,
        )
        return await self.bind_one(asked, caller, dry_run=dry_run)

    async def bind_one(self, asked: BindRequest, caller: Caller, *, dry_run: bool = False) -> StoredObject:
        """As `bind`."""
        made = self._modification(asked)
        async with self._locks.of(asked.node):
            try:
                return await self._registry.modify(
                    made.target, made.change, caller, dry_run=dry_run, altered=False, request=made.request
                )
            except _SameError as same:
                return same.held

    async def bind_each(self, asked: Sequence[BindRequest], caller: Caller = SYSTEM) -> list[Exception | None]:
        """Bind several pods, each in a transaction of its own; what went wrong with each.

        Pods of one node, or of one that somebody else is writing, wait for each other as in `bind`. The locks of the
        others are released before those wait, so that two callers cannot wait for each other.
        """
        first = [at for at, one in enumerate(asked) if self._locks.try_acquire(one.node)]
        outcomes: list[Exception | None] = [None] * len(asked)
        try:
            found = await self._registry.modify_each([self._modification(asked[at]) for at in first])
        finally:
            for at in first:
                self._locks.release(asked[at].node)
        for at, outcome in zip(first, found, strict=True):
            outcomes[at] = None if isinstance(outcome, _SameError) else outcome
        taken = frozenset(first)
        others = [at for at in range(len(asked)) if at not in taken]
        if others:
            alone = await asyncio.gather(*(self.bind_one(asked[at], caller) for at in others), return_exceptions=True)
            for at, one in zip(others, alone, strict=True):
                if isinstance(one, Exception):
                    outcomes[at] = one
                elif isinstance(one, BaseException):
                    raise one
        return outcomes

    def _modification(self, asked: BindRequest) -> Modification:
        def change(obj: Object, held: StoredObject) -> Object:
            self._check(obj, held, asked.node, asked.uid, asked.resource_version, asked.binding_version)
            return self._bound(obj, asked.node, asked.annotations, asked.labels)

        request = PodWriteRequest(
            True, asked.binding_version, asked.term, asked.scheduler, asked.details, asked.extra_writes
        )
        return Modification(Target(PODS, asked.namespace, asked.name), change, request)

    def _check(
        self, pod: Object, held: StoredObject, node: str, uid: str, resource_version: str, binding_version: int | None
    ) -> None:
        """Check the pod itself. Raises StatusError, or _SameError."""
        if uid and uid != held.uid:
            raise other_uid(held.name, uid, held.uid)
        there = pod.get("spec", {}).get("nodeName", "")
        if there:
            if there == node and uid and binding_version is not None and self._is_version(held, binding_version):
                raise _SameError(held)
            raise already_assigned(held.name, there)
        if resource_version and resource_version != str(held.revision):
            raise other_revision(held.name, resource_version, str(held.revision))
        if "deletionTimestamp" in pod["metadata"]:
            raise being_deleted(held.name)
        if pod.get("spec", {}).get("schedulingGates"):
            raise gated(held.name)

    def _is_version(self, pod: StoredObject, binding_version: int) -> bool:
        held = self._registry.cache.get(PLACEMENT_DECISIONS, pod.namespace, pod.name)
        decision = None if held is None else read_decision(held.value)
        if decision is None:
            return False
        return (decision.spec.pod_uid, decision.spec.binding_version) == (pod.uid, binding_version)

    def _bound(self, pod: Object, node: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> Object:
        """The pod as the API server writes it when it is bound: a new object that shares most of the old one."""
        status = dict(pod.get("status", {}))
        status.pop("nominatedNodeName", None)
        status["conditions"] = list(status.get("conditions", ()))
        pod = {**pod, "metadata": dict(pod["metadata"]), "spec": {**pod["spec"], "nodeName": node}, "status": status}
        with_condition(status, {"type": "PodScheduled", "status": "True"}, seconds_time(self._wall_ns()))
        given = {key: value for key, value in annotations.items() if key not in _OURS}
        if given:
            pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), **given}
        if labels:
            pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **labels}
        return pod

    async def create_binding(self, asked: CreateRequest) -> Object:
        """POST of a Binding, to a pod or to `bindings`, by any scheduler. Our own fields are annotations."""
        body, target = asked.body, asked.target
        meta = body.get("metadata", {})
        name = meta.get("name", "")
        if target.resource.kind == "Pod" and name != target.name:
            raise bad_request("name in URL does not match name in Binding object")
        if meta.get("namespace", target.namespace) != target.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        node = _checked_target(name, body.get("target", {}))
        annotations = meta.get("annotations", {})
        request = BindRequest(
            namespace=target.namespace,
            name=name,
            node=node,
            uid=meta.get("uid", ""),
            resource_version=meta.get("resourceVersion", ""),
            binding_version=_number(annotations, BINDING_VERSION),
            term=_number(annotations, TERM),
            scheduler=asked.caller.name,
            annotations=annotations,
            labels=meta.get("labels", {}),
        )
        await self.bind_one(request, asked.caller, dry_run=asked.dry_run or asked.options.dry_run)
        return dict(SUCCESS)


def with_condition(status: Object, condition: Mapping[str, Any], at: str, *, probed: bool = True) -> bool:
    """Set a condition; whether anything changed. lastTransitionTime changes with the status only.

    `probed`: with a lastProbeTime, as pods' conditions have; nobody uses it.
    """
    conditions: list[Object] = status.setdefault("conditions", [])
    for index, held in enumerate(conditions):
        if held.get("type") == condition["type"]:
            same = held.get("status") == condition["status"]
            made = _condition(condition, held.get("lastTransitionTime") or at if same else at, probed=probed)
            if {**made, "lastProbeTime": None} == {**held, "lastProbeTime": None}:
                return False
            conditions[index] = made
            return True
    conditions.append(_condition(condition, at, probed=probed))
    return True


def _condition(condition: Mapping[str, Any], since: str, *, probed: bool) -> Object:
    """In Kubernetes' order of fields."""
    made: Object = {"type": condition["type"]}
    if "observedGeneration" in condition:
        made["observedGeneration"] = condition["observedGeneration"]
    made["status"] = condition["status"]
    if probed:
        made["lastProbeTime"] = None
    made["lastTransitionTime"] = since
    for name in ("reason", "message"):
        if condition.get(name):
            made[name] = condition[name]
    return made


def _checked_target(name: str, target: Mapping[str, Any]) -> str:
    kind, node = target.get("kind", ""), target.get("name", "")
    problems = []
    if kind not in ("", "Node"):
        text = f'Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        problems.append(Cause("target.kind", text, "FieldValueNotSupported"))
    if not node:
        problems.append(Cause("target.name", "Required value", "FieldValueRequired"))
    if problems:
        raise invalid("Binding", "", name, problems)
    return str(node)


def _number(annotations: Mapping[str, str], key: str) -> int | None:
    text = annotations.get(key)
    if text is None:
        return None
    number = parse_count(text)
    if number is None:
        raise StatusError(400, "BadRequest", f'annotation {key}: "{text[:100]}" is not a number')
    return number
