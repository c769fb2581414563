"""Moulds: what objects have in common that differ in their name, and in nothing else that their maker wrote.

Most new objects are like one that was created a moment ago, as the pods of one Deployment are. To read one, to fill in
what was left out, to ask whose the fields are and whether all is right takes most of the time of creating it, and comes
to the same for each. So what became of the first is kept, by its body without the name, and the next are cast from it:
name, uid and times are their own.

Parts of objects from one mould are one and the same: whoever changes an object that was created makes a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from sys import intern
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from situate.server.registry import codec
from situate.server.registry.selectable_fields import SelectorValues, selector_values
from situate.server.requests import Caller, Object, Target, WriteOptions

__all__ = ["SplitBody", "AdmissionVersions", "CreateTemplate", "CreateCache", "split_body", "template_of"]

MAX_TEMPLATES: Final = 256
"""Moulds that are kept. The one that was not used for longest goes first."""
MAX_BODY_BYTES: Final = 8 << 10
"""Of longer ones, no mould is kept."""

AdmissionVersions: TypeAlias = tuple[int | None, ...]
"""What admission went by: see `Admission.basis`."""


class SplitBody(NamedTuple):
    """A body, apart: the name in it, and all else that the outcome depends on."""

    name: str
    """"" if one is to be generated."""
    shape: tuple[Any, ...]


class _Metadata(Struct, frozen=True, gc=False):
    name: str = ""


class _Named(Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


_named: Final = msgspec.json.Decoder(_Named).decode


def split_body(target: Target, body: bytes, caller: Caller, options: WriteOptions) -> SplitBody | None:
    """What a body of JSON is like; None if that is not easily said.

    Bodies of one shape are the same but for one string, which stands at the same place in each. Where it is not the
    name, the name is in the shape, and so are both strings the same.
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
    """Of which all others have everything but the metadata."""
    tail: bytes
    """What they have in common, as it stands behind the metadata in the stored form."""
    first_values: SelectorValues
    """What selectors see of the first; of each other, but for the uid, they see the same."""

    def instantiate(self, name: str, uid: str, now: str) -> Object:
        metadata = {**self.first["metadata"], "name": name, "uid": uid, "creationTimestamp": now}
        if managed := metadata.get("managedFields"):
            metadata["managedFields"] = [{**entry, "time": now} for entry in managed]
        return {**self.first, "metadata": metadata}

    def encode(self, obj: Object) -> bytes:
        """The stored form of what was cast."""
        return codec.join_metadata(obj["metadata"], self.tail)

    def selector_values(self, uid: str) -> SelectorValues:
        """What selectors see of what was cast with this uid."""
        _, labels, values = self.first_values
        return intern(uid), labels, values


def template_of(stored_as: str, obj: Object, versions: AdmissionVersions) -> CreateTemplate | None:
    """Of an object as it is about to be stored; None if more of it than its metadata is its own."""
    metadata, rest = obj["metadata"], codec.tail_of(obj)
    now: str = metadata["creationTimestamp"]
    if now.encode() in rest or metadata["uid"].encode() in rest:
        return None
    if any(entry.get("time") != now for entry in metadata.get("managedFields", ())):
        return None  # the client's own
    return CreateTemplate(versions, obj, rest, selector_values(stored_as, codec.join_metadata(metadata, rest)))


class CreateCache:
    """By shape."""

    __slots__ = ("_templates",)

    def __init__(self) -> None:
        self._templates: OrderedDict[tuple[Any, ...], CreateTemplate] = OrderedDict()

    def find(self, shape: tuple[Any, ...], versions: AdmissionVersions) -> CreateTemplate | None:
        """One that was made when admission went by the same."""
        found = self._templates.get(shape)
        if found is None or found.admission_versions != versions:
            return None
        self._templates.move_to_end(shape)
        return found

    def put(self, shape: tuple[Any, ...], template: CreateTemplate) -> None:
        self._templates[shape] = template
        if len(self._templates) > MAX_TEMPLATES:
            self._templates.popitem(last=False)
