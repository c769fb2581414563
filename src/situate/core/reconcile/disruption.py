"""PodDisruptionBudgets: how many disruptions are allowed, and whether a pod may be evicted."""

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from situate.core.model.apps import Deployment, ManagedReplicaSet, ManagedReplicationController, ManagedStatefulSet
from situate.core.model.base import EMPTY
from situate.core.model.labels import Selector, SelectorError, parse_selector
from situate.core.model.managed import Budget, BudgetStatus, ManagedPod
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, Owner, condition_of, controller_of
from situate.core.reconcile.api_values import SECOND, format_time, parse_time, scaled_value
from situate.core.reconcile.effects import ReconcileResult, RecordEvent, ResultBuilder
from situate.core.reconcile.objects import ObjectLister, normal_event, ref_of, update_status
from situate.core.reconcile.pods import is_finished, is_ready

DELETION_TIMEOUT: Millis = 120 * SECOND
"""After this time, a pod with a granted eviction that was not deleted counts again."""
MAX_DISRUPTED = 2_000
"""The limit of granted evictions that are not confirmed."""
ALLOWED = "DisruptionAllowed"
WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
CAUSE = "DisruptionBudget"
_NUMBERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class _ScaleError(ValueError):
    """The expected number of pods cannot be determined."""


def budget(one: Budget, objects: ObjectLister, now: Millis) -> ReconcileResult:
    result = ResultBuilder()
    selector = _selector(one)
    if selector is None:
        return ReconcileResult()
    pods = [pod for pod in objects.among(ManagedPod, one.metadata.namespace) if selector.matches(pod.metadata.labels)]
    try:
        expected, desired = _expected(one, pods, objects)
    except _ScaleError as error:
        status = _failed(one, str(error), now)
        if status != one.status:
            text = f"Failed to calculate the number of expected pods: {error}"
            result.effects.append(RecordEvent(ref_of(one), "Warning", "CalculateExpectedPodCountFailed", text))
    else:
        disrupted = _disrupted(one, pods, now, result)
        healthy = sum(
            is_ready(pod) and pod.metadata.deletion_timestamp is None and pod.metadata.name not in disrupted
            for pod in pods
        )
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        status = BudgetStatus(
            observed_generation=one.metadata.generation,
            disrupted_pods=disrupted or EMPTY,
            disruptions_allowed=allowed,
            current_healthy=healthy,
            desired_healthy=desired,
            expected_pods=expected,
            conditions=_conditions(one.status.conditions, allowed, one.metadata.generation, now),
        )
        if not pods and status != one.status:
            result.effects.append(normal_event(one, "NoPods", "No matching pods found"))
    result.effects += update_status(one, status, *_NUMBERS)
    return result.done()


def _selector(one: Budget) -> Selector | None:
    """Here an empty selector matches every pod."""
    try:
        return parse_selector(one.spec.selector)
    except SelectorError:
        return None


def _expected(one: Budget, pods: Sequence[ManagedPod], objects: ObjectLister) -> tuple[int, int]:
    """The expected number of pods, and the desired number of healthy ones."""
    least, most = one.spec.min_available, one.spec.max_unavailable
    if most is not None:
        expected = _scale(pods, objects)
        return expected, max(expected - scaled_value(most, expected, up=True), 0)
    if isinstance(least, str):
        expected = _scale(pods, objects)
        return expected, scaled_value(least, expected, up=True)
    return len(pods), least or 0


def _scale(pods: Sequence[ManagedPod], objects: ObjectLister) -> int:
    """The sum of the sizes of the pods' controllers. Pods without a controller do not count."""
    sizes: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is None or owner.uid in sizes:
            continue
        found = _size_of(owner, pod.metadata.namespace, objects)
        if found is None:
            raise _ScaleError(f'found no controllers for pod "{pod.metadata.name}"')
        sizes[found[0]] = found[1]
        sizes.setdefault(owner.uid, 0)
    return sum(sizes.values())


def _size_of(owner: Owner, namespace: str, objects: ObjectLister) -> tuple[str, int] | None:
    """Uid and size of the top controller: for a ReplicaSet, its Deployment, if any."""
    kind = owner.api_version.partition("/")[0], owner.kind
    if kind == ("v1", "ReplicationController"):
        rc = objects.get(ManagedReplicationController, namespace, owner.name)
        return None if rc is None or rc.metadata.uid != owner.uid else (owner.uid, rc.spec.replicas)
    if kind == ("apps", "StatefulSet"):
        sts = objects.get(ManagedStatefulSet, namespace, owner.name)
        return None if sts is None or sts.metadata.uid != owner.uid else (owner.uid, sts.spec.replicas)
    if kind != ("apps", "ReplicaSet"):
        return None
    found = objects.get(ManagedReplicaSet, namespace, owner.name)
    if found is None or found.metadata.uid != owner.uid:
        return None
    above = controller_of(found.metadata)
    if above is not None and above.kind == "Deployment":
        parent = objects.get(Deployment, namespace, above.name)
        if parent is not None and parent.metadata.uid == above.uid:
            return parent.metadata.uid, parent.spec.replicas
    return owner.uid, found.spec.replicas


def _disrupted(one: Budget, pods: Sequence[ManagedPod], now: Millis, result: ResultBuilder) -> dict[str, str | None]:
    """Pods whose eviction was granted recently and that are not being deleted yet."""
    held: dict[str, str | None] = {}
    for pod in pods:
        name, at = pod.metadata.name, parse_time(one.status.disrupted_pods.get(pod.metadata.name))
        if at is None or pod.metadata.deletion_timestamp is not None:
            continue
        if at + DELETION_TIMEOUT <= now:
            key = f"{one.metadata.namespace}/{one.metadata.name}"
            text = f"Pod was expected by PDB {key} to be deleted but it wasn't"
            result.effects.append(RecordEvent(ref_of(pod), "Warning", "NotDeleted", text))
        else:
            held[name] = one.status.disrupted_pods[name]
            result.requeue(at + DELETION_TIMEOUT)
    return held


def _conditions(
    held: tuple[Condition, ...], allowed: int, generation: int, now: Millis, reason: str = "", message: str = ""
) -> tuple[Condition, ...]:
    reason = reason or ("SufficientPods" if allowed else "InsufficientPods")
    old, status = condition_of(held, ALLOWED), "True" if allowed else "False"
    kept = old is not None and old.status == status
    new = Condition(
        type=ALLOWED,
        status=status,
        last_transition_time=old.last_transition_time if kept and old is not None else format_time(now),
        reason=reason,
        message=message,
        observed_generation=generation,
    )
    return (*(each for each in held if each.type != ALLOWED), new)


def _failed(one: Budget, why: str, now: Millis) -> BudgetStatus:
    """In doubt, no disruption is allowed."""
    held = one.status
    conditions = _conditions(held.conditions, 0, held.observed_generation, now, "SyncFailed", why)
    return replace(held, disruptions_allowed=0, conditions=conditions)


# Evictions


class EvictionDecision(msgspec.Struct, frozen=True):
    """Whether a pod may be evicted; otherwise the API server's response.

    `takes`: the eviction uses a disruption: store `granted(...)` before deleting the pod. `same_version`: delete only
    the version of the pod that was checked.
    """

    code: Literal[200, 403, 429, 500]
    message: str = ""
    cause: str = ""
    retry_after: int | None = None
    takes: bool = False
    same_version: bool = False


def budgets_of(pod: ManagedPod, objects: ObjectLister) -> list[Budget]:
    found = []
    for one in objects.among(Budget, pod.metadata.namespace):
        selector = _selector(one)
        if selector is not None and selector.matches(pod.metadata.labels):
            found.append(one)
    return found


def decide_eviction(pod: ManagedPod, budgets: Sequence[Budget]) -> EvictionDecision:
    """`budgets` are those that match the pod."""
    if is_finished(pod) or pod.status.phase == "Pending" or pod.metadata.deletion_timestamp is not None:
        going = is_finished(pod) or pod.metadata.deletion_timestamp is not None
        return EvictionDecision(200, same_version=not going)
    if not budgets:
        return EvictionDecision(200)
    if len(budgets) > 1:
        return EvictionDecision(500, SEVERAL_BUDGETS)
    one = budgets[0]
    status, name = one.status, one.metadata.name
    if not is_ready(pod):
        always = one.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
        if always or status.current_healthy >= status.desired_healthy > 0:
            return EvictionDecision(200, same_version=True)
    if status.observed_generation < one.metadata.generation:
        cause = f"The disruption budget {name} is still being processed by the server."
        return EvictionDecision(429, WOULD_VIOLATE, cause, 10)
    if len(status.disrupted_pods) > MAX_DISRUPTED:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        return EvictionDecision(403, f'poddisruptionbudget.policy "{name}" is forbidden: {text}')
    if status.disruptions_allowed <= 0:
        return EvictionDecision(429, WOULD_VIOLATE, _why_not(one))
    return EvictionDecision(200, takes=True)


def _why_not(one: Budget) -> str:
    status, name = one.status, one.metadata.name
    condition = condition_of(status.conditions, ALLOWED)
    said = condition if condition is not None and condition.status == "False" and condition.message else None
    text = f"The disruption budget {name} does not allow evicting pods currently"
    if said is not None and said.reason == "SyncFailed":
        return f"{text} because it failed sync: {said.message}"
    if status.current_healthy <= status.desired_healthy:
        numbers = f"needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
        return f"The disruption budget {name} {numbers}"
    return text if said is None else f"{text} ({said.reason}): {said.message}"


def granted(one: Budget, pod: str, now: Millis) -> BudgetStatus:
    """The budget's status after a granted eviction."""
    left = one.status.disruptions_allowed - 1
    conditions = one.status.conditions
    if not left:
        conditions = _conditions(conditions, 0, one.status.observed_generation, now)
    disrupted = {**one.status.disrupted_pods, pod: format_time(now)}
    return replace(one.status, disruptions_allowed=left, disrupted_pods=disrupted, conditions=conditions)
