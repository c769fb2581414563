"""The configuration's types, under Kubernetes' names: kubescheduler.config.k8s.io/v1.

A field that is absent or null has the value given here, which is kube-scheduler's own default wherever that does not
depend on other fields; `defaults` sees to the rest. Nothing here is checked: that is `validate`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import field

from situate.core.config.duration import MINUTE, SECOND, Duration
from situate.core.model.base import EMPTY, Int32, Int64, Model
from situate.core.model.gpu import GPU_RESOURCE
from situate.core.model.latency import PlaceLatencies
from situate.core.model.pod import NodeAffinity, TopologySpreadConstraint

__all__ = [
    "API_GROUP",
    "API_VERSION",
    "ARGS",
    "EXTENSION_POINTS",
    "KIND",
    "Args",
    "BinPackArgs",
    "ClientConnection",
    "CostArgs",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "Extender",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "ForesightArgs",
    "FragmentationArgs",
    "GpuShareArgs",
    "InterPodAffinityArgs",
    "KubeSchedulerConfiguration",
    "KubeSchedulerProfile",
    "LatencyArgs",
    "LatencyFile",
    "LeaderElection",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginConfig",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "PodTopologySpreadArgs",
    "PriceSpec",
    "RequestedToCapacityRatio",
    "ResourceSpec",
    "ScoringStrategy",
    "TypicalPod",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
]

API_GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{API_GROUP}/v1"
KIND: Final = "KubeSchedulerConfiguration"

# In the order in which kube-scheduler sets them up, so that the first fault found is the one it would report.
EXTENSION_POINTS: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
)

_FLOAT32_MAX: Final = 3.4028234663852886e38
Float32 = Annotated[float, msgspec.Meta(ge=-_FLOAT32_MAX, le=_FLOAT32_MAX)]


# ── plugins' arguments ──────────────────────────────────────────────────────────────────────────────────────────────


class ResourceSpec(Model, frozen=True, kw_only=True):
    """A resource and how much it counts. 0 stands for 1."""

    name: str = ""
    weight: Int64 = 0


CPU_AND_MEMORY: Final = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))


class UtilizationShapePoint(Model, frozen=True, kw_only=True):
    """At this utilization, 0..100, this score, 0..10; straight lines between the points."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatio(Model, frozen=True, kw_only=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Model, frozen=True, kw_only=True):
    """`type`: LeastAllocated, MostAllocated or RequestedToCapacityRatio."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class DefaultPreemptionArgs(Model, frozen=True, kw_only=True):
    """`never_break_budgets` is ours: a candidate that would violate a disruption budget is not taken at all."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100
    never_break_budgets: bool = False


class DynamicResourcesArgs(Model, frozen=True, kw_only=True):
    filter_timeout: Duration = 10 * SECOND
    binding_timeout: Duration = 10 * MINUTE


class InterPodAffinityArgs(Model, frozen=True, kw_only=True):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Model, frozen=True, kw_only=True):
    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Model, frozen=True, kw_only=True):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeResourcesFitArgs(Model, frozen=True, kw_only=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated", resources=CPU_AND_MEMORY)


class PodTopologySpreadArgs(Model, frozen=True, kw_only=True):
    """`defaulting_type`: System (hostname and zone, preferred) or List (`default_constraints`)."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class VolumeBindingArgs(Model, frozen=True, kw_only=True):
    """`shape` belongs to a feature that is off in this release; an empty one is as wrong as a full one."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


# Of plugins of ours, which are off by default.


class BinPackArgs(Model, frozen=True, kw_only=True):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class PriceSpec(Model, frozen=True, kw_only=True):
    """What an hour of some nodes costs: of one by name, or of all of an instance type or with a label."""

    node: str = ""
    instance_type: str = ""
    label: str = ""
    value: str = ""
    price: float | None = None


class CostArgs(Model, frozen=True, kw_only=True):
    """`price_label`: the label that has a node's own price. `in_use_percent`: what a node that is in use counts for."""

    currency: str = "USD"
    price_label: str = ""
    prices: tuple[PriceSpec, ...] = ()
    in_use_percent: Int32 = 10


class GpuShareArgs(Model, frozen=True, kw_only=True):
    """`device`: BestFit, WorstFit or FirstFit, of those that have room for a share."""

    resource: str = GPU_RESOURCE
    device: str = "BestFit"


class TypicalPod(Model, frozen=True, kw_only=True):
    """A pod that is expected, and how often. `nodes`: labels, each with the values of which its node must have one."""

    weight: float = 1.0
    cpu: Any = 0
    memory: Any = 0
    gpu: Int64 = 0
    gpu_milli: Int64 = 0
    nodes: Mapping[str, tuple[str, ...]] = EMPTY


class FragmentationArgs(Model, frozen=True, kw_only=True):
    """`typical_pods`: none, and the pods that are bound are typical. `quantum` and `packing`: thousandths of a GPU."""

    resource: str = GPU_RESOURCE
    typical_pods: tuple[TypicalPod, ...] = ()
    weight_exponent: float = 1.0
    quantum: Int32 = 0
    packing: Int32 = 100


class ForesightArgs(Model, frozen=True, kw_only=True):
    """`futures`: how many are played out, each with `pods_per_device` for each of a node's devices. `now`: percent."""

    resource: str = GPU_RESOURCE
    typical_pods: tuple[TypicalPod, ...] = ()
    weight_exponent: float = 1.0
    packing: Int32 = 20
    futures: Int32 = 8
    pods_per_device: Int32 = 8
    now: Int32 = 30


class LatencyFile(Model, frozen=True, kw_only=True):
    """What a table in a file of its own looks like."""

    places: Mapping[str, PlaceLatencies] = EMPTY


class LatencyArgs(Model, frozen=True, kw_only=True):
    """`table_file`: where the table is, and is read again when it changes. `places`: the table itself."""

    table_file: str = ""
    places: Mapping[str, PlaceLatencies] = EMPTY


Args: TypeAlias = (
    BinPackArgs
    | CostArgs
    | DefaultPreemptionArgs
    | DynamicResourcesArgs
    | ForesightArgs
    | FragmentationArgs
    | GpuShareArgs
    | InterPodAffinityArgs
    | LatencyArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

# Which plugin takes which arguments. The kind written in the file is the plugin's name and "Args".
ARGS: Final[Mapping[str, type[Args]]] = MappingProxyType(
    {
        "BinPack": BinPackArgs,
        "Cost": CostArgs,
        "DefaultPreemption": DefaultPreemptionArgs,
        "DynamicResources": DynamicResourcesArgs,
        "Foresight": ForesightArgs,
        "Fragmentation": FragmentationArgs,
        "GpuShare": GpuShareArgs,
        "InterPodAffinity": InterPodAffinityArgs,
        "Latency": LatencyArgs,
        "NodeAffinity": NodeAffinityArgs,
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
        "NodeResourcesFit": NodeResourcesFitArgs,
        "PodTopologySpread": PodTopologySpreadArgs,
        "VolumeBinding": VolumeBindingArgs,
    }
)


# ── profiles ────────────────────────────────────────────────────────────────────────────────────────────────────────


class PluginRef(Model, frozen=True, kw_only=True):
    """A plugin by name. The weight is read where plugins score, and 0 stands for 1 there."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Model, frozen=True, kw_only=True):
    """What to add at an extension point, and which defaults to leave out; `*` leaves all of them out."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(Model, frozen=True, kw_only=True):
    """`multi_point` stands for every extension point that a plugin implements."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


class PluginConfig(Model, frozen=True, kw_only=True):
    """A plugin's arguments: typed for the plugins in ARGS; for others as they stand in the file, None where absent."""

    name: str = ""
    args: Any = None


class KubeSchedulerProfile(Model, frozen=True, kw_only=True):
    """None means that the file does not say: a lone profile is then called default-scheduler.

    `node_sample` is ours: look at this many nodes, drawn for each attempt of each pod, and at no others.
    """

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    node_sample: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] = ()


# ── extenders and the process ───────────────────────────────────────────────────────────────────────────────────────


class ExtenderTLSConfig(Model, frozen=True, kw_only=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(Model, frozen=True, kw_only=True):
    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(Model, frozen=True, kw_only=True):
    """An HTTP service that takes part in decisions. A verb that is empty is not called."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = 0
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class LeaderElection(Model, frozen=True, kw_only=True):
    """Kubernetes' LeaderElectionConfiguration."""

    leader_elect: bool = True
    lease_duration: Duration = 15 * SECOND
    renew_deadline: Duration = 10 * SECOND
    retry_period: Duration = 2 * SECOND
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Model, frozen=True, kw_only=True):
    """Kubernetes' ClientConnectionConfiguration."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: Float32 = 50.0
    burst: Int32 = 100


class KubeSchedulerConfiguration(Model, frozen=True, kw_only=True):
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
