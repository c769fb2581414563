"""The workloads of `apps/v1`, as their controllers read and write them. Defaults are the API server's.

`workloads` has, of some of these, the little that scheduling reads.
"""

from situate.core.model.base import EMPTY, Int32, Int64, Model
from situate.core.model.labels import LabelSelector
from situate.core.model.stored import Condition, PodTemplate, Raw, StoredMeta

__all__ = [
    "ClaimRetention",
    "ControllerRevision",
    "DaemonSet",
    "DaemonSetSpec",
    "DaemonSetStatus",
    "DaemonSetStrategy",
    "Deployment",
    "DeploymentSpec",
    "DeploymentStatus",
    "DeploymentStrategy",
    "IntOrPercent",
    "Ordinals",
    "ReplicaSet",
    "ReplicaSetSpec",
    "ReplicaSetStatus",
    "RollingUpdate",
    "StatefulSet",
    "StatefulSetSpec",
    "StatefulSetStatus",
    "StatefulSetStrategy",
]

IntOrPercent = int | str


class RollingUpdate(Model, frozen=True, kw_only=True):
    """Of a Deployment, a StatefulSet (`partition`, `max_unavailable`) or a DaemonSet. None: that kind's default."""

    max_unavailable: IntOrPercent | None = None
    max_surge: IntOrPercent | None = None
    partition: Int32 = 0


class DeploymentStrategy(Model, frozen=True, kw_only=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Model, frozen=True, kw_only=True):
    replicas: Int32 = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 = 10
    paused: bool = False
    progress_deadline_seconds: Int32 = 600


class DeploymentStatus(Model, frozen=True, kw_only=True):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    conditions: tuple[Condition, ...] = ()
    collision_count: Int32 | None = None


class Deployment(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(Model, frozen=True, kw_only=True):
    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class ReplicaSetStatus(Model, frozen=True, kw_only=True):
    replicas: Int32 = 0
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetStrategy(Model, frozen=True, kw_only=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class ClaimRetention(Model, frozen=True, kw_only=True):
    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class Ordinals(Model, frozen=True, kw_only=True):
    start: Int32 = 0


class StatefulSetSpec(Model, frozen=True, kw_only=True):
    replicas: Int32 = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    volume_claim_templates: tuple[Raw, ...] = ()
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: StatefulSetStrategy = StatefulSetStrategy()
    revision_history_limit: Int32 = 10
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: ClaimRetention | None = None
    ordinals: Ordinals | None = None


class StatefulSetStatus(Model, frozen=True, kw_only=True):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    available_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int32 | None = None
    conditions: tuple[Condition, ...] = ()


class StatefulSet(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetStrategy(Model, frozen=True, kw_only=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DaemonSetSpec(Model, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    update_strategy: DaemonSetStrategy = DaemonSetStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 = 10


class DaemonSetStatus(Model, frozen=True, kw_only=True):
    current_number_scheduled: Int32 = 0
    number_misscheduled: Int32 = 0
    desired_number_scheduled: Int32 = 0
    number_ready: Int32 = 0
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    collision_count: Int32 | None = None
    conditions: tuple[Condition, ...] = ()


class DaemonSet(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(Model, frozen=True, kw_only=True):
    """A template that a StatefulSet or DaemonSet has had, to go back to."""

    metadata: StoredMeta = StoredMeta()
    data: Raw = EMPTY
    revision: Int64 = 0
