"""The workloads of `apps/v1`, as their controllers read and write them. Defaults are the API server's.

`workloads` has the few fields of these that scheduling reads.
"""

from situate.core.model.base import EMPTY, Int32, Int64, Labels, Model
from situate.core.model.labels import LabelSelector
from situate.core.model.stored import Condition, PodTemplateSpec, Raw, StoredMeta

IntOrPercent = int | str


class RollingUpdate(Model, frozen=True, kw_only=True):
    """For a Deployment, a StatefulSet (`partition`, `max_unavailable`) or a DaemonSet. None: that kind's default."""

    max_unavailable: IntOrPercent | None = None
    max_surge: IntOrPercent | None = None
    partition: Int32 = 0


class UpdateStrategy(Model, frozen=True, kw_only=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Model, frozen=True, kw_only=True):
    replicas: Int32 = 1
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    strategy: UpdateStrategy = UpdateStrategy()
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
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSetStatus(Model, frozen=True, kw_only=True):
    replicas: Int32 = 0
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class ManagedReplicaSet(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ManagedReplicationControllerSpec(Model, frozen=True, kw_only=True):
    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    selector: Labels = EMPTY
    template: PodTemplateSpec = PodTemplateSpec()


class ManagedReplicationControllerStatus(Model, frozen=True, kw_only=True):
    replicas: Int32 = 0
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class ManagedReplicationController(Model, frozen=True, kw_only=True):
    """What a ReplicaSet was called before it had selectors of sets."""

    metadata: StoredMeta = StoredMeta()
    spec: ManagedReplicationControllerSpec = ManagedReplicationControllerSpec()
    status: ManagedReplicationControllerStatus = ManagedReplicationControllerStatus()


class ClaimRetention(Model, frozen=True, kw_only=True):
    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class Ordinals(Model, frozen=True, kw_only=True):
    start: Int32 = 0


class StatefulSetSpec(Model, frozen=True, kw_only=True):
    replicas: Int32 = 1
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    volume_claim_templates: tuple[Raw, ...] = ()
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()
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


class ManagedStatefulSet(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(Model, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: UpdateStrategy = UpdateStrategy()
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
    """An earlier template of a StatefulSet or DaemonSet, for rollbacks."""

    metadata: StoredMeta = StoredMeta()
    data: Raw = EMPTY
    revision: Int64 = 0
