"""The stored form of custom objects: that of all objects, with a mark at the end.

The mark names the version in which the object is stored, and the schema by which it was pruned and defaulted. If both
are current, a read is a copy of bytes, as for built-in kinds. If the schema has changed since, or the request asks for
a version with another schema, the object is decoded, converted, pruned and defaulted.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from situate.server.apiextensions.decoding import CustomDecoder
from situate.server.objects import Object
from situate.server.registry import codec
from situate.wire.schema import DecodeError
from situate.wire.structural.defaulting import fill_defaults
from situate.wire.structural.schema import Structural

MARK: Final = "~"
"""The field with the mark. No object can have it: it is removed before objects are shown, and set when they are
stored."""
_encode: Final = msgspec.json.Encoder().encode


class VersionSchema(msgspec.Struct, frozen=True, eq=False):
    """One version's schema."""

    name: str
    digest: str
    schema: Structural
    decoder: CustomDecoder


class CustomStoredForm:
    """Objects of one kind as one of its versions shows them."""

    __slots__ = (
        "_api_version",
        "_end",
        "_group",
        "_is_current",
        "_kind",
        "_mark",
        "_shown",
        "_start",
        "_storage",
        "_versions",
    )

    def __init__(self, group: str, kind: str, shown: str, storage: str, versions: Mapping[str, VersionSchema]) -> None:
        """`shown` and `storage` name versions."""
        self._group = group
        self._kind = kind
        self._api_version = f"{group}/{shown}"
        self._shown = versions[shown]
        self._storage = versions[storage]
        self._versions = versions
        self._mark = f"{storage} {self._storage.digest}"
        self._end = b',"%b":"%b"}' % (MARK.encode(), self._mark.encode())
        self._start = f'{{"kind":"{kind}","apiVersion":"{self._api_version}","metadata":{{"resourceVersion":"'.encode()
        self._is_current = self._storage.digest == self._shown.digest
        """Whether this version shows objects as they are stored."""

    def encode(self, obj: Object) -> bytes:
        if self._storage is not self._shown:
            self._storage.decoder.coerce(obj := msgspec.json.decode(_encode(obj)))
        obj = {name: value for name, value in obj.items() if name != MARK}
        return codec.encode({**obj, MARK: self._mark})

    def decode(self, value: bytes, revision: int) -> Object:
        obj = codec.decode(value, self._api_version, self._kind, revision)
        mark = obj.pop(MARK, "")
        if mark == self._mark and self._is_current:
            return obj
        version, _, digest = mark.partition(" ")
        stored = self._versions.get(version)
        for one in (stored, self._shown):
            if one is not None and digest != one.digest:
                with suppress(DecodeError):  # stored before the schema had such a field: shown as it is
                    one.decoder.coerce(obj)
        fill_defaults(obj, self._shown.schema)
        return obj

    def to_json(self, value: bytes, revision: int) -> bytes:
        if revision and self._is_current and value.endswith(self._end):
            return b'%b%d",%b}' % (self._start, revision, value[codec.METADATA_BEGINS : -len(self._end)])
        return _encode(self.decode(value, revision))

    def to_item(self, value: bytes, revision: int) -> bytes:
        """Items of custom kinds have their apiVersion and kind."""
        return self.to_json(value, revision)
