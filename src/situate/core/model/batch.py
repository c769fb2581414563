"""The workloads of `batch/v1`, as their controllers read and write them. Defaults are the API server's."""

from situate.core.model.base import EMPTY, Int32, Int64, Labels, Model
from situate.core.model.labels import LabelSelector
from situate.core.model.stored import Condition, PodTemplateSpec, Raw, StoredMeta


class OnExitCodes(Model, frozen=True, kw_only=True):
    container_name: str | None = None
    operator: str = ""
    values: tuple[Int32, ...] = ()


class OnPodCondition(Model, frozen=True, kw_only=True):
    type: str = ""
    status: str = "True"


class PodFailureRule(Model, frozen=True, kw_only=True):
    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ()


class PodFailurePolicy(Model, frozen=True, kw_only=True):
    rules: tuple[PodFailureRule, ...] = ()


class SuccessRule(Model, frozen=True, kw_only=True):
    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(Model, frozen=True, kw_only=True):
    rules: tuple[SuccessRule, ...] = ()


class JobSpec(Model, frozen=True, kw_only=True):
    """`completions` None: `parallelism` pods work off a queue, and the first that succeeds marks it empty."""

    parallelism: Int32 = 1
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 = 6
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class UncountedPods(Model, frozen=True, kw_only=True):
    """Uids of pods that have finished and are not in the counters yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    ready: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedPods | None = None


class Job(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplateMeta(Model, frozen=True, kw_only=True):
    labels: Labels = EMPTY
    annotations: Labels = EMPTY


class JobTemplate(Model, frozen=True, kw_only=True):
    metadata: JobTemplateMeta = JobTemplateMeta()
    spec: Raw = EMPTY


class CronJobSpec(Model, frozen=True, kw_only=True):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: JobTemplate = JobTemplate()
    successful_jobs_history_limit: Int32 = 3
    failed_jobs_history_limit: Int32 = 1


class JobReference(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CronJobStatus(Model, frozen=True, kw_only=True):
    active: tuple[JobReference, ...] = ()
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
