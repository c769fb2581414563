"""What a performer and its port read of the cluster: the engine's own objects."""

from __future__ import annotations

from situate.core.changes import PodRef
from situate.core.engine.engine import Engine
from situate.core.explain.provisioning import waiting_claims
from situate.core.model.devices import ResourceClaim
from situate.core.model.group import PodGroup
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim


class EngineView:
    """The cluster as an engine knows it: objects with the fields that scheduling reads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def pod(self, ref: PodRef) -> Pod | None:
        entry = self._engine.queue.get(ref.key)
        if entry is not None:
            return entry.pod if entry.ref == ref else None
        cluster = self._engine.cluster
        row = cluster.pods.rows.get(ref.key)
        if row is None or cluster.pods.uids[row] != ref.uid:
            return None
        return cluster.pods.as_object(row, cluster.node_of(ref.key))

    def node(self, name: str) -> Node | None:
        row = self._engine.cluster.nodes.rows.get(name)
        return None if row is None else self._engine.cluster.nodes.objects[row]

    @property
    def storage_version(self) -> int:
        """Moves with every change of a volume or claim."""
        return self._engine.cluster.objects.storage.version

    def volume(self, name: str) -> PersistentVolume | None:
        return self._engine.cluster.objects.storage.volumes.get(name)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._engine.cluster.objects.storage.claims.get((namespace, name))

    def waiting_claims(self, ref: PodRef, node: str) -> tuple[str, ...]:
        """The claims of a pod that wait for a volume on this node, and for whom."""
        pod = self.pod(ref)
        if pod is None or not pod.spec.volumes:
            return ()
        return waiting_claims(self._engine.cluster.class_of(pod), self._engine.cluster.objects.storage, node)

    @property
    def devices_version(self) -> int:
        """Moves with every change of a claim for devices."""
        return self._engine.cluster.objects.devices.changes

    def resource_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """As it was last seen, without the devices that are on their way to it."""
        return self._engine.state.assumed_claims.as_seen(namespace, name)

    def csi_node(self, name: str) -> CSINode | None:
        return self._engine.cluster.objects.storage.csi_nodes.get(name)

    def group(self, namespace: str, name: str) -> PodGroup | None:
        return self._engine.cluster.objects.pod_groups.get((namespace, name))

    def scheduler_of(self, ref: PodRef) -> tuple[str, str]:
        """The pod's scheduler, and the version in which a pending pod was last seen; "" where that is not known."""
        entry = self._engine.queue.get(ref.key)
        if entry is not None:
            pod = entry.pod
            return (pod.spec.scheduler_name, pod.metadata.resource_version) if entry.ref == ref else ("", "")
        counted = self._engine.cluster.counted(ref.key)
        return ("", "") if counted is None else (counted[0].pod.spec.scheduler_name, "")
