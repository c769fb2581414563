"""An object of one's own from one that somebody else gave: in the form that its kind has in Go, and safe to change.

What comes over the network has that form already. What our own controllers make may leave out what Go always writes;
if it were stored so, the next patch would seem to change it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from situate.server.errors import bad_request
from situate.server.requests import Object
from situate.server.resources import Resource
from situate.wire.schema import DecodeError, decode

__all__ = ["encode", "normalize"]

encode: Final = msgspec.json.Encoder().encode


def normalize(resource: Resource, given: bytes) -> Object:
    """400 for what is not of that kind. Unknown fields are dropped; who must refuse them has done so."""
    try:
        return decode(resource.api_version, resource.kind, given, strict=False).object
    except DecodeError as error:
        raise bad_request(str(error)) from None
