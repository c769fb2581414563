"""Provisions volumes that are directories on a node, for claims of a class that names this provisioner.

The agent of the node creates the directory when the first pod mounts it, and removes it when the volume is deleted.
On a hollow node there is nothing to create. A node with a kubelet gets a hostPath volume, whose directory stays.
"""

from __future__ import annotations

from typing import Any, Final

from situate.core.model.claims import claim_class
from situate.core.model.managed_node import ManagedNode
from situate.core.model.managed_volumes import ManagedClaim, ManagedStorageClass, ManagedVolume
from situate.core.model.storage import PersistentVolumeSpec
from situate.core.model.volume_claims import STORAGE
from situate.core.reconcile.effects import CreateObject, ObjectRef, ReconcileResult, RecordEvent
from situate.core.reconcile.objects import KINDS, ObjectLister, normal_event, ref_of, update_metadata

PROVISIONER: Final = "node-directories.situate.dev"
"""The name of the provisioner in storage classes, and of the driver in volumes."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
DIRECTORY: Final = "situate.dev/node-directory"
"""The finalizer of a volume whose node has a directory for it: its agent removes both."""
HOSTNAME: Final = "kubernetes.io/hostname"
AGENTS: Final = ("hollow://", "process://")
"""The container runtimes of situate's own nodes."""
KUBELET_ROOT: Final = "/var/lib/situate-volumes"
"""Where a kubelet creates the directories."""
FAILED: Final = "ProvisioningFailed"
PREFIX: Final = 'failed to provision volume with StorageClass "{}": '
NO_NODE: Final = "no node was selected: the class must have volumeBindingMode WaitForFirstConsumer"
NODE_GONE: Final = 'node "{}" not found'
NO_BLOCKS: Final = "volumeMode Block is not supported"


def provision(claim: ManagedClaim, made: ManagedStorageClass, objects: ObjectLister) -> ReconcileResult:
    node_name = claim.metadata.annotations.get(SELECTED_NODE, "")
    node = objects.get(ManagedNode, "", node_name) if node_name else None
    if claim.spec.volume_mode == "Block":
        return ReconcileResult((_failed(claim, NO_BLOCKS),))
    if not node_name:
        return ReconcileResult((_failed(claim, NO_NODE),))
    if node is None:  # the scheduler selects another one
        again = update_metadata(claim, {"annotations": {SELECTED_NODE: None}})
        return ReconcileResult((again, _failed(claim, NODE_GONE.format(node_name))))
    name = f"pvc-{claim.metadata.uid}"
    create = CreateObject(ObjectRef(*KINDS[ManagedVolume], "", name), _volume(name, claim, made, node))
    done = normal_event(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
    return ReconcileResult((create, done))


def is_ours(volume: ManagedVolume) -> bool:
    return volume.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER


def hostnames(spec: PersistentVolumeSpec) -> tuple[str, ...]:
    """The hostnames of the nodes that reach a volume which was provisioned here."""
    required = None if spec.node_affinity is None else spec.node_affinity.required
    terms = () if required is None else required.node_selector_terms
    return tuple(
        value for term in terms for one in term.match_expressions if one.key == HOSTNAME for value in one.values
    )


def _failed(claim: ManagedClaim, why: str) -> RecordEvent:
    return RecordEvent(ref_of(claim), "Warning", FAILED, PREFIX.format(claim_class(claim)) + why)


def _volume(name: str, claim: ManagedClaim, made: ManagedStorageClass, node: ManagedNode) -> dict[str, Any]:
    api_version, kind = KINDS[ManagedVolume]
    claim_version, claim_kind = KINDS[ManagedClaim]
    meta, hostname = claim.metadata, node.metadata.labels.get(HOSTNAME, node.metadata.name)
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [hostname]}]}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {STORAGE: claim.spec.resources.requests.get(STORAGE, "0")},
            "accessModes": list(claim.spec.access_modes),
            "claimRef": {
                "kind": claim_kind,
                "apiVersion": claim_version,
                "namespace": meta.namespace,
                "name": meta.name,
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
            },
            "persistentVolumeReclaimPolicy": made.reclaim_policy,
            "storageClassName": made.metadata.name,
            "volumeMode": claim.spec.volume_mode,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            **({"mountOptions": list(made.mount_options)} if made.mount_options else {}),
            **_source(name, node),
        },
    }


def _source(name: str, node: ManagedNode) -> dict[str, Any]:
    if node.status.node_info.container_runtime_version.startswith(AGENTS):
        return {"csi": {"driver": PROVISIONER, "volumeHandle": name}}
    return {"hostPath": {"path": f"{KUBELET_ROOT}/{name}", "type": "DirectoryOrCreate"}}
