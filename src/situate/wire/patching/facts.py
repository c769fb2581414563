"""What Kubernetes v1.36.4 says about the fields of the kinds that can be patched: facts only, no behaviour.

TYPES was read from its OpenAPI documents (x-kubernetes-list-type, -list-map-keys, -map-type, -patch-strategy and
-patch-merge-key, which come from the tags of k8s.io/api's structs); BLANKS from encoding each empty struct; RESETS from
the registries' strategies. A test on a real API server compares TYPES with the documents it serves.
"""

from typing import Final

__all__ = ["BLANKS", "KINDS", "RESETS", "TEMPLATES", "TYPES"]

# A line a type, fields parted by semicolons. After the field's name comes
#   by name,protocol=TCP  a list with one item for each key, `=` gives a key's default, `?` says it may be absent;
#                         a strategic merge patch merges by the first key, or replaces the list if it says `replaced`
#   set                   a list of different scalars; `merged`, if a strategic merge patch adds to it
#   whole                 a list or an object that has one owner as a whole; `merged key`, if a strategic merge patch
#                         merges it all the same; `replaced`, if it replaces the object
# and, last, the name of the type inside, where there is more to say about that, or `whole` for such items. What is not
# listed is as Kubernetes has it by default: objects are merged field by field, lists are one value. All kinds have
# metadata of type ObjectMeta.
TYPES: Final = """
Affinity: nodeAffinity NodeAffinity
AllocatedDeviceStatus: conditions by type replaced; data whole
AllocationResult: nodeSelector whole
CSIDriver: spec CSIDriverSpec
CSIDriverSpec: volumeLifecycleModes set
CSINode: spec CSINodeSpec
CSINodeSpec: drivers by name
CSIPersistentVolumeSource: controllerExpandSecretRef whole; controllerPublishSecretRef whole; nodeExpandSecretRef
    whole; nodePublishSecretRef whole; nodeStageSecretRef whole
CSIStorageCapacity: nodeTopology whole
CSIVolumeSource: nodePublishSecretRef whole
CephFSPersistentVolumeSource: secretRef whole
CephFSVolumeSource: secretRef whole
CinderPersistentVolumeSource: secretRef whole
CinderVolumeSource: secretRef whole
ClusterRoleBinding: roleRef whole
Container: env by name EnvVar; ports by containerPort,protocol=TCP; resources ResourceRequirements; volumeDevices by
    devicePath; volumeMounts by mountPath
ControllerRevision: data whole
CronJob: spec CronJobSpec
CronJobSpec: jobTemplate JobTemplateSpec
DaemonSet: spec DaemonSetSpec; status DaemonSetStatus
DaemonSetSpec: selector whole; template PodTemplateSpec
DaemonSetStatus: conditions by type
Deployment: spec DeploymentSpec; status DeploymentStatus
DeploymentSpec: selector whole; template PodTemplateSpec
DeploymentStatus: conditions by type
EnvVar: valueFrom EnvVarSource
EnvVarSource: configMapKeyRef whole; fieldRef whole; fileKeyRef whole; resourceFieldRef whole; secretKeyRef whole
EphemeralContainer: env by name EnvVar; ports by containerPort,protocol=TCP; resources ResourceRequirements;
    volumeDevices by devicePath; volumeMounts by mountPath
EphemeralVolumeSource: volumeClaimTemplate PersistentVolumeClaimTemplate
Event: involvedObject whole; related whole
FlexPersistentVolumeSource: secretRef whole
FlexVolumeSource: secretRef whole
ISCSIPersistentVolumeSource: secretRef whole
ISCSIVolumeSource: secretRef whole
Job: spec JobSpec; status JobStatus
JobSpec: selector whole; template PodTemplateSpec
JobStatus: conditions whole merged type; uncountedTerminatedPods UncountedTerminatedPods
JobTemplateSpec: metadata ObjectMeta; spec JobSpec
Namespace: status NamespaceStatus
NamespaceStatus: conditions by type
Node: spec NodeSpec; status NodeStatus
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution whole
NodeSpec: podCIDRs set merged
NodeStatus: addresses by type; conditions by type
ObjectMeta: finalizers set merged; ownerReferences by uid whole
PersistentVolume: spec PersistentVolumeSpec
PersistentVolumeClaim: spec PersistentVolumeClaimSpec; status PersistentVolumeClaimStatus
PersistentVolumeClaimSpec: dataSource whole; selector whole
PersistentVolumeClaimStatus: conditions by type
PersistentVolumeClaimTemplate: metadata ObjectMeta; spec PersistentVolumeClaimSpec
PersistentVolumeSpec: cephfs CephFSPersistentVolumeSource; cinder CinderPersistentVolumeSource; claimRef whole; csi
    CSIPersistentVolumeSource; flexVolume FlexPersistentVolumeSource; iscsi ISCSIPersistentVolumeSource;
    nodeAffinity VolumeNodeAffinity; rbd RBDPersistentVolumeSource; scaleIO ScaleIOPersistentVolumeSource; storageos
    StorageOSPersistentVolumeSource
Pod: spec PodSpec; status PodStatus
PodDisruptionBudget: spec PodDisruptionBudgetSpec; status PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: selector whole replaced
PodDisruptionBudgetStatus: conditions by type
PodGroup: spec PodGroupSpec; status PodGroupStatus
PodGroupSchedulingPolicy: basic whole
PodGroupSpec: resourceClaims by name; schedulingPolicy PodGroupSchedulingPolicy
PodGroupStatus: conditions by type; resourceClaimStatuses by name
PodGroupTemplate: resourceClaims by name; schedulingPolicy PodGroupSchedulingPolicy
PodSpec: affinity Affinity; containers by name Container; ephemeralContainers by name EphemeralContainer;
    hostAliases by ip; imagePullSecrets by name whole; initContainers by name Container; nodeSelector whole;
    resourceClaims by name; resources ResourceRequirements; schedulingGates by name; topologySpreadConstraints by
    topologyKey,whenUnsatisfiable TopologySpreadConstraint; volumes by name Volume
PodStatus: conditions by type; hostIPs whole merged ip; podIPs by ip; resourceClaimStatuses by name; resources
    ResourceRequirements
PodTemplate: template PodTemplateSpec
PodTemplateSpec: metadata ObjectMeta; spec PodSpec
RBDPersistentVolumeSource: secretRef whole
RBDVolumeSource: secretRef whole
ReplicaSet: spec ReplicaSetSpec; status ReplicaSetStatus
ReplicaSetSpec: selector whole; template PodTemplateSpec
ReplicaSetStatus: conditions by type
ReplicationController: spec ReplicationControllerSpec; status ReplicationControllerStatus
ReplicationControllerSpec: selector whole; template PodTemplateSpec
ReplicationControllerStatus: conditions by type
ResourceClaimStatus: allocation AllocationResult; devices by driver,device,pool,shareID? replaced
    AllocatedDeviceStatus; reservedFor by uid
ResourceClaimTemplate: spec ResourceClaimTemplateSpec
ResourceClaimTemplateSpec: metadata ObjectMeta
ResourceQuota: spec ResourceQuotaSpec
ResourceQuotaSpec: scopeSelector whole
ResourceRequirements: claims by name replaced
ResourceSlice: spec ResourceSliceSpec
ResourceSliceSpec: nodeSelector whole
RoleBinding: roleRef whole
RuntimeClass: scheduling Scheduling
ScaleIOPersistentVolumeSource: secretRef whole
ScaleIOVolumeSource: secretRef whole
Scheduling: nodeSelector whole
Service: spec ServiceSpec; status ServiceStatus
ServiceAccount: secrets by name? whole
ServiceSpec: ports by port,protocol=TCP; selector whole
ServiceStatus: conditions by type
StatefulSet: spec StatefulSetSpec; status StatefulSetStatus
StatefulSetSpec: selector whole; template PodTemplateSpec
StatefulSetStatus: conditions by type
StorageOSPersistentVolumeSource: secretRef whole
StorageOSVolumeSource: secretRef whole
TopologySpreadConstraint: labelSelector whole
UncountedTerminatedPods: failed set; succeeded set
Volume: cephfs CephFSVolumeSource; cinder CinderVolumeSource; csi CSIVolumeSource; ephemeral EphemeralVolumeSource;
    flexVolume FlexVolumeSource; iscsi ISCSIVolumeSource; rbd RBDVolumeSource; scaleIO ScaleIOVolumeSource;
    storageos StorageOSVolumeSource
VolumeAttachment: spec VolumeAttachmentSpec
VolumeAttachmentSource: inlineVolumeSpec PersistentVolumeSpec
VolumeAttachmentSpec: source VolumeAttachmentSource
VolumeNodeAffinity: required whole
Workload: spec WorkloadSpec
WorkloadSpec: podGroupTemplates by name replaced PodGroupTemplate
events.Event: regarding whole; related whole
resource.ResourceClaim: status ResourceClaimStatus
"""

# The kinds served, by version. A type is called as its kind is, but for two whose names are taken.
KINDS: Final = {
    "v1": "ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate "
    "ReplicationController ResourceQuota Secret Service ServiceAccount",
    "apps/v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "batch/v1": "CronJob Job",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event=events.Event",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io/v1": "DeviceClass ResourceClaim=resource.ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.k8s.io/v1": "PriorityClass",
    "scheduling.k8s.io/v1alpha2": "PodGroup Workload",
    "storage.k8s.io/v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
}

# What an object of a kind holds before anybody has written to it, beside `"metadata":{}`: Go has these fields even when
# they are empty, so whoever fills one in owns what is inside, and not the field itself. POD stands for a pod template.
BLANKS: Final = """
v1 Event {"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,
    "reportingComponent":"","reportingInstance":""}
v1 LimitRange {"spec":{"limits":null}}
v1 Namespace {"spec":{},"status":{}}
v1 Node {"spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"",
    "systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"",
    "operatingSystem":"","architecture":""}}}
v1 PersistentVolume {"spec":{},"status":{}}
v1 PersistentVolumeClaim {"spec":{"resources":{}},"status":{}}
v1 Pod {"spec":{"containers":null},"status":{}}
v1 PodTemplate {"template":POD}
v1 ReplicationController {"spec":{},"status":{"replicas":0}}
v1 ResourceQuota {"spec":{},"status":{}}
v1 Service {"spec":{},"status":{"loadBalancer":{}}}
apps/v1 ControllerRevision {"data":null,"revision":0}
apps/v1 DaemonSet {"spec":{"selector":null,"template":POD,"updateStrategy":{}},"status":{"currentNumberScheduled":0,
    "numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}}
apps/v1 Deployment {"spec":{"selector":null,"template":POD,"strategy":{}},"status":{}}
apps/v1 ReplicaSet {"spec":{"selector":null,"template":POD},"status":{"replicas":0}}
apps/v1 StatefulSet {"spec":{"selector":null,"template":POD,"serviceName":"","updateStrategy":{}},
    "status":{"replicas":0,"availableReplicas":0}}
batch/v1 CronJob {"spec":{"schedule":"","jobTemplate":{"metadata":{},"spec":{"template":POD}}},"status":{}}
batch/v1 Job {"spec":{"template":POD},"status":{}}
coordination.k8s.io/v1 Lease {"spec":{}}
discovery.k8s.io/v1 EndpointSlice {"addressType":"","endpoints":null,"ports":null}
events.k8s.io/v1 Event {"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,
    "deprecatedLastTimestamp":null}
node.k8s.io/v1 RuntimeClass {"handler":""}
policy/v1 PodDisruptionBudget {"spec":{},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,
    "expectedPods":0}}
rbac.authorization.k8s.io/v1 ClusterRole {"rules":null}
rbac.authorization.k8s.io/v1 ClusterRoleBinding {"roleRef":{"apiGroup":"","kind":"","name":""}}
rbac.authorization.k8s.io/v1 Role {"rules":null}
rbac.authorization.k8s.io/v1 RoleBinding {"roleRef":{"apiGroup":"","kind":"","name":""}}
resource.k8s.io/v1 DeviceClass {"spec":{}}
resource.k8s.io/v1 ResourceClaim {"spec":{"devices":{"requests":null}},"status":{}}
resource.k8s.io/v1 ResourceClaimTemplate {"spec":{"metadata":{},"spec":{"devices":{"requests":null}}}}
resource.k8s.io/v1 ResourceSlice {"spec":{"driver":"","pool":{"name":"","generation":0,"resourceSliceCount":0}}}
scheduling.k8s.io/v1 PriorityClass {"value":0}
scheduling.k8s.io/v1alpha2 PodGroup {"spec":{"podGroupTemplateRef":null,"schedulingPolicy":{}},"status":{}}
scheduling.k8s.io/v1alpha2 Workload {"spec":{"podGroupTemplates":null}}
storage.k8s.io/v1 CSIDriver {"spec":{}}
storage.k8s.io/v1 CSINode {"spec":{"drivers":null}}
storage.k8s.io/v1 CSIStorageCapacity {"storageClassName":""}
storage.k8s.io/v1 StorageClass {"provisioner":""}
storage.k8s.io/v1 VolumeAttachment {"spec":{"attacher":"","source":{},"nodeName":""},"status":{"attached":false}}
storage.k8s.io/v1 VolumeAttributesClass {"driverName":""}
"""
TEMPLATES: Final = {"POD": '{"metadata":{},"spec":{"containers":null}}'}

# Fields that a request cannot write, so that it never owns them: by way of the object itself | of its status. Kinds
# above that are not named here have none; kinds that are not above are like custom resources with a status.
RESETS: Final = """
CronJob DaemonSet Job Namespace Node PersistentVolume PersistentVolumeClaim PodDisruptionBudget: status | spec
ReplicaSet ReplicationController ResourceQuota Service StatefulSet: status | spec
Deployment: status | spec metadata.labels
Pod: status | spec metadata.deletionTimestamp metadata.ownerReferences
PodGroup ResourceClaim VolumeAttachment: status | spec metadata
"""
