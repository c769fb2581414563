"""Objects as they were written a moment ago: whoever changes one next, as a bind does, need not decode it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object

__all__ = ["MAX_OBJECTS", "RecentCreates"]

MAX_OBJECTS: Final = 1_024
"""How many are remembered. One that is forgotten is decoded."""


class RecentCreates:
    """By key: the stored form, and the object that was encoded to it."""

    __slots__ = ("_written",)

    def __init__(self) -> None:
        self._written: OrderedDict[str, tuple[bytes, Object]] = OrderedDict()

    def put(self, key: str, value: bytes, obj: Object) -> None:
        """To be called by whoever wrote it, and will not change it any more."""
        self._written[key] = (value, obj)
        if len(self._written) > MAX_OBJECTS:
            self._written.popitem(last=False)

    def take(self, stored: StoredObject) -> Object | None:
        """The object if this is how it was written, once; to look at, not to change."""
        written = self._written.pop(stored.key, None)
        if written is None or written[0] != stored.value:
            return None
        obj = written[1]
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(stored.revision)}}
