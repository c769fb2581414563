"""NodeDeclaredFeatures: refuse nodes that do not declare a feature that the pod requires.

Only two fields of a pod require a node feature in Kubernetes 1.36. The other features that a node may declare concern
changes to running pods, not placement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import FITS, Codes, Reason, Wake
from situate.core.model.node import Node
from situate.core.model.pod import PodSpec
from situate.core.state.classes import PodClass
from situate.core.state.columns import sealed
from situate.core.state.view import View

UNDECLARED: Final = 1
RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"


@dataclass(frozen=True, slots=True)
class NodeDeclaredFeatures:
    """Compares features inferred from the pod's spec with the node's `status.declaredFeatures`."""

    name: ClassVar[str] = "NodeDeclaredFeatures"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) didn't match Pod's required features", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED, Wake.NODE_DECLARED_FEATURE})

    def check(self, pod: PodClass, view: View) -> Codes | None:
        needed = needed_features(pod.spec)
        if not needed:
            return None
        codes = view.memo((self.name, needed), lambda whole: _undeclared(needed, whole))
        return codes[view.rows]


def needed_features(spec: PodSpec) -> tuple[str, ...]:
    """The features a node must declare to run such a pod."""
    needed = []
    for one in (*spec.containers, *spec.init_containers):
        if one.restart_policy_rules and any(rule.action == "RestartAllContainers" for rule in one.restart_policy_rules):
            needed.append(RESTART_ALL)
            break
    if spec.host_network and spec.host_users is False:
        needed.append(USER_NAMESPACES_ON_HOST_NETWORK)
    return tuple(needed)


def _undeclared(needed: tuple[str, ...], whole: View) -> Codes:
    """Checks node by node: so few pods need a feature that a column is not worth it."""

    def code(node: Node | None) -> int:
        return FITS if node is None or all(_declared(one, node) for one in needed) else UNDECLARED

    codes: Codes = sealed(np.fromiter((code(whole.node(row)) for row in range(whole.size)), np.uint8, whole.size))
    return codes


def _declared(feature: str, node: Node) -> bool:
    """The API server requires a sorted list, so Kubernetes uses a binary search."""
    return next((one for one in node.status.declared_features if one >= feature), None) == feature
