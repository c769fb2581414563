"""The metadata of an object of any kind, decoded without the rest of it."""

from typing import Final

import msgspec

from situate.core.model.base import Labels


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: Labels | None = None


class _AnyObject(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata = Metadata()


_decode: Final = msgspec.json.Decoder(_AnyObject).decode


def decode_metadata(body: bytes | msgspec.Raw) -> Metadata:
    return _decode(body).metadata
