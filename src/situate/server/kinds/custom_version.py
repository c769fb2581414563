"""CustomVersion: what a CustomResourceDefinition says about one version of its kind.

A `Resource` of a custom kind carries one. Where the server asks the table of messages or a `Kind` about a built-in
kind, it asks this about a custom one; everything else is the same for both. `server/apiextensions` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.server.tables.columns import Printer
from situate.wire.patching.apply import CustomMerge
from situate.wire.schema import Decoded


class StoredForm(Protocol):
    """How objects of a custom kind are stored, and read in one of its versions."""

    @property
    def has_webhook(self) -> bool:
        """Whether a webhook converts between the versions. See registry/converted.py."""

    def encode(self, obj: Object) -> bytes:
        """Without a webhook."""

    async def encoded(self, obj: Object) -> bytes:
        """The stored form. Raises StatusError."""

    def shown_form(self, obj: Object) -> bytes:
        """The stored form of an object in this version, not converted."""

    def is_convertible(self, value: bytes) -> bool:
        """Whether a webhook has to convert a stored value before this version can show it."""

    def is_outdated(self, value: bytes) -> bool:
        """Whether another write would store it in another version."""

    async def converted(self, values: Sequence[bytes]) -> list[bytes]:
        """The stored form of these values in this version. Raises StatusError."""

    def as_stored(self) -> StoredForm:
        """For the server's own controllers: objects in the version in which they are stored, without conversion."""

    def decode(self, value: bytes, revision: int) -> Object:
        """A new object in this version, pruned and defaulted by its schema; as it is stored, if it would have to be
        converted."""

    def to_json(self, value: bytes, revision: int) -> bytes: ...

    def to_items(self, values: Sequence[bytes], revisions: Sequence[int]) -> bytes | None:
        """Several items of a list, separated by commas; None if some have to be decoded: then `to_json` makes each."""


class ScalePaths(NamedTuple):
    """The fields of the scale subresource: JSON paths such as `.spec.replicas`."""

    replicas: str
    observed: str
    selector: str


class CustomVersion(Struct, frozen=True, eq=False, gc=False):
    list_kind: str
    schema: Mapping[str, Any]
    """openAPIV3Schema."""
    strategy: Strategy
    printer: Printer
    merge: CustomMerge
    decode: Callable[[bytes, bool], Decoded]
    """A JSON body, and whether to look for duplicate fields. Raises DecodeError."""
    stored: StoredForm
    selectable: tuple[str, ...] = ()
    """The fields that field selectors may name, besides the name and the namespace."""
    scale: ScalePaths | None = None
    warning: str = ""
    """For every request of a deprecated version."""
    is_terminating: bool = False
    """The definition is being deleted: nothing new can be created."""
    generation: int = 0
    """Of the definition."""
    original: StoredForm | None = None
    """Of a kind as controllers read it: how clients read it. See `as_stored` in apiextensions/definition.py."""
