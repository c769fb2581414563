"""The selector of default spreading: from the services that select a pod, and its controller.

A pod that no service selects and no known controller owns has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.core.model.labels import (
    IN,
    LabelSelector,
    Requirement,
    Selector,
    SelectorError,
    parse_selector,
    selector_of,
)
from situate.core.state.classes import PodClass
from situate.core.state.objects import WorkloadObjects

REPLICATION_CONTROLLER: Final = frozenset({("v1", "ReplicationController"), ("/v1", "ReplicationController")})
REPLICA_SET: Final = ("apps/v1", "ReplicaSet")
STATEFUL_SET: Final = ("apps/v1", "StatefulSet")


def default_selector(pod: PodClass, workloads: WorkloadObjects) -> Selector:
    """All requirements of the pod's services and its controller together; empty if there are none."""
    labels: dict[str, str] = {}
    for service in workloads.services.get(pod.namespace, {}).values():
        wanted = service.spec.selector
        if wanted.items() <= pod.labels.items():
            labels.update(wanted)
    owner = pod.owner
    if owner is None:
        return selector_of(exactly(labels))
    kind = (owner.api_version, owner.kind)
    more: tuple[Requirement, ...] = ()
    if kind in REPLICATION_CONTROLLER:
        controller = workloads.replication_controllers.get(pod.namespace, {}).get(owner.name)
        if controller is not None:
            # If the controller and a service disagree on a label, the controller wins.
            labels.update(controller.spec.selector)
    elif kind == REPLICA_SET:
        replica_set = workloads.replica_sets.get(pod.namespace, {}).get(owner.name)
        more = () if replica_set is None else _requirements(replica_set.spec.selector)
    elif kind == STATEFUL_SET:
        stateful_set = workloads.stateful_sets.get(pod.namespace, {}).get(owner.name)
        more = () if stateful_set is None else _requirements(stateful_set.spec.selector)
    return selector_of((*exactly(labels), *more))


def exactly(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Requirements for exactly these labels. Like Kubernetes, does not validate them."""
    return tuple(Requirement(key, IN, (value,)) for key, value in labels.items())


def _requirements(selector: LabelSelector | None) -> tuple[Requirement, ...]:
    """A selector that is absent or cannot be parsed requires nothing."""
    try:
        return parse_selector(selector).requirements
    except SelectorError:
        return ()
