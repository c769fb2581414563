"""What a performer and its port read of the cluster: the engine's own objects."""

from __future__ import annotations

from typing import Protocol

from situate.core.changes import PodRef
from situate.core.model.group import PodGroup
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from situate.loop.extenders import EngineObjects

__all__ = ["ClusterView", "EngineView"]


class ClusterView(Protocol):
    @property
    def storage_version(self) -> int:
        """Moves with every change of a volume or claim."""

    def pod(self, ref: PodRef) -> Pod | None: ...

    def node(self, name: str) -> Node | None: ...

    def volume(self, name: str) -> PersistentVolume | None: ...

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None: ...

    def csi_node(self, name: str) -> CSINode | None: ...

    def group(self, namespace: str, name: str) -> PodGroup | None: ...

    def scheduler_of(self, ref: PodRef) -> tuple[str, str]:
        """The pod's scheduler, and the version in which a pending pod was last seen; "" where that is not known."""


class EngineView(EngineObjects):
    """The cluster as an engine knows it."""

    @property
    def storage_version(self) -> int:
        return self._engine.cluster.objects.storage.version

    def volume(self, name: str) -> PersistentVolume | None:
        return self._engine.cluster.objects.storage.volumes.get(name)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._engine.cluster.objects.storage.claims.get((namespace, name))

    def csi_node(self, name: str) -> CSINode | None:
        return self._engine.cluster.objects.storage.csi_nodes.get(name)

    def group(self, namespace: str, name: str) -> PodGroup | None:
        return self._engine.cluster.objects.pod_groups.get((namespace, name))

    def scheduler_of(self, ref: PodRef) -> tuple[str, str]:
        entry = self._engine.queue.get(ref.key)
        if entry is not None:
            pod = entry.pod
            return (pod.spec.scheduler_name, pod.metadata.resource_version) if entry.ref == ref else ("", "")
        counted = self._engine.cluster.counted(ref.key)
        return ("", "") if counted is None else (counted[0].pod.spec.scheduler_name, "")
