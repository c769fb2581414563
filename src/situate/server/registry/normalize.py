"""Normalizes an object from a caller in this process, and copies it.

Go always writes some fields that our own controllers may leave out. Stored without them, an object would seem to change
with the next patch. HTTP requests are normalized when they are decoded.
"""

from __future__ import annotations

from typing import Final

import msgspec

from situate.server.errors import bad_request
from situate.server.requests import Object
from situate.server.resources import Resource
from situate.wire.schema import Decoded, DecodeError, decode

encode: Final = msgspec.json.Encoder().encode


def decode_body(resource: Resource, body: bytes, *, strict: bool) -> Decoded:
    """The object in a body of this kind, and what strict field validation reports about it. Raises DecodeError."""
    if resource.custom is not None:
        return resource.custom.decode(body, strict)
    return decode(resource.api_version, resource.kind, body, strict=strict)


def normalize(resource: Resource, given: bytes) -> Object:
    """A new object from JSON, without unknown fields; 400 if it is not of that kind."""
    try:
        return decode_body(resource, given, strict=False).object
    except DecodeError as error:
        raise bad_request(str(error)) from None
