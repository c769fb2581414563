"""The API server's defaults, for the fields that scheduling reads.

`defaulted` returns the same object if nothing needs to be filled in, which is the common case and runs for every pod.
Most defaults are in the structs' fields; this module sets those that depend on other fields. What admission adds
(priorities: `priority`; default tolerations, storage classes, runtime overhead) is not a default.
"""

from collections.abc import Mapping
from typing import TypeVar, cast

from msgspec.structs import replace

from situate.core.model.amounts import Amounts, Asked, combined
from situate.core.model.base import EMPTY, INT64_MAX, Labels, Model
from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.devices import ResourceClaim
from situate.core.model.group import PodGroup
from situate.core.model.labels import LabelSelector, LabelSelectorRequirement
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import (
    DEFAULT_SCHEDULER,
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceList,
    ResourceRequirements,
    WeightedPodAffinityTerm,
)
from situate.core.model.policy import Namespace, PodDisruptionBudget
from situate.core.model.quantity import NANO, RawQuantity, parse_quantity
from situate.core.model.resources import CPU, HUGE_PAGES, MEMORY, may_be_pod_level
from situate.core.model.storage import CSIStorageCapacity, PersistentVolumeClaim
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

DEFAULT_NAMESPACE = "default"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

NAMESPACED: tuple[type[Model], ...] = (
    CSIStorageCapacity,
    CustomPodGroup,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    Service,
    StatefulSet,
)

_Object = TypeVar("_Object", bound=Model)


def defaulted(obj: _Object) -> _Object:
    """The object as the API server would have stored it; the same object if that changes nothing.

    Quantities must have been found valid.
    """
    if isinstance(obj, Pod):
        return cast(_Object, _pod(obj))
    if isinstance(obj, Node):
        return cast(_Object, _node(obj))
    if isinstance(obj, Namespace):
        return cast(_Object, _namespace(obj))
    if isinstance(obj, ReplicationController):
        obj = cast(_Object, _replication_controller(obj))
    if isinstance(obj, NAMESPACED):
        meta: ObjectMeta = obj.metadata  # type: ignore[attr-defined]
        if not meta.namespace:
            return replace(obj, metadata=replace(meta, namespace=DEFAULT_NAMESPACE))
    return obj


def _node(node: Node) -> Node:
    status = node.status
    if status.allocatable is EMPTY and status.capacity:
        return replace(node, status=replace(status, allocatable=status.capacity))
    return node


def _namespace(namespace: Namespace) -> Namespace:
    meta = namespace.metadata
    if not meta.name or meta.labels.get(NAMESPACE_NAME_LABEL) == meta.name:
        return namespace
    return replace(namespace, metadata=replace(meta, labels={**meta.labels, NAMESPACE_NAME_LABEL: meta.name}))


def _replication_controller(controller: ReplicationController) -> ReplicationController:
    spec = controller.spec
    if spec.selector or spec.template is None or not spec.template.metadata.labels:
        return controller
    return replace(controller, spec=replace(spec, selector=spec.template.metadata.labels))


# Pods


def _pod(pod: Pod) -> Pod:
    meta, spec = pod.metadata, pod.spec
    if not meta.namespace:
        pod = replace(pod, metadata=replace(meta, namespace=DEFAULT_NAMESPACE))
    if not spec.scheduler_name:
        spec = replace(spec, scheduler_name=DEFAULT_SCHEDULER)
    spec = _with_container_defaults(spec)
    if spec.resources is not None:
        spec = _with_pod_level_defaults(spec, spec.resources)
    if spec.affinity is not None:
        affinity = _with_label_keys(spec.affinity, meta.labels)
        if affinity is not spec.affinity:
            spec = replace(spec, affinity=affinity)
    return pod if spec is pod.spec else replace(pod, spec=spec)


def _with_container_defaults(spec: PodSpec) -> PodSpec:
    containers, inits = spec.containers, spec.init_containers
    if any(one.resources.limits or one.ports for one in containers):
        containers = tuple(_container(one, spec.host_network) for one in containers)
    if any(one.resources.limits or one.ports for one in inits):
        inits = tuple(_container(one, spec.host_network) for one in inits)
    if containers == spec.containers and inits == spec.init_containers:
        return spec
    return replace(spec, containers=containers, init_containers=inits)


def _container(container: Container, host_network: bool) -> Container:
    resources, ports = container.resources, container.ports
    if any(name not in resources.requests for name in resources.limits):
        resources = replace(resources, requests={**resources.limits, **resources.requests})
    if any(not port.protocol or (host_network and not port.host_port) for port in ports):
        ports = tuple(_port(port, host_network) for port in ports)
    if resources is container.resources and ports is container.ports:
        return container
    return replace(container, resources=resources, ports=ports)


def _port(port: ContainerPort, host_network: bool) -> ContainerPort:
    host_port = port.container_port if host_network and not port.host_port else port.host_port
    return replace(port, protocol=port.protocol or "TCP", host_port=host_port)


def _with_pod_level_defaults(spec: PodSpec, own: ResourceRequirements) -> PodSpec:
    """Pod-level limits without requests get requests: from the containers', or else from the limits."""
    if not own.limits and not own.requests:
        return spec
    limits: dict[str, RawQuantity] = dict(own.limits)
    for name, amount in _of_containers(spec, "limits").items():
        if name.startswith(HUGE_PAGES) and name not in own.requests:
            limits.setdefault(name, _written(amount))
    requests: dict[str, RawQuantity] = dict(own.requests)
    if limits:
        for name, amount in _of_containers(spec, "requests").items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, _written(amount))
        for name, limit in limits.items():
            if may_be_pod_level(name):
                requests.setdefault(name, limit)
    if limits == own.limits and requests == own.requests:
        return spec
    return replace(spec, resources=replace(own, requests=requests, limits=limits))


def _of_containers(spec: PodSpec, field: str) -> Amounts:
    """The combined requests or limits in billionths: the API server rounds after the sum."""

    def asked(one: Container) -> Asked:
        listed: ResourceList = getattr(one.resources, field)
        return {name: parse_quantity(amount) for name, amount in listed.items()}, one.restart_policy == "Always"

    return combined([asked(one) for one in spec.containers], [asked(one) for one in spec.init_containers])


def _written(nanos: int) -> str:
    return f"{min(nanos, INT64_MAX * NANO)}n"


# matchLabelKeys: on creation the API server writes them into the selector of the term. kube-scheduler does not read
# them, so neither do plugins here. Doing it again to a stored pod changes nothing.


def _with_label_keys(affinity: Affinity, labels: Labels) -> Affinity:
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    near = None if near is None else _terms_with_label_keys(near, labels)
    apart = None if apart is None else _terms_with_label_keys(apart, labels)
    if near is affinity.pod_affinity and apart is affinity.pod_anti_affinity:
        return affinity
    return replace(affinity, pod_affinity=near, pod_anti_affinity=apart)


def _terms_with_label_keys(affinity: PodAffinity, labels: Labels) -> PodAffinity:
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    if not any(_has_label_keys(term) for term in required) and not any(
        _has_label_keys(weighted.pod_affinity_term) for weighted in preferred
    ):
        return affinity
    return replace(
        affinity,
        required_during_scheduling_ignored_during_execution=tuple(_term(term, labels) for term in required),
        preferred_during_scheduling_ignored_during_execution=tuple(
            WeightedPodAffinityTerm(weight=one.weight, pod_affinity_term=_term(one.pod_affinity_term, labels))
            for one in preferred
        ),
    )


def _has_label_keys(term: PodAffinityTerm) -> bool:
    return bool(term.match_label_keys or term.mismatch_label_keys)


def _term(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    selector = term.label_selector
    if selector is None:
        return term
    keys = [(key, "In") for key in term.match_label_keys] + [(key, "NotIn") for key in term.mismatch_label_keys]
    return replace(term, label_selector=_selector(selector, keys, labels))


def _selector(selector: LabelSelector, keys: list[tuple[str, str]], labels: Mapping[str, str]) -> LabelSelector:
    asked = list(selector.match_expressions)
    for key, operator in keys:
        if key in labels:
            one = LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
            if one not in asked:
                asked.append(one)
    return replace(selector, match_expressions=tuple(asked))
