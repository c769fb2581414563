"""What the registry returns: stored objects, and lists of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Final

from msgspec import Struct

from situate.server.registry import codec, conversion
from situate.server.registry.keys import ObjectKey, parse_key
from situate.server.registry.selectable_fields import field_names, selector_values
from situate.server.requests import Object
from situate.server.resources import Resource

ITEMS_PER_CHUNK: Final = 200
"""Items in one chunk of a list."""
CHUNK_BYTES: Final = 128 << 10
"""Of one chunk of a list, if it has more than one item."""
CHUNK_S: Final = 0.05
"""A chunk has no further items after so long: some take long to make, as those of custom kinds with many defaults."""


class StoredObject(Struct, frozen=True, gc=False, eq=False):
    """An object at a revision, in its stored form, with the values that selectors match."""

    key: str
    namespace: str
    """"" if the resource is not namespaced."""
    name: str
    revision: int
    value: bytes
    uid: str
    labels: Mapping[str, str]
    values: tuple[str, ...]
    """Of the selectable fields, in the order of `field_names`."""

    @property
    def fields(self) -> Mapping[str, str]:
        """The values for field selectors by name, without metadata.name and metadata.namespace."""
        return dict(zip(field_names(parse_key(self.key).stored_as), self.values, strict=True))

    def object(self, resource: Resource) -> Object:
        """A new object in this version, with apiVersion, kind and resourceVersion."""
        if resource.custom is not None:
            return resource.custom.stored.decode(self.value, self.revision)
        found = codec.decode(self.value, resource.api_version, resource.kind, self.revision)
        convert = conversion.from_stored(resource)
        return convert(found) if convert else found

    def to_json(self, resource: Resource) -> bytes:
        """The object in this version, as JSON."""
        if resource.custom is not None:
            return resource.custom.stored.to_json(self.value, self.revision)
        if conversion.from_stored(resource):
            return conversion.encode(self.object(resource))
        return codec.to_json(self.value, resource.api_version, resource.kind, self.revision)

    def to_item(self, resource: Resource) -> bytes:
        """The object as an item of a list: JSON, of a built-in kind without apiVersion and kind."""
        if resource.custom is not None:
            return resource.custom.stored.to_json(self.value, self.revision)
        if conversion.from_stored(resource):
            obj = self.object(resource)
            return conversion.encode({name: obj[name] for name in obj if name not in ("apiVersion", "kind")})
        return codec.to_item(self.value, self.revision)


def item_chunks(resource: Resource, items: Sequence[StoredObject]) -> Iterator[bytes]:
    """The items of a list as JSON, separated by commas, in chunks.

    A caller that sends each chunk as it comes need not hold a long list in memory.
    """
    copied = _copied_by(resource)
    start = 0
    while start < len(items):
        part = items[start : start + ITEMS_PER_CHUNK]
        values = [one.value for one in part]
        if sum(map(len, values)) > CHUNK_BYTES:
            values = _first_bytes(values)
            part = part[: len(values)]
        made = copied(values, [one.revision for one in part])
        if made is not None:
            yield b"," + made if start else made
        else:
            for chunk in joined_chunks(one.to_item(resource) for one in part):
                yield b"," + chunk if start and not chunk.startswith(b",") else chunk
        start += len(part)


def _copied_by(resource: Resource) -> Callable[[Sequence[bytes], Sequence[int]], bytes | None]:
    """Makes items of stored values without decoding them; None if some have to be."""
    if resource.custom is not None:
        return resource.custom.stored.to_items
    return codec.to_items if conversion.from_stored(resource) is None else lambda _values, _revisions: None


def joined_chunks(items: Iterable[bytes], most: int = ITEMS_PER_CHUNK) -> Iterator[bytes]:
    """Items whose size and cost are known only when they are made, separated by commas, in chunks. An item is made
    when its chunk is asked for."""
    part: list[bytes] = []
    size, comma, began = 0, b"", monotonic()
    for one in items:
        part.append(one)
        size += len(one)
        if size > CHUNK_BYTES or len(part) == most or monotonic() - began > CHUNK_S:
            yield comma + b",".join(part)
            part, size, comma, began = [], 0, b",", monotonic()
    if part:
        yield comma + b",".join(part)


def _first_bytes(values: list[bytes]) -> list[bytes]:
    """The first values, up to CHUNK_BYTES; at least one."""
    size = 0
    for number, value in enumerate(values):
        size += len(value)
        if number and size > CHUNK_BYTES:
            return values[:number]
    return values


def read_stored(key: str, value: bytes, revision: int) -> StoredObject:
    """Decode a stored value as far as selectors need it."""
    return read_stored_at(parse_key(key), key, value, revision)


def read_stored_at(object_key: ObjectKey, key: str, value: bytes, revision: int) -> StoredObject:
    """`read_stored` for a caller that has parsed the key."""
    uid, labels, values = selector_values(object_key.stored_as, value)
    return StoredObject(key, object_key.namespace, object_key.name, revision, value, uid, labels, values)


class ListResult(Struct, frozen=True, gc=False, eq=False):
    """Objects at one revision, in key order."""

    revision: int
    items: Sequence[StoredObject]
    continue_to: str = ""
    """The continue token; "" on the last page."""
    remaining: int | None = None
    """How many objects follow, if that is known without filtering them."""


class UpdateResult(Struct, frozen=True, gc=False, eq=False):
    """The result of an update or a patch."""

    stored: StoredObject
    created: bool = False
    """It did not exist: an apply, or an update of a kind that allows it, has created it."""


class DeleteResult(Struct, frozen=True, gc=False, eq=False):
    """A deleted object: its last state if it is `gone`, else the terminating object."""

    stored: StoredObject
    gone: bool
