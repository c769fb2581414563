"""The node authorizer: an agent may read what its own pods need, and report on itself and on them.

What it may write it may write of its own only, which the names alone do not always say: that is restriction.py's part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from situate.server.identity.attributes import NO, YES, Asking, Decision, requirements
from situate.server.identity.node_references import Reference, of_pod, secrets_of_volume
from situate.server.identity.ports import Objects, served
from situate.server.identity.roles import NODE_RULES
from situate.server.identity.rules import matches
from situate.server.requests import Caller, Object

__all__ = ["LEASES", "NODES", "NodeAuthorizer", "node_of"]

NODES: Final = "system:nodes"
USER: Final = "system:node:"
LEASES: Final = "kube-node-lease"

PODS: Final = served("v1", "pods")
CLAIMS: Final = served("v1", "persistentvolumeclaims")
VOLUMES: Final = served("v1", "persistentvolumes")
ATTACHMENTS: Final = served("storage.k8s.io/v1", "volumeattachments")
SLICES: Final = served("resource.k8s.io/v1", "resourceslices")

READS: Final = ("get", "list", "watch")
OWN_WRITES: Final = ("get", "create", "update", "patch", "delete")


def node_of(caller: Caller) -> str | None:
    """The name of the node that the caller is; "" if it is one and does not say which; None if it is none."""
    if not caller.name.startswith(USER) or NODES not in caller.groups:
        return None
    return caller.name[len(USER) :]


class NodeAuthorizer:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def allows(self, caller: Caller, asked: Asking) -> Decision:
        node = node_of(caller)
        if node is None:
            return NO
        if not node:
            return Decision(False, f'unknown node for user "{caller.name}"')
        decide = _DECIDERS.get((asked.group, asked.resource))
        if decide is not None:
            return decide(self, node, asked)
        return YES if any(matches(rule, asked) and not rule.names for rule in NODE_RULES) else NO

    # ── what is decided for each resource ───────────────────────────────────────────────────────────────────────────

    def _read(self, node: str, asked: Asking) -> Decision:
        """Secrets and config maps, one by one, in a namespace."""
        if asked.verb not in READS:
            return Decision(False, "can only read resources of this type")
        if asked.subresource:
            return Decision(False, "cannot read subresource")
        if not asked.namespace:
            return Decision(False, "can only read namespaced object of this type")
        return self._related(node, asked)

    def _get(self, node: str, asked: Asking) -> Decision:
        if asked.verb != "get":
            return Decision(False, "can only get individual resources of this type")
        if asked.subresource:
            return Decision(False, "cannot get subresource")
        return self._related(node, asked)

    def _claim(self, node: str, asked: Asking) -> Decision:
        if asked.subresource != "status":
            return self._get(node, asked)
        if asked.verb not in ("update", "patch"):
            return Decision(False, "can only get/update/patch this type")
        return self._related(node, asked)

    def _account(self, node: str, asked: Asking) -> Decision:
        if asked.verb == "get" and not asked.subresource:
            return self._read(node, asked)
        if asked.verb != "create" or not asked.name:
            return Decision(False, "can only create tokens for individual service accounts")
        if asked.subresource != "token":
            return Decision(False, "can only create token subresource of serviceaccount")
        return self._related(node, asked)

    def _lease(self, node: str, asked: Asking) -> Decision:
        if asked.verb not in OWN_WRITES:
            return Decision(False, "can only get, create, update, patch, or delete a node lease")
        if asked.namespace != LEASES:
            return Decision(False, f'can only access leases in the "{LEASES}" system namespace')
        # What is created has its name in its body, which restriction.py looks at.
        if asked.verb != "create" and asked.name != node:
            return Decision(False, "can only access node lease with the same name as the requesting node")
        return YES

    def _csi_node(self, node: str, asked: Asking) -> Decision:
        if asked.verb not in OWN_WRITES:
            return Decision(False, "can only get, create, update, patch, or delete a CSINode")
        if asked.subresource:
            return Decision(False, "cannot authorize CSINode subresources")
        if asked.verb != "create" and asked.name != node:
            return Decision(False, "can only access CSINode with the same name as the requesting node")
        return YES

    def _slice(self, node: str, asked: Asking) -> Decision:
        if asked.subresource:
            return Decision(False, "cannot authorize ResourceSlice subresources")
        match asked.verb:
            case "create":
                return YES
            case "get" | "update" | "patch" | "delete":
                return self._related(node, asked)
            case "watch" | "list" | "deletecollection" if _narrowed(asked, node):
                return YES
            case "watch" | "list" | "deletecollection":
                why = "can only list/watch/deletecollection resourceslices with nodeName field selector"
            case _:
                why = (
                    "only the following verbs are allowed for a ResourceSlice: "
                    "get, watch, list, create, update, patch, delete, deletecollection"
                )
        return Decision(False, why)

    def _node(self, node: str, asked: Asking) -> Decision:
        if asked.subresource == "status":
            return YES if asked.verb in ("update", "patch") else NO
        if asked.subresource or asked.verb not in (*READS, "create", "update", "patch"):
            return NO
        if asked.verb not in READS or asked.name == node:
            return YES
        other = f"'{asked.name}'" if asked.name else "all nodes"
        return Decision(False, f"node '{node}' cannot read {other}, only its own Node object")

    def _pod(self, node: str, asked: Asking) -> Decision:
        match asked.subresource, asked.verb:
            case "", "get":
                return self._get(node, asked)
            case "", "list" | "watch":
                if _narrowed(asked, node):
                    return YES
                if asked.name:
                    return self._related(node, asked)
                return Decision(False, "can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return YES
        return NO

    def _snapshot(self, node: str, asked: Asking) -> Decision:
        """situate's own record of what a node holds: its own, to read."""
        if asked.verb in READS and not asked.subresource and asked.name == node:
            return YES
        return Decision(False, "can only read the NodeSnapshot with the same name as the requesting node")

    # ── what belongs to a node ──────────────────────────────────────────────────────────────────────────────────────

    def _related(self, node: str, asked: Asking) -> Decision:
        if not asked.name:
            return Decision(False, "No Object name found")
        if self._has(node, Reference(asked.resource, asked.namespace, asked.name)):
            return YES
        return Decision(False, f"no relationship found between node '{node}' and this object")

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
        # Read anew each time: nodes ask seldom, and this way no write of a pod pays for it.
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


def _narrowed(asked: Asking, node: str) -> bool:
    return any(one.key == "spec.nodeName" and one.equals and one.value == node for one in requirements(asked.fields))


_DECIDERS: Final = {
    ("", "secrets"): NodeAuthorizer._read,
    ("", "configmaps"): NodeAuthorizer._read,
    ("", "persistentvolumeclaims"): NodeAuthorizer._claim,
    ("", "persistentvolumes"): NodeAuthorizer._get,
    ("", "serviceaccounts"): NodeAuthorizer._account,
    ("", "nodes"): NodeAuthorizer._node,
    ("", "pods"): NodeAuthorizer._pod,
    ("coordination.k8s.io", "leases"): NodeAuthorizer._lease,
    ("storage.k8s.io", "csinodes"): NodeAuthorizer._csi_node,
    ("storage.k8s.io", "volumeattachments"): NodeAuthorizer._get,
    ("resource.k8s.io", "resourceclaims"): NodeAuthorizer._get,
    ("resource.k8s.io", "resourceslices"): NodeAuthorizer._slice,
    ("situate.dev", "nodesnapshots"): NodeAuthorizer._snapshot,
}
