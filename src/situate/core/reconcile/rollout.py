"""The next size of each ReplicaSet of a Deployment. Pure.

Two guarantees hold after every step: all ReplicaSets together ask for at most `replicas + maxSurge` pods, and no
deletion leaves fewer than `replicas - maxUnavailable` available. A status may lag behind its spec, so each count uses
the more pessimistic one. As in Kubernetes, a pod more may exist for the moment until the ReplicaSet controller has
deleted what an old ReplicaSet no longer asks for.
"""

from collections.abc import Mapping, Sequence

from situate.core.model.apps import Deployment, ManagedReplicaSet, RollingUpdate
from situate.core.model.integers import parse_count
from situate.core.reconcile.api_values import scaled_value

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
_QUARTER = "25%"

Sizes = Mapping[str, int]
"""New sizes by name; others stay."""


def is_rolling(one: Deployment) -> bool:
    return one.spec.strategy.type == "RollingUpdate"


def _limits(one: Deployment) -> tuple[int, int]:
    rule = one.spec.strategy.rolling_update or RollingUpdate()
    surge = scaled_value(_QUARTER if rule.max_surge is None else rule.max_surge, one.spec.replicas, up=True)
    away = scaled_value(_QUARTER if rule.max_unavailable is None else rule.max_unavailable, one.spec.replicas, up=False)
    # With both 0, nothing could ever be replaced.
    return surge, away if surge or away else 1


def max_surge(one: Deployment) -> int:
    return _limits(one)[0] if is_rolling(one) else 0


def max_unavailable(one: Deployment) -> int:
    return min(_limits(one)[1], one.spec.replicas) if is_rolling(one) else 0


def by_age(sets: Sequence[ManagedReplicaSet]) -> list[ManagedReplicaSet]:
    return sorted(sets, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name))


def is_scaling(one: Deployment, sets: Sequence[ManagedReplicaSet]) -> bool:
    """Whether `replicas` differs from the size noted on the active ReplicaSets."""
    noted = [_number(each, DESIRED) for each in sets if each.spec.replicas]
    return any(number is not None and number != one.spec.replicas for number in noted)


def _number(one: ManagedReplicaSet, annotation: str) -> int | None:
    return parse_count(one.metadata.annotations.get(annotation, ""))


def _occupied(one: ManagedReplicaSet) -> int:
    """Desired or existing pods."""
    return max(one.spec.replicas, one.status.replicas)


def _available(one: ManagedReplicaSet, size: int) -> int:
    """Available pods after scaling to this size."""
    return min(size, one.status.available_replicas)


def new_size(one: Deployment, new: ManagedReplicaSet, old: Sequence[ManagedReplicaSet]) -> int:
    """The size of the newest ReplicaSet, as far as the surge allows."""
    size, want = new.spec.replicas, one.spec.replicas
    if size >= want or not is_rolling(one):
        return want
    room = want + max_surge(one) - sum(_occupied(each) for each in (*old, new))
    return min(size + max(room, 0), want)


def rolled(one: Deployment, new: ManagedReplicaSet, old: Sequence[ManagedReplicaSet]) -> Sizes:
    """One step of a rolling update: up if there is room, else down if enough are available."""
    size = new_size(one, new, old)
    if size != new.spec.replicas:
        return {new.metadata.name: size}
    return _fewer_old(one, new, [each for each in by_age(old) if each.spec.replicas])


def _fewer_old(one: Deployment, new: ManagedReplicaSet, old: Sequence[ManagedReplicaSet]) -> Sizes:
    needed = one.spec.replicas - max_unavailable(one)
    available = _available(new, new.spec.replicas)
    spare = sum(each.spec.replicas for each in old) + available - needed
    if spare <= 0:
        return {}
    sizes = {each.metadata.name: each.spec.replicas for each in old}
    # Unavailable pods go first.
    for each in old:
        name = each.metadata.name
        cut = min(spare, sizes[name] - _available(each, sizes[name]))
        sizes[name] -= cut
        spare -= cut
    beyond = available + sum(_available(each, sizes[each.metadata.name]) for each in old) - needed
    for each in old:
        name = each.metadata.name
        cut = max(min(beyond, sizes[name]), 0)
        sizes[name] -= cut
        beyond -= cut
    return {
        each.metadata.name: sizes[each.metadata.name] for each in old if sizes[each.metadata.name] != each.spec.replicas
    }


def recreated(
    one: Deployment, new: ManagedReplicaSet | None, old: Sequence[ManagedReplicaSet], old_pods: bool
) -> Sizes:
    """First all old ones to 0; when their pods are gone, the new one."""
    active = [each for each in old if each.spec.replicas]
    if active:
        return {each.metadata.name: 0 for each in active}
    if new is None or old_pods or new.spec.replicas == one.spec.replicas:
        return {}
    return {new.metadata.name: one.spec.replicas}


def scaled(one: Deployment, new: ManagedReplicaSet | None, old: Sequence[ManagedReplicaSet]) -> Sizes:
    """Sizes after `replicas` changed, or while paused: in proportion, so that the rollout keeps its progress."""
    all_sets = [*old] if new is None else [*old, new]
    active = [each for each in all_sets if each.spec.replicas]
    if len(active) <= 1:
        only = active[0] if active else new or (by_age(old)[-1] if old else None)
        return {} if only is None else {only.metadata.name: one.spec.replicas}
    if new is not None and _is_saturated(one, new):
        return {each.metadata.name: 0 for each in active if each is not new}
    if not is_rolling(one):
        return {}
    return _in_proportion(one, active)


def _is_saturated(one: Deployment, new: ManagedReplicaSet) -> bool:
    want = one.spec.replicas
    return new.spec.replicas == want and _number(new, DESIRED) == want and new.status.available_replicas == want


def _in_proportion(one: Deployment, active: Sequence[ManagedReplicaSet]) -> Sizes:
    allowed = one.spec.replicas + max_surge(one) if one.spec.replicas else 0
    change = allowed - sum(each.spec.replicas for each in active)
    sizes = {each.metadata.name: each.spec.replicas for each in active}
    if change == 0:
        return sizes
    # Largest first. Among equals, the newer grows first and the older shrinks first.
    ordered = by_age(active)
    ordered = sorted(ordered[::-1] if change > 0 else ordered, key=lambda each: -each.spec.replicas)
    left = change
    for each in ordered:
        part = _fraction(one, each)
        part = max(min(part, left), 0) if change > 0 else min(max(part, left), 0)
        sizes[each.metadata.name] += part
        left -= part
    largest = ordered[0].metadata.name
    sizes[largest] = max(sizes[largest] + left, 0)
    return sizes


def _fraction(one: Deployment, each: ManagedReplicaSet) -> int:
    """The change of a ReplicaSet in proportional scaling."""
    size = each.spec.replicas
    if not one.spec.replicas:
        return -size
    before = _number(each, MAXIMUM) or one.status.replicas
    if not before:
        return 0
    twice = 2 * size * (one.spec.replicas + max_surge(one)) + before
    return twice // (2 * before) - size
