"""The secrets, config maps, claims and accounts that a pod or volume refers to, and its node may read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from situate.core.reconcile.volumes.provisioner import PROVISIONER
from situate.server.requests import Object

MIRROR: Final = "kubernetes.io/config.mirror"


class Reference(NamedTuple):
    resource: str
    namespace: str
    name: str


def of_pod(pod: Object) -> frozenset[Reference]:
    """What the node of a bound pod may read for it. A mirror pod, which the node created itself, adds nothing."""
    metadata, spec, status = pod["metadata"], pod.get("spec", {}), pod.get("status", {})
    if MIRROR in (metadata.get("annotations") or {}):
        return frozenset()
    namespace = metadata.get("namespace", "")
    found = [
        *(("secrets", name) for name in _secrets(spec)),
        *(("configmaps", name) for name in _config_maps(spec)),
        *(("persistentvolumeclaims", name) for name in _claims(metadata["name"], spec)),
        *(("resourceclaims", name) for name in _devices(spec, status)),
        ("serviceaccounts", spec.get("serviceAccountName", "")),
    ]
    return frozenset(Reference(resource, namespace, name) for resource, name in found if name)


def secrets_of_volume(volume: Object, claim_namespace: str) -> Iterator[Reference]:
    """The secrets with which a PersistentVolume is mounted: every `...secretRef` in its source."""
    for source in volume.get("spec", {}).values():
        if not isinstance(source, dict):
            continue
        if "secretName" in source:
            namespace = source.get("secretNamespace") or claim_namespace
            yield Reference("secrets", namespace, source["secretName"])
        for key, value in source.items():
            if key.lower().endswith("secretref") and isinstance(value, dict) and value.get("name"):
                yield Reference("secrets", value.get("namespace") or claim_namespace, value["name"])


def is_local(volume: Object, node: str) -> bool:
    """Whether our provisioner made the volume as a directory of this node."""
    spec = volume.get("spec", {})
    if spec.get("csi", {}).get("driver") != PROVISIONER:
        return False
    terms = spec.get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms") or ()
    return [one.get("values") for term in terms for one in term.get("matchExpressions") or ()] == [[node]]


def forbidden_to_mirrors(pod: Object) -> str:
    """The first reference that a mirror pod must not have; "" if there is none."""
    spec = pod.get("spec", {})
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if any(_secrets(spec)):
        return "secrets"
    if any(_config_maps(spec)):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        for kind, source in ((key, value) for key, value in volume.items() if key != "name"):
            parts = (source.get("sources") or ()) if kind == "projected" else ()
            for found in (_VOLUMES.get(kind), *(_PROJECTED.get(key) for part in parts for key in part)):
                if found:
                    return found
    return ""


# The resource that a volume refers to. Volumes with names in them were found before.
_VOLUMES: Final = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED: Final = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def _containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()


def _by_environment(spec: Mapping[str, Any], whole: str, single: str) -> Iterator[str]:
    for container in _containers(spec):
        for source in container.get("envFrom") or ():
            yield source.get(whole, {}).get("name", "")
        for variable in container.get("env") or ():
            yield variable.get("valueFrom", {}).get(single, {}).get("name", "")


# Volume sources: the key of a secret's name, or of the reference to one.
_SECRET_NAMES: Final = {"secret": "secretName", "azureFile": "secretName"}
_SECRET_REFERENCES: Final = {
    "cephfs": "secretRef",
    "cinder": "secretRef",
    "flexVolume": "secretRef",
    "rbd": "secretRef",
    "scaleIO": "secretRef",
    "iscsi": "secretRef",
    "storageos": "secretRef",
    "csi": "nodePublishSecretRef",
}


def _secrets(spec: Mapping[str, Any]) -> Iterator[str]:
    for reference in spec.get("imagePullSecrets") or ():
        yield reference.get("name", "")
    yield from _by_environment(spec, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        for key, source in volume.items():
            if key == "name":
                continue
            if key in _SECRET_NAMES:
                yield source.get(_SECRET_NAMES[key], "")
            elif key in _SECRET_REFERENCES:
                yield source.get(_SECRET_REFERENCES[key], {}).get("name", "")
            elif key == "projected":
                for part in source.get("sources") or ():
                    yield part.get("secret", {}).get("name", "")


def _config_maps(spec: Mapping[str, Any]) -> Iterator[str]:
    yield from _by_environment(spec, "configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        yield volume.get("configMap", {}).get("name", "")
        for part in volume.get("projected", {}).get("sources") or ():
            yield part.get("configMap", {}).get("name", "")


def _claims(pod: str, spec: Mapping[str, Any]) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"].get("claimName", "")
        elif "ephemeral" in volume:
            yield f"{pod}-{volume['name']}"


def _devices(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[str]:
    made = {one.get("name"): one.get("resourceClaimName", "") for one in status.get("resourceClaimStatuses") or ()}
    for claim in spec.get("resourceClaims") or ():
        yield claim.get("resourceClaimName") or made.get(claim.get("name"), "")
    yield status.get("extendedResourceClaimStatus", {}).get("resourceClaimName", "")
