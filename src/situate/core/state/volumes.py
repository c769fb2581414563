"""Bound pods that have volumes: by node, and by claim. Most pods have none and are not here."""

from __future__ import annotations

from situate.core.state.classes import PodClass


class VolumeTable:
    """Node row -> pod rows with volumes there; (namespace, claim name) -> pod rows that use the claim."""

    __slots__ = ("by_claim", "by_node")

    def __init__(self) -> None:
        self.by_node: dict[int, dict[int, PodClass]] = {}
        self.by_claim: dict[tuple[str, str], dict[int, None]] = {}

    def add(self, pod_row: int, node_row: int, kind: PodClass) -> None:
        self.by_node.setdefault(node_row, {})[pod_row] = kind
        for claim in claims_of(kind):
            self.by_claim.setdefault((kind.namespace, claim), {})[pod_row] = None

    def remove(self, pod_row: int, node_row: int, kind: PodClass) -> None:
        here = self.by_node[node_row]
        del here[pod_row]
        if not here:
            del self.by_node[node_row]
        for claim in claims_of(kind):
            users = self.by_claim.get((kind.namespace, claim))
            if users is not None:
                users.pop(pod_row, None)
                if not users:
                    del self.by_claim[(kind.namespace, claim)]


def claims_of(kind: PodClass) -> list[str]:
    """The names of the claims a pod uses, in the order of its volumes; an ephemeral volume's is named after the pod."""
    names = []
    for volume in kind.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{kind.pod.metadata.name}-{volume.name}")
    return names
