"""Copies of a pod or a node with one thing changed, as a person would edit it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from situate.core.explain.formatting import quantity
from situate.core.model.node import Node
from situate.core.model.pod import Affinity, Container, Pod, PodAffinity, ResourceRequirements
from situate.core.model.quantity import RawQuantity, milli_value, value
from situate.core.model.requests import Requests, fit_requests
from situate.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from situate.core.model.tolerations import Taint, Toleration
from situate.core.plugins.node_unschedulable import CORDON
from situate.core.state.classes import HostPort

OVERCOMMITTED: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""For these, a limit may exceed the request; for all others, both are equal."""
SIDECAR: Final = "Always"


# -- tolerations, selectors, terms -----------------------------------------------------------------------------------


def toleration_of(taint: Taint) -> Toleration:
    return Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)


def tolerating(pod: Pod, taints: Iterable[Taint]) -> Pod:
    more = tuple(toleration_of(taint) for taint in taints)
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *more)))


def without_selector(pod: Pod, keys: Iterable[str]) -> Pod:
    dropped = tuple(keys)
    kept = {key: wanted for key, wanted in pod.spec.node_selector.items() if key not in dropped}
    return replace(pod, spec=replace(pod.spec, node_selector=kept))


def without_required_node_affinity(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return pod
    rules = replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=None)
    return _with_affinity(pod, replace(affinity, node_affinity=rules))


def without_pod_terms(pod: Pod, near: Iterable[int], apart: Iterable[int]) -> Pod:
    """Drop required terms by index: of affinity, and of anti-affinity."""
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    changed = replace(
        affinity,
        pod_affinity=_without(affinity.pod_affinity, tuple(near)),
        pod_anti_affinity=_without(affinity.pod_anti_affinity, tuple(apart)),
    )
    return _with_affinity(pod, changed)


def _without(side: PodAffinity | None, places: tuple[int, ...]) -> PodAffinity | None:
    if side is None or not places:
        return side
    terms = side.required_during_scheduling_ignored_during_execution
    kept = tuple(term for at, term in enumerate(terms) if at not in places)
    return replace(side, required_during_scheduling_ignored_during_execution=kept)


def _with_affinity(pod: Pod, affinity: Affinity) -> Pod:
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


def respread(pod: Pod, at: int, *, max_skew: int | None = None) -> Pod:
    """Raise maxSkew of one constraint; without a value, make the constraint soft."""
    constraints = list(pod.spec.topology_spread_constraints)
    if max_skew is None:
        constraints[at] = replace(constraints[at], when_unsatisfiable="ScheduleAnyway", min_domains=None)
    else:
        constraints[at] = replace(constraints[at], max_skew=max_skew)
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=tuple(constraints)))


def annotated(pod: Pod, key: str, value: str) -> Pod:
    annotations = {**pod.metadata.annotations, key: value}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def without_gates(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, scheduling_gates=()))


def without_host_ports(pod: Pod, ports: Iterable[HostPort]) -> Pod:
    taken = {(port.protocol, port.port) for port in ports}

    def freed(container: Container) -> Container:
        changed = tuple(
            replace(port, host_port=0, host_ip="") if (port.protocol or "TCP", port.host_port) in taken else port
            for port in container.ports
        )
        return replace(container, ports=changed)

    containers = tuple(freed(one) for one in pod.spec.containers)
    inits = tuple(freed(one) for one in pod.spec.init_containers)
    return replace(pod, spec=replace(pod.spec, containers=containers, init_containers=inits))


# -- requests --------------------------------------------------------------------------------------------------------


def asked(pod: Pod, resource: str) -> int:
    """The pod's request, in the units of its column."""
    return _of(fit_requests(pod), resource)


def _of(requests: Requests, resource: str) -> int:
    if resource == CPU:
        return requests.milli_cpu
    if resource == MEMORY:
        return requests.memory
    if resource == EPHEMERAL_STORAGE:
        return requests.ephemeral_storage
    return int(requests.scalar.get(resource, 0))


def asking(pod: Pod, resource: str, most: int) -> Pod | None:
    """The pod with a request of at most `most`: the largest containers give up most. None if impossible."""
    spec = pod.spec
    budget = most - _amount(resource, spec.overhead.get(resource, 0))
    if budget < 0 or (spec.resources is not None and resource in spec.resources.requests):
        return None
    running = dict(enumerate(spec.containers))
    sidecars = {at: one for at, one in enumerate(spec.init_containers) if one.restart_policy == SIDECAR}
    wants = [(_asked(one, resource), "c", at) for at, one in running.items()]
    wants += [(_asked(one, resource), "i", at) for at, one in sidecars.items()]
    cut = max(0, sum(amount for amount, _, _ in wants) - budget)
    gives: dict[tuple[str, int], int] = {}
    for amount, where, at in sorted(wants, key=lambda one: -one[0]):
        gives[where, at] = min(cut, amount)
        cut -= gives[where, at]
    containers = tuple(_lowered(one, resource, gives["c", at]) for at, one in running.items())
    inits = []
    beside = 0
    for at, one in enumerate(spec.init_containers):
        if at in sidecars:
            inits.append(_lowered(one, resource, gives["i", at]))
            beside += _asked(inits[-1], resource)
        else:
            inits.append(_lowered(one, resource, max(0, _asked(one, resource) - max(0, budget - beside))))
    changed = replace(pod, spec=replace(spec, containers=containers, init_containers=tuple(inits)))
    return changed if asked(changed, resource) <= most else None


def _asked(container: Container, resource: str) -> int:
    return _amount(resource, container.resources.requests.get(resource, 0))


def _amount(resource: str, raw: RawQuantity) -> int:
    return milli_value(raw) if resource == CPU else value(raw)


def _lowered(container: Container, resource: str, less: int) -> Container:
    """Writes an explicit 0: with a limit and no request, the request would default to the limit."""
    if less <= 0:
        return container
    lowered = quantity(resource, _asked(container, resource) - less)
    requests: Mapping[str, RawQuantity] = {**container.resources.requests, resource: lowered}
    limits = container.resources.limits
    if resource not in OVERCOMMITTED and resource in limits:
        limits = {**limits, resource: lowered}
    return replace(container, resources=ResourceRequirements(requests=requests, limits=limits))


# -- nodes -----------------------------------------------------------------------------------------------------------


def uncordoned(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != CORDON.key)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


def labelled(node: Node, labels: Mapping[str, str]) -> Node:
    return replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, **labels}))
