"""Templates of created objects: objects that differ only in their name skip most of the work of a create.

Most new objects are like one created a moment ago, as the pods of one Deployment are. Decoding, defaulting, finding the
managed fields and validating take most of the time of a create, and have the same result for each. So the result for
the first object is a template, cached by the request body without the name. The next ones take everything from it but
their name, uid and times.

Objects of one template share their parts: to change a created object, make a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from sys import intern
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from situate.server.registry import codec
from situate.server.registry.selectable_fields import SelectorValues, selector_values
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, Object, Target, WriteOptions

MAX_TEMPLATES: Final = 256
"""The least recently used template is dropped first."""
MAX_RECENT: Final = 1_024
"""Created pods kept until they are bound. Others are decoded."""
MAX_RECENT_BYTES: Final = 16 << 10
"""Of a created pod that is kept. Decoded, it takes about ten times as much."""
MAX_BODY_BYTES: Final = 8 << 10
"""Longer bodies get no template."""

AdmissionVersions: TypeAlias = tuple[int | None, ...]
"""`Admission.version` of each admission plugin."""


class SplitBody(NamedTuple):
    """A request body, split into the name and everything else that the result depends on."""

    name: str
    """"" if the server generates it."""
    shape: tuple[Any, ...]


class _Metadata(Struct, frozen=True, gc=False):
    name: str = ""


class _Named(Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


_named: Final = msgspec.json.Decoder(_Named).decode


def split_body(target: Target, body: bytes, caller: Caller, options: WriteOptions) -> SplitBody | None:
    """Split a JSON body; None if the name is not easily found.

    Bodies with one shape are equal but for one string, at the same position. If that string is not the name, the name
    is part of the shape, and then both strings are equal.
    """
    if len(body) > MAX_BODY_BYTES or target.name:
        return None
    try:
        name = _named(body).metadata.name
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    before, after = body, b""
    if name:
        quoted = b'"%b"' % name.encode()
        before, found, after = body.partition(quoted)
        if not found or quoted in after:
            return None
    resource = target.resource
    maker = (caller.agent, options.field_manager, options.field_validation)
    return SplitBody(name, (resource.api_version, resource.kind, target.namespace, *maker, before, after))


class CreateTemplate(Struct, frozen=True):
    admission_versions: AdmissionVersions
    first: Object
    """All others share everything with it but the metadata."""
    tail: bytes
    """The stored form after the metadata, which is the same for all."""
    first_values: SelectorValues
    """Of the first object; the others differ in the uid only."""

    def instantiate(self, name: str, uid: str, now: str) -> Object:
        metadata = {**self.first["metadata"], "name": name, "uid": uid, "creationTimestamp": now}
        if managed := metadata.get("managedFields"):
            metadata["managedFields"] = [{**entry, "time": now} for entry in managed]
        return {**self.first, "metadata": metadata}

    def encode(self, obj: Object) -> bytes:
        """The stored form of an instance."""
        return codec.join_metadata(obj["metadata"], self.tail)

    def selector_values(self, uid: str) -> SelectorValues:
        """Of the instance with this uid."""
        _, labels, values = self.first_values
        return intern(uid), labels, values


def template_of(stored_as: str, obj: Object, versions: AdmissionVersions) -> CreateTemplate | None:
    """A template from an object about to be stored; None if its uid or its time occur outside of its metadata."""
    metadata, rest = obj["metadata"], codec.tail_of(obj)
    now: str = metadata["creationTimestamp"]
    if now.encode() in rest or metadata["uid"].encode() in rest:
        return None
    if any(entry.get("time") != now for entry in metadata.get("managedFields", ())):
        return None  # set by the client
    return CreateTemplate(versions, obj, rest, selector_values(stored_as, codec.join_metadata(metadata, rest)))


class CreateCache:
    __slots__ = ("_templates",)

    def __init__(self) -> None:
        self._templates: OrderedDict[tuple[Any, ...], CreateTemplate] = OrderedDict()

    def find(self, shape: tuple[Any, ...], versions: AdmissionVersions) -> CreateTemplate | None:
        """A template made under the same versions of the admission plugins."""
        found = self._templates.get(shape)
        if found is None or found.admission_versions != versions:
            return None
        self._templates.move_to_end(shape)
        return found

    def put(self, shape: tuple[Any, ...], template: CreateTemplate) -> None:
        self._templates[shape] = template
        if len(self._templates) > MAX_TEMPLATES:
            self._templates.popitem(last=False)


class RecentCreates:
    """New pods and their stored form, by key: the bind that follows need not decode the pod."""

    __slots__ = ("_written",)

    def __init__(self) -> None:
        self._written: OrderedDict[str, tuple[bytes, Object]] = OrderedDict()

    def put(self, key: str, value: bytes, obj: Object) -> None:
        """Nobody may change `obj` from now on."""
        if len(value) > MAX_RECENT_BYTES:
            return
        self._written[key] = (value, obj)
        if len(self._written) > MAX_RECENT:
            self._written.popitem(last=False)

    def take(self, stored: StoredObject) -> Object | None:
        """Remove and return the object if this is its stored form. Do not change it."""
        written = self._written.pop(stored.key, None)
        if written is None or written[0] != stored.value:
            return None
        obj = written[1]
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(stored.revision)}}
