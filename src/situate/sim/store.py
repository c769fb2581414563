"""The objects of a world, as an API server keeps them: every write has a version and is sent to watchers.

Of scheduling it knows only how Kubernetes' server binds a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec.structs import replace

from situate.core.changes import Millis, PodRef
from situate.core.model.meta import key_of
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodStatus
from situate.core.state.pods import timestamp_text

Item: TypeAlias = Pod | Node | NamedObject

ALREADY_BOUND: Final = "pod {pod} is already assigned to node {node}"
BEING_DELETED: Final = "pod {pod} is being deleted, cannot be assigned to a host"
GATED: Final = "pod {pod} has non-empty .spec.schedulingGates"
NOT_FOUND: Final = 'pods "{pod}" not found'


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One write: the new object, or the last one if it was deleted."""

    kind: str
    key: str
    version: int
    item: Item
    gone: bool = False


def ref_of(pod: Pod) -> PodRef:
    return PodRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


@dataclass
class ObjectStore:
    """`heard_by` is called with every write."""

    heard_by: list[Callable[[StoreEvent], None]] = field(default_factory=list)
    version: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    others: dict[tuple[str, str], NamedObject] = field(default_factory=dict)

    # -- writing -------------------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        self.nodes[node.metadata.name] = node
        self._tell("Node", node.metadata.name, node)

    def drop_node(self, name: str) -> None:
        node = self.nodes.pop(name, None)
        if node is not None:
            self._tell("Node", name, node, gone=True)

    def put_pod(self, pod: Pod) -> None:
        key = key_of(pod.metadata)
        if self.pods.get(key) == pod:
            return  # the server skips writes without a change
        self.pods[key] = pod
        self._tell("Pod", key, pod)

    def drop_pod(self, ref: PodRef) -> None:
        pod = self.find(ref)
        if pod is not None:
            del self.pods[ref.key]
            self._tell("Pod", ref.key, pod, gone=True)

    def put_other(self, item: NamedObject) -> None:
        self.others[type(item).__name__, key_of(item.metadata)] = item
        self._tell(type(item).__name__, key_of(item.metadata), item)

    def drop_other(self, item: NamedObject) -> None:
        if self.others.pop((type(item).__name__, key_of(item.metadata)), None) is not None:
            self._tell(type(item).__name__, key_of(item.metadata), item, gone=True)

    def _tell(self, kind: str, key: str, item: Item, *, gone: bool = False) -> None:
        self.version += 1
        written = StoreEvent(kind, key, self.version, item, gone)
        for hear in self.heard_by:
            hear(written)

    # -- reading -------------------------------------------------------------------------------------------------

    def find(self, ref: PodRef) -> Pod | None:
        """The pod with this uid."""
        pod = self.pods.get(ref.key)
        return pod if pod is not None and pod.metadata.uid == ref.uid else None

    # -- what Kubernetes' server does with pods ------------------------------------------------------------------

    def bind(self, ref: PodRef, node: str, annotations: Sequence[tuple[str, str]] = ()) -> str:
        """Bind a pod; return the problem, or "". As in Kubernetes, neither room nor existence of the node is
        checked."""
        pod = self.find(ref)
        if pod is None:
            return NOT_FOUND.format(pod=ref.name)
        if pod.spec.node_name == node:
            return ""  # a repeated request whose answer was lost
        if pod.spec.node_name:
            return ALREADY_BOUND.format(pod=ref.name, node=pod.spec.node_name)
        if pod.metadata.deletion_timestamp is not None:
            return BEING_DELETED.format(pod=ref.name)
        if pod.spec.scheduling_gates:
            return GATED.format(pod=ref.name)
        spec = replace(pod.spec, node_name=node)
        if annotations:
            metadata = replace(pod.metadata, annotations={**pod.metadata.annotations, **dict(annotations)})
            pod = replace(pod, metadata=metadata)
        self.put_pod(replace(pod, spec=spec, status=replace(pod.status, nominated_node_name="")))
        return ""

    def mark_leaving(self, ref: PodRef, now: Millis, status: PodStatus | None = None) -> None:
        """Mark the pod as being deleted; it stays until its kubelet lets it go."""
        pod = self.find(ref)
        if pod is not None and pod.metadata.deletion_timestamp is None:
            metadata = replace(pod.metadata, deletion_timestamp=timestamp_text(now))
            self.put_pod(replace(pod, metadata=metadata, status=pod.status if status is None else status))
