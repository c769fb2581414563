"""What the registry answers with: objects as they are kept, and lists of them. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from situate.server.registry import codec, conversion
from situate.server.registry.keys import Place, place_of
from situate.server.registry.selectable_fields import names_of, seen
from situate.server.requests import Object
from situate.server.resources import Resource

__all__ = ["Deleted", "Held", "Listing", "Patched", "hold", "hold_at", "item_parts"]

TOGETHER: Final = 200
"""Items in one piece of a list."""


class Held(Struct, frozen=True, gc=False, eq=False):
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
        return dict(zip(names_of(place_of(self.key).stored_as), self.values, strict=True))

    def object(self, resource: Resource) -> Object:
        """The object in that version, with apiVersion, kind and resourceVersion; the caller's own."""
        found = codec.decoded(self.value, resource.api_version, resource.kind, self.revision)
        convert = conversion.from_stored(resource)
        return convert(found) if convert else found

    def shown(self, resource: Resource) -> bytes:
        """The object in that version as JSON."""
        if conversion.from_stored(resource):
            return conversion.ENCODE(self.object(resource))
        return codec.shown(self.value, resource.api_version, resource.kind, self.revision)

    def item(self, resource: Resource) -> bytes:
        """The object as an item of a list: JSON without apiVersion and kind."""
        if conversion.from_stored(resource):
            obj = self.object(resource)
            return conversion.ENCODE({name: obj[name] for name in obj if name not in ("apiVersion", "kind")})
        return codec.item(self.value, self.revision)


def item_parts(resource: Resource, items: Sequence[Held]) -> Iterator[bytes]:
    """The items of a list, in pieces of many: JSON objects with commas between.

    Whoever sends the pieces as they come need not hold all of a long list in memory, which costs more than making it.
    """
    converted = conversion.from_stored(resource) is not None
    for start in range(0, len(items), TOGETHER):
        part = items[start : start + TOGETHER]
        if converted:
            made = b",".join([one.item(resource) for one in part])
        else:
            made = codec.items([one.value for one in part], [one.revision for one in part])
        yield b"," + made if start else made


def hold(key: str, value: bytes, revision: int) -> Held:
    """What is stored there, as far as it need be read."""
    return hold_at(place_of(key), key, value, revision)


def hold_at(place: Place, key: str, value: bytes, revision: int) -> Held:
    """The same for whoever knows the key's place already."""
    uid, labels, values = seen(place.stored_as, value)
    return Held(key, place.namespace, place.name, revision, value, uid, labels, values)


class Listing(Struct, frozen=True, gc=False, eq=False):
    """Objects in the order of their keys, all as they were at one revision."""

    revision: int
    items: Sequence[Held]
    continue_to: str = ""
    """The token that asks for the rest; "" if there is none."""
    remaining: int | None = None
    """How many are to come, if that is known without looking at each."""


class Patched(Struct, frozen=True, gc=False, eq=False):
    """What came of a change."""

    held: Held
    created: bool = False
    """It was not there: an apply, or a replacement of a kind that allows it."""


class Deleted(Struct, frozen=True, gc=False, eq=False):
    """What was asked to go: as it was last, if it is `gone`; else as it stands, waiting."""

    held: Held
    gone: bool
