"""The store keys of objects. No other module builds or parses them."""

from __future__ import annotations

from functools import cache, lru_cache
from sys import intern
from typing import Final

from msgspec import Struct

from situate.server.resources import Resource

OBJECTS: Final = "/objects/"
"""The prefix of all objects. Other keys of the store are not objects."""
_CORE: Final = "core"
_PARTS_NAMESPACED: Final = 5
"""Of the key before the name."""
MAX_CACHED_FOLDERS: Final = 4_096
"""Parsed prefixes, of a resource or of a namespace in it."""


class ObjectKey(Struct, frozen=True, gc=False):
    """A parsed key: `Resource.stored_as`, the namespace ("" if there is none) and the name."""

    stored_as: str
    namespace: str
    name: str


def prefix_of(resource: Resource, namespace: str = "") -> str:
    """The key prefix of a resource, in one namespace or in all."""
    whole = _prefix(resource.stored_as)
    return f"{whole}{namespace}/" if namespace else whole


@cache
def _prefix(stored_as: str) -> str:
    group, _, plural = stored_as.rpartition("/")
    return f"{OBJECTS}{group or _CORE}/{plural}/"


def key_of(resource: Resource, namespace: str, name: str) -> str:
    """Ignores the namespace if the resource has none."""
    prefix = _prefix(resource.stored_as)
    return f"{prefix}{namespace}/{name}" if namespace and resource.namespaced else f"{prefix}{name}"


def parse_key(key: str) -> ObjectKey:
    """The inverse of `key_of`."""
    folder, _, name = key.rpartition("/")
    stored_as, namespace = _folder(folder)
    return ObjectKey(stored_as, namespace, name)


@lru_cache(maxsize=MAX_CACHED_FOLDERS)
def _folder(folder: str) -> tuple[str, str]:
    parts = folder.split("/")
    group, plural = parts[2], parts[3]
    namespace = parts[4] if len(parts) == _PARTS_NAMESPACED else ""
    return f"{'' if group == _CORE else group}/{plural}", intern(namespace)
