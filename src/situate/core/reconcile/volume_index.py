"""Volumes by the claim that they name, and those that name none by their class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from situate.core.model.claims import volume_class
from situate.core.model.managed_volumes import ManagedVolume

_Key: TypeAlias = tuple[str, str, str]
"""Whether by claim or by class; the claim's namespace, and the name of either."""


class VolumeIndex:
    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[str, ManagedVolume]] = {}

    def replace(self, old: ManagedVolume | None, new: ManagedVolume | None) -> None:
        """A volume was added, changed or removed."""
        if old is not None:
            key = _key_of(old)
            members = self._by_key[key]
            del members[old.metadata.name]
            if not members:
                del self._by_key[key]
        if new is not None:
            self._by_key.setdefault(_key_of(new), {})[new.metadata.name] = new

    def of_claim(self, namespace: str, name: str) -> list[ManagedVolume]:
        return list(self._sorted(("claim", namespace, name)))

    def free(self, named: str) -> list[ManagedVolume]:
        return list(self._sorted(("class", "", named)))

    def _sorted(self, key: _Key) -> Iterator[ManagedVolume]:
        return (volume for _, volume in sorted(self._by_key.get(key, {}).items()))


def _key_of(volume: ManagedVolume) -> _Key:
    ref = volume.spec.claim_ref
    return ("class", "", volume_class(volume)) if ref is None else ("claim", ref.namespace, ref.name)
