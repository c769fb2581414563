"""Assumed volumes: given to pods whose bind is under way, so no other pod gets them, though no object says so yet.

In the cluster such a volume names its claim. That ends when the volume is seen to name one, or when the bind fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from situate.core.model.named import NamedObject
from situate.core.model.storage import ObjectReference, PersistentVolume
from situate.core.state.cluster import Cluster


class AssumedVolumes:
    """Which volumes are on their way to which claims."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._taken: dict[str, tuple[str, ObjectReference]] = {}
        """By the volume's name: the pod that it was taken for, and the claim."""
        self._of_pod: dict[str, tuple[str, ...]] = {}

    def take(self, key: str, bindings: Sequence[tuple[str, str]]) -> None:
        """A pod gets these volumes for these claims: (claim, volume)."""
        storage = self._cluster.objects.storage
        namespace = key.partition("/")[0]
        for claim_name, name in bindings:
            volume, claim = storage.volumes.get(name), storage.claims.get((namespace, claim_name))
            if volume is None or claim is None or volume.spec.claim_ref is not None:
                continue
            ref = ObjectReference(namespace=namespace, name=claim_name, uid=claim.metadata.uid)
            self._taken[name] = (key, ref)
            self._cluster.put_object(_naming(volume, ref))
        self._of_pod[key] = tuple(name for _, name in bindings)

    def give_back(self, key: str) -> Iterator[tuple[PersistentVolume, PersistentVolume]]:
        """The bind failed, or the pod is gone: its volumes as they were here, and as they were last seen."""
        for name in self._of_pod.pop(key, ()):
            if name not in self._taken or self._taken[name][0] != key:
                continue  # it was seen taken; since then another pod may have it
            del self._taken[name]
            taken = self._cluster.objects.storage.volumes.get(name)
            if taken is not None:
                free = _naming(taken, None)
                self._cluster.put_object(free)
                yield taken, free

    def seen(self, item: NamedObject) -> NamedObject:
        """The object to store: an assumed volume names its claim already."""
        if not isinstance(item, PersistentVolume) or item.metadata.name not in self._taken:
            return item
        if item.spec.claim_ref is None:
            return _naming(item, self._taken[item.metadata.name][1])
        del self._taken[item.metadata.name]
        return item

    def gone(self, item: NamedObject) -> None:
        if isinstance(item, PersistentVolume):
            self._taken.pop(item.metadata.name, None)


def _naming(volume: PersistentVolume, claim: ObjectReference | None) -> PersistentVolume:
    taken: PersistentVolume = replace(volume, spec=replace(volume.spec, claim_ref=claim))
    return taken
