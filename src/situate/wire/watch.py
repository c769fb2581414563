"""Decodes watch frames and pages of lists, in one pass, straight into the partial structs.

For bytes that an API server wrote: they are not checked, and get no defaults, because it has seen to both. An object
that does not decode is reported by what can be read of its metadata, and spoils neither its frame nor its page. What is
no frame or page at all is an InputError. Opens nothing, logs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import field

from situate.core.model.base import EMPTY, Model
from situate.core.model.meta import ObjectMeta
from situate.wire.errors import InputError
from situate.wire.metadata import Metadata, decode_metadata
from situate.wire.objects import decode

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial list of a watch."""
NOT_A_FRAME: Final = "not a watch event"
NOT_A_LIST: Final = "not a list"
NO_NAME: Final = "metadata.name: Required value"

# ValidationError is a DecodeError.
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Typed = TypeVar("_Typed", bound=Model)


class Item(msgspec.Struct, Generic[_Typed], frozen=True, gc=False):
    """One object as it was at one version."""

    namespace: str
    name: str
    uid: str
    version: str
    """Its resourceVersion."""
    object: _Typed | None
    """None if it did not decode."""
    problem: str = ""
    """Why it did not, in one line."""


class Frame(msgspec.Struct, Generic[_Typed], frozen=True, gc=False):
    """One event of a watch."""

    type: str
    item: Item[_Typed]
    """For a bookmark, only the version."""
    listed: bool = False
    """For a bookmark: the initial list is complete."""
    status: bytes = b""
    """For an error: the Status, as JSON."""


class ListPage(msgspec.Struct, Generic[_Typed], frozen=True, gc=False):
    """A list, or one page of it."""

    items: list[Item[_Typed]]
    version: str
    more: str
    """The continue token; empty on the last page."""


class _RawFrame(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str = ""
    more: str = field(default="", name="continue")


class _RawPage(msgspec.Struct, frozen=True, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_decode_frame = msgspec.json.Decoder(_RawFrame).decode
_decode_page = msgspec.json.Decoder(_RawPage).decode


class Reader(Generic[_Typed]):
    """Reads frames and pages of one kind. Create it once: its decoders cost more than reading a page."""

    def __init__(self, model: type[_Typed]) -> None:
        self._model = model
        self._frame: Callable[[bytes], Any] = msgspec.json.Decoder(
            msgspec.defstruct("_Frame", [("type", str), ("object", model)], frozen=True, gc=False)
        ).decode
        self._page: Callable[[bytes], Any] = msgspec.json.Decoder(
            msgspec.defstruct("_Page", [("metadata", _ListMeta), ("items", list[model])], frozen=True, gc=False)  # type: ignore[valid-type]
        ).decode

    def frame(self, line: bytes) -> Frame[_Typed]:
        """Decode a line of a watch. Raises InputError."""
        try:
            read = self._frame(line)
        except _NOT_JSON:
            return _read_frame(line, self._odd_item)
        if read.type in (ERROR, BOOKMARK):
            return _read_frame(line, self._odd_item)
        return Frame(read.type, _item(read.object))

    def page(self, data: bytes) -> ListPage[_Typed]:
        """Decode a list. Raises InputError."""
        try:
            read = self._page(data)
        except _NOT_JSON:
            return _read_page(data, self._odd_item)
        return ListPage([_item(one) for one in read.items], read.metadata.resource_version, read.metadata.more)

    # -- the slow path: bookmarks, errors, nulls, and what does not decode ---------------------------------------------

    def _odd_item(self, data: msgspec.Raw) -> Item[_Typed]:
        """An object with nulls that Kubernetes' decoder accepts, or an invalid one."""
        meta = _known(data)
        try:
            found, problem = (decode(self._model, data), "") if meta.name else (None, NO_NAME)
        except InputError as error:
            found, problem = None, str(error)
        return Item(meta.namespace, meta.name, meta.uid, meta.resource_version, found, problem)


class RawReader:
    """Reads frames and pages of any kind without decoding the objects: an item's object is its JSON."""

    def frame(self, line: bytes) -> Frame[Any]:
        return _read_frame(line, _raw_item)

    def page(self, data: bytes) -> ListPage[Any]:
        return _read_page(data, _raw_item)


def _read_frame(line: bytes, item: Callable[[msgspec.Raw], Item[_Typed]]) -> Frame[_Typed]:
    try:
        read = _decode_frame(line)
    except _NOT_JSON:
        raise InputError(NOT_A_FRAME) from None
    if read.type == ERROR:
        return Frame(ERROR, Item("", "", "", "", None), status=bytes(read.object))
    if read.type == BOOKMARK:
        meta = _known(read.object)
        listed = (meta.annotations or EMPTY).get(INITIAL_EVENTS_END) == "true"
        return Frame(BOOKMARK, Item("", "", "", meta.resource_version, None), listed)
    return Frame(read.type, item(read.object))


def _read_page(data: bytes, item: Callable[[msgspec.Raw], Item[_Typed]]) -> ListPage[_Typed]:
    try:
        read = _decode_page(data)
    except _NOT_JSON:
        raise InputError(NOT_A_LIST) from None
    return ListPage([item(one) for one in read.items or ()], read.metadata.resource_version, read.metadata.more)


def _raw_item(data: msgspec.Raw) -> Item[Any]:
    meta = _known(data)
    if not meta.name:
        return Item(meta.namespace, "", meta.uid, meta.resource_version, None, NO_NAME)
    return Item(meta.namespace, meta.name, meta.uid, meta.resource_version, bytes(data))


def _item(found: Any) -> Item[Any]:
    meta: ObjectMeta = found.metadata
    if not meta.name:
        return Item(meta.namespace, "", meta.uid, meta.resource_version, None, NO_NAME)
    return Item(meta.namespace, meta.name, meta.uid, meta.resource_version, found)


def _known(data: msgspec.Raw) -> Metadata:
    """What can be read of an object that may not decode."""
    try:
        return decode_metadata(data)
    except _NOT_JSON:
        return Metadata()
