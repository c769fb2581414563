"""The stored form: JSON that starts with the metadata, without apiVersion, kind and resourceVersion.

Reads put those three in front of the stored bytes, so that nothing is decoded. A revision of 0 marks an object that was
not stored, and is not shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from situate.server.requests import Object

METADATA_BEGINS: Final = len(b'{"metadata":{')
"""Where the first field of the metadata is in the stored form."""
_LEFT_OUT: Final = ("apiVersion", "kind", "metadata")
USUAL_BYTES: Final = 2048
"""Most objects fit."""
_encode: Final = msgspec.json.Encoder().encode
_encode_into: Final = msgspec.json.Encoder().encode_into
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def encode(obj: Object) -> bytes:
    """The stored form. The metadata must not be empty: it has at least a name."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return encode_compact({"metadata": metadata, **_rest(obj)})


def tail_of(obj: Object) -> bytes:
    """The stored form of an object after its metadata."""
    rest = _rest(obj)
    return b"," + _encode(rest)[1:] if rest else b"}"


def _rest(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in _LEFT_OUT}


def join_metadata(metadata: Object, behind: bytes) -> bytes:
    """The stored form, from metadata without a resourceVersion and the result of `tail_of`."""
    return b'{"metadata":%b%b' % (_encode(metadata), behind)


def encode_compact(value: Any) -> bytes:
    """Encode into exactly sized bytes. msgspec's own result may occupy twice its length, so we copy from a buffer, in
    which most objects fit without growing it."""
    buffer = bytearray(USUAL_BYTES)
    _encode_into(value, buffer)
    return bytes(buffer)


def decode(value: bytes, api_version: str, kind: str, revision: int) -> Object:
    """A new object."""
    stored = _decode(value)
    if revision:
        stored["metadata"]["resourceVersion"] = str(revision)
    return {"kind": kind, "apiVersion": api_version, **stored}


def to_json(value: bytes, api_version: str, kind: str, revision: int) -> bytes:
    """The complete object as JSON."""
    version = f'"resourceVersion":"{revision}",' if revision else ""
    start = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{{version}'
    return start.encode() + value[METADATA_BEGINS:]


def to_item(value: bytes, revision: int) -> bytes:
    """The object as an item of a list, which has no kind."""
    return to_items((value,), (revision,))


def to_items(values: Iterable[bytes], revisions: Iterable[int]) -> bytes:
    """Several items, separated by commas, with as few copies as possible."""
    pieces: list[bytes] = []
    start = b'{"metadata":{"resourceVersion":"%d",'
    for value, revision in zip(values, revisions, strict=True):
        pieces.append(start % revision)
        pieces.append(value[METADATA_BEGINS:])
        start = b',{"metadata":{"resourceVersion":"%d",'
    return b"".join(pieces)
