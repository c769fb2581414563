"""Messages of batch, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[batch.v1]
string: JobConditionType
enum CompletionMode: NonIndexed Indexed
enum ConcurrencyPolicy: Allow Forbid Replace
enum PodFailurePolicyAction: Count FailIndex FailJob Ignore
enum PodFailurePolicyOnExitCodesOperator: In NotIn
enum PodReplacementPolicy: Failed TerminatingOrFailed
kind CronJob: metadata 1 meta.v1.ObjectMeta!; spec 2 CronJobSpec!*; status 3 CronJobStatus!
CronJobSpec: schedule 1 string!; timeZone 8 string?; startingDeadlineSeconds 2 int64? >=0; concurrencyPolicy 3
    ConcurrencyPolicy nonempty; suspend 4 bool?; jobTemplate 5 JobTemplateSpec!*; successfulJobsHistoryLimit 6 int32?
    >=0; failedJobsHistoryLimit 7 int32? >=0
CronJobStatus: active 1 [core.v1.ObjectReference]; lastScheduleTime 4 Time?; lastSuccessfulTime 5 Time?
kind Job: metadata 1 meta.v1.ObjectMeta!; spec 2 JobSpec!; status 3 JobStatus!
JobCondition: type 1 JobConditionType!; status 2 core.v1.ConditionStatus!; lastProbeTime 3 Time!; lastTransitionTime 4
    Time!; reason 5 string; message 6 string
JobSpec: parallelism 1 int32? >=0; completions 2 int32? >=0; activeDeadlineSeconds 3 int64? >=0; podFailurePolicy 11
    PodFailurePolicy?; successPolicy 16 SuccessPolicy?; backoffLimit 7 int32? >=0; backoffLimitPerIndex 12 int32? >=0;
    maxFailedIndexes 13 int32? >=0; selector 4 meta.v1.LabelSelector? atomic; manualSelector 5 bool?; template 6
    core.v1.PodTemplateSpec!*; ttlSecondsAfterFinished 8 int32? >=0; completionMode 9 CompletionMode?; suspend 10 bool?;
    podReplacementPolicy 14 PodReplacementPolicy?; managedBy 15 string?
JobStatus: conditions 1 [JobCondition] atomic merged type; startTime 2 Time?; completionTime 3 Time?; active 4 int32
    >=0; succeeded 5 int32 >=0; failed 6 int32 >=0; terminating 11 int32? >=0; completedIndexes 7 string; failedIndexes
    10 string?; uncountedTerminatedPods 8 UncountedTerminatedPods?; ready 9 int32? >=0
JobTemplateSpec: metadata 1 meta.v1.ObjectMeta!; spec 2 JobSpec!
PodFailurePolicy: rules 1 [PodFailurePolicyRule]!
PodFailurePolicyOnExitCodesRequirement: containerName 1 string?; operator 2 PodFailurePolicyOnExitCodesOperator!; values
    3 [int32]! set
PodFailurePolicyOnPodConditionsPattern: type 1 core.v1.PodConditionType!; status 2 core.v1.ConditionStatus!~
PodFailurePolicyRule: action 1 PodFailurePolicyAction!; onExitCodes 2 PodFailurePolicyOnExitCodesRequirement?;
    onPodConditions 3 [PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy: rules 1 [SuccessPolicyRule]!
SuccessPolicyRule: succeededIndexes 1 string?; succeededCount 2 int32?
UncountedTerminatedPods: succeeded 1 [types.UID] set; failed 2 [types.UID] set
"""
