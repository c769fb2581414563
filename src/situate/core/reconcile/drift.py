"""Drift: pods that no longer fit or match the node they run on, because the node changed. Off unless somebody asks.

    labels changed         the pod's nodeSelector or required node affinity does not match any more
    a taint was added      NoSchedule, and the pod does not tolerate it; NoExecute has its own controller
    allocatable shrank     the node's pods ask for more than it has: the lowest priority leaves, the newest first

Such a pod is evicted, within its disruption budget, and its controller creates another one. A pod that nobody would
create again stays, and so does one of a DaemonSet, whose controller decides. At most MOVES pods leave in PERIOD_MS.

The objects must include Pod and Node beside what other controllers read: see `loop.controllers.cache`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from situate.core.model.eligibility import drift_refusals
from situate.core.model.ledger import allocatable_of, amounts_of, quantity
from situate.core.model.managed import Budget, ManagedPod
from situate.core.model.meta import controller_of, key_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.disruption import budgets_of, decide_eviction, granted
from situate.core.reconcile.effects import EvictManagedPod, ReconcileResult, RecordEvent, ResultBuilder
from situate.core.reconcile.objects import ObjectLister, ref_of
from situate.core.reconcile.pods import is_active

MOVES: Final = 20
"""How many pods may be evicted in one period, in the whole cluster."""
PERIOD_MS: Final[Millis] = 10 * SECOND
EVICTED: Final = "DriftEviction"
"""The reason of the event about a pod that is moved."""
MIRROR: Final = "kubernetes.io/config.mirror"
OK: Final = 200

OVERFULL: Final = "the node has {resource} {has}, and its pods ask for {asked}"
NO_CONTROLLER: Final = "no controller would create it again"
DAEMON: Final = "its DaemonSet decides"
STATIC: Final = "it is a static pod"

Action: TypeAlias = Literal["evict", "wait", "never"]
"""`wait`: its budget does not allow it now."""


@dataclass(frozen=True, slots=True)
class DriftedPod:
    pod: Pod
    node: str
    reason: str
    """Why it does not belong there any more."""
    action: Action
    why: str = ""
    """Why it is not evicted now."""


def move_drifted(objects: ObjectLister, now: Millis) -> ReconcileResult:
    """Evict what has drifted and may leave now, the lowest priority first."""
    result = ResultBuilder()
    result.requeue(now + PERIOD_MS)
    leaving = [one for one in drifted_pods(objects, now) if one.action == "evict"]
    for one in leaving[:MOVES]:
        managed = objects.get(ManagedPod, one.pod.metadata.namespace, one.pod.metadata.name)
        if managed is not None and managed.metadata.uid == one.pod.metadata.uid:
            ref = ref_of(managed)
            result.effects.append(EvictManagedPod(ref))
            result.effects.append(RecordEvent(ref, "Normal", EVICTED, f"Evicting from {one.node}: {one.reason}"))
    return result.done()


def drifted_pods(objects: ObjectLister, now: Millis) -> list[DriftedPod]:
    """All pods that have drifted, in the order in which they are to leave, and what would happen to each now."""
    found = [each for node in objects.among(Node) if _is_up(node) for each in _on_node(node, objects)]
    found.sort(key=lambda each: (_priority(each[0]), key_of(each[0].metadata)))
    budgets = _Budgets(objects, now)
    return [DriftedPod(pod, node, reason, *budgets.decide(pod)) for pod, node, reason in found]


def _is_up(node: Node) -> bool:
    """A lost node's pods have a controller of their own."""
    ready = next((one for one in node.status.conditions if one.type == "Ready"), None)
    return node.metadata.deletion_timestamp is None and (ready is None or ready.status == "True")


def _on_node(node: Node, objects: ObjectLister) -> Iterator[tuple[Pod, str, str]]:
    """The pods that have drifted on one node, and why."""
    name = node.metadata.name
    stay: list[Pod] = []
    for managed in objects.on_node(name):
        pod = objects.get(Pod, managed.metadata.namespace, managed.metadata.name)
        if pod is None or not is_active(managed):
            continue
        reasons = drift_refusals(pod, node)
        if reasons:
            yield pod, name, reasons[0]
        if not reasons or _never(pod):
            stay.append(pod)
    if node.status.allocatable:
        yield from ((pod, name, reason) for pod, reason in _overfull(stay, node) if not drift_refusals(pod, node))


# -- capacity --------------------------------------------------------------------------------------------------------


def _overfull(pods: Sequence[Pod], node: Node) -> Iterator[tuple[Pod, str]]:
    """The pods that must leave until the others fit. One that can never leave is named and helps nothing."""
    has = allocatable_of(node)
    amounts = {key_of(pod.metadata): amounts_of(pod) for pod in pods}
    asked: dict[str, int] = {}
    for one in amounts.values():
        for resource, amount in one.items():
            asked[resource] = asked.get(resource, 0) + amount
    over = {resource: amount - has.get(resource, 0) for resource, amount in asked.items()}
    short = next((resource for resource in sorted(over) if over[resource] > 0), "")
    if not short:
        return
    reason = OVERFULL.format(
        resource=short, has=quantity(short, has.get(short, 0)), asked=quantity(short, asked[short])
    )
    chosen: list[Pod] = []
    newest = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", key_of(pod.metadata)), reverse=True)
    for pod in sorted(newest, key=_priority):
        own = amounts[key_of(pod.metadata)]
        if not any(over.get(resource, 0) > 0 for resource in own):
            continue
        chosen.append(pod)
        if not _never(pod):
            over = {resource: amount - own.get(resource, 0) for resource, amount in over.items()}
    for pod in reversed(chosen):  # the last ones may have made the first ones superfluous, and matter more
        own = amounts[key_of(pod.metadata)]
        kept = {resource: amount + own.get(resource, 0) for resource, amount in over.items()}
        if _never(pod) or any(amount > 0 and resource in own for resource, amount in kept.items()):
            yield pod, reason
        else:
            over = kept


# -- who may leave ---------------------------------------------------------------------------------------------------


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def _never(pod: Pod) -> str:
    """Why the pod is not evicted, whatever its budget says; or empty."""
    if MIRROR in pod.metadata.annotations:
        return STATIC
    owner = controller_of(pod.metadata)
    if owner is None:
        return NO_CONTROLLER
    return DAEMON if owner.kind == "DaemonSet" else ""


class _Budgets:
    """The budgets, charged with what was decided before."""

    def __init__(self, objects: ObjectLister, now: Millis) -> None:
        self._objects = objects
        self._now = now
        self._charged: dict[tuple[str, str], Budget] = {}

    def decide(self, pod: Pod) -> tuple[Action, str]:
        if why := _never(pod):
            return "never", why
        managed = self._objects.get(ManagedPod, pod.metadata.namespace, pod.metadata.name)
        if managed is None:
            return "wait", "it has just gone"
        found = [self._charged.get(_key(one), one) for one in budgets_of(managed, self._objects)]
        answer = decide_eviction(managed, found)
        if answer.code != OK:
            return "wait", answer.cause or answer.message
        if answer.takes:
            one = found[0]
            self._charged[_key(one)] = replace(one, status=granted(one, managed.metadata.name, self._now))
        return "evict", ""


def _key(one: Budget) -> tuple[str, str]:
    return one.metadata.namespace, one.metadata.name
