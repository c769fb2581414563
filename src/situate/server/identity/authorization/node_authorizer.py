"""The node authorizer: an agent may read what its own pods need, and write its own status and theirs.

Names do not always tell whose an object is: `node_restriction` checks the objects themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from situate.server.identity.authorization.attributes import NO, YES, Attributes, AuthorizerDecision, field_requirements
from situate.server.identity.authorization.node_references import Reference, is_local, of_pod, secrets_of_volume
from situate.server.identity.authorization.roles import NODE_RULES
from situate.server.identity.authorization.rules import matches
from situate.server.identity.ports import ObjectReader, resource_of
from situate.server.requests import Caller, Object

NODES: Final = "system:nodes"
USER: Final = "system:node:"
LEASES: Final = "kube-node-lease"

PODS: Final = resource_of("v1", "pods")
CLAIMS: Final = resource_of("v1", "persistentvolumeclaims")
VOLUMES: Final = resource_of("v1", "persistentvolumes")
ATTACHMENTS: Final = resource_of("storage.k8s.io/v1", "volumeattachments")
SLICES: Final = resource_of("resource.k8s.io/v1", "resourceslices")

READS: Final = ("get", "list", "watch")
OWN_WRITES: Final = ("get", "create", "update", "patch", "delete")


def node_name_of(caller: Caller) -> str | None:
    """The name of the calling node; "" if it has none; None if the caller is not a node."""
    if not caller.name.startswith(USER) or NODES not in caller.groups:
        return None
    return caller.name[len(USER) :]


class NodeAuthorizer:
    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects

    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        node = node_name_of(caller)
        if node is None:
            return NO
        if not node:
            return AuthorizerDecision(False, f'unknown node for user "{caller.name}"')
        decide = _DECIDERS.get((attributes.group, attributes.resource))
        if decide is not None:
            return decide(self, node, attributes)
        return YES if any(matches(rule, attributes) and not rule.names for rule in NODE_RULES) else NO

    # ── decisions by resource ────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        """Secrets and config maps."""
        if attributes.verb not in READS:
            return AuthorizerDecision(False, "can only read resources of this type")
        if attributes.subresource:
            return AuthorizerDecision(False, "cannot read subresource")
        if not attributes.namespace:
            return AuthorizerDecision(False, "can only read namespaced object of this type")
        return self._related(node, attributes)

    def _get(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        if attributes.verb != "get":
            return AuthorizerDecision(False, "can only get individual resources of this type")
        if attributes.subresource:
            return AuthorizerDecision(False, "cannot get subresource")
        return self._related(node, attributes)

    def _claim(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return AuthorizerDecision(False, "can only get/update/patch this type")
        return self._related(node, attributes)

    def _volume(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        """An agent also reads the volumes with a directory on its node, whoever uses them, and writes their finalizers;
        `node_restriction` compares the rest."""
        if attributes.verb in ("get", "patch") and not attributes.subresource and self._is_local(node, attributes.name):
            return YES
        return self._get(node, attributes)

    def _is_local(self, node: str, name: str) -> bool:
        held = self._objects.get(VOLUMES, "", name)
        return held is not None and is_local(held.object(VOLUMES), node)

    def _account(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return AuthorizerDecision(False, "can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return AuthorizerDecision(False, "can only create token subresource of serviceaccount")
        return self._related(node, attributes)

    def _lease(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        if attributes.verb not in OWN_WRITES:
            return AuthorizerDecision(False, "can only get, create, update, patch, or delete a node lease")
        if attributes.namespace != LEASES:
            return AuthorizerDecision(False, f'can only access leases in the "{LEASES}" system namespace')
        # The name of a create is in its body, which node_restriction checks.
        if attributes.verb != "create" and attributes.name != node:
            return AuthorizerDecision(False, "can only access node lease with the same name as the requesting node")
        return YES

    def _csi_node(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        if attributes.verb not in OWN_WRITES:
            return AuthorizerDecision(False, "can only get, create, update, patch, or delete a CSINode")
        if attributes.subresource:
            return AuthorizerDecision(False, "cannot authorize CSINode subresources")
        if attributes.verb != "create" and attributes.name != node:
            return AuthorizerDecision(False, "can only access CSINode with the same name as the requesting node")
        return YES

    def _slice(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        if attributes.subresource:
            return AuthorizerDecision(False, "cannot authorize ResourceSlice subresources")
        match attributes.verb:
            case "create":
                return YES
            case "get" | "update" | "patch" | "delete":
                return self._related(node, attributes)
            case "watch" | "list" | "deletecollection" if _narrowed(attributes, node):
                return YES
            case "watch" | "list" | "deletecollection":
                why = "can only list/watch/deletecollection resourceslices with nodeName field selector"
            case _:
                why = (
                    "only the following verbs are allowed for a ResourceSlice: "
                    "get, watch, list, create, update, patch, delete, deletecollection"
                )
        return AuthorizerDecision(False, why)

    def _node(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        if attributes.subresource == "status":
            return YES if attributes.verb in ("update", "patch") else NO
        if attributes.subresource or attributes.verb not in (*READS, "create", "update", "patch"):
            return NO
        if attributes.verb not in READS or attributes.name == node:
            return YES
        other = f"'{attributes.name}'" if attributes.name else "all nodes"
        return AuthorizerDecision(False, f"node '{node}' cannot read {other}, only its own Node object")

    def _pod(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        match attributes.subresource, attributes.verb:
            case "", "get":
                return self._get(node, attributes)
            case "", "list" | "watch":
                if _narrowed(attributes, node):
                    return YES
                if attributes.name:
                    return self._related(node, attributes)
                return AuthorizerDecision(False, "can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return YES
        return NO

    def _snapshot(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        """A node may read its own NodeSnapshot."""
        if attributes.verb in READS and not attributes.subresource and attributes.name == node:
            return YES
        return AuthorizerDecision(False, "can only read the NodeSnapshot with the same name as the requesting node")

    def _join(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        """A node may renew its own certificate; `joining` compares the names."""
        return YES if attributes.verb == "create" and not attributes.subresource else NO

    # ── what a node's pods refer to ──────────────────────────────────────────────────────────────────────────────────

    def _related(self, node: str, attributes: Attributes) -> AuthorizerDecision:
        if not attributes.name:
            return AuthorizerDecision(False, "No Object name found")
        if self._has(node, Reference(attributes.resource, attributes.namespace, attributes.name)):
            return YES
        return AuthorizerDecision(False, f"no relationship found between node '{node}' and this object")

    def _has(self, node: str, wanted: Reference) -> bool:
        match wanted.resource:
            case "pods":
                pod = self._objects.get(PODS, wanted.namespace, wanted.name)
                return pod is not None and pod.object(PODS).get("spec", {}).get("nodeName") == node
            case "volumeattachments" | "resourceslices":
                resource = ATTACHMENTS if wanted.resource == "volumeattachments" else SLICES
                found = self._objects.get(resource, "", wanted.name)
                return found is not None and found.object(resource).get("spec", {}).get("nodeName") == node
            case "persistentvolumes":
                volume = self._objects.get(VOLUMES, "", wanted.name)
                claim = volume.object(VOLUMES).get("spec", {}).get("claimRef", {}) if volume else {}
                reference = Reference("persistentvolumeclaims", claim.get("namespace", ""), claim.get("name", ""))
                return bool(claim) and reference in self._needed(node)
        needed = self._needed(node)
        return wanted in needed or (wanted.resource == "secrets" and wanted in self._for_volumes(needed))

    def _needed(self, node: str) -> frozenset[Reference]:
        # Computed each time: nodes ask seldom, and no write of a pod pays for an index.
        return frozenset(one for pod in self._objects.on_node(node) for one in of_pod(pod.object(PODS)))

    def _for_volumes(self, needed: frozenset[Reference]) -> Iterator[Reference]:
        for claim in sorted(one for one in needed if one.resource == "persistentvolumeclaims"):
            found = self._objects.get(CLAIMS, claim.namespace, claim.name)
            name = found.object(CLAIMS).get("spec", {}).get("volumeName", "") if found else ""
            volume = self._objects.get(VOLUMES, "", name) if name else None
            if volume is not None and _claimed_by(volume.object(VOLUMES), claim):
                yield from secrets_of_volume(volume.object(VOLUMES), claim.namespace)


def _claimed_by(volume: Object, claim: Reference) -> bool:
    reference = volume.get("spec", {}).get("claimRef", {})
    return (reference.get("namespace"), reference.get("name")) == (claim.namespace, claim.name)


def _narrowed(attributes: Attributes, node: str) -> bool:
    return any(
        one.key == "spec.nodeName" and one.equals and one.value == node for one in field_requirements(attributes.fields)
    )


_DECIDERS: Final = {
    ("", "secrets"): NodeAuthorizer._read,
    ("", "configmaps"): NodeAuthorizer._read,
    ("", "persistentvolumeclaims"): NodeAuthorizer._claim,
    ("", "persistentvolumes"): NodeAuthorizer._volume,
    ("", "serviceaccounts"): NodeAuthorizer._account,
    ("", "nodes"): NodeAuthorizer._node,
    ("", "pods"): NodeAuthorizer._pod,
    ("coordination.k8s.io", "leases"): NodeAuthorizer._lease,
    ("storage.k8s.io", "csinodes"): NodeAuthorizer._csi_node,
    ("storage.k8s.io", "volumeattachments"): NodeAuthorizer._get,
    ("resource.k8s.io", "resourceclaims"): NodeAuthorizer._get,
    ("resource.k8s.io", "resourceslices"): NodeAuthorizer._slice,
    ("situate.dev", "nodejoins"): NodeAuthorizer._join,
    ("situate.dev", "nodesnapshots"): NodeAuthorizer._snapshot,
}
