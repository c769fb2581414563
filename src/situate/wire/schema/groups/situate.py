"""Messages of situate.dev, and of scheduling.x-k8s.io, whose PodGroup is a custom resource.

They have no protobuf numbers, and keep zeros that a client writes. See table.py for the notation.
"""

from typing import Final

TABLE: Final = """
[situate.v1alpha1]
enum BindingPhase: pending reserved bound running failed evicted rebinding
kind NodeSnapshot: metadata - meta.v1.ObjectMeta!; spec - NodeSnapshotSpec?; status - NodeSnapshotStatus?
NodeSnapshotSpec: pods - [BoundPod]; configuration - NodeConfiguration?
NodeConfiguration: profile - string?; leaseDurationSeconds - int32?; renewIntervalSeconds - int32?
NodeSnapshotStatus: allocated - core.v1.ResourceList
BoundPod: namespace - string? nonempty; name - string? nonempty; uid - string? nonempty; bindingVersion - int64?;
    hostPorts - [string]; gpus - [string]
kind DevicePool: metadata - meta.v1.ObjectMeta!; spec - DevicePoolSpec?
DevicePoolSpec: driver - string? nonempty; pool - string? nonempty; devices - [HeldDevice]
HeldDevice: device - string? nonempty; namespace - string? nonempty; claim - string? nonempty; uid - string? nonempty;
    share - string?; consumed - {Quantity}
kind NodeJoin: metadata - meta.v1.ObjectMeta!; spec - NodeJoinSpec?; status - NodeJoinStatus?
NodeJoinSpec: nodeName - string? nonempty; request - string? nonempty
NodeJoinStatus: certificate - string?; certificateAuthority - string?
kind PlacementDecision: metadata - meta.v1.ObjectMeta!; spec - PlacementDecisionSpec?; status - PlacementDecisionStatus?
PlacementDecisionSpec: podUID - string? nonempty; node - string?; bindingVersion - int64? >=0; scheduler - string?;
    snapshotVersion - string?
PlacementDecisionStatus: phase - BindingPhase?; phases - [PlacementPhase]; reason - string?; message - string?; score -
    int64?; scores - [NodeScore]; alternatives - [string]; refusals - [NodeRefusals]; nodes - int64?; feasible - int64?;
    attempts - int64?; wakesOn - [string]; sampledFrom - int64?
PlacementPhase: phase - string?; at - Time?
NodeScore: node - string?; total - int64?; plugins - {int64}
NodeRefusals: reason - string?; plugin - string?; nodes - int64?
kind PlacementEvent: metadata - meta.v1.ObjectMeta!; event - string?; phase - string?; was - string?; pod - PlacedPod?;
    time - Time?; node - string?; bindingVersion - int64?; scheduler - string?; reason - string?; message - string?
PlacedPod: name - string?; uid - string?
kind WorkloadView: metadata - meta.v1.ObjectMeta!; status - WorkloadViewStatus?
WorkloadViewStatus: apiVersion - string?; kind - string?; name - string?; desired - int64?; pods - int64?; waiting -
    int64?; bound - int64?; running - int64?; succeeded - int64?; failed - int64?; leaving - int64?; readyPods - int64?;
    requested - core.v1.ResourceList; nodes - int64?; reason - string?; message - string?
kind NodeView: metadata - meta.v1.ObjectMeta!; status - NodeViewStatus?
NodeViewStatus: ready - bool?; schedulable - bool?; taints - [string]; pods - int64?; waiting - int64?; bound - int64?;
    running - int64?; succeeded - int64?; failed - int64?; leaving - int64?; readyPods - int64?; requested -
    core.v1.ResourceList; allocatable - core.v1.ResourceList; snapshotVersion - string?
kind NamespaceView: metadata - meta.v1.ObjectMeta!; status - NamespaceViewStatus?
NamespaceViewStatus: phase - string?; workloads - int64?; pods - int64?; waiting - int64?; bound - int64?; running -
    int64?; succeeded - int64?; failed - int64?; leaving - int64?; readyPods - int64?; requested - core.v1.ResourceList
[x.v1alpha1]
kind PodGroup: metadata - meta.v1.ObjectMeta!; spec - PodGroupSpec?*; status - PodGroupStatus?
PodGroupSpec: minMember - int32? >=0; minResources - core.v1.ResourceList; scheduleTimeoutSeconds - int32? >=0
PodGroupStatus: phase - string?; occupiedBy - string?; running - int32?; succeeded - int32?; failed - int32?;
    scheduleStartTime - Time?
"""
