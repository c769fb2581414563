"""A private cluster for trials, with savepoints and rollback.

The engine's verdict cache chooses nodes, over all nodes, whatever the profile samples. Every change is recorded, so
that a trial can be rolled back to a savepoint. An evicted pod is returned as its controller would recreate it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from situate.core.devices.template_claims import NO_TEMPLATES, Templates, lacks_claims, with_template_claims
from situate.core.engine.decision import Decision, decide
from situate.core.engine.framework import Framework
from situate.core.model.annotations import GPU_DEVICES
from situate.core.model.base import EMPTY
from situate.core.model.devices import ResourceClaim, ResourceSlice
from situate.core.model.meta import key_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodStatus
from situate.core.model.tolerations import Taint
from situate.core.place.bind_annotations import bind_annotations, with_annotations
from situate.core.place.verdict_cache import VerdictCache
from situate.core.plan.volume_claims import changed_volumes
from situate.core.plugins.support.claim_changes import (
    ClaimChange,
    change_claim,
    claim_specs,
    given_back,
    released_devices,
    taken_devices,
)
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import Mask
from situate.core.state.view import View

CACHED_CLASSES: Final = 512
"""How many verdict caches to keep."""

CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

Undo = Callable[[], object]


def recreated(pod: Pod) -> Pod:
    """The pod as its controller would recreate it: unbound, without gates, without status.

    Its claims for devices stand for those that the new pod would get.
    """
    notes = {key: value for key, value in pod.metadata.annotations.items() if key != GPU_DEVICES}
    metadata = replace(pod.metadata, creation_timestamp=None, deletion_timestamp=None, annotations=notes)
    status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
    return Pod(metadata=metadata, spec=replace(pod.spec, node_name="", scheduling_gates=()), status=status)


class Sandbox:
    """A cluster, its bound pods as objects, the frameworks that schedule them, and the templates of claims."""

    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Framework],
        pods: Iterable[Pod],
        templates: Templates = NO_TEMPLATES,
    ) -> None:
        self.cluster = cluster
        self.templates = templates
        self._profiles = profiles
        self._caches: dict[PodClass, VerdictCache] = {}
        self._undo: list[Undo] = []
        self.pods: dict[str, Pod] = {key: pod for pod in pods if (key := key_of(pod.metadata)) in cluster.pods.rows}
        """The bound pods, by namespace/name."""

    # -- asking --------------------------------------------------------------------------------------------------

    def framework(self, pod: Pod) -> Framework:
        """The framework for a pod; the first one if no profile has its scheduler's name."""
        return self._profiles.get(pod.spec.scheduler_name) or next(iter(self._profiles.values()))

    def kind_of(self, pod: Pod) -> PodClass:
        """The class that is judged for an unbound pod: pods whose claims ask for the same devices share one."""
        profile = self.framework(pod).profile
        if not profile.reads_selected_labels:
            return self.cluster.class_of(pod)
        served = self.cluster.objects.devices.extended.classes
        if served and any(name in served for one in pod.spec.containers for name in one.resources.requests):
            # Devices may serve it by a claim of its own. It has none yet, so its name says nothing.
            return self.cluster.class_of(replace(pod, metadata=replace(pod.metadata, name="", uid="")))
        kind = self.cluster.class_of(pod)
        return self.cluster.claim_stand_ins.of(kind) if kind.spec.resource_claims else kind

    def verdicts(self, pod: Pod) -> VerdictCache:
        """The current verdicts of all filters and scorers for an unbound pod."""
        kind = self.kind_of(pod)
        found = self._caches.pop(kind, None)
        if found is None:
            found = VerdictCache(self.cluster, self.framework(pod).profile, kind)
            if len(self._caches) >= CACHED_CLASSES:
                del self._caches[next(iter(self._caches))]
        else:
            found.refresh()
        self._caches[kind] = found
        return found

    def choose(self, pod: Pod, excluded: Collection[int] = ()) -> int:
        """The row that the scheduler would choose now; NOWHERE if none."""
        return self.verdicts(pod).choose(excluded)

    def feasible(self, pod: Pod) -> Mask:
        """The rows that a pod fits now."""
        return self.verdicts(pod).feasible

    def decide(self, pod: Pod) -> Decision:
        """The full decision, with kube-scheduler's message and the preemption."""
        return decide(self.framework(pod), self.cluster.class_of(pod), View(self.cluster))

    def name(self, row: int) -> str:
        return self.cluster.nodes.names[row]

    def row(self, name: str) -> int:
        return self.cluster.nodes.rows[name]

    def node(self, name: str) -> Node:
        found = self.cluster.nodes.objects[self.row(name)]
        if found is None:
            raise LookupError(f"row of node {name} is empty")
        return found

    def nodes(self) -> list[Node]:
        """All nodes, in node order."""
        return [node for node in self.cluster.nodes.objects if node is not None]

    def pods_on(self, name: str) -> list[str]:
        """The pods on a node, by namespace/name, in order of arrival."""
        pods = self.cluster.pods
        return [pods.keys[row] for row in self.cluster.nodes.pods[self.row(name)]]

    def with_claims(self, pod: Pod, like: Pod | None = None) -> Pod:
        """A new pod with the claims that its templates ask for; or, if a template is unknown, the claims of `like`."""
        if not lacks_claims(pod):
            return pod
        specs = EMPTY if like is None else claim_specs(self.cluster, like)
        made, claims = with_template_claims(pod, self.templates, self.cluster.objects.devices.claims, specs)
        for claim in claims:
            self._change((None, claim))
        return made

    # -- doing and undoing ---------------------------------------------------------------------------------------

    def savepoint(self) -> int:
        return len(self._undo)

    def rollback(self, mark: int) -> None:
        """Undo everything since the savepoint, last first."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def evict(self, key: str) -> Pod:
        """Evict a pod, which gives its devices back. Returns it as its controller would recreate it."""
        pod = self.pods.pop(key)
        self.cluster.remove_pod(key)
        self._undo.append(lambda: self._bind(pod))
        for change in released_devices(self.cluster, pod):
            self._change(change)
        return recreated(pod)

    def take_devices(self, pod: Pod, row: int) -> bool:
        """Give a pod the devices of a node; whether the node has them."""
        filters = self.framework(pod).profile.filters
        changes = taken_devices(self.cluster, filters, self.cluster.class_of(pod), pod, row)
        for change in changes or ():
            self._change(change)
        return changes is not None

    def release(self, claim: ResourceClaim) -> None:
        """Give the devices of a claim back."""
        self._change(given_back(claim))

    def put_slices(self, slices: Iterable[ResourceSlice]) -> None:
        """Add slices of devices."""
        for item in slices:
            self.cluster.put_object(item)
            self._undo.append(lambda item=item: self.cluster.forget_object(item))  # type: ignore[misc]

    def _change(self, change: ClaimChange) -> None:
        change_claim(self.cluster, change)
        self._undo.append(lambda: change_claim(self.cluster, (change[1], change[0])))

    def bind(self, pod: Pod, row: int) -> None:
        """Bind an unbound pod."""
        for item in changed_volumes(self.cluster, pod, row):
            before = self.cluster.find_object(item)
            self.cluster.put_object(item)
            if before is not None:
                self._undo.append(lambda before=before: self.cluster.put_object(before))  # type: ignore[misc]
        profile = self.framework(pod).profile
        self.take_devices(pod, row)
        if profile.assigners:
            pod = with_annotations(pod, bind_annotations(profile, self.cluster.class_of(pod), View(self.cluster), row))
        self._bind(replace(pod, spec=replace(pod.spec, node_name=self.name(row))))
        key = key_of(pod.metadata)
        self._undo.append(lambda: self._unbind(key))

    def set_node(self, node: Node) -> None:
        """Add or replace a node."""
        name = node.metadata.name
        before = self.node(name) if name in self.cluster.nodes.rows else None
        self.cluster.add_node(node)
        self._undo.append(lambda: self.cluster.remove_node(name) if before is None else self.cluster.add_node(before))

    def cordon(self, name: str) -> None:
        """Cordon a node, with the taint that the node controller adds."""
        node = self.node(name)
        if not node.spec.unschedulable:
            taints = (*(taint for taint in node.spec.taints if taint != CORDON), CORDON)
            self.set_node(replace(node, spec=replace(node.spec, unschedulable=True, taints=taints)))

    def uncordon(self, name: str) -> None:
        node = self.node(name)
        if node.spec.unschedulable:
            taints = tuple(taint for taint in node.spec.taints if taint != CORDON)
            self.set_node(replace(node, spec=replace(node.spec, unschedulable=False, taints=taints)))

    def remove(self, name: str) -> None:
        """Remove a node and its pods."""
        for key in self.pods_on(name):
            self.evict(key)
        node = self.node(name)
        self.cluster.remove_node(name)
        self._undo.append(lambda: self.cluster.add_node(node))

    def _bind(self, pod: Pod) -> None:
        self.cluster.add_pod(pod)
        self.pods[key_of(pod.metadata)] = pod

    def _unbind(self, key: str) -> None:
        self.cluster.remove_pod(key)
        del self.pods[key]
