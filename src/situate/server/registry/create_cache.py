"""Templates of created objects: objects that differ only in names and labels skip most of the work of a create.

Most new objects are like one created a moment ago, as the pods of one Deployment are. Decoding, defaulting, finding the
managed fields and validating take most of the time of a create, and have the same result for each. So the result for
the first object is a template, cached by the request body without the name. The next ones take everything from it but
their name, uid and times. Pods may also differ in the values of their labels, as those of a StatefulSet do.

Objects of one template share their parts: to change a created object, make a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from sys import intern
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from situate.server.kinds.field_errors import Causes
from situate.server.registry import codec
from situate.server.registry.selectable_fields import SelectorValues, selector_values, shared_labels
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, Object, Target, WriteOptions

MAX_TEMPLATES: Final = 256
"""The least recently used template is dropped first."""
MAX_RECENT: Final = 1_024
"""Created pods kept until they are bound. Others are decoded."""
MAX_RECENT_BYTES: Final = 16 << 10
"""Of a created pod that is kept. Decoded, it takes about ten times as much."""
VERSIONED: Final = b'"resourceVersion"'
"""A dry run takes such a body, a create refuses it."""
MAX_BODY_BYTES: Final = 8 << 10
"""Longer bodies get no template."""

AdmissionVersions: TypeAlias = tuple[int | None, ...]
"""`Admission.version` of each admission plugin."""


Labels: TypeAlias = dict[str, str] | None


class SplitBody(NamedTuple):
    """A request body, split into the name and everything else that the result depends on."""

    name: str
    """"" if the server generates it."""
    shape: tuple[Any, ...]
    labels: Labels = None
    """If their values are not part of the shape."""


class _Metadata(Struct, frozen=True, gc=False):
    name: str = ""
    labels: msgspec.Raw = msgspec.Raw(b"")


class _Named(Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


_named: Final = msgspec.json.Decoder(_Named).decode
_labels: Final = msgspec.json.Decoder(dict[str, str]).decode
PODS: Final = "/pods"
LABELS_MATTER: Final = (b"atchLabelKeys", b"\\")
"""A pod that says so takes values of its labels into its spec; or it may say so in another spelling."""
CUT: Final = b"\0"
"""What stands for the labels in a shape: no JSON has it."""


def split_body(target: Target, body: bytes, caller: Caller, options: WriteOptions) -> SplitBody | None:
    """Split a JSON body; None if the name is not easily found.

    Bodies with one shape are equal but for one string, at the same position. If that string is not the name, the name
    is part of the shape, and then both strings are equal.
    """
    if len(body) > MAX_BODY_BYTES or target.name or VERSIONED in body:
        return None
    try:
        found = _named(body).metadata
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    name, labels = found.name, None
    if target.resource.stored_as == PODS:
        body, labels = _without_labels(body, bytes(found.labels))
    before, after = body, b""
    if name:
        quoted = b'"%b"' % name.encode()
        before, cut, after = body.partition(quoted)
        if not cut or quoted in after:
            return None
    resource = target.resource
    maker = (caller.agent, options.field_manager, options.field_validation)
    keys = None if labels is None else tuple(labels)
    return SplitBody(name, (resource.api_version, resource.kind, target.namespace, *maker, keys, before, after), labels)


def _without_labels(body: bytes, raw: bytes) -> tuple[bytes, Labels]:
    """The body with its labels cut out, and the labels; the body as it is and None if their values may matter, or if
    they are not easily found: they must be written in one place."""
    if not raw or any(mark in body for mark in LABELS_MATTER):
        return body, None
    before, _, after = body.partition(raw)
    if raw in after or (labels := _valid_labels(raw)) is None:
        return body, None
    return before + CUT + after, labels


@lru_cache(maxsize=MAX_TEMPLATES)
def _valid_labels(raw: bytes) -> Labels:
    """Nobody may change them."""
    try:
        labels = _labels(raw)
    except msgspec.DecodeError:
        return None
    causes = Causes()
    causes.labels(labels, "metadata.labels")
    return None if causes else labels


class CreateTemplate(Struct, frozen=True):
    admission_versions: AdmissionVersions
    first: Object
    """All others share everything with it but the metadata."""
    tail: bytes
    """The stored form after the metadata, which is the same for all."""
    first_values: SelectorValues
    """Of the first object; the others differ in the uid only."""

    def instantiate(self, name: str, uid: str, now: str, labels: Labels = None) -> Object:
        """`labels`: its own, if they may differ from the first one's in values."""
        metadata = {**self.first["metadata"], "name": name, "uid": uid, "creationTimestamp": now}
        if labels:
            metadata["labels"] = labels
        if managed := metadata.get("managedFields"):
            metadata["managedFields"] = [{**entry, "time": now} for entry in managed]
        return {**self.first, "metadata": metadata}

    def encode(self, obj: Object) -> bytes:
        """The stored form of an instance."""
        return codec.join_metadata(obj["metadata"], self.tail)

    def selector_values(self, uid: str, labels: Labels = None) -> SelectorValues:
        """Of the instance with this uid and these labels."""
        _, first, values = self.first_values
        return intern(uid), shared_labels(labels) if labels else first, values


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


class RecentPods:
    """Pods that were just created or bound, and their stored form, by key: neither the bind nor the first status that
    follows has to decode the pod."""

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
