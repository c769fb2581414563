"""Renders objects in the requested form: as they are, as rows of a Table, or as PartialObjectMetadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from time import monotonic
from typing import Any, Final

import msgspec

from situate.server.errors import StatusError, bad_request
from situate.server.http.negotiation import PLAIN, Form, not_acceptable
from situate.server.http.ports import Tables
from situate.server.http.responses import encode
from situate.server.registry.conversion import from_stored
from situate.server.registry.stored_object import ITEMS_PER_CHUNK, ListResult, StoredObject, item_chunks, joined_chunks
from situate.server.registry.watchers import WatchEvent
from situate.server.requests import Object
from situate.server.resources import Resource
from situate.wire.snapshot_increments import IncrementWriter

INCLUDE_OBJECT: Final = ("", "None", "Metadata", "Object")
META: Final = "meta.k8s.io"
NODE_SNAPSHOT: Final = "NodeSnapshot"
SLICE: Final = 100
"""Objects in one chunk of a Table or of partial metadata."""
LARGE_BYTES: Final = 1 << 20
"""A list of more bytes is made as it is sent."""
_END: Final = b"]}\n"
WHOLE_S: Final = 0.1
"""A list that takes longer is made as it is sent."""


class _Stored(msgspec.Struct, gc=False):
    """The metadata of a stored object, not decoded."""

    metadata: msgspec.Raw


_metadata: Final = msgspec.json.Decoder(_Stored).decode


def include_object(asked: str) -> str:
    """The option includeObject: how much of its object a row has. Raises StatusError."""
    if asked not in INCLUDE_OBJECT:
        raise bad_request(f'unrecognized includeObject value: "{asked}"')
    return asked or "Metadata"


class Renderer:
    """Renders the response of one request."""

    __slots__ = ("_as_stored", "_columns_sent", "_form", "_include", "_increments", "_now_ns", "_resource", "_tables")

    def __init__(
        self, resource: Resource, form: Form, tables: Tables, now_ns: Callable[[], int], include: str = "Metadata"
    ) -> None:
        self._increments: IncrementWriter | None = None
        if form.shape == "NodeSnapshotIncrement":  # of watches; everything else is plain
            form = PLAIN
            if resource.kind == NODE_SNAPSHOT:
                self._increments = IncrementWriter()
        self._resource = resource
        self._form = form
        self._tables = tables
        self._now_ns = now_ns
        self._include = include
        self._columns_sent = False
        self._as_stored = resource.custom is None and from_stored(resource) is None

    # -- single objects ------------------------------------------------------------------------------------------

    def object(self, stored: StoredObject) -> bytes:
        form = self._form
        if not form.shape:
            return stored.to_json(self._resource)
        if form.shape == "PartialObjectMetadataList":
            raise _not_a_list(form, self._resource.kind)
        obj = stored.object(self._resource)
        if form.shape == "PartialObjectMetadata":
            return encode(self._partial(obj))
        return encode(self._table([obj], {"resourceVersion": str(stored.revision)}))

    def _partial(self, obj: Object) -> Object:
        version = f"{META}/{self._form.version}"
        return {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": obj["metadata"]}

    # -- lists ---------------------------------------------------------------------------------------------------

    def list_chunks(self, listing: ListResult) -> list[bytes] | Iterator[bytes]:
        """A list in chunks. Those of a long list are made as they are sent, so that it need not be in memory."""
        form, resource = self._form, self._resource
        if form.shape == "PartialObjectMetadata":
            raise _a_list(form, resource.kind)
        metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)}
        if listing.continue_to:
            metadata["continue"] = listing.continue_to
        if listing.remaining is not None and listing.continue_to:
            metadata["remainingItemCount"] = listing.remaining
        version = f"{META}/{form.version}" if form.shape else resource.api_version
        kind = form.shape or (resource.custom.list_kind if resource.custom is not None else f"{resource.kind}List")
        start = f'{{"kind":"{kind}","apiVersion":"{version}","metadata":'.encode() + encode(metadata)
        if form.shape == "Table":
            start += b',"columnDefinitions":' + encode(self._tables.columns_of(resource)) + b',"rows":['
        else:
            start += b',"items":['
        if not form.shape:
            flow = chain((start,), item_chunks(resource, listing.items), (_END,))
            return flow if _is_large(listing) else _whole_if_small(flow)
        shaped = chain((start,), joined_chunks(self._shaped(listing.items), SLICE), (_END,))
        return shaped if len(listing.items) > SLICE else _whole_if_small(shaped)

    def _shaped(self, items: Iterable[StoredObject]) -> Iterator[bytes]:
        """One after another: decoded, an object takes many times its stored size."""
        for stored in items:
            obj = stored.object(self._resource)
            shown = self._rows([obj])[0] if self._form.shape == "Table" else self._partial(obj)
            yield encode(shown)

    # -- tables --------------------------------------------------------------------------------------------------

    def _table(self, objects: Iterable[Object], metadata: dict[str, Any], *, columns: bool = True) -> Object:
        rows = self._rows(objects)
        shown: Sequence[Any] | None = self._tables.columns_of(self._resource) if columns else None
        return {
            "kind": "Table",
            "apiVersion": f"{META}/{self._form.version}",
            "metadata": metadata,
            "columnDefinitions": shown,
            "rows": rows,
        }

    def _rows(self, objects: Iterable[Object]) -> list[Object]:
        print_row, now = self._tables.printer_of(self._resource), self._now_ns()
        return [self._row(obj, print_row(obj, now)) for obj in objects]

    def _row(self, obj: Object, cells: list[Any]) -> Object:
        row: Object = {"cells": cells}
        if conditions := self._tables.conditions_of(self._resource, obj):
            row["conditions"] = conditions
        if self._include == "Object":
            row["object"] = obj
        elif self._include == "Metadata":
            row["object"] = self._partial(obj)
        else:
            row["object"] = None
        return row

    # -- watches -------------------------------------------------------------------------------------------------

    def line(self, event: WatchEvent) -> bytes:
        """One event of a watch, with its newline. All watches share the bytes of a plain object."""
        if self._increments is not None and event.stored is not None:
            stored = event.stored
            return self._increments.line(event.type, stored.name, str(stored.revision), stored.to_json(self._resource))
        if not self._form.shape or (event.stored is None and event.type == "ERROR"):
            return event.line(self._resource)
        if event.stored is None:
            shown = self._bookmark(event)
        else:
            if self._form.shape == "PartialObjectMetadata" and event.type != "DELETED" and self._as_stored:
                return self._partial_line(event.type, event.stored)
            obj = event.stored.object(self._resource)
            if event.type == "DELETED":
                obj["metadata"]["resourceVersion"] = str(event.revision)
            if self._form.shape == "Table":
                version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
                shown = self._table([obj], version, columns=not self._columns_sent)
                self._columns_sent = True
            else:
                shown = self._partial(obj)
        return encode({"type": event.type, "object": shown}) + b"\n"

    def _partial_line(self, event_type: str, stored: StoredObject) -> bytes:
        """The stored metadata with a prefix; nothing is decoded."""
        start = f'{{"type":"{event_type}","object":{{"kind":"PartialObjectMetadata","apiVersion":"{META}/'
        version = f'{self._form.version}","metadata":{{"resourceVersion":"{stored.revision}",'
        return f"{start}{version}".encode() + bytes(_metadata(stored.value).metadata)[1:] + b"}}\n"

    def _bookmark(self, event: WatchEvent) -> Object:
        """A bookmark in the requested form."""
        plain = msgspec.json.decode(event.line(self._resource), type=dict[str, Any])["object"]
        if self._form.shape != "Table":
            return self._partial(plain)
        metadata = {"resourceVersion": str(event.revision)}
        row = {"cells": [], "object": self._partial(plain)}
        table = self._table([], metadata, columns=not self._columns_sent)
        table["rows"] = [row]
        return table


def _whole_if_small(flow: Iterator[bytes]) -> list[bytes] | Iterator[bytes]:
    """The stored sizes of objects say little about what conversion and defaults make of them."""
    made: list[bytes] = []
    size, until = 0, monotonic() + WHOLE_S
    for piece in flow:
        made.append(piece)
        size += len(piece)
        if size > LARGE_BYTES or monotonic() > until:
            return chain(made, flow)
    return made


def _is_large(listing: ListResult) -> bool:
    return len(listing.items) > ITEMS_PER_CHUNK or sum([len(one.value) for one in listing.items]) > LARGE_BYTES


def _a_list(form: Form, kind: str) -> StatusError:
    return not_acceptable(f"you requested {form.shape}, but the requested object is a list ({kind}List)")


def _not_a_list(form: Form, kind: str) -> StatusError:
    return not_acceptable(f"you requested {form.shape}, but the requested object is not a list ({kind})")
