"""The stored form of custom objects: that of all objects, with a mark at the end.

The mark names the version in which the object is stored, and the schema by which it was pruned and defaulted. If both
are current, a read is a copy of bytes, as for built-in kinds. If the schema has changed since, or the request asks for
a version with another schema, the object is decoded, converted, pruned and defaulted.

If a webhook converts between the versions, an object is converted before it is read: `converted` makes the stored form
that the object would have if the wanted version were stored, with the mark of that version, and everything else reads
that. An object that was not converted is shown as it is stored, under its own apiVersion.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec

from situate.server.apiextensions.decoding import CustomDecoder
from situate.server.errors import StatusError, unclassified
from situate.server.kinds.custom_version import StoredForm
from situate.server.objects import Object
from situate.server.registry import codec
from situate.server.registry.turns import Turns
from situate.wire.schema import DecodeError
from situate.wire.structural.defaulting import TooManyDefaultsError, fill_defaults
from situate.wire.structural.schema import Structural

MARK: Final = "~"
"""The field with the mark. No object can have it: it is removed before objects are shown, and set when they are
stored."""
NO_DIGEST: Final = "-"
"""In the mark of an object that its schema does not fit: it is pruned and defaulted when it is read."""
NO_VERSION: Final = "request to convert CR from an invalid group/version: {api_version}"
_encode: Final = msgspec.json.Encoder().encode


_MARK_BEGINS: Final = b',"%b":"' % MARK.encode()

Convert: TypeAlias = Callable[[Sequence[Object], str], Awaitable[list[Object]]]
"""Objects and the API version to convert them to. Raises StatusError."""


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
        "_convert",
        "_copied_end",
        "_group",
        "_is_current",
        "_kind",
        "_mark",
        "_next_start",
        "_shown",
        "_start",
        "_storage",
        "_versions",
    )

    def __init__(
        self,
        group: str,
        kind: str,
        shown: str,
        storage: str,
        versions: Mapping[str, VersionSchema],
        convert: Convert | None = None,
    ) -> None:
        """`shown` and `storage` name versions. `convert`: by a webhook; None: only the apiVersion changes."""
        self._group = group
        self._kind = kind
        self._api_version = f"{group}/{shown}"
        self._shown = versions[shown]
        self._storage = versions[storage]
        self._versions = versions
        self._convert = convert
        self._mark = _mark_of(self._storage)
        self._start = f'{{"kind":"{kind}","apiVersion":"{self._api_version}","metadata":{{"resourceVersion":"'.encode()
        self._next_start = b"}," + self._start
        self._is_current = self._storage is self._shown or (
            convert is None and self._storage.digest == self._shown.digest
        )
        """Whether this version shows objects as they are stored."""
        mark = self._mark if self._is_current else _mark_of(self._shown)
        self._copied_end = _MARK_BEGINS + mark.encode() + b'"}' if self._is_current or convert is not None else None
        """The end of values that this version shows without decoding them; None: of none."""

    # -- writing -------------------------------------------------------------------------------------------------

    def encode(self, obj: Object) -> bytes:
        if self._storage is not self._shown:
            self._storage.decoder.coerce(obj := msgspec.json.decode(_encode(obj)))
        return _marked(obj, self._mark)

    def shown_form(self, obj: Object) -> bytes:
        return self.encode(obj) if self._convert is None else _marked(obj, _mark_of(self._shown))

    async def encoded(self, obj: Object) -> bytes:
        """`encode`, for a kind that a webhook converts."""
        if self._convert is None or self._storage is self._shown:
            return self.encode(obj)
        sent = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}
        (made,) = await self._convert([sent], f"{self._group}/{self._storage.name}")
        _coerce(made, self._storage)
        try:
            fill_defaults(made, self._storage.schema)
        except TooManyDefaultsError as error:
            raise StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", str(error)) from None
        return _marked(made, self._mark)

    # -- converting ----------------------------------------------------------------------------------------------

    @property
    def has_webhook(self) -> bool:
        return self._convert is not None

    def is_convertible(self, value: bytes) -> bool:
        """Whether a webhook has to convert a stored value before this version can show it."""
        return self._convert is not None and (_version_in(value) or self._storage.name) != self._shown.name

    def is_outdated(self, value: bytes) -> bool:
        """Whether another write would store it in another version."""
        return _version_in(value) not in ("", self._storage.name)

    async def converted(self, values: Sequence[bytes]) -> list[bytes]:
        """The stored form of these values in this version. Raises StatusError."""
        if self._convert is None:
            return list(values)
        places = [at for at, value in enumerate(values) if self.is_convertible(value)]
        found = await self._convert([self._as_stored(values[at]) for at in places], self._api_version)
        done = list(values)
        turns = Turns()
        for at, obj in zip(places, found, strict=True):
            await turns.others()
            _coerce(obj, self._shown)
            done[at] = _marked(obj, _mark_of(self._shown))
        return done

    def _as_stored(self, value: bytes) -> Object:
        """The object in the version in which it is stored, pruned and defaulted by its schema. StatusError if there is
        no such version any more."""
        name = _version_in(value) or self._storage.name
        stored, api_version = self._versions.get(name), f"{self._group}/{name}"
        if stored is None:
            raise unclassified(NO_VERSION.format(api_version=api_version))
        obj = codec.decode(value, api_version, self._kind, 0)
        if obj.pop(MARK, "") != _mark_of(stored):
            with suppress(DecodeError):  # stored before the schema had such a field: converted as it is
                stored.decoder.coerce(obj)
        with suppress(TooManyDefaultsError):  # of a newer schema: converted with those that fit
            fill_defaults(obj, stored.schema)
        return obj

    # -- reading -------------------------------------------------------------------------------------------------

    def decode(self, value: bytes, revision: int) -> Object:
        obj = codec.decode(value, self._api_version, self._kind, revision)
        mark = obj.pop(MARK, "")
        if mark == self._mark and self._is_current:
            return obj
        version, _, digest = mark.partition(" ")
        if self._convert is not None and version not in ("", self._shown.name):
            return {**obj, "apiVersion": f"{self._group}/{version}"}
        self._coerce(obj, version, digest)
        if self._convert is None or digest != self._shown.digest:
            try:
                fill_defaults(obj, self._shown.schema)
            except TooManyDefaultsError:  # of a schema that it was not stored by: shown without, so it can be mended
                obj = codec.decode(value, self._api_version, self._kind, revision)
                obj.pop(MARK, None)
                self._coerce(obj, version, digest)
        return obj

    def _coerce(self, obj: Object, version: str, digest: str) -> None:
        """Prune an object that was stored in this version by this schema, in place."""
        stored = self._versions.get(version)
        for one in (stored, self._shown):
            if one is not None and digest != one.digest:
                with suppress(DecodeError):  # stored before the schema had such a field: shown as it is
                    one.decoder.coerce(obj)

    def to_json(self, value: bytes, revision: int) -> bytes:
        end = self._copied_end
        if revision and end is not None and value.endswith(end):
            return b'%b%d",%b}' % (self._start, revision, value[codec.METADATA_BEGINS : -len(end)])
        return _encode(self.decode(value, revision))

    def to_items(self, values: Sequence[bytes], revisions: Sequence[int]) -> bytes | None:
        """Items of custom kinds have their apiVersion and kind."""
        end = self._copied_end
        if end is None or not all(value.endswith(end) for value in values):
            return None
        start, behind = self._start, -len(end)
        pieces: list[bytes] = []
        for value, revision in zip(values, revisions, strict=True):
            pieces.append(b'%b%d",' % (start, revision))
            pieces.append(value[codec.METADATA_BEGINS : behind])
            start = self._next_start
        pieces.append(b"}")
        return b"".join(pieces)

    def as_stored(self) -> StoredForm:
        """For the server's own controllers: objects in the version in which they are stored, without conversion."""
        return self if self._convert is None else _AsStored(self._group, self._kind, self._storage.name, self._versions)


class _AsStored:
    """Reads and writes metadata without asking a webhook. The version of an object stays as it is."""

    __slots__ = ("_group", "_kind", "_storage", "_versions")

    has_webhook: Final = False

    def __init__(self, group: str, kind: str, storage: str, versions: Mapping[str, VersionSchema]) -> None:
        self._group = group
        self._kind = kind
        self._storage = storage
        self._versions = versions

    def encode(self, obj: Object) -> bytes:
        version = obj["apiVersion"].rpartition("/")[2]
        stored = self._versions.get(version)
        if stored is not None:
            with suppress(DecodeError, TooManyDefaultsError):
                stored.decoder.coerce(made := msgspec.json.decode(_encode(obj)))
                fill_defaults(made, stored.schema)
                return _marked(made, _mark_of(stored))
        return _marked(obj, f"{version} {NO_DIGEST}")

    def shown_form(self, obj: Object) -> bytes:
        return self.encode(obj)

    async def encoded(self, obj: Object) -> bytes:
        return self.encode(obj)

    def is_convertible(self, _value: bytes) -> bool:
        return False

    def is_outdated(self, _value: bytes) -> bool:
        return False

    async def converted(self, values: Sequence[bytes]) -> list[bytes]:
        return list(values)

    def decode(self, value: bytes, revision: int) -> Object:
        obj = codec.decode(value, f"{self._group}/{_version_in(value) or self._storage}", self._kind, revision)
        obj.pop(MARK, None)
        return obj

    def to_json(self, value: bytes, revision: int) -> bytes:
        return _encode(self.decode(value, revision))

    def to_items(self, _values: Sequence[bytes], _revisions: Sequence[int]) -> bytes | None:
        return None

    def as_stored(self) -> StoredForm:
        return self


def _mark_of(version: VersionSchema) -> str:
    return f"{version.name} {version.digest}"


def _marked(obj: Object, mark: str) -> bytes:
    obj = {name: value for name, value in obj.items() if name != MARK}
    return codec.encode({**obj, MARK: mark})


def _version_in(value: bytes) -> str:
    """The version that the mark of a stored value names; "" if it has none."""
    at = value.rfind(_MARK_BEGINS)
    return value[at + len(_MARK_BEGINS) : -2].partition(b" ")[0].decode() if at >= 0 else ""


def _coerce(obj: Object, version: VersionSchema) -> None:
    """Prune what a webhook has returned, in place. Raises StatusError."""
    try:
        version.decoder.coerce(obj)
    except DecodeError as error:
        raise unclassified(error.why) from None
