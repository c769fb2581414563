"""metadata.managedFields of what is written. The rules are wire/patching's; here is who writes, and a memory.

To find out what a new object's fields are costs more than all the rest of creating it, and most new objects are like
one that was created a moment ago: they differ in names and values, which own nothing. So the answer is kept by all
that it depends on.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from situate.server.requests import Caller, Object, WriteOptions
from situate.server.resources import Resource
from situate.wire.patching import FieldWriter, updated

__all__ = ["ManagedFieldsCache", "writer_of"]

MAX_ENTRIES: Final = 256
"""Answers kept; beyond, begun anew."""
MANAGER_LENGTH: Final = 128
_FREE: Final = frozenset(
    ("name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation", "selfLink", "managedFields")
)
"""Metadata that nobody owns."""
_NAMES_ONLY: Final = frozenset(("labels", "annotations", "generateName"))
"""Metadata of which only the names matter."""
_encode: Final = msgspec.json.Encoder().encode


def writer_of(resource: Resource, subresource: str, caller: Caller, options: WriteOptions, now: str) -> FieldWriter:
    """A manager that did not give its name is known by its program's."""
    manager = options.field_manager or caller.agent.partition("/")[0][:MANAGER_LENGTH]
    return FieldWriter(manager, resource.api_version, resource.kind, now, subresource)


class ManagedFieldsCache:
    """What is remembered of objects that were created."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], list[dict[str, Any]]] = {}

    def for_new(self, obj: Object, writer: FieldWriter) -> list[dict[str, Any]]:
        """managedFields of an object that was not there before."""
        metadata = obj["metadata"]
        if "managedFields" in metadata:  # the client's own, which is rare
            return _entries(updated(None, obj, writer))
        likeness = _likeness(obj, writer)
        entries = self._entries.get(likeness)
        if entries is None:
            if len(self._entries) >= MAX_ENTRIES:
                self._entries.clear()
            entries = self._entries[likeness] = _entries(updated(None, obj, writer))
        return [{**entry, "time": writer.now} for entry in entries]


def _entries(obj: Object) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = obj["metadata"].get("managedFields", [])
    return entries


def _likeness(obj: Object, writer: FieldWriter) -> tuple[Any, ...]:
    """All that the answer depends on, and some more: of labels and annotations the names, of the rest everything."""
    metadata = obj["metadata"]
    rest = {name: value for name, value in obj.items() if name != "metadata"}
    tied = {name: value for name, value in metadata.items() if name not in _FREE and name not in _NAMES_ONLY}
    names = [sorted(metadata[name]) if name in metadata else None for name in ("labels", "annotations")]
    return (writer.manager, writer.subresource, "generateName" in metadata, _encode((tied, names, rest)))
