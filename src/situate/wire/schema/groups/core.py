"""Messages of core, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[core.v1]
ResourceList = {Amount}
string: Capability ClaimResourceStatus ConditionStatus ContainerRestartPolicy ContainerRestartRuleAction
    ContainerRestartRuleOnExitCodesOperator FinalizerName LimitType LoadBalancerIPMode NamespaceConditionType
    NodeAddressType NodeConditionType OSName PersistentVolumeClaimConditionType PodConditionType PodResizeStatus
    PodSELinuxChangePolicy RecursiveReadOnlyMode ReplicationControllerConditionType ResourceHealthStatus ResourceID
    ResourceName ResourceResizeRestartPolicy SecretType StorageMedium UniqueVolumeName
enum AppArmorProfileType: Localhost RuntimeDefault Unconfined
enum AzureDataDiskCachingMode: None ReadOnly ReadWrite
enum AzureDataDiskKind: Dedicated Managed Shared
enum DNSPolicy: ClusterFirstWithHostNet ClusterFirst Default None
enum HostPathType: "" BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate Socket
enum IPFamily: "" IPv4 IPv6
enum IPFamilyPolicy: PreferDualStack RequireDualStack SingleStack
enum MountPropagationMode: Bidirectional HostToContainer None
enum NamespacePhase: Active Terminating
enum NodeInclusionPolicy: Honor Ignore
enum NodePhase: Pending Running Terminated
enum NodeSelectorOperator: DoesNotExist Exists Gt In Lt NotIn
enum PersistentVolumeAccessMode: ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod
enum PersistentVolumeClaimModifyVolumeStatus: InProgress Infeasible Pending
enum PersistentVolumeClaimPhase: Bound Lost Pending
enum PersistentVolumeMode: Block Filesystem
enum PersistentVolumePhase: Available Bound Failed Pending Released
enum PersistentVolumeReclaimPolicy: Delete Recycle Retain
enum PodFSGroupChangePolicy: Always OnRootMismatch
enum PodPhase: Failed Pending Running Succeeded Unknown
enum PodQOSClass: BestEffort Burstable Guaranteed
enum PreemptionPolicy: PreemptLowerPriority Never
enum ProcMountType: Default Unmasked
enum Protocol: SCTP TCP UDP
enum PullPolicy: Always IfNotPresent Never
enum ResourceQuotaScope: BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating
    VolumeAttributesClass
enum RestartPolicy: Always OnFailure Never
enum ScopeSelectorOperator: DoesNotExist Exists In NotIn
enum SeccompProfileType: Localhost RuntimeDefault Unconfined
enum ServiceAffinity: ClientIP None
enum ServiceExternalTrafficPolicy: Cluster Local
enum ServiceInternalTrafficPolicy: Cluster Local
enum ServiceType: ClusterIP ExternalName LoadBalancer NodePort
enum Signal: SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE
    SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMAX-1 SIGRTMAX-10 SIGRTMAX-11 SIGRTMAX-12 SIGRTMAX-13 SIGRTMAX-14
    SIGRTMAX-2 SIGRTMAX-3 SIGRTMAX-4 SIGRTMAX-5 SIGRTMAX-6 SIGRTMAX-7 SIGRTMAX-8 SIGRTMAX-9 SIGRTMIN SIGRTMIN+1
    SIGRTMIN+10 SIGRTMIN+11 SIGRTMIN+12 SIGRTMIN+13 SIGRTMIN+14 SIGRTMIN+15 SIGRTMIN+2 SIGRTMIN+3 SIGRTMIN+4 SIGRTMIN+5
    SIGRTMIN+6 SIGRTMIN+7 SIGRTMIN+8 SIGRTMIN+9 SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU
    SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ
enum SupplementalGroupsPolicy: Merge Strict
enum TaintEffect: NoSchedule PreferNoSchedule NoExecute
enum TerminationMessagePolicy: File FallbackToLogsOnError
enum TolerationOperator: Equal Exists Gt Lt
enum URIScheme: HTTP HTTPS
enum UnsatisfiableConstraintAction: DoNotSchedule ScheduleAnyway
AWSElasticBlockStoreVolumeSource: volumeID 1 string!; fsType 2 string; partition 3 int32; readOnly 4 bool
Affinity: nodeAffinity 1 NodeAffinity?; podAffinity 2 PodAffinity?; podAntiAffinity 3 PodAntiAffinity?
AppArmorProfile: type 1 AppArmorProfileType!; localhostProfile 2 string?
AttachedVolume: name 1 UniqueVolumeName!; devicePath 2 string!
AzureDiskVolumeSource: diskName 1 string!; diskURI 2 string!; cachingMode 3 AzureDataDiskCachingMode?; fsType 4 string?;
    readOnly 5 bool?; kind 6 AzureDataDiskKind?
AzureFilePersistentVolumeSource: secretName 1 string!; shareName 2 string!; readOnly 3 bool; secretNamespace 4 string?
AzureFileVolumeSource: secretName 1 string!; shareName 2 string!; readOnly 3 bool
kind Binding: metadata 1 meta.v1.ObjectMeta!; target 2 ObjectReference!* atomic
CSIPersistentVolumeSource: driver 1 string!; volumeHandle 2 string!; readOnly 3 bool; fsType 4 string; volumeAttributes
    5 {string}; controllerPublishSecretRef 6 SecretReference? atomic; nodeStageSecretRef 7 SecretReference? atomic;
    nodePublishSecretRef 8 SecretReference? atomic; controllerExpandSecretRef 9 SecretReference? atomic;
    nodeExpandSecretRef 10 SecretReference? atomic
CSIVolumeSource: driver 1 string!; readOnly 2 bool?; fsType 3 string?; volumeAttributes 4 {string}; nodePublishSecretRef
    5 LocalObjectReference? atomic
Capabilities: add 1 [Capability]; drop 2 [Capability]
CephFSPersistentVolumeSource: monitors 1 [string]!; path 2 string; user 3 string; secretFile 4 string; secretRef 5
    SecretReference? atomic; readOnly 6 bool
CephFSVolumeSource: monitors 1 [string]!; path 2 string; user 3 string; secretFile 4 string; secretRef 5
    LocalObjectReference? atomic; readOnly 6 bool
CinderPersistentVolumeSource: volumeID 1 string!; fsType 2 string; readOnly 3 bool; secretRef 4 SecretReference? atomic
CinderVolumeSource: volumeID 1 string!; fsType 2 string; readOnly 3 bool; secretRef 4 LocalObjectReference? atomic
ClientIPConfig: timeoutSeconds 1 int32?
ClusterTrustBundleProjection: name 1 string?; signerName 2 string?; labelSelector 3 meta.v1.LabelSelector? atomic;
    optional 5 bool?; path 4 string!
kind ConfigMap: metadata 1 meta.v1.ObjectMeta!; immutable 4 bool?; data 2 {string}; binaryData 3 {bytes}
ConfigMapEnvSource: +LocalObjectReference 1; optional 2 bool?
ConfigMapKeySelector: +LocalObjectReference 1; key 2 string!; optional 3 bool?
ConfigMapNodeConfigSource: namespace 1 string!; name 2 string!; uid 3 types.UID; resourceVersion 4 string;
    kubeletConfigKey 5 string!
ConfigMapProjection: +LocalObjectReference 1; items 2 [KeyToPath]; optional 4 bool?
ConfigMapVolumeSource: +LocalObjectReference 1; items 2 [KeyToPath]; defaultMode 3 int32?; optional 4 bool?
Container: name 1 string!; image 2 string; command 3 [string]; args 4 [string]; workingDir 5 string; ports 6
    [ContainerPort] by containerPort,protocol=TCP; envFrom 19 [EnvFromSource]; env 7 [EnvVar] by name; resources 8
    ResourceRequirements!; resizePolicy 23 [ContainerResizePolicy]; restartPolicy 24 ContainerRestartPolicy?;
    restartPolicyRules 25 [ContainerRestartRule]; volumeMounts 9 [VolumeMount] by mountPath; volumeDevices 21
    [VolumeDevice] by devicePath; livenessProbe 10 Probe?; readinessProbe 11 Probe?; startupProbe 22 Probe?; lifecycle
    12 Lifecycle?; terminationMessagePath 13 string; terminationMessagePolicy 20 TerminationMessagePolicy;
    imagePullPolicy 14 PullPolicy; securityContext 15 SecurityContext?; stdin 16 bool; stdinOnce 17 bool; tty 18 bool
ContainerExtendedResourceRequest: containerName 1 string!; resourceName 2 string!; requestName 3 string!
ContainerImage: names 1 [string]!~; sizeBytes 2 int64
ContainerPort: name 1 string; hostPort 2 int32; containerPort 3 int32!; protocol 4 Protocol nonempty; hostIP 5 string
ContainerResizePolicy: resourceName 1 ResourceName!; restartPolicy 2 ResourceResizeRestartPolicy!
ContainerRestartRule: action 1 ContainerRestartRuleAction*; exitCodes 2 ContainerRestartRuleOnExitCodes?
ContainerRestartRuleOnExitCodes: operator 1 ContainerRestartRuleOnExitCodesOperator*; values 2 [int32] set
ContainerState: waiting 1 ContainerStateWaiting?; running 2 ContainerStateRunning?; terminated 3
    ContainerStateTerminated?
ContainerStateRunning: startedAt 1 Time!
ContainerStateTerminated: exitCode 1 int32!; signal 2 int32; reason 3 string; message 4 string; startedAt 5 Time!;
    finishedAt 6 Time!; containerID 7 string
ContainerStateWaiting: reason 1 string; message 2 string
ContainerStatus: name 1 string!; state 2 ContainerState!; lastState 3 ContainerState!; ready 4 bool!; restartCount 5
    int32!; image 6 string!; imageID 7 string!; containerID 8 string; started 9 bool?; allocatedResources 10
    ResourceList; resources 11 ResourceRequirements?; volumeMounts 12 [VolumeMountStatus] by mountPath; user 13
    ContainerUser?; allocatedResourcesStatus 14 [ResourceStatus] by name; stopSignal 15 Signal?
ContainerUser: linux 1 LinuxContainerUser?
DaemonEndpoint: Port 1 int32!
DownwardAPIProjection: items 1 [DownwardAPIVolumeFile]
DownwardAPIVolumeFile: path 1 string!; fieldRef 2 ObjectFieldSelector? atomic; resourceFieldRef 3 ResourceFieldSelector?
    atomic; mode 4 int32?
DownwardAPIVolumeSource: items 1 [DownwardAPIVolumeFile]; defaultMode 2 int32?
EmptyDirVolumeSource: medium 1 StorageMedium; sizeLimit 2 Quantity?
EndpointAddress: ip 1 string!; hostname 3 string; nodeName 4 string?; targetRef 2 ObjectReference? atomic
EndpointPort: name 1 string; port 2 int32!; protocol 3 Protocol; appProtocol 4 string?
EndpointSubset: addresses 1 [EndpointAddress]; notReadyAddresses 2 [EndpointAddress]; ports 3 [EndpointPort]
kind Endpoints: metadata 1 meta.v1.ObjectMeta!; subsets 2 [EndpointSubset]
EnvFromSource: prefix 1 string; configMapRef 2 ConfigMapEnvSource?; secretRef 3 SecretEnvSource?
EnvVar: name 1 string!; value 2 string; valueFrom 3 EnvVarSource?
EnvVarSource: fieldRef 1 ObjectFieldSelector? atomic; resourceFieldRef 2 ResourceFieldSelector? atomic; configMapKeyRef
    3 ConfigMapKeySelector? atomic; secretKeyRef 4 SecretKeySelector? atomic; fileKeyRef 5 FileKeySelector? atomic
EphemeralContainer: +EphemeralContainerCommon 1; targetContainerName 2 string
EphemeralContainerCommon: name 1 string!; image 2 string; command 3 [string]; args 4 [string]; workingDir 5 string;
    ports 6 [ContainerPort] by containerPort,protocol=TCP; envFrom 19 [EnvFromSource]; env 7 [EnvVar] by name; resources
    8 ResourceRequirements!; resizePolicy 23 [ContainerResizePolicy]; restartPolicy 24 ContainerRestartPolicy?;
    restartPolicyRules 25 [ContainerRestartRule]; volumeMounts 9 [VolumeMount] by mountPath; volumeDevices 21
    [VolumeDevice] by devicePath; livenessProbe 10 Probe?; readinessProbe 11 Probe?; startupProbe 22 Probe?; lifecycle
    12 Lifecycle?; terminationMessagePath 13 string; terminationMessagePolicy 20 TerminationMessagePolicy;
    imagePullPolicy 14 PullPolicy; securityContext 15 SecurityContext?; stdin 16 bool; stdinOnce 17 bool; tty 18 bool
EphemeralVolumeSource: volumeClaimTemplate 1 PersistentVolumeClaimTemplate?
kind Event: metadata 1 meta.v1.ObjectMeta!*; involvedObject 2 ObjectReference!* atomic; reason 3 string; message 4
    string; source 5 EventSource!; firstTimestamp 6 Time!; lastTimestamp 7 Time!; count 8 int32; type 9 string;
    eventTime 10 MicroTime!; series 11 EventSeries?; action 12 string; related 13 ObjectReference? atomic;
    reportingComponent 14 string!~; reportingInstance 15 string!~
EventSeries: count 1 int32; lastObservedTime 2 MicroTime!
EventSource: component 1 string; host 2 string
ExecAction: command 1 [string]
FCVolumeSource: targetWWNs 1 [string]; lun 2 int32?; fsType 3 string; readOnly 4 bool; wwids 5 [string]
FileKeySelector: volumeName 1 string!; path 2 string!; key 3 string!; optional 4 bool?
FlexPersistentVolumeSource: driver 1 string!; fsType 2 string; secretRef 3 SecretReference? atomic; readOnly 4 bool;
    options 5 {string}
FlexVolumeSource: driver 1 string!; fsType 2 string; secretRef 3 LocalObjectReference? atomic; readOnly 4 bool; options
    5 {string}
FlockerVolumeSource: datasetName 1 string; datasetUUID 2 string
GCEPersistentDiskVolumeSource: pdName 1 string!; fsType 2 string; partition 3 int32; readOnly 4 bool
GRPCAction: port 1 int32!; service 2 string?
GitRepoVolumeSource: repository 1 string!; revision 2 string; directory 3 string
GlusterfsPersistentVolumeSource: endpoints 1 string!; path 2 string!; readOnly 3 bool; endpointsNamespace 4 string?
GlusterfsVolumeSource: endpoints 1 string!; path 2 string!; readOnly 3 bool
HTTPGetAction: path 1 string; port 2 IntOrString!*; host 3 string; scheme 4 URIScheme; httpHeaders 5 [HTTPHeader]
HTTPHeader: name 1 string!; value 2 string!
HostAlias: ip 1 string!; hostnames 2 [string]
HostIP: ip 1 string!
HostPathVolumeSource: path 1 string!; type 2 HostPathType?
ISCSIPersistentVolumeSource: targetPortal 1 string!; iqn 2 string!; lun 3 int32!; iscsiInterface 4 string; fsType 5
    string; readOnly 6 bool; portals 7 [string]; chapAuthDiscovery 8 bool; chapAuthSession 11 bool; secretRef 10
    SecretReference? atomic; initiatorName 12 string?
ISCSIVolumeSource: targetPortal 1 string!; iqn 2 string!; lun 3 int32!; iscsiInterface 4 string; fsType 5 string;
    readOnly 6 bool; portals 7 [string]; chapAuthDiscovery 8 bool; chapAuthSession 11 bool; secretRef 10
    LocalObjectReference? atomic; initiatorName 12 string?
ImageVolumeSource: reference 1 string; pullPolicy 2 PullPolicy
ImageVolumeStatus: imageRef 1 string*
KeyToPath: key 1 string!; path 2 string!; mode 3 int32?
Lifecycle: postStart 1 LifecycleHandler?; preStop 2 LifecycleHandler?; stopSignal 3 Signal?
LifecycleHandler: exec 1 ExecAction?; httpGet 2 HTTPGetAction?; tcpSocket 3 TCPSocketAction?; sleep 4 SleepAction?
kind LimitRange: metadata 1 meta.v1.ObjectMeta!; spec 2 LimitRangeSpec!
LimitRangeItem: type 1 LimitType!; max 2 ResourceList; min 3 ResourceList; default 4 ResourceList; defaultRequest 5
    ResourceList; maxLimitRequestRatio 6 ResourceList
LimitRangeSpec: limits 1 [LimitRangeItem]!
LinuxContainerUser: uid 1 int64!; gid 2 int64!; supplementalGroups 3 [int64]
LoadBalancerIngress: ip 1 string; hostname 2 string; ipMode 3 LoadBalancerIPMode?; ports 4 [PortStatus]
LoadBalancerStatus: ingress 1 [LoadBalancerIngress]
LocalObjectReference: name 1 string
LocalVolumeSource: path 1 string!; fsType 2 string?
ModifyVolumeStatus: targetVolumeAttributesClassName 1 string; status 2 PersistentVolumeClaimModifyVolumeStatus!
NFSVolumeSource: server 1 string!; path 2 string!; readOnly 3 bool
kind Namespace: metadata 1 meta.v1.ObjectMeta!; spec 2 NamespaceSpec!; status 3 NamespaceStatus!
NamespaceCondition: type 1 NamespaceConditionType!; status 2 ConditionStatus!; lastTransitionTime 4 Time!; reason 5
    string; message 6 string
NamespaceSpec: finalizers 1 [FinalizerName]
NamespaceStatus: phase 1 NamespacePhase; conditions 2 [NamespaceCondition] by type
kind Node: metadata 1 meta.v1.ObjectMeta!; spec 2 NodeSpec!; status 3 NodeStatus!
NodeAddress: type 1 NodeAddressType!; address 2 string!
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution 1 NodeSelector? atomic;
    preferredDuringSchedulingIgnoredDuringExecution 2 [PreferredSchedulingTerm]
NodeAllocatableResourceClaimStatus: resourceClaimName 1 string!; containers 2 [string] set; resources 3
    {ResourceName:Quantity}!
NodeCondition: type 1 NodeConditionType!; status 2 ConditionStatus!; lastHeartbeatTime 3 Time!; lastTransitionTime 4
    Time!; reason 5 string; message 6 string
NodeConfigSource: configMap 2 ConfigMapNodeConfigSource?
NodeConfigStatus: assigned 1 NodeConfigSource?; active 2 NodeConfigSource?; lastKnownGood 3 NodeConfigSource?; error 4
    string
NodeDaemonEndpoints: kubeletEndpoint 1 DaemonEndpoint!
NodeFeatures: supplementalGroupsPolicy 1 bool?
NodeRuntimeHandler: name 1 string!~; features 2 NodeRuntimeHandlerFeatures?
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts 1 bool?; userNamespaces 2 bool?
NodeSelector: nodeSelectorTerms 1 [NodeSelectorTerm]!
NodeSelectorRequirement: key 1 string!; operator 2 NodeSelectorOperator!; values 3 [string]
NodeSelectorTerm: matchExpressions 1 [NodeSelectorRequirement]; matchFields 2 [NodeSelectorRequirement]
NodeSpec: podCIDR 1 string; podCIDRs 7 [string] set merged; providerID 3 string; unschedulable 4 bool; taints 5 [Taint];
    configSource 6 NodeConfigSource?; externalID 2 string
NodeStatus: capacity 1 ResourceList; allocatable 2 ResourceList; phase 3 NodePhase; conditions 4 [NodeCondition] by
    type; addresses 5 [NodeAddress] by type; daemonEndpoints 6 NodeDaemonEndpoints!; nodeInfo 7 NodeSystemInfo!; images
    8 [ContainerImage]; volumesInUse 9 [UniqueVolumeName]; volumesAttached 10 [AttachedVolume]; config 11
    NodeConfigStatus?; runtimeHandlers 12 [NodeRuntimeHandler]; features 13 NodeFeatures?; declaredFeatures 14 [string]
NodeSwapStatus: capacity 1 int64?
NodeSystemInfo: machineID 1 string!; systemUUID 2 string!; bootID 3 string!; kernelVersion 4 string!; osImage 5 string!;
    containerRuntimeVersion 6 string!; kubeletVersion 7 string!; kubeProxyVersion 8 string!; operatingSystem 9 string!;
    architecture 10 string!; swap 11 NodeSwapStatus?
ObjectFieldSelector: apiVersion 1 string; fieldPath 2 string!
ObjectReference: kind 1 string; namespace 2 string; name 3 string; uid 4 types.UID; apiVersion 5 string; resourceVersion
    6 string; fieldPath 7 string
kind PersistentVolume: metadata 1 meta.v1.ObjectMeta!; spec 2 PersistentVolumeSpec!; status 3 PersistentVolumeStatus!
kind PersistentVolumeClaim: metadata 1 meta.v1.ObjectMeta!; spec 2 PersistentVolumeClaimSpec!; status 3
    PersistentVolumeClaimStatus!
PersistentVolumeClaimCondition: type 1 PersistentVolumeClaimConditionType!; status 2 ConditionStatus!; lastProbeTime 3
    Time!; lastTransitionTime 4 Time!; reason 5 string; message 6 string
PersistentVolumeClaimSpec: accessModes 1 [PersistentVolumeAccessMode]; selector 4 meta.v1.LabelSelector? atomic;
    resources 2 VolumeResourceRequirements!; volumeName 3 string; storageClassName 5 string?; volumeMode 6
    PersistentVolumeMode?; dataSource 7 TypedLocalObjectReference? atomic; dataSourceRef 8 TypedObjectReference?;
    volumeAttributesClassName 9 string?
PersistentVolumeClaimStatus: phase 1 PersistentVolumeClaimPhase; accessModes 2 [PersistentVolumeAccessMode]; capacity 3
    ResourceList; conditions 4 [PersistentVolumeClaimCondition] by type; allocatedResources 5 ResourceList;
    allocatedResourceStatuses 7 {ResourceName:ClaimResourceStatus}; currentVolumeAttributesClassName 8 string?;
    modifyVolumeStatus 9 ModifyVolumeStatus?
PersistentVolumeClaimTemplate: metadata 1 meta.v1.ObjectMeta!; spec 2 PersistentVolumeClaimSpec!*
PersistentVolumeClaimVolumeSource: claimName 1 string!; readOnly 2 bool
PersistentVolumeSource: gcePersistentDisk 1 GCEPersistentDiskVolumeSource?; awsElasticBlockStore 2
    AWSElasticBlockStoreVolumeSource?; hostPath 3 HostPathVolumeSource?; glusterfs 4 GlusterfsPersistentVolumeSource?;
    nfs 5 NFSVolumeSource?; rbd 6 RBDPersistentVolumeSource?; iscsi 7 ISCSIPersistentVolumeSource?; cinder 8
    CinderPersistentVolumeSource?; cephfs 9 CephFSPersistentVolumeSource?; fc 10 FCVolumeSource?; flocker 11
    FlockerVolumeSource?; flexVolume 12 FlexPersistentVolumeSource?; azureFile 13 AzureFilePersistentVolumeSource?;
    vsphereVolume 14 VsphereVirtualDiskVolumeSource?; quobyte 15 QuobyteVolumeSource?; azureDisk 16
    AzureDiskVolumeSource?; photonPersistentDisk 17 PhotonPersistentDiskVolumeSource?; portworxVolume 18
    PortworxVolumeSource?; scaleIO 19 ScaleIOPersistentVolumeSource?; local 20 LocalVolumeSource?; storageos 21
    StorageOSPersistentVolumeSource?; csi 22 CSIPersistentVolumeSource?
PersistentVolumeSpec: capacity 1 ResourceList; +PersistentVolumeSource 2; accessModes 3 [PersistentVolumeAccessMode];
    claimRef 4 ObjectReference? atomic; persistentVolumeReclaimPolicy 5 PersistentVolumeReclaimPolicy; storageClassName
    6 string; mountOptions 7 [string]; volumeMode 8 PersistentVolumeMode?; nodeAffinity 9 VolumeNodeAffinity?;
    volumeAttributesClassName 10 string?
PersistentVolumeStatus: phase 1 PersistentVolumePhase; message 2 string; reason 3 string; lastPhaseTransitionTime 4
    Time?
PhotonPersistentDiskVolumeSource: pdID 1 string!; fsType 2 string
kind Pod: metadata 1 meta.v1.ObjectMeta!; spec 2 PodSpec!; status 3 PodStatus!
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution 1 [PodAffinityTerm];
    preferredDuringSchedulingIgnoredDuringExecution 2 [WeightedPodAffinityTerm]
PodAffinityTerm: labelSelector 1 meta.v1.LabelSelector? atomic; namespaces 2 [string]; topologyKey 3 string!;
    namespaceSelector 4 meta.v1.LabelSelector? atomic; matchLabelKeys 5 [string]; mismatchLabelKeys 6 [string]
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution 1 [PodAffinityTerm];
    preferredDuringSchedulingIgnoredDuringExecution 2 [WeightedPodAffinityTerm]
PodCertificateProjection: signerName 1 string*; keyType 2 string*; maxExpirationSeconds 3 int32?; credentialBundlePath 4
    string; keyPath 5 string; certificateChainPath 6 string; userAnnotations 7 {string}
PodCondition: type 1 PodConditionType!; observedGeneration 7 int64; status 2 ConditionStatus!; lastProbeTime 3 Time!;
    lastTransitionTime 4 Time!; reason 5 string; message 6 string
PodDNSConfig: nameservers 1 [string]; searches 2 [string]; options 3 [PodDNSConfigOption]
PodDNSConfigOption: name 1 string; value 2 string?
PodExtendedResourceClaimStatus: requestMappings 1 [ContainerExtendedResourceRequest]!; resourceClaimName 2 string!
PodIP: ip 1 string!
PodOS: name 1 OSName!
PodReadinessGate: conditionType 1 PodConditionType!
PodResourceClaim: name 1 string!; resourceClaimName 3 string?; resourceClaimTemplateName 4 string?
PodResourceClaimStatus: name 1 string!; resourceClaimName 2 string?
PodSchedulingGate: name 1 string!
PodSchedulingGroup: podGroupName 1 string?
PodSecurityContext: seLinuxOptions 1 SELinuxOptions?; windowsOptions 8 WindowsSecurityContextOptions?; runAsUser 2
    int64?; runAsGroup 6 int64?; runAsNonRoot 3 bool?; supplementalGroups 4 [int64]; supplementalGroupsPolicy 12
    SupplementalGroupsPolicy?; fsGroup 5 int64?; sysctls 7 [Sysctl]; fsGroupChangePolicy 9 PodFSGroupChangePolicy?;
    seccompProfile 10 SeccompProfile?; appArmorProfile 11 AppArmorProfile?; seLinuxChangePolicy 13
    PodSELinuxChangePolicy?
PodSpec: volumes 1 [Volume] by name; initContainers 20 [Container] by name; containers 2 [Container]! by name;
    ephemeralContainers 34 [EphemeralContainer] by name; restartPolicy 3 RestartPolicy; terminationGracePeriodSeconds 4
    int64?; activeDeadlineSeconds 5 int64?; dnsPolicy 6 DNSPolicy; nodeSelector 7 {string} atomic; serviceAccountName 8
    string; serviceAccount 9 string; automountServiceAccountToken 21 bool?; nodeName 10 string; hostNetwork 11 bool;
    hostPID 12 bool; hostIPC 13 bool; shareProcessNamespace 27 bool?; securityContext 14 PodSecurityContext?;
    imagePullSecrets 15 [LocalObjectReference] by name atomic; hostname 16 string; subdomain 17 string; affinity 18
    Affinity?; schedulerName 19 string; tolerations 22 [Toleration]; hostAliases 23 [HostAlias] by ip; priorityClassName
    24 string; priority 25 int32?; dnsConfig 26 PodDNSConfig?; readinessGates 28 [PodReadinessGate]; runtimeClassName 29
    string?; enableServiceLinks 30 bool?; preemptionPolicy 31 PreemptionPolicy?; overhead 32 ResourceList;
    topologySpreadConstraints 33 [TopologySpreadConstraint] by topologyKey,whenUnsatisfiable; setHostnameAsFQDN 35
    bool?; os 36 PodOS?; hostUsers 37 bool?; schedulingGates 38 [PodSchedulingGate] by name; resourceClaims 39
    [PodResourceClaim] by name; resources 40 ResourceRequirements?; hostnameOverride 41 string?; schedulingGroup 43
    PodSchedulingGroup?
PodStatus: observedGeneration 17 int64; phase 1 PodPhase; conditions 2 [PodCondition] by type; message 3 string; reason
    4 string; nominatedNodeName 11 string; hostIP 5 string; hostIPs 16 [HostIP] atomic merged ip; podIP 6 string; podIPs
    12 [PodIP] by ip; startTime 7 Time?; initContainerStatuses 10 [ContainerStatus]; containerStatuses 8
    [ContainerStatus]; qosClass 9 PodQOSClass; ephemeralContainerStatuses 13 [ContainerStatus]; resize 14
    PodResizeStatus; resourceClaimStatuses 15 [PodResourceClaimStatus] by name; extendedResourceClaimStatus 18
    PodExtendedResourceClaimStatus?; allocatedResources 19 ResourceList; resources 20 ResourceRequirements?;
    nodeAllocatableResourceClaimStatuses 21 [NodeAllocatableResourceClaimStatus]
kind PodTemplate: metadata 1 meta.v1.ObjectMeta!; template 2 PodTemplateSpec!
PodTemplateSpec: metadata 1 meta.v1.ObjectMeta!; spec 2 PodSpec!
PortStatus: port 1 int32!; protocol 2 Protocol!; error 3 string?
PortworxVolumeSource: volumeID 1 string!; fsType 2 string; readOnly 3 bool
PreferredSchedulingTerm: weight 1 int32!; preference 2 NodeSelectorTerm!* atomic
Probe: +ProbeHandler 1; initialDelaySeconds 2 int32 >=0; timeoutSeconds 3 int32 >=0; periodSeconds 4 int32 >=0;
    successThreshold 5 int32 >=0; failureThreshold 6 int32 >=0; terminationGracePeriodSeconds 7 int64?
ProbeHandler: exec 1 ExecAction?; httpGet 2 HTTPGetAction?; tcpSocket 3 TCPSocketAction?; grpc 4 GRPCAction?
ProjectedVolumeSource: sources 1 [VolumeProjection]!~; defaultMode 2 int32?
QuobyteVolumeSource: registry 1 string!; volume 2 string!; readOnly 3 bool; user 4 string; group 5 string; tenant 6
    string
RBDPersistentVolumeSource: monitors 1 [string]!; image 2 string!; fsType 3 string; pool 4 string; user 5 string; keyring
    6 string; secretRef 7 SecretReference? atomic; readOnly 8 bool
RBDVolumeSource: monitors 1 [string]!; image 2 string!; fsType 3 string; pool 4 string; user 5 string; keyring 6 string;
    secretRef 7 LocalObjectReference? atomic; readOnly 8 bool
kind ReplicationController: metadata 1 meta.v1.ObjectMeta!; spec 2 ReplicationControllerSpec!; status 3
    ReplicationControllerStatus!
ReplicationControllerCondition: type 1 ReplicationControllerConditionType!; status 2 ConditionStatus!;
    lastTransitionTime 3 Time!; reason 4 string; message 5 string
ReplicationControllerSpec: replicas 1 int32? >=0; minReadySeconds 4 int32 >=0; selector 2 {string} atomic; template 3
    PodTemplateSpec?
ReplicationControllerStatus: replicas 1 int32! >=0; fullyLabeledReplicas 2 int32 >=0; readyReplicas 4 int32 >=0;
    availableReplicas 5 int32 >=0; observedGeneration 3 int64 >=0; conditions 6 [ReplicationControllerCondition] by type
ResourceClaim: name 1 string!; request 2 string
ResourceFieldSelector: containerName 1 string; resource 2 string!; divisor 3 Quantity!
ResourceHealth: resourceID 1 ResourceID!; health 2 ResourceHealthStatus; message 6 string?
kind ResourceQuota: metadata 1 meta.v1.ObjectMeta!; spec 2 ResourceQuotaSpec!; status 3 ResourceQuotaStatus!
ResourceQuotaSpec: hard 1 ResourceList; scopes 2 [ResourceQuotaScope]; scopeSelector 3 ScopeSelector? atomic
ResourceQuotaStatus: hard 1 ResourceList; used 2 ResourceList
ResourceRequirements: limits 1 ResourceList; requests 2 ResourceList; claims 3 [ResourceClaim] by name replaced
ResourceStatus: name 1 ResourceName!; resources 2 [ResourceHealth] by resourceID replaced
SELinuxOptions: user 1 string; role 2 string; type 3 string; level 4 string
ScaleIOPersistentVolumeSource: gateway 1 string!; system 2 string!; secretRef 3 SecretReference?* atomic; sslEnabled 4
    bool; protectionDomain 5 string; storagePool 6 string; storageMode 7 string; volumeName 8 string; fsType 9 string;
    readOnly 10 bool
ScaleIOVolumeSource: gateway 1 string!; system 2 string!; secretRef 3 LocalObjectReference?* atomic; sslEnabled 4 bool;
    protectionDomain 5 string; storagePool 6 string; storageMode 7 string; volumeName 8 string; fsType 9 string;
    readOnly 10 bool
ScopeSelector: matchExpressions 1 [ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: scopeName 1 ResourceQuotaScope!; operator 2 ScopeSelectorOperator!; values 3 [string]
SeccompProfile: type 1 SeccompProfileType!; localhostProfile 2 string?
kind Secret: metadata 1 meta.v1.ObjectMeta!; immutable 5 bool?; data 2 {bytes}; stringData 4 {string}; type 3 SecretType
SecretEnvSource: +LocalObjectReference 1; optional 2 bool?
SecretKeySelector: +LocalObjectReference 1; key 2 string!; optional 3 bool?
SecretProjection: +LocalObjectReference 1; items 2 [KeyToPath]; optional 4 bool?
SecretReference: name 1 string; namespace 2 string
SecretVolumeSource: secretName 1 string; items 2 [KeyToPath]; defaultMode 3 int32?; optional 4 bool?
SecurityContext: capabilities 1 Capabilities?; privileged 2 bool?; seLinuxOptions 3 SELinuxOptions?; windowsOptions 10
    WindowsSecurityContextOptions?; runAsUser 4 int64?; runAsGroup 8 int64?; runAsNonRoot 5 bool?;
    readOnlyRootFilesystem 6 bool?; allowPrivilegeEscalation 7 bool?; procMount 9 ProcMountType?; seccompProfile 11
    SeccompProfile?; appArmorProfile 12 AppArmorProfile?
kind Service: metadata 1 meta.v1.ObjectMeta!; spec 2 ServiceSpec!; status 3 ServiceStatus!
kind ServiceAccount: metadata 1 meta.v1.ObjectMeta!; secrets 2 [ObjectReference] by name? atomic; imagePullSecrets 3
    [LocalObjectReference]; automountServiceAccountToken 4 bool?
ServiceAccountTokenProjection: audience 1 string; expirationSeconds 2 int64?; path 3 string!
ServicePort: name 1 string; protocol 2 Protocol; appProtocol 6 string?; port 3 int32!; targetPort 4 IntOrString;
    nodePort 5 int32
ServiceSpec: ports 1 [ServicePort] by port,protocol=TCP; selector 2 {string} atomic; clusterIP 3 string; clusterIPs 18
    [string]; type 4 ServiceType; externalIPs 5 [string]; sessionAffinity 7 ServiceAffinity; loadBalancerIP 8 string;
    loadBalancerSourceRanges 9 [string]; externalName 10 string; externalTrafficPolicy 11 ServiceExternalTrafficPolicy;
    healthCheckNodePort 12 int32; publishNotReadyAddresses 13 bool; sessionAffinityConfig 14 SessionAffinityConfig?;
    ipFamilies 19 [IPFamily]; ipFamilyPolicy 17 IPFamilyPolicy?; allocateLoadBalancerNodePorts 20 bool?;
    loadBalancerClass 21 string?; internalTrafficPolicy 22 ServiceInternalTrafficPolicy?; trafficDistribution 23 string?
ServiceStatus: loadBalancer 1 LoadBalancerStatus!; conditions 2 [meta.v1.Condition] by type
SessionAffinityConfig: clientIP 1 ClientIPConfig?
SleepAction: seconds 1 int64!
StorageOSPersistentVolumeSource: volumeName 1 string; volumeNamespace 2 string; fsType 3 string; readOnly 4 bool;
    secretRef 5 ObjectReference? atomic
StorageOSVolumeSource: volumeName 1 string; volumeNamespace 2 string; fsType 3 string; readOnly 4 bool; secretRef 5
    LocalObjectReference? atomic
Sysctl: name 1 string!; value 2 string!
TCPSocketAction: port 1 IntOrString!*; host 2 string
Taint: key 1 string!; value 2 string; effect 3 TaintEffect! nonempty; timeAdded 4 Time?
Toleration: key 1 string; operator 2 TolerationOperator; value 3 string; effect 4 TaintEffect; tolerationSeconds 5
    int64?
TopologySelectorLabelRequirement: key 1 string!; values 2 [string]!
TopologySelectorTerm: matchLabelExpressions 1 [TopologySelectorLabelRequirement]
TopologySpreadConstraint: maxSkew 1 int32! >=1; topologyKey 2 string!; whenUnsatisfiable 3
    UnsatisfiableConstraintAction!; labelSelector 4 meta.v1.LabelSelector? atomic; minDomains 5 int32? >=1;
    nodeAffinityPolicy 6 NodeInclusionPolicy?; nodeTaintsPolicy 7 NodeInclusionPolicy?; matchLabelKeys 8 [string]
TypedLocalObjectReference: apiGroup 1 string?; kind 2 string!; name 3 string!
TypedObjectReference: apiGroup 1 string?; kind 2 string!; name 3 string!; namespace 4 string?
Volume: name 1 string!; +VolumeSource 2
VolumeDevice: name 1 string!; devicePath 2 string!
VolumeMount: name 1 string!; readOnly 2 bool; recursiveReadOnly 7 RecursiveReadOnlyMode?; mountPath 3 string!; subPath 4
    string; mountPropagation 5 MountPropagationMode?; subPathExpr 6 string
VolumeMountStatus: name 1 string!; mountPath 2 string!; readOnly 3 bool; recursiveReadOnly 4 RecursiveReadOnlyMode?;
    volumeStatus 5 VolumeStatus?
VolumeNodeAffinity: required 1 NodeSelector? atomic
VolumeProjection: secret 1 SecretProjection?; downwardAPI 2 DownwardAPIProjection?; configMap 3 ConfigMapProjection?;
    serviceAccountToken 4 ServiceAccountTokenProjection?; clusterTrustBundle 5 ClusterTrustBundleProjection?;
    podCertificate 6 PodCertificateProjection?
VolumeResourceRequirements: limits 1 ResourceList; requests 2 ResourceList
VolumeSource: hostPath 1 HostPathVolumeSource?; emptyDir 2 EmptyDirVolumeSource?; gcePersistentDisk 3
    GCEPersistentDiskVolumeSource?; awsElasticBlockStore 4 AWSElasticBlockStoreVolumeSource?; gitRepo 5
    GitRepoVolumeSource?; secret 6 SecretVolumeSource?; nfs 7 NFSVolumeSource?; iscsi 8 ISCSIVolumeSource?; glusterfs 9
    GlusterfsVolumeSource?; persistentVolumeClaim 10 PersistentVolumeClaimVolumeSource?; rbd 11 RBDVolumeSource?;
    flexVolume 12 FlexVolumeSource?; cinder 13 CinderVolumeSource?; cephfs 14 CephFSVolumeSource?; flocker 15
    FlockerVolumeSource?; downwardAPI 16 DownwardAPIVolumeSource?; fc 17 FCVolumeSource?; azureFile 18
    AzureFileVolumeSource?; configMap 19 ConfigMapVolumeSource?; vsphereVolume 20 VsphereVirtualDiskVolumeSource?;
    quobyte 21 QuobyteVolumeSource?; azureDisk 22 AzureDiskVolumeSource?; photonPersistentDisk 23
    PhotonPersistentDiskVolumeSource?; projected 26 ProjectedVolumeSource?; portworxVolume 24 PortworxVolumeSource?;
    scaleIO 25 ScaleIOVolumeSource?; storageos 27 StorageOSVolumeSource?; csi 28 CSIVolumeSource?; ephemeral 29
    EphemeralVolumeSource?; image 30 ImageVolumeSource?
VolumeStatus: image 1 ImageVolumeStatus?
VsphereVirtualDiskVolumeSource: volumePath 1 string!; fsType 2 string; storagePolicyName 3 string; storagePolicyID 4
    string
WeightedPodAffinityTerm: weight 1 int32!; podAffinityTerm 2 PodAffinityTerm!*
WindowsSecurityContextOptions: gmsaCredentialSpecName 1 string?; gmsaCredentialSpec 2 string?; runAsUserName 3 string?;
    hostProcess 4 bool?
"""
