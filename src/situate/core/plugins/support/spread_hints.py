"""Queueing hints of PodTopologySpread: the events that may make it accept a node that it refused.

A domain gains room when a counted pod leaves it, and every other domain when a pod joins the emptiest one. Labels
determine the domains and which nodes count, and so do taints if a constraint honours them.
"""

from __future__ import annotations

from situate.core.contract import Wake, WakeEvent
from situate.core.model.base import Labels
from situate.core.model.labels import EVERYTHING, SelectorError
from situate.core.model.node import Node
from situate.core.model.pod import TopologySpreadConstraint
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from situate.core.plugins.support.default_selector import default_selector
from situate.core.plugins.support.node_selectors import required_affinity_matches
from situate.core.plugins.support.spread_constraints import (
    DO_NOT_SCHEDULE,
    Constraint,
    default_constraints,
    parse_constraints,
)
from situate.core.state.classes import PodClass
from situate.core.state.objects import ObjectTable

Constraints = tuple[Constraint, ...]


def spread_hint(pod: PodClass, event: WakeEvent, defaults: tuple[TopologySpreadConstraint, ...]) -> bool:
    """Whether the event could help a refused pod; `defaults` are for pods without constraints of their own."""
    if event.kind is Wake.WORKLOAD_CHANGED:
        return _companions_change(pod, event)
    if event.pod is not None and event.pod.namespace != pod.namespace:
        return False
    try:
        constraints = hard_constraints(pod, defaults, event.objects)
        if event.own:
            return _own_change(pod, event, constraints, defaults)
    except SelectorError:
        return True
    match event.kind:
        case Wake.POD_ADDED | Wake.POD_DELETED | Wake.POD_LEAVING if event.pod is not None:
            labels = event.pod.labels
            return any(constraint.selector.matches(labels) for constraint in constraints)
        case Wake.POD_LABEL if event.pod is not None and event.pod_before is not None:
            return _counts_otherwise(constraints, event.pod_before.labels, event.pod.labels)
        case Wake.NODE_ADDED | Wake.NODE_DELETED | Wake.NODE_LABEL | Wake.NODE_TAINT:
            return _node_moved(pod, constraints, event.node_before, event.node)
        case _:
            return True


def hard_constraints(
    pod: PodClass, defaults: tuple[TopologySpreadConstraint, ...], objects: ObjectTable | None
) -> Constraints:
    """The constraints that can refuse a node: the pod's own, else the defaults."""
    own = pod.spec.topology_spread_constraints
    if own:
        return parse_constraints(own, DO_NOT_SCHEDULE, pod.labels)
    selector = EVERYTHING if objects is None else default_selector(pod, objects.workloads)
    return default_constraints(defaults, DO_NOT_SCHEDULE, selector)


def _own_change(
    pod: PodClass, event: WakeEvent, constraints: Constraints, defaults: tuple[TopologySpreadConstraint, ...]
) -> bool:
    """The pod's labels say whether it counts, and with `matchLabelKeys` what it counts; its tolerations, where."""
    if event.kind is Wake.POD_TOLERATION:
        return any(constraint.honors_taints for constraint in constraints)
    before = event.pod_before
    if before is None:
        return True
    if hard_constraints(before, defaults, event.objects) != constraints:
        return True
    return _counts_otherwise(constraints, before.labels, pod.labels)


def _counts_otherwise(constraints: Constraints, before: Labels, after: Labels) -> bool:
    return any(one.selector.matches(before) != one.selector.matches(after) for one in constraints)


def _node_moved(pod: PodClass, constraints: Constraints, before: Node | None, after: Node | None) -> bool:
    """A node counts if it has the labels of all constraints: did it start or stop counting, or change domains?"""
    keys = [constraint.topology_key for constraint in constraints]
    if _has_all(keys, before) != _has_all(keys, after):
        return True
    if before is None or after is None or not _has_all(keys, after):
        return False
    moved = any(before.metadata.labels[key] != after.metadata.labels[key] for key in keys)
    if moved or before.spec.taints != after.spec.taints:
        return True
    if not any(constraint.honors_affinity for constraint in constraints):
        return False
    return required_affinity_matches(pod.spec, before) != required_affinity_matches(pod.spec, after)


def _has_all(keys: list[str], node: Node | None) -> bool:
    return node is not None and all(key in node.metadata.labels for key in keys)


def _companions_change(pod: PodClass, event: WakeEvent) -> bool:
    """A service that selects or selected the pod, or its controller, changed: the defaults may count other pods now."""
    if pod.spec.topology_spread_constraints:
        return False
    for item in (event.item, event.item_before):
        match item:
            case Service() if item.metadata.namespace == pod.namespace:
                if item.spec.selector.items() <= pod.labels.items():
                    return True
            case ReplicationController() | ReplicaSet() | StatefulSet() if item.metadata.namespace == pod.namespace:
                if pod.owner is not None and pod.owner.name == item.metadata.name:
                    return True
            case _:
                pass
    return False
