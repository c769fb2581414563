"""What if: apply a suggestion to the cluster, run the engine's filters, and restore the cluster.

A view's overlay does not suffice: during preemption Kubernetes counts some removed pods differently than if they were
really gone, and there is no overlay for a changed node. So the change is made on the Cluster itself and undone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from situate.core.explain.detail import NAMED
from situate.core.explain.suggestions import Suggestion
from situate.core.model.devices import ResourceSlice
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.place.filtering import run_filters
from situate.core.place.profile import Profile
from situate.core.plugins.support.claim_changes import ClaimChange, change_claim, released_devices
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class _Before:
    """What to restore: removed pods; nodes as they were, None for new ones; changed claims; new slices of devices."""

    pods: list[Pod]
    nodes: dict[str, Node | None]
    claims: list[ClaimChange]
    slices: list[ResourceSlice]


class WhatIf:
    """Works on one cluster, which nothing else may use meanwhile."""

    __slots__ = ("_cluster", "_profile")

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self._cluster = cluster
        self._profile = profile

    def checked(self, suggestion: Suggestion) -> Suggestion | None:
        """The suggestion, with the nodes that the pod would fit; None if it would fit none."""
        before = _Before([], {}, [], [])
        try:
            self._apply(suggestion, before)
            cluster = self._cluster
            filtered = run_filters(self._profile, cluster.class_of(suggestion.pod), View(cluster))
            rows = np.flatnonzero(filtered.feasible)
            names = [cluster.nodes.names[row] for row in rows[:NAMED].tolist()]
        finally:
            self._put_back(before)
        return replace(suggestion, fits=tuple(names), fit_count=len(rows)) if len(rows) else None

    def _apply(self, suggestion: Suggestion, before: _Before) -> None:
        """Fills `before` step by step, so that a partial change can be undone."""
        cluster = self._cluster
        for key in suggestion.evicted:
            before.pods.append(cluster.pods.as_object(cluster.pods.rows[key], cluster.node_of(key)))
            cluster.remove_pod(key)
            self._change(released_devices(cluster, before.pods[-1]), before)
        self._change(suggestion.claims, before)
        for item in suggestion.slices:
            cluster.put_object(item)
            before.slices.append(item)
        for name, node in suggestion.nodes.items():
            at = cluster.nodes.rows.get(name)
            before.nodes[name] = None if at is None else cluster.nodes.objects[at]
            cluster.add_node(node)

    def _change(self, changes: Iterable[ClaimChange], before: _Before) -> None:
        for change in changes:
            change_claim(self._cluster, change)
            before.claims.append(change)

    def _put_back(self, before: _Before) -> None:
        for name, node in before.nodes.items():
            if node is None:
                self._cluster.remove_node(name)
            else:
                self._cluster.add_node(node)
        for item in before.slices:
            self._cluster.forget_object(item)
        for claim, changed in reversed(before.claims):
            change_claim(self._cluster, (changed, claim))
        for pod in before.pods:
            self._cluster.add_pod(pod)
