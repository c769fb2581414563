"""PersistentVolumes: a source of storage, its claim, and the nodes that reach it.

Of in-tree drivers that Kubernetes has removed, only the number of sources is checked.
"""

from collections.abc import Mapping
from posixpath import normpath
from typing import Any, Final

from situate.server.kinds.core.persistentvolumeclaim import (
    access_modes,
    modes_shown,
    phase_shown,
    storage_class,
)
from situate.server.kinds.core.pod.paths import check_no_backsteps
from situate.server.kinds.core.pod.volumes import ONE_KIND, csi_driver, host_path, nfs
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.go_structs import VOLUME_NODE_AFFINITY, go_struct
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.node_selectors import node_selector
from situate.server.kinds.quantities import STORAGE, basic_amount, positive_amount, round_amounts
from situate.server.kinds.strategy import Strategy, keep_all_but_status, keep_status
from situate.server.objects import Object

_SPEC: Final = FieldChecks("core.v1.PersistentVolumeSpec")
_SOURCES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def _default(volume: Object) -> None:
    volume.setdefault("status", {}).setdefault("phase", "Pending")
    spec = volume.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    round_amounts(spec.get("capacity"))
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    if "iscsi" in spec:
        spec["iscsi"].setdefault("iscsiInterface", "default")


def _prepare_create(volume: Object) -> None:
    """The first phase begins at `metadata.creationTimestamp`, if that is set."""
    status: dict[str, Any] = {"phase": "Pending"}
    if now := volume.get("metadata", {}).get("creationTimestamp"):
        status["lastPhaseTransitionTime"] = now
    volume["status"] = status


def _prepare_status(new: Object, old: Object) -> None:
    keep_all_but_status(new, old)
    status, was = new.get("status", {}), old.get("status", {})
    same, since = status.get("phase") == was.get("phase"), was.get("lastPhaseTransitionTime")
    if same and since is not None and "lastPhaseTransitionTime" not in status:
        status["lastPhaseTransitionTime"] = since


def _validate(volume: Object, causes: Causes) -> None:
    spec = volume.get("spec", {})
    modes = spec.get("accessModes", [])
    causes.require(modes, "spec.accessModes")
    access_modes(modes, "spec.accessModes", causes)
    _capacity(spec.get("capacity", {}), causes)
    policy = spec.get("persistentVolumeReclaimPolicy", "Retain")
    _SPEC.check(spec, "spec", causes, "persistentVolumeReclaimPolicy")
    if "nodeAffinity" in spec:
        if "required" in spec["nodeAffinity"]:
            node_selector(spec["nodeAffinity"]["required"], "spec.nodeAffinity.required", causes)
        else:
            causes.required("spec.nodeAffinity.required", "must specify required node constraints")
    _source(spec, causes)
    if policy == "Recycle" and normpath(spec.get("hostPath", {}).get("path") or "x") == "/":
        causes.forbidden("spec.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'")
    if name := spec.get("storageClassName"):
        causes.check(subdomain, name, "spec.storageClassName")
    _SPEC.check(spec, "spec", causes, "volumeMode")
    if "volumeAttributesClassName" in spec:
        _attributes_class(spec, causes)


def _attributes_class(spec: Mapping[str, Any], causes: Causes) -> None:
    name, where = spec["volumeAttributesClassName"], "spec.volumeAttributesClassName"
    if not name:
        causes.required(where, "an empty string is disallowed")
    else:
        causes.check(subdomain, name, where)
    if "csi" not in spec:
        causes.required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _capacity(capacity: Mapping[str, Any], causes: Causes) -> None:
    causes.require(capacity, "spec.capacity")
    if STORAGE not in capacity or len(capacity) > 1:
        causes.not_supported("spec.capacity", dict(capacity) or None, (STORAGE,))
    for name, raw in capacity.items():
        basic_amount(raw, f"spec.capacity[{name}]", causes)
        positive_amount(raw, f"spec.capacity[{name}]", causes)


def _source(spec: Mapping[str, Any], causes: Causes) -> None:
    count = 0
    for key in _SOURCES:
        if key not in spec:
            continue
        where = f"spec.{key}"
        if count:
            causes.forbidden(where, ONE_KIND)
            continue
        count += 1
        if key == "hostPath":
            host_path(spec[key], where, causes)
        elif key == "nfs":
            nfs(spec[key], where, causes)
        elif key == "local":
            _local(spec, where, causes)
        elif key == "csi":
            _csi(spec[key], where, causes)
    causes.require(count, "spec", "must specify a volume type")


def _local(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    if not spec["local"].get("path"):
        causes.required(f"{path}.path")
    else:
        check_no_backsteps(spec["local"]["path"], f"{path}.path", causes)
    if "nodeAffinity" not in spec:
        causes.required("spec.nodeAffinity", "Local volume requires node affinity")


def _csi(source: Mapping[str, Any], path: str, causes: Causes) -> None:
    csi_driver(source.get("driver", ""), f"{path}.driver", causes)
    causes.require(source.get("volumeHandle"), f"{path}.volumeHandle")
    for key in _SECRETS:
        if key in source:
            for part, rule in (("name", subdomain), ("namespace", dns_label)):
                if value := source[key].get(part, ""):
                    causes.check(rule, value, f"{path}.{key}.{part}")
                else:
                    causes.required(f"{path}.{key}.{part}")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _validate(new, causes)
    spec, was = new["spec"], old["spec"]
    if {key: spec[key] for key in _SOURCES if key in spec} != _with_new_secret(spec, was):
        causes.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    causes.immutable(spec.get("volumeMode"), was.get("volumeMode"), "volumeMode")
    if "nodeAffinity" in was and _renamed(was["nodeAffinity"]) != _renamed(spec.get("nodeAffinity", {})):
        detail = "field is immutable, except for updating from beta label to GA"
        causes.invalid("nodeAffinity", go_struct(spec.get("nodeAffinity"), VOLUME_NODE_AFFINITY), detail)
    if "volumeAttributesClassName" in was and "volumeAttributesClassName" not in spec:
        causes.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")


def _with_new_secret(spec: Mapping[str, Any], was: Mapping[str, Any]) -> dict[str, Any]:
    """The old source, with the secret for expansion if the update adds one."""
    source = {key: was[key] for key in _SOURCES if key in was}
    secret = spec.get("csi", {}).get("controllerExpandSecretRef")
    if secret is not None and "csi" in source and "controllerExpandSecretRef" not in source["csi"]:
        source["csi"] = {**source["csi"], "controllerExpandSecretRef": secret}
    return source


def _renamed(affinity: Mapping[str, Any]) -> list[Any]:
    """The terms, with beta labels replaced by their GA names."""
    terms = []
    for term in affinity.get("required", {}).get("nodeSelectorTerms", ()):
        asked = [
            {**one, "key": _LABELS.get(one.get("key", ""), one.get("key", ""))}
            for one in term.get("matchExpressions", ())
        ]
        terms.append((asked, term.get("matchFields", [])))
    return terms


def _selectable(volume: Object) -> Mapping[str, str]:
    return {"name": volume.get("metadata", {}).get("name", "")}


def _modes_shown(obj: Object) -> str:
    return modes_shown((obj.get("spec") or {}).get("accessModes"))


def _claim_shown(obj: Object) -> str:
    claim = (obj.get("spec") or {}).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


KIND: Final = Kind(
    "v1 persistentvolumes PersistentVolume C pv - | status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=keep_status,
        prepare_status=_prepare_status,
        validate=_validate,
        validate_update=_validate_update,
        selectable=_selectable,
    ),
    columns="""
        Name!, Capacity = spec.capacity.storage|"0", Access Modes,
        Reclaim Policy = spec.persistentVolumeReclaimPolicy, Status, Claim, StorageClass,
        VolumeAttributesClass = spec.volumeAttributesClassName|<unset>, Reason = status.reason, Age,
        +VolumeMode = spec.volumeMode|<unset>
        """,
    cells={"Access Modes": _modes_shown, "Status": phase_shown, "Claim": _claim_shown, "StorageClass": storage_class},
    description="PersistentVolume is a piece of storage in the cluster.",
)
