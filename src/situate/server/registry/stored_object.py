"""What the registry answers with: objects as they are kept, and lists of them. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from situate.server.registry import codec, conversion
from situate.server.registry.keys import ObjectKey, parse_key
from situate.server.registry.selectable_fields import field_names, selector_values
from situate.server.requests import Object
from situate.server.resources import Resource

__all__ = ["DeleteResult", "StoredObject", "ListResult", "UpdateResult", "read_stored", "read_stored_at", "item_chunks"]

ITEMS_PER_CHUNK: Final = 200
"""Items in one piece of a list."""


class StoredObject(Struct, frozen=True, gc=False, eq=False):
    """An object at a revision, in its stored form, with what selectors ask about."""

    key: str
    namespace: str
    """"" if its resource has no namespaces."""
    name: str
    revision: int
    value: bytes
    uid: str
    labels: Mapping[str, str]
    values: tuple[str, ...]
    """Of the fields that selectors can ask about, in the order of `selectable.names_of`."""

    @property
    def fields(self) -> Mapping[str, str]:
        """Values for field selectors, by name, but for metadata.name and metadata.namespace."""
        return dict(zip(field_names(parse_key(self.key).stored_as), self.values, strict=True))

    def object(self, resource: Resource) -> Object:
        """The object in that version, with apiVersion, kind and resourceVersion; the caller's own."""
        found = codec.decode(self.value, resource.api_version, resource.kind, self.revision)
        convert = conversion.from_stored(resource)
        return convert(found) if convert else found

    def to_json(self, resource: Resource) -> bytes:
        """The object in that version as JSON."""
        if conversion.from_stored(resource):
            return conversion.encode(self.object(resource))
        return codec.to_json(self.value, resource.api_version, resource.kind, self.revision)

    def to_item(self, resource: Resource) -> bytes:
        """The object as an item of a list: JSON without apiVersion and kind."""
        if conversion.from_stored(resource):
            obj = self.object(resource)
            return conversion.encode({name: obj[name] for name in obj if name not in ("apiVersion", "kind")})
        return codec.to_item(self.value, self.revision)


def item_chunks(resource: Resource, items: Sequence[StoredObject]) -> Iterator[bytes]:
    """The items of a list, in pieces of many: JSON objects with commas between.

    Whoever sends the pieces as they come need not hold all of a long list in memory, which costs more than making it.
    """
    converted = conversion.from_stored(resource) is not None
    for start in range(0, len(items), ITEMS_PER_CHUNK):
        part = items[start : start + ITEMS_PER_CHUNK]
        if converted:
            made = b",".join([one.to_item(resource) for one in part])
        else:
            made = codec.to_items([one.value for one in part], [one.revision for one in part])
        yield b"," + made if start else made


def read_stored(key: str, value: bytes, revision: int) -> StoredObject:
    """What is stored there, as far as it need be read."""
    return read_stored_at(parse_key(key), key, value, revision)


def read_stored_at(object_key: ObjectKey, key: str, value: bytes, revision: int) -> StoredObject:
    """The same for whoever knows the key's place already."""
    uid, labels, values = selector_values(object_key.stored_as, value)
    return StoredObject(key, object_key.namespace, object_key.name, revision, value, uid, labels, values)


class ListResult(Struct, frozen=True, gc=False, eq=False):
    """Objects in the order of their keys, all as they were at one revision."""

    revision: int
    items: Sequence[StoredObject]
    continue_to: str = ""
    """The token that asks for the rest; "" if there is none."""
    remaining: int | None = None
    """How many are to come, if that is known without looking at each."""


class UpdateResult(Struct, frozen=True, gc=False, eq=False):
    """What came of a change."""

    stored: StoredObject
    created: bool = False
    """It was not there: an apply, or a replacement of a kind that allows it."""


class DeleteResult(Struct, frozen=True, gc=False, eq=False):
    """What was asked to go: as it was last, if it is `gone`; else as it stands, waiting."""

    stored: StoredObject
    gone: bool
