"""metadata.managedFields of a write: who writes, and a cache for new objects. wire/patching has the rules.

Computing the managed fields of a new object costs more than the rest of its creation, and most new objects differ from
a recent one only in names and values, which are not part of the result. So the result is cached by what it depends on.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from situate.server.requests import Caller, Object, WriteOptions
from situate.server.resources import Resource
from situate.wire.patching import FieldWriter, updated

MAX_ENTRIES: Final = 256
"""When the cache is full, it is cleared."""
MAX_KEY_BYTES: Final = 16 << 10
"""The fields of larger objects are computed each time."""
MANAGER_LENGTH: Final = 128
_FREE: Final = frozenset(
    ("name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation", "selfLink", "managedFields")
)
"""Metadata fields that nobody owns."""
_NAMES_ONLY: Final = frozenset(("labels", "annotations", "generateName"))
"""Metadata fields of which only the keys matter."""
_encode: Final = msgspec.json.Encoder().encode


def writer_of(resource: Resource, subresource: str, caller: Caller, options: WriteOptions, now: str) -> FieldWriter:
    """The field manager defaults to the program in the User-Agent."""
    manager = options.field_manager or caller.agent.partition("/")[0][:MANAGER_LENGTH]
    merge = None if resource.custom is None else resource.custom.merge
    return FieldWriter(manager, resource.api_version, resource.kind, now, subresource, merge)


class ManagedFieldsCache:
    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], list[dict[str, Any]]] = {}

    def for_new(self, obj: Object, writer: FieldWriter) -> list[dict[str, Any]]:
        """The managedFields of a new object."""
        metadata = obj["metadata"]
        if "managedFields" in metadata:  # set by the client, which is rare
            return _entries(updated(None, obj, writer))
        key = _cache_key(obj, writer)
        if len(key[-1]) > MAX_KEY_BYTES:
            return _entries(updated(None, obj, writer))
        entries = self._entries.get(key)
        if entries is None:
            if len(self._entries) >= MAX_ENTRIES:
                self._entries.clear()
            entries = self._entries[key] = _entries(updated(None, obj, writer))
        return [{**entry, "time": writer.now} for entry in entries]


def _entries(obj: Object) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = obj["metadata"].get("managedFields", [])
    return entries


def _cache_key(obj: Object, writer: FieldWriter) -> tuple[Any, ...]:
    """Everything the result depends on, and more: the keys of labels and annotations, and all of the rest."""
    metadata = obj["metadata"]
    rest = {name: value for name, value in obj.items() if name != "metadata"}
    owned = {name: value for name, value in metadata.items() if name not in _FREE and name not in _NAMES_ONLY}
    names = [sorted(metadata[name]) if name in metadata else None for name in ("labels", "annotations")]
    digest = "" if writer.custom is None else writer.custom.digest
    return (writer.manager, writer.subresource, digest, "generateName" in metadata, _encode((owned, names, rest)))
