"""Pod: its requests, its scheduling constraints and its node."""

from collections.abc import Mapping

from msgspec import field

from situate.core.model.base import EMPTY, Int32, Labels, Model
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.nodeselector import NodeSelector, PreferredSchedulingTerm
from situate.core.model.quantity import RawQuantity
from situate.core.model.tolerations import Toleration
from situate.core.model.volumes import Volume

DEFAULT_SCHEDULER = "default-scheduler"

ResourceList = Mapping[str, RawQuantity]


class ResourceRequirements(Model, frozen=True, kw_only=True):
    requests: ResourceList = EMPTY
    limits: ResourceList = EMPTY


class ContainerPort(Model, frozen=True, kw_only=True):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class RestartRule(Model, frozen=True, kw_only=True):
    action: str = ""


class Container(Model, frozen=True, kw_only=True):
    """A container or init container; an init container with `restart_policy` "Always" is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()


class NodeAffinitySpec(Model, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Model, frozen=True, kw_only=True):
    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Model, frozen=True, kw_only=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Model, frozen=True, kw_only=True):
    """Pod affinity, and, with the same shape, pod anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Model, frozen=True, kw_only=True):
    node_affinity: NodeAffinitySpec | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Model, frozen=True, kw_only=True):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(Model, frozen=True, kw_only=True):
    name: str = ""


class PodSchedulingGroup(Model, frozen=True, kw_only=True):
    pod_group_name: str | None = None


class PodResourceClaim(Model, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Model, frozen=True, kw_only=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = EMPTY
    node_name: str = ""
    node_selector: Labels = EMPTY
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    scheduler_name: str = DEFAULT_SCHEDULER
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    host_network: bool = False
    host_users: bool | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodCondition(Model, frozen=True, kw_only=True):
    """The message is kept to avoid writing it again; no decision depends on it."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerStatus(Model, frozen=True, kw_only=True):
    """The state of an in-place resize: `resources` as running, `allocated_resources` as granted."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = EMPTY


class PodResourceClaimStatus(Model, frozen=True, kw_only=True):
    """The claim that was made for an entry of `resource_claims`; None: none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Model, frozen=True, kw_only=True):
    """An extended resource of a container that a request of a claim serves."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Model, frozen=True, kw_only=True):
    resource_claim_name: str = ""
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


class PodStatus(Model, frozen=True, kw_only=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = EMPTY
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
