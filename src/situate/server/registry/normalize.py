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
from situate.wire.schema import DecodeError, decode

encode: Final = msgspec.json.Encoder().encode


def normalize(resource: Resource, given: bytes) -> Object:
    """A new object from JSON, without unknown fields; 400 if it is not of that kind."""
    try:
        return decode(resource.api_version, resource.kind, given, strict=False).object
    except DecodeError as error:
        raise bad_request(str(error)) from None
