"""ConfigMaps: valid keys, a maximum size, and immutability."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import config_key
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

MAX_SIZE: Final = 1 << 20
LOCKED: Final = "field is immutable when `immutable` is set"


def decoded_size(text: str) -> int:
    """The number of bytes that base64 text encodes."""
    return len(text) * 3 // 4 - text[-2:].count("=")


def locked(new: Object, old: Object, keys: tuple[str, ...], causes: Causes) -> None:
    """An immutable object stays immutable and keeps its data."""
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        causes.forbidden("immutable", LOCKED)
    for key in keys:
        if (new.get(key) or {}) != (old.get(key) or {}):
            causes.forbidden(key, LOCKED)


def _validate(obj: Object, causes: Causes) -> None:
    data: Mapping[str, Any] = obj.get("data") or {}
    binary: Mapping[str, Any] = obj.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        causes.check(config_key, key, f"data[{key}]")
        if key in binary:
            causes.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    for key, value in binary.items():
        causes.check(config_key, key, f"binaryData[{key}]")
        size += decoded_size(value)
    if size > MAX_SIZE:
        causes.too_long("", MAX_SIZE)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    locked(new, old, ("data", "binaryData"), causes)
    _validate(new, causes)


def _entries(obj: Object) -> int:
    return len(obj.get("data") or ()) + len(obj.get("binaryData") or ())


KIND: Final = Kind(
    "v1 configmaps ConfigMap N cm -",
    strategy=Strategy(validate=_validate, validate_update=_validate_update),
    columns="Name!, Data, Age",
    cells={"Data": _entries},
    description="ConfigMap holds settings for pods to read.",
)
