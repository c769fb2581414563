"""Pods."""

from situate.core.model.pod import Container, ContainerPort, ContainerStatus, Pod, PodSpec
from situate.core.model.validate.meta import labels_problems, time_problems
from situate.core.model.validate.problem import Problems, duplicate, invalid, required, unsupported
from situate.core.model.validate.resources import list_problems, requirements_problems
from situate.core.model.validate.scheduling import (
    affinity_problems,
    gate_problems,
    spread_problems,
    toleration_problems,
)

BAD_PORT = "must be between 1 and 65535, inclusive"
PROTOCOLS = ("SCTP", "TCP", "UDP")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


def pod_problems(pod: Pod) -> Problems:
    spec, status = pod.spec, pod.status
    yield from _container_list_problems(spec)
    if spec.resources is not None:
        yield from requirements_problems("spec.resources", spec.resources, pod_level=True)
    if spec.overhead:
        yield from list_problems("spec.overhead", spec.overhead)
    yield from _placement_problems(spec)
    for index, volume in enumerate(spec.volumes):
        claim = volume.persistent_volume_claim
        if claim is not None and not claim.claim_name:
            yield required(f"spec.volumes[{index}].persistentVolumeClaim.claimName")
    if status.start_time is not None:
        yield from time_problems("status.startTime", status.start_time)
    if status.container_statuses:
        yield from _resize_problems("status.containerStatuses", status.container_statuses)
    if status.init_container_statuses:
        yield from _resize_problems("status.initContainerStatuses", status.init_container_statuses)
    if status.resources is not None:
        yield from list_problems("status.resources.requests", status.resources.requests)
    if status.allocated_resources:
        yield from list_problems("status.allocatedResources", status.allocated_resources)


def _resize_problems(path: str, statuses: tuple[ContainerStatus, ...]) -> Problems:
    for index, one in enumerate(statuses):
        if one.resources is not None:
            yield from list_problems(f"{path}[{index}].resources.requests", one.resources.requests)
        yield from list_problems(f"{path}[{index}].allocatedResources", one.allocated_resources)


def _container_list_problems(spec: PodSpec) -> Problems:
    if not spec.containers:
        yield required("spec.containers")
    names: set[str] = set()
    for path, containers in (("spec.containers", spec.containers), ("spec.initContainers", spec.init_containers)):
        for index, one in enumerate(containers):
            here = f"{path}[{index}]"
            if not one.name:
                yield required(f"{here}.name")
            elif one.name in names:
                yield duplicate(f"{here}.name", one.name)
            names.add(one.name)
            yield from _container_problems(here, one)


def _container_problems(path: str, container: Container) -> Problems:
    for index, port in enumerate(container.ports):
        yield from _port_problems(f"{path}.ports[{index}]", port)
    if container.resources.requests or container.resources.limits:
        yield from requirements_problems(f"{path}.resources", container.resources)


def _port_problems(path: str, port: ContainerPort) -> Problems:
    if port.container_port == 0:
        yield required(f"{path}.containerPort")
    elif not 1 <= port.container_port <= 65535:
        yield invalid(f"{path}.containerPort", port.container_port, BAD_PORT)
    if not 0 <= port.host_port <= 65535:
        yield invalid(f"{path}.hostPort", port.host_port, BAD_PORT)
    if port.protocol and port.protocol not in PROTOCOLS:
        yield unsupported(f"{path}.protocol", port.protocol, PROTOCOLS)


def _placement_problems(spec: PodSpec) -> Problems:
    if spec.node_selector:
        yield from labels_problems("spec.nodeSelector", spec.node_selector)
    if spec.affinity is not None:
        yield from affinity_problems("spec.affinity", spec.affinity)
    for index, one in enumerate(spec.tolerations):
        yield from toleration_problems(f"spec.tolerations[{index}]", one)
    if spec.topology_spread_constraints:
        yield from spread_problems("spec.topologySpreadConstraints", spec.topology_spread_constraints)
    if spec.scheduling_gates:
        yield from gate_problems("spec.schedulingGates", spec.scheduling_gates)
    if spec.preemption_policy is not None and spec.preemption_policy not in PREEMPTION_POLICIES:
        yield unsupported("spec.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)
