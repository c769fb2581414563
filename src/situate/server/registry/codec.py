"""The stored form: JSON that begins with the metadata, without what the key, the URL and the revision say already.

apiVersion, kind and metadata.resourceVersion are put in front when somebody is shown the object: bytes before bytes,
nothing is decoded for it. A revision of 0 is that of an object which was not stored, and not shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from situate.server.requests import Object

__all__ = ["tail_of", "decode", "encode", "to_item", "to_items", "encode_compact", "to_json", "join_metadata"]

_BEGUN: Final = len(b'{"metadata":{')
_LEFT_OUT: Final = ("apiVersion", "kind", "metadata")
USUAL_BYTES: Final = 2048
"""As large as most objects are."""
_encode: Final = msgspec.json.Encoder().encode
_encode_into: Final = msgspec.json.Encoder().encode_into
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def encode(obj: Object) -> bytes:
    """What to store. The metadata must have something in it besides a resourceVersion: a name, at least."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return encode_compact({"metadata": metadata, **_rest(obj)})


def tail_of(obj: Object) -> bytes:
    """What the stored form of an object has behind its metadata."""
    rest = _rest(obj)
    return b"," + _encode(rest)[1:] if rest else b"}"


def _rest(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in _LEFT_OUT}


def join_metadata(metadata: Object, behind: bytes) -> bytes:
    """The stored form, of metadata without a resourceVersion and what `tail_of` gave."""
    return b'{"metadata":%b%b' % (_encode(metadata), behind)


def encode_compact(value: Any) -> bytes:
    """Encoded, to be kept: msgspec leaves as much as half of what it had reserved behind the bytes that it returns, so
    they are copied from a buffer of our own, in which most fit without it having to grow."""
    buffer = bytearray(USUAL_BYTES)
    _encode_into(value, buffer)
    return bytes(buffer)


def decode(value: bytes, api_version: str, kind: str, revision: int) -> Object:
    """The object, all of its own."""
    stored = _decode(value)
    if revision:
        stored["metadata"]["resourceVersion"] = str(revision)
    return {"kind": kind, "apiVersion": api_version, **stored}


def to_json(value: bytes, api_version: str, kind: str, revision: int) -> bytes:
    """The object as JSON, whole."""
    version = f'"resourceVersion":"{revision}",' if revision else ""
    start = f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{{version}'
    return start.encode() + value[_BEGUN:]


def to_item(value: bytes, revision: int) -> bytes:
    """The object as it stands in a list, where the list says what kind it is."""
    return to_items((value,), (revision,))


def to_items(values: Iterable[bytes], revisions: Iterable[int]) -> bytes:
    """Several, with commas between; each is copied as seldom as can be."""
    pieces: list[bytes] = []
    start = b'{"metadata":{"resourceVersion":"%d",'
    for value, revision in zip(values, revisions, strict=True):
        pieces.append(start % revision)
        pieces.append(value[_BEGUN:])
        start = b',{"metadata":{"resourceVersion":"%d",'
    return b"".join(pieces)
