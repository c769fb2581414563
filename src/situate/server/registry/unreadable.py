"""Stored values that cannot be read as objects of their kind: written by another release, or by hand.

The cache keeps them apart. Nobody sees them as objects, so nobody fails on them: reads of one fail with the reason,
lists have the others and a warning, watches keep the last state that could be read, and DELETE removes the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import Struct

from situate.server.errors import StatusError
from situate.server.registry import codec, conversion
from situate.server.registry.keys import ObjectKey, key_of
from situate.server.registry.stored_object import StoredObject, read_stored_at
from situate.server.resources import RESOURCES, Resource
from situate.wire.schema import decode
from situate.wire.schema.shapes import shape_of

STORED_AS: Final = b'{"metadata":{"'
"""How every value in the stored form begins."""
REASON: Final = "StorageReadError"
"""Kubernetes' reason for an object that cannot be read from the store."""
SHOWN: Final = 3
"""How many keys a warning names."""
LONGEST: Final = 300
"""Characters of a reason."""
_STORED: Final = {one.stored_as: one for one in RESOURCES if one.stored and conversion.from_stored(one) is None}


class UnreadableObject(Struct, frozen=True, gc=False, eq=False):
    """An unreadable value and its key."""

    key: str
    namespace: str
    name: str
    revision: int
    why: str
    last: StoredObject | None = None
    """The object as it was when it could be read, if we have seen it."""


def read_value(object_key: ObjectKey, key: str, value: bytes, revision: int) -> StoredObject | UnreadableObject:
    """A stored value of unknown origin. Never raises."""
    try:
        return read_stored_at(object_key, key, _stored_form(object_key, key, value), revision)
    except Exception as error:  # noqa: BLE001 - whatever is stored there, the rest is served
        why = " ".join(str(error).split()) or type(error).__name__
        return UnreadableObject(key, object_key.namespace, object_key.name, revision, why[:LONGEST])


def _stored_form(object_key: ObjectKey, key: str, value: bytes) -> bytes:
    """The value in the stored form, encoded again if necessary. Raises if it is not of its kind."""
    resource = _STORED.get(object_key.stored_as)
    if resource is None:
        return _custom_form(object_key, value)
    if key != key_of(resource, object_key.namespace, object_key.name) or not object_key.name:
        raise ValueError(f"its key does not name one of the {resource.plural}")
    if bool(object_key.namespace) != resource.namespaced:
        raise ValueError(f"its key has {'no' if resource.namespaced else 'a'} namespace")
    if value.startswith(STORED_AS) and _is_stored_form(resource, object_key, value):
        return value
    found = decode(resource.api_version, resource.kind, value, strict=False).object
    meta = found.get("metadata", {})
    if (meta.get("namespace", ""), meta.get("name", "")) != (object_key.namespace, object_key.name):
        raise ValueError(f"its metadata names {meta.get('namespace', '')}/{meta.get('name', '')}")
    if not meta.get("uid"):
        raise ValueError("its metadata has no uid")
    return codec.encode(found)


class _CustomMetadata(Struct, gc=False):
    name: str
    uid: str
    namespace: str = ""


class _Custom(Struct, gc=False):
    metadata: _CustomMetadata


_custom: Final = msgspec.json.Decoder(_Custom).decode


def _custom_form(object_key: ObjectKey, value: bytes) -> bytes:
    """Of a kind that a CustomResourceDefinition defines, or that only another server knows."""
    meta = _custom(value).metadata
    if (meta.namespace, meta.name) != (object_key.namespace, object_key.name):
        raise ValueError(f"its metadata names {meta.namespace}/{meta.name}")
    if not value.startswith(STORED_AS) or not meta.uid:
        raise ValueError("it is not in the stored form")
    return value


def _is_stored_form(resource: Resource, object_key: ObjectKey, value: bytes) -> bool:
    try:
        found = shape_of(resource.api_version, resource.kind).decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    meta = found.f_metadata
    named = meta.f_name == object_key.name and (meta.f_namespace or "") == object_key.namespace
    plain = not meta.f_resourceVersion and not found.f_kind and not found.f_apiVersion
    return named and plain and bool(meta.f_uid)


def unreadable_error(resource: Resource, found: UnreadableObject) -> StatusError:
    """The answer to a read, or to a write other than a delete."""
    plural = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    where = f"(key {found.key}); DELETE removes it"
    text = f'{plural} "{found.name}" cannot be read from the store: {found.why} {where}'
    return StatusError(
        HTTPStatus.INTERNAL_SERVER_ERROR, REASON, text, group=resource.group, kind=resource.plural, name=found.name
    )


def unreadable_warning(resource: Resource, found: Sequence[UnreadableObject]) -> str:
    """The warning with a list that leaves these out."""
    names = [f"{one.namespace}/{one.name}" if one.namespace else one.name for one in found[:SHOWN]]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{len(found)} {resource.plural} cannot be read from the store and are not listed: {', '.join(names)}{more}"
