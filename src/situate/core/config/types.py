"""The configuration's types, under Kubernetes' names: kubescheduler.config.k8s.io/v1.

An absent or null field has the default given here, which is kube-scheduler's; `defaults` sets those that depend on
other fields. `validate` checks the values.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import field

from situate.core.model.base import Int32, Int64, Model
from situate.core.model.duration import SECOND, Duration
from situate.core.versions import DEFAULT, RULES, KubernetesRules

API_GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{API_GROUP}/v1"
KIND: Final = "KubeSchedulerConfiguration"

NOT_IN_FILES: Final = frozenset({"kubernetesVersion"})
"""The fields of KubeSchedulerConfiguration that its files do not have."""

POD_GROUP_POST_FILTER: Final = "podGroupPostFilter"
"""The extension point that only some versions have: see `KubernetesRules.pod_group_post_filter`."""

# In the order in which kube-scheduler sets them up, so that the first problem is the one it would report.
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
    POD_GROUP_POST_FILTER,
)

_FLOAT32_MAX: Final = 3.4028234663852886e38
Float32 = Annotated[float, msgspec.Meta(ge=-_FLOAT32_MAX, le=_FLOAT32_MAX)]


# ── profiles ────────────────────────────────────────────────────────────────────────────────────────────────────────


class PluginRef(Model, frozen=True, kw_only=True):
    """A plugin by name. The weight counts where plugins score, and 0 stands for 1."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Model, frozen=True, kw_only=True):
    """The plugins to enable at an extension point, and the defaults to disable; `*` disables all."""

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
    pod_group_post_filter: PluginSet = PluginSet()


class PluginConfig(Model, frozen=True, kw_only=True):
    """A plugin's arguments: a `PluginArgs` for built-in plugins, else as in the file; None where absent."""

    name: str = ""
    args: Any = None


class KubeSchedulerProfile(Model, frozen=True, kw_only=True):
    """None means absent; the name of a single profile then is default-scheduler.

    `node_sample` is ours: check only this many nodes, drawn for each attempt of each pod.
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
    """An HTTP service that takes part in decisions. Empty verbs are not called."""

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
    kubernetes_version: str = DEFAULT.version
    """Whose rules apply. Not a field of the file: the command line or the API server determines it."""

    @property
    def rules(self) -> KubernetesRules:
        return RULES[self.kubernetes_version]
