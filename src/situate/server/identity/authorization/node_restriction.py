"""NodeRestriction admission: an agent writes only its own node and its own pods, and gains no rights by it.

The node authorizer has decided by the names in the request; this plugin checks the objects. The texts are those of
Kubernetes' plugin of this name.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Literal

from situate.core.reconcile.volumes.provisioner import DIRECTORY
from situate.server.errors import StatusError, forbidden
from situate.server.identity.authorization.attributes import Attributes, Authorizer
from situate.server.identity.authorization.node_authorizer import CLAIMS, LEASES, PODS, VOLUMES, node_name_of
from situate.server.identity.authorization.node_references import MIRROR, forbidden_to_mirrors, is_local
from situate.server.identity.ports import ObjectReader, resource_of, uid_of
from situate.server.objects import shown_name
from situate.server.requests import Caller, Object, Target

Action = Literal["create", "update", "delete"]

NODES: Final = resource_of("v1", "nodes")
DRIVERS: Final = resource_of("storage.k8s.io/v1", "csidrivers")
RESERVED: Final = "node-restriction.kubernetes.io"
OWN_LABELS: Final = frozenset(
    (
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    )
)
OWN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
ONLY_STATUS_OF_OWN: Final = "can only update pod status for pods with spec.nodeName set to itself"
AUDIENCE_VERB: Final = "request-serviceaccounts-token-audience"


class NodeRestriction:
    def __init__(self, objects: ObjectReader, authorizer: Authorizer) -> None:
        self._objects = objects
        self._authorizer = authorizer

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        node = node_name_of(caller)
        if node is None:
            return
        why = self._refusal(node, action, target, new, old) if node else _unknown_node(caller)
        if why:
            raise _forbidden(target, new, why)

    def version(self, target: Target) -> int | None:
        return None

    def admit_token(self, target: Target, request: Object, caller: Caller) -> None:
        """Admit a TokenRequest: it must be bound to a pod of this node, for an audience that the pod mounts."""
        node = node_name_of(caller)
        if node is None:
            return
        why = self._refused_token(node, target, request, caller) if node else _unknown_node(caller)
        if why:
            raise forbidden("serviceaccounts", "", target.name, why)

    def _refusal(self, node: str, action: Action, target: Target, new: Object | None, old: Object | None) -> str:
        match target.resource.group, target.resource.plural:
            case "", "pods":
                return self._pod(node, action, target, new, old)
            case "", "nodes":
                return _node(node, action, _name(target, new), new, old)
            case "", "persistentvolumeclaims" | "persistentvolumes":
                check = _claim if target.resource.plural == "persistentvolumeclaims" else _volume
                return check(node, target, new, old)
            case "coordination.k8s.io", "leases":
                if target.namespace != LEASES:
                    return f'can only access leases in the "{LEASES}" system namespace'
                if _name(target, new) != node:
                    return "can only access node lease with the same name as the requesting node"
            case "storage.k8s.io", "csinodes" if _name(target, new) != node:
                return "can only access CSINode with the same name as the requesting node"
            case "resource.k8s.io", "resourceslices":
                slice_ = old if action == "delete" else new
                if action != "update" and (slice_ or {}).get("spec", {}).get("nodeName") != node:
                    return f"can only {action} ResourceSlice with the same NodeName as the requesting node"
        return ""

    # ── pods ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _pod(self, node: str, action: Action, target: Target, new: Object | None, old: Object | None) -> str:
        match target.subresource, action:
            case "", "create":
                return self._mirror(node, new or {})
            case "", "delete":
                if old is not None and _node_name(old) != node:
                    return f'node "{node}" can only delete pods with spec.nodeName set to itself'
            case "", _:
                return f'unexpected operation "{action.upper()}", node "{node}" can only create and delete mirror pods'
            case "status", "update":
                return _pod_status(node, new or {}, old or {})
            case "eviction", "create":
                pod = self._objects.get(PODS, target.namespace, target.name)
                if pod is None:
                    text = f'pod "{target.name}" not found'
                    raise StatusError(HTTPStatus.NOT_FOUND, "NotFound", text, kind="pod", name=target.name)
                if _node_name(pod.object(PODS)) != node:
                    return f"node {node} can only evict pods with spec.nodeName set to itself"
            case "status" | "eviction", _:
                return f'unexpected operation "{action.upper()}"'
            case _:
                return f"unexpected pod subresource \"{target.subresource}\", only 'status' and 'eviction' are allowed"
        return ""

    def _mirror(self, node: str, pod: Object) -> str:
        metadata = pod.get("metadata", {})
        if MIRROR not in (metadata.get("annotations") or {}):
            return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
        if _node_name(pod) != node:
            return f'node "{node}" can only create pods with spec.nodeName set to itself'
        why = self._owner(node, metadata.get("ownerReferences") or [])
        if why:
            return why
        kind = forbidden_to_mirrors(pod)
        return f'node "{node}" can not create pods that reference {kind}' if kind else ""

    def _owner(self, node: str, owners: list[Mapping[str, Any]]) -> str:
        if len(owners) > 1:
            return f'node "{node}" can only create pods with a single owner reference set to itself'
        owner = owners[0] if owners else {}
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
            return f'node "{node}" can only create pods with an owner reference set to itself'
        if not owner.get("controller"):
            return f'node "{node}" can only create pods with a controller owner reference set to itself'
        if owner.get("blockOwnerDeletion"):
            return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
        found = self._objects.get(NODES, "", node)
        if found is None:
            raise StatusError(HTTPStatus.NOT_FOUND, "NotFound", f'node "{node}" not found', kind="node", name=node)
        uid = uid_of(found.object(NODES))
        if owner.get("uid") != uid:
            return f"node {node} UID mismatch: expected {owner.get('uid', '')} got {uid}"
        return ""

    # ── tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _refused_token(self, node: str, target: Target, request: Object, caller: Caller) -> str:
        reference = request.get("spec", {}).get("boundObjectRef") or {}
        name, uid = reference.get("name", ""), reference.get("uid", "")
        if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not name:
            return "node requested token not bound to a pod"
        if not uid:
            return "node requested token with a pod binding without a uid"
        found = self._objects.get(PODS, target.namespace, name)
        if found is None:
            raise StatusError(HTTPStatus.NOT_FOUND, "NotFound", f'pod "{name}" not found', kind="pod", name=name)
        pod = found.object(PODS)
        if uid_of(pod) != uid:
            return (
                f"the UID in the bound object reference ({uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
        if _node_name(pod) != node:
            return "node requested token bound to a pod scheduled on a different node"
        return self._refused_audience(target, request.get("spec", {}).get("audiences") or [], pod, caller)

    def _refused_audience(self, target: Target, audiences: list[str], pod: Object, caller: Caller) -> str:
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        if self._mounts(pod, audience):
            return ""
        attributes = Attributes(AUDIENCE_VERB, "", audience, "", target.namespace, target.name)
        if self._authorizer.allows(caller, attributes).allowed:
            return ""
        return (
            f'audience "{audience}" not found in pod spec volume, '
            f"{caller.name} is not authorized to request tokens for this audience"
        )

    def _mounts(self, pod: Object, audience: str) -> bool:
        metadata = pod["metadata"]
        for volume in pod.get("spec", {}).get("volumes") or ():
            for source in volume.get("projected", {}).get("sources") or ():
                token = source.get("serviceAccountToken")
                if token is not None and token.get("audience", "") == audience:
                    return True
            driver = volume.get("csi", {}).get("driver", "")
            if "persistentVolumeClaim" in volume:
                driver = self._driver(metadata["namespace"], volume["persistentVolumeClaim"].get("claimName", ""))
            elif "ephemeral" in volume:
                driver = self._driver(metadata["namespace"], f"{metadata['name']}-{volume['name']}")
            if driver and audience in self._audiences(driver):
                return True
        return False

    def _driver(self, namespace: str, claim: str) -> str:
        found = self._objects.get(CLAIMS, namespace, claim)
        name = found.object(CLAIMS).get("spec", {}).get("volumeName", "") if found else ""
        volume = self._objects.get(VOLUMES, "", name) if name else None
        return str(volume.object(VOLUMES).get("spec", {}).get("csi", {}).get("driver", "")) if volume else ""

    def _audiences(self, driver: str) -> list[str]:
        found = self._objects.get(DRIVERS, "", driver)
        requests = found.object(DRIVERS).get("spec", {}).get("tokenRequests") or () if found else ()
        return [request.get("audience", "") for request in requests]


def _unknown_node(caller: Caller) -> str:
    return f'could not determine node from user "{caller.name}"'


def _name(target: Target, new: Object | None) -> str:
    return target.name or str((new or {}).get("metadata", {}).get("name", ""))


def _forbidden(target: Target, new: Object | None, why: str) -> StatusError:
    return forbidden(target.resource.plural, target.resource.group, target.name or shown_name(new or {}), why)


def _node_name(pod: Object) -> str:
    return str(pod.get("spec", {}).get("nodeName", ""))


def _pod_status(node: str, new: Object, old: Object) -> str:
    if _node_name(old) != node:
        return f'node "{node}" {ONLY_STATUS_OF_OWN}'
    if (new.get("metadata", {}).get("labels") or {}) != (old.get("metadata", {}).get("labels") or {}):
        return f'node "{node}" cannot update labels through pod status'
    after, before = new.get("status", {}), old.get("status", {})
    if (after.get("resourceClaimStatuses") or []) != (before.get("resourceClaimStatuses") or []):
        return f'node "{node}" cannot update resource claim statues'
    if after.get("extendedResourceClaimStatus") != before.get("extendedResourceClaimStatus"):
        return f'node "{node}" cannot update extended resource claim status'
    return ""


def _claim(node: str, target: Target, new: Object | None, old: Object | None) -> str:
    if target.subresource != "status":
        return "may only update PVC status"
    if _without_reported_fields(new or {}) != _without_reported_fields(old or {}):
        return f'node "{node}" is not allowed to update fields other than status.quantity and status.conditions'
    return ""


def _volume(node: str, target: Target, new: Object | None, old: Object | None) -> str:
    """Of a volume that is a directory of the node, its agent writes one finalizer."""
    if is_local(old or {}, node) and _without_finalizer(new or {}) != _without_finalizer(old or {}):
        return f'node "{node}" can only write the finalizer {DIRECTORY} of volumes that are directories of this node'
    return ""


def _without_finalizer(volume: Object) -> Object:
    idle = ("resourceVersion", "managedFields", "generation", "finalizers")
    metadata = volume.get("metadata", {})
    others = [one for one in metadata.get("finalizers") or () if one != DIRECTORY]
    rest = {key: value for key, value in metadata.items() if key not in idle}
    return {**volume, "metadata": {**rest, "finalizers": others}}


def _without_reported_fields(claim: Object) -> Object:
    idle = ("resourceVersion", "managedFields")
    metadata = {key: value for key, value in claim.get("metadata", {}).items() if key not in idle}
    reported = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
    status = {key: value for key, value in claim.get("status", {}).items() if key not in reported}
    return {**claim, "metadata": metadata, "status": status}


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _node(node: str, action: Action, name: str, new: Object | None, old: Object | None) -> str:
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    after, before = new or {}, old or {}
    if action == "create":
        if "configSource" in after.get("spec", {}):
            return f'node "{node}" is not allowed to create pods with a non-nil configSource'
        labels = _forbidden_labels(after, {})
        return f'node "{node}" is not allowed to set the following labels: {labels}' if labels else ""
    if action == "delete":
        return ""
    source = after.get("spec", {}).get("configSource")
    if source and source != before.get("spec", {}).get("configSource"):
        return f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
    if (after.get("spec", {}).get("taints") or []) != (before.get("spec", {}).get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    owners = "ownerReferences"
    if (after.get("metadata", {}).get(owners) or []) != (before.get("metadata", {}).get(owners) or []):
        return f'node "{node}" is not allowed to modify ownerReferences'
    labels = _forbidden_labels(after, before)
    return f"is not allowed to modify labels: {labels}" if labels else ""


def _forbidden_labels(after: Object, before: Object) -> str:
    mine, theirs = (one.get("metadata", {}).get("labels") or {} for one in (after, before))
    changed = sorted(key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key))
    return ", ".join(key for key in changed if not _may_label(key))


def _may_label(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if _within(domain, RESERVED):
        return False
    if not _within(domain, "kubernetes.io") and not _within(domain, "k8s.io"):
        return True
    return key in OWN_LABELS or any(_within(domain, own) for own in OWN_DOMAINS)


def _within(domain: str, other: str) -> bool:
    return domain == other or domain.endswith(f".{other}")
