"""Messages of apps, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[apps.v1]
string: DaemonSetConditionType DeploymentConditionType PersistentVolumeClaimRetentionPolicyType ReplicaSetConditionType
    StatefulSetConditionType
enum DaemonSetUpdateStrategyType: OnDelete RollingUpdate
enum DeploymentStrategyType: Recreate RollingUpdate
enum PodManagementPolicyType: OrderedReady Parallel
enum StatefulSetUpdateStrategyType: OnDelete RollingUpdate
kind ControllerRevision: metadata 1 meta.v1.ObjectMeta!; data 2 Raw! atomic; revision 3 int64! >=0
kind DaemonSet: metadata 1 meta.v1.ObjectMeta!; spec 2 DaemonSetSpec!; status 3 DaemonSetStatus!
DaemonSetCondition: type 1 DaemonSetConditionType!; status 2 core.v1.ConditionStatus!; lastTransitionTime 3 Time!;
    reason 4 string; message 5 string
DaemonSetSpec: selector 1 meta.v1.LabelSelector?!* atomic; template 2 core.v1.PodTemplateSpec!*; updateStrategy 3
    DaemonSetUpdateStrategy!; minReadySeconds 4 int32 >=0; revisionHistoryLimit 6 int32? >=0
DaemonSetStatus: currentNumberScheduled 1 int32! >=0; numberMisscheduled 2 int32! >=0; desiredNumberScheduled 3 int32!
    >=0; numberReady 4 int32! >=0; observedGeneration 5 int64 >=0; updatedNumberScheduled 6 int32 >=0; numberAvailable 7
    int32 >=0; numberUnavailable 8 int32 >=0; collisionCount 9 int32? >=0; conditions 10 [DaemonSetCondition] by type
DaemonSetUpdateStrategy: type 1 DaemonSetUpdateStrategyType; rollingUpdate 2 RollingUpdateDaemonSet?
kind Deployment: metadata 1 meta.v1.ObjectMeta!; spec 2 DeploymentSpec!; status 3 DeploymentStatus!
DeploymentCondition: type 1 DeploymentConditionType!; status 2 core.v1.ConditionStatus!; lastUpdateTime 6 Time!;
    lastTransitionTime 7 Time!; reason 4 string; message 5 string
DeploymentSpec: replicas 1 int32? >=0; selector 2 meta.v1.LabelSelector?!* atomic; template 3 core.v1.PodTemplateSpec!*;
    strategy 4 DeploymentStrategy!; minReadySeconds 5 int32 >=0; revisionHistoryLimit 6 int32? >=0; paused 7 bool;
    progressDeadlineSeconds 9 int32? >=0
DeploymentStatus: observedGeneration 1 int64 >=0; replicas 2 int32 >=0; updatedReplicas 3 int32 >=0; readyReplicas 7
    int32 >=0; availableReplicas 4 int32 >=0; unavailableReplicas 5 int32 >=0; terminatingReplicas 9 int32? >=0;
    conditions 6 [DeploymentCondition] by type; collisionCount 8 int32? >=0
DeploymentStrategy: type 1 DeploymentStrategyType; rollingUpdate 2 RollingUpdateDeployment?
kind ReplicaSet: metadata 1 meta.v1.ObjectMeta!; spec 2 ReplicaSetSpec!; status 3 ReplicaSetStatus!
ReplicaSetCondition: type 1 ReplicaSetConditionType!; status 2 core.v1.ConditionStatus!; lastTransitionTime 3 Time!;
    reason 4 string; message 5 string
ReplicaSetSpec: replicas 1 int32? >=0; minReadySeconds 4 int32 >=0; selector 2 meta.v1.LabelSelector?!* atomic; template
    3 core.v1.PodTemplateSpec!
ReplicaSetStatus: replicas 1 int32! >=0; fullyLabeledReplicas 2 int32 >=0; readyReplicas 4 int32 >=0; availableReplicas
    5 int32 >=0; terminatingReplicas 7 int32? >=0; observedGeneration 3 int64 >=0; conditions 6 [ReplicaSetCondition] by
    type
RollingUpdateDaemonSet: maxUnavailable 1 IntOrString?; maxSurge 2 IntOrString?
RollingUpdateDeployment: maxUnavailable 1 IntOrString?; maxSurge 2 IntOrString?
RollingUpdateStatefulSetStrategy: partition 1 int32? >=0; maxUnavailable 2 IntOrString?
kind StatefulSet: metadata 1 meta.v1.ObjectMeta!; spec 2 StatefulSetSpec!; status 3 StatefulSetStatus!
StatefulSetCondition: type 1 StatefulSetConditionType!; status 2 core.v1.ConditionStatus!; lastTransitionTime 3 Time!;
    reason 4 string; message 5 string
StatefulSetOrdinals: start 1 int32!~ >=0
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted 1 PersistentVolumeClaimRetentionPolicyType; whenScaled 2
    PersistentVolumeClaimRetentionPolicyType
StatefulSetSpec: replicas 1 int32? >=0; selector 2 meta.v1.LabelSelector?!* atomic; template 3
    core.v1.PodTemplateSpec!*; volumeClaimTemplates 4 [core.v1.PersistentVolumeClaim]; serviceName 5 string!~;
    podManagementPolicy 6 PodManagementPolicyType; updateStrategy 7 StatefulSetUpdateStrategy!; revisionHistoryLimit 8
    int32?; minReadySeconds 9 int32 >=0; persistentVolumeClaimRetentionPolicy 10
    StatefulSetPersistentVolumeClaimRetentionPolicy?; ordinals 11 StatefulSetOrdinals?
StatefulSetStatus: observedGeneration 1 int64 >=0; replicas 2 int32! >=0; readyReplicas 3 int32 >=0; currentReplicas 4
    int32 >=0; updatedReplicas 5 int32 >=0; currentRevision 6 string; updateRevision 7 string; collisionCount 9 int32?
    >=0; conditions 10 [StatefulSetCondition] by type; availableReplicas 11 int32!~ >=0
StatefulSetUpdateStrategy: type 1 StatefulSetUpdateStrategyType; rollingUpdate 2 RollingUpdateStatefulSetStrategy?
"""
