"""Messages of scheduling.k8s.io, from k8s.io/api v0.36.4 (v1beta1: v0.37.1). See table.py for the notation."""

from typing import Final

TABLE: Final = """
[scheduling.v1]
kind PriorityClass: metadata 1 meta.v1.ObjectMeta!; value 2 int32!~; globalDefault 3 bool; description 4 string;
    preemptionPolicy 5 core.v1.PreemptionPolicy? nonempty
[scheduling.v1alpha2]
enum DisruptionMode: Pod PodGroup
BasicSchedulingPolicy:
GangSchedulingPolicy: minCount 1 int32!
kind PodGroup: metadata 1 meta.v1.ObjectMeta!; spec 2 PodGroupSpec!*; status 3 PodGroupStatus!
PodGroupResourceClaim: name 1 string!; resourceClaimName 2 string?; resourceClaimTemplateName 3 string?
PodGroupResourceClaimStatus: name 1 string!; resourceClaimName 2 string?
PodGroupSchedulingConstraints: topology 1 [TopologyConstraint]
PodGroupSchedulingPolicy: basic 1 BasicSchedulingPolicy? atomic; gang 2 GangSchedulingPolicy?
PodGroupSpec: podGroupTemplateRef 1 PodGroupTemplateReference?!; schedulingPolicy 2 PodGroupSchedulingPolicy!*;
    schedulingConstraints 3 PodGroupSchedulingConstraints?; resourceClaims 4 [PodGroupResourceClaim] by name;
    disruptionMode 5 DisruptionMode?; priorityClassName 6 string; priority 7 int32?
PodGroupStatus: conditions 1 [meta.v1.Condition] by type; resourceClaimStatuses 2 [PodGroupResourceClaimStatus] by name
PodGroupTemplateReference: workload 1 WorkloadPodGroupTemplateReference?
TopologyConstraint: key 1 string!
WorkloadPodGroupTemplateReference: workloadName 1 string!; podGroupTemplateName 2 string!
[scheduling.v1beta1]
string: PreemptionPolicy
AllDisruptionMode:
BasicSchedulingPolicy:
DisruptionMode: single 1 SingleDisruptionMode?; all 2 AllDisruptionMode?
GangSchedulingPolicy: minCount 1 int32!
kind PodGroup: metadata 1 meta.v1.ObjectMeta!; spec 2 PodGroupSpec!*; status 3 PodGroupStatus!
PodGroupResourceClaim: name 1 string!; resourceClaimName 2 string?; resourceClaimTemplateName 3 string?
PodGroupResourceClaimStatus: name 1 string!; resourceClaimName 2 string?
PodGroupSchedulingConstraints: topology 1 [TopologyConstraint]
PodGroupSchedulingPolicy: basic 1 BasicSchedulingPolicy? atomic; gang 2 GangSchedulingPolicy?
PodGroupSpec: parentCompositePodGroupName 1 string?; workloadRef 2 WorkloadReference?; schedulingPolicy 3
    PodGroupSchedulingPolicy!*; schedulingConstraints 4 PodGroupSchedulingConstraints?; resourceClaims 5
    [PodGroupResourceClaim] by name; disruptionMode 6 DisruptionMode?; priorityClassName 7 string; priority 8 int32?;
    preemptionPolicy 9 PreemptionPolicy?
PodGroupStatus: conditions 1 [meta.v1.Condition] by type; resourceClaimStatuses 2 [PodGroupResourceClaimStatus] by name
SingleDisruptionMode:
TopologyConstraint: key 1 string!
WorkloadReference: workloadName 1 string!; templateName 2 string!
"""
