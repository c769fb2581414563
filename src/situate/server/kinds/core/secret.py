"""Secrets: like ConfigMaps, in base64, with the keys that their type requires."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from situate.server.kinds.core.configmap import MAX_SIZE, decoded_size, locked
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import config_key
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

ACCOUNT: Final = "kubernetes.io/service-account.name"
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER: Final = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_REDACTED: Final = "<secret contents redacted>"


def _default(secret: Object) -> None:
    """Move stringData, which is write-only, into data."""
    if "type" not in secret:
        secret["type"] = "Opaque"
    told = secret.pop("stringData", None)
    if told:
        data = secret.setdefault("data", {})
        for key, value in told.items():
            data[key] = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()


def _validate(secret: Object, causes: Causes) -> None:
    data: Mapping[str, Any] = secret.get("data") or {}
    size = 0
    for key, value in data.items():
        causes.check(config_key, key, f"data[{key}]")
        size += decoded_size(value)
    if size > MAX_SIZE:
        causes.too_long("data", MAX_SIZE)
    _by_type(secret, secret.get("type", ""), data, causes)


def _by_type(secret: Object, kind: str, data: Mapping[str, Any], causes: Causes) -> None:
    if kind == "kubernetes.io/service-account-token":
        if not secret.get("metadata", {}).get("annotations", {}).get(ACCOUNT):
            causes.required(f"metadata.annotations[{ACCOUNT}]")
    elif kind in _DOCKER:
        _docker(_DOCKER[kind], data, causes)
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            causes.required("data[username]")
            causes.required("data[password]")
    else:
        for key in _NEEDED.get(kind, ()):
            if key not in data or (key == "ssh-privatekey" and not data[key]):
                causes.required(f"data[{key}]")


def _docker(key: str, data: Mapping[str, Any], causes: Causes) -> None:
    if key not in data:
        causes.required(f"data[{key}]")
        return
    why = _not_an_object(data[key])
    if why:
        causes.invalid(f"data[{key}]", _REDACTED, why)


def _not_an_object(text: str) -> str:
    """Why base64 text is not a JSON object: in Go's words for simple cases, in ours for the rest."""
    try:
        found = msgspec.json.decode(base64.b64decode(text))
    except (binascii.Error, msgspec.DecodeError):
        raw = base64.b64decode(text, validate=False).decode("utf-8", "replace").lstrip()
        if not raw:
            return "unexpected end of JSON input"
        if raw[0] not in '{["-0123456789tfn':
            return f"invalid character '{raw[0]}' looking for beginning of value"
        return "invalid JSON"
    if found is None or isinstance(found, dict):
        return ""
    kinds = {str: "string", bool: "bool", list: "array"}
    kind = kinds.get(type(found), "number")
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    causes.immutable(new.get("type", ""), old.get("type", ""), "type")
    locked(new, old, ("data",), causes)
    _validate(new, causes)


def _selectable(secret: Object) -> Mapping[str, str]:
    return {"type": secret.get("type", "")}


KIND: Final = Kind(
    "v1 secrets Secret N - -",
    strategy=Strategy(
        default=_default,
        validate=_validate,
        validate_update=_validate_update,
        selectable=_selectable,
    ),
    columns="Name!, Type = type, Data = count(data), Age",
    description="Secret holds confidential data.",
)
