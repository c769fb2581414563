"""The metadata of an object of any kind, decoded without the rest of it."""

from typing import Final

import msgspec


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _AnyObject(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()


_decode: Final = msgspec.json.Decoder(_AnyObject).decode


def decode_metadata(body: bytes) -> Metadata:
    return _decode(body).metadata
