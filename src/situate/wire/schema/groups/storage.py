"""Messages of storage.k8s.io, read from the structs of k8s.io/api v0.36.4. See table.py for the notation."""

from typing import Final

TABLE: Final = """
[storage.v1]
string: FSGroupPolicy VolumeLifecycleMode
enum VolumeBindingMode: Immediate WaitForFirstConsumer
kind CSIDriver: metadata 1 meta.v1.ObjectMeta!; spec 2 CSIDriverSpec!*
CSIDriverSpec: attachRequired 1 bool?; podInfoOnMount 2 bool?; volumeLifecycleModes 3 [VolumeLifecycleMode] set;
    storageCapacity 4 bool?; fsGroupPolicy 5 FSGroupPolicy?; tokenRequests 6 [TokenRequest]; requiresRepublish 7 bool?;
    seLinuxMount 8 bool?; nodeAllocatableUpdatePeriodSeconds 9 int64?; serviceAccountTokenInSecrets 10 bool?;
    preventPodSchedulingIfMissing 11 bool?
kind CSINode: metadata 1 meta.v1.ObjectMeta!; spec 2 CSINodeSpec!*
CSINodeDriver: name 1 string!; nodeID 2 string!; topologyKeys 3 [string]!~; allocatable 4 VolumeNodeResources?
CSINodeSpec: drivers 1 [CSINodeDriver]! by name
kind CSIStorageCapacity: metadata 1 meta.v1.ObjectMeta!; nodeTopology 2 meta.v1.LabelSelector? atomic; storageClassName
    3 string!; capacity 4 Quantity?; maximumVolumeSize 5 Quantity?
kind StorageClass: metadata 1 meta.v1.ObjectMeta!; provisioner 2 string!; parameters 3 {string}; reclaimPolicy 4
    core.v1.PersistentVolumeReclaimPolicy?; mountOptions 5 [string]; allowVolumeExpansion 6 bool?; volumeBindingMode 7
    VolumeBindingMode? nonempty; allowedTopologies 8 [core.v1.TopologySelectorTerm]
TokenRequest: audience 1 string!; expirationSeconds 2 int64?
kind VolumeAttachment: metadata 1 meta.v1.ObjectMeta!; spec 2 VolumeAttachmentSpec!*; status 3 VolumeAttachmentStatus!
VolumeAttachmentSource: persistentVolumeName 1 string?; inlineVolumeSpec 2 core.v1.PersistentVolumeSpec?
VolumeAttachmentSpec: attacher 1 string!; source 2 VolumeAttachmentSource!*; nodeName 3 string!
VolumeAttachmentStatus: attached 1 bool!; attachmentMetadata 2 {string}; attachError 3 VolumeError?; detachError 4
    VolumeError?
kind VolumeAttributesClass: metadata 1 meta.v1.ObjectMeta!; driverName 2 string!; parameters 3 {string}
VolumeError: time 1 Time!; message 2 string; errorCode 3 int32?
VolumeNodeResources: count 1 int32? >=0
"""
