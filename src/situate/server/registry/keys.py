"""Where objects are kept in the store. The only place that spells or reads keys of objects."""

from __future__ import annotations

from functools import cache, lru_cache
from sys import intern
from typing import Final

from msgspec import Struct

from situate.server.resources import Resource

__all__ = ["OBJECTS", "ObjectKey", "key_of", "parse_key", "prefix_of"]

OBJECTS: Final = "/objects/"
"""What everything that is an object begins with. Other keys of the store are nobody's objects."""
_CORE: Final = "core"
_PARTS_NAMESPACED: Final = 5
"""Of what comes before the name."""
MAX_CACHED_FOLDERS: Final = 4_096
"""Of a resource, or of a namespace in it: so many need not be taken apart again."""


class ObjectKey(Struct, frozen=True, gc=False):
    """Whose key it is: the resource as `Resource.stored_as` names it, the namespace ("" if there is none), the name."""

    stored_as: str
    namespace: str
    name: str


def prefix_of(resource: Resource, namespace: str = "") -> str:
    """What the keys of a resource begin with; of one namespace, or of all."""
    whole = _prefix(resource.stored_as)
    return f"{whole}{namespace}/" if namespace else whole


@cache
def _prefix(stored_as: str) -> str:
    group, _, plural = stored_as.rpartition("/")
    return f"{OBJECTS}{group or _CORE}/{plural}/"


def key_of(resource: Resource, namespace: str, name: str) -> str:
    """Of a resource without namespaces, the namespace is not looked at."""
    prefix = _prefix(resource.stored_as)
    return f"{prefix}{namespace}/{name}" if namespace and resource.namespaced else f"{prefix}{name}"


def parse_key(key: str) -> ObjectKey:
    """The reverse of `key_of`."""
    folder, _, name = key.rpartition("/")
    stored_as, namespace = _folder(folder)
    return ObjectKey(stored_as, namespace, name)


@lru_cache(maxsize=MAX_CACHED_FOLDERS)
def _folder(folder: str) -> tuple[str, str]:
    parts = folder.split("/")
    group, plural = parts[2], parts[3]
    namespace = parts[4] if len(parts) == _PARTS_NAMESPACED else ""
    return f"{'' if group == _CORE else group}/{plural}", intern(namespace)
