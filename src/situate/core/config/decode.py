"""Decodes plain mappings into the configuration's types, strictly: unknown fields and wrong types are problems.

The input comes from a YAML or JSON parser, which detects duplicate keys. Nothing here sets defaults that depend on
other fields, or validates a value beyond its type.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
import msgspec.inspect as mi
from msgspec.structs import replace

from situate.core.config.errors import ConfigError
from situate.core.config.types import (
    API_GROUP,
    API_VERSION,
    KIND,
    NOT_IN_FILES,
    POD_GROUP_POST_FILTER,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
)
from situate.core.model.duration import parse_duration
from situate.core.model.field_errors import child, distinct, go_json, index, quoted
from situate.core.plugins.table import ARGS
from situate.core.versions import DEFAULT, KubernetesRules

S = TypeVar("S", bound=msgspec.Struct)

MOST_PROBLEMS: Final = 100  # kube-scheduler's decoder stops at the same number
_LONGEST_SHOWN: Final = 80  # of a bad value, in characters

_TYPE_META: Final = ("apiVersion", "kind")


def _struct_type(cls: type) -> mi.StructType:
    info = mi.type_info(cls)
    if not isinstance(info, mi.StructType):
        raise TypeError(f"{cls.__name__} is not a struct")
    return info


_CONFIGURATION: Final = _struct_type(KubeSchedulerConfiguration)
_ARGS: Final = {name: _struct_type(cls) for name, cls in ARGS.items()}


def decode(raw: object, rules: KubernetesRules = DEFAULT) -> KubeSchedulerConfiguration:
    """The configuration as in the file, for a version of Kubernetes. Raises ConfigError with all decoding problems."""
    document = _checked_header(raw)
    problems: list[str] = []
    config: KubeSchedulerConfiguration = _struct(_CONFIGURATION, document, "", problems, known=_TYPE_META)
    config = replace(
        config,
        kubernetes_version=rules.version,
        profiles=tuple(_with_args(profile, f"profiles[{i}]", problems) for i, profile in enumerate(config.profiles)),
    )
    if not rules.pod_group_post_filter:
        problems += _later_fields(document)
    if problems:
        raise ConfigError(distinct(problems)[:MOST_PROBLEMS])
    return config


def _later_fields(document: Mapping[Any, Any]) -> list[str]:
    """The fields that older versions do not know."""
    profiles = document.get("profiles")
    found = []
    for i, profile in enumerate(profiles if isinstance(profiles, list | tuple) else ()):
        plugins = profile.get("plugins") if isinstance(profile, Mapping) else None
        if isinstance(plugins, Mapping) and POD_GROUP_POST_FILTER in plugins:
            path = child(index("profiles", i), "plugins", POD_GROUP_POST_FILTER)
            found.append(f"strict decoding error: unknown field {quoted(path)}")
    return found


def decode_struct(cls: type[S], raw: object) -> S:
    """Decode a struct from a file of its own. Raises ConfigError."""
    problems: list[str] = []
    decoded: S = _struct(_struct_type(cls), {} if raw is None else raw, "", problems)
    if problems:
        raise ConfigError(distinct(problems)[:MOST_PROBLEMS])
    return decoded


# ── what the document says it is ────────────────────────────────────────────────────────────────────────────────────


def _checked_header(raw: object) -> Mapping[Any, Any]:
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        raise ConfigError([f"couldn't get version/kind; expected an object, got {_json_type(raw)}"])
    version, kind = (raw.get(key) or "" for key in _TYPE_META)
    for key, value in zip(_TYPE_META, (version, kind), strict=True):
        if not isinstance(value, str):
            raise ConfigError([f"couldn't get version/kind; {_wrong_type(key, value, 'string')}"])
    if version.count("/") > 1:
        raise ConfigError([f"unexpected GroupVersion string: {version}"])
    if not kind:
        raise ConfigError(["Object 'Kind' is missing"])
    if not version:
        raise ConfigError(["Object 'apiVersion' is missing"])
    if (version, kind) != (API_VERSION, KIND):
        raise ConfigError([_wrong_header(version, kind)])
    return raw


def _wrong_header(version: str, kind: str) -> str:
    if version == API_VERSION and kind in {f"{plugin}Args" for plugin in ARGS}:
        return f"couldn't decode as {KIND}, got {version}, Kind={kind}"
    return f"{_not_registered(version, kind)} (only {quoted(KIND)} of version {quoted(API_VERSION)} is read)"


def _not_registered(version: str, kind: str) -> str:
    return f"no kind {quoted(kind)} is registered for version {quoted(version)}"


# ── plugins' arguments ──────────────────────────────────────────────────────────────────────────────────────────────


def _with_args(profile: KubeSchedulerProfile, path: str, problems: list[str]) -> KubeSchedulerProfile:
    plugin_config = tuple(
        replace(entry, args=_args(entry, child(index(child(path, "pluginConfig"), i), "args"), problems))
        for i, entry in enumerate(profile.plugin_config)
    )
    return replace(profile, plugin_config=plugin_config)


def _args(entry: PluginConfig, path: str, problems: list[str]) -> Any:
    """Typed for built-in plugins; as in the file for out-of-tree plugins."""
    info = _ARGS.get(entry.name)
    if info is None:
        return entry.args
    raw = {} if entry.args is None else entry.args
    if not isinstance(raw, Mapping):
        problems.append(_wrong_type(path, raw, "object"))
        return info.cls()
    fault = _args_header_fault(entry.name, raw)
    if fault:
        problems.append(f"{path}: {fault}")
        return info.cls()
    return _struct(info, raw, path, problems, known=_TYPE_META)


def _args_header_fault(plugin: str, raw: Mapping[Any, Any]) -> str:
    """Arguments may have an apiVersion and kind; if so, these must be the plugin's."""
    wanted = f"{plugin}Args"
    version, kind = raw.get("apiVersion") or API_VERSION, raw.get("kind") or wanted
    for key, value in zip(_TYPE_META, (version, kind), strict=True):
        if not isinstance(value, str):
            return f"couldn't get version/kind; {_wrong_type(key, value, 'string')}"
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if version != API_VERSION or kind not in {KIND, *(f"{name}Args" for name in ARGS)}:
        return _not_registered(version, kind)
    if kind != wanted:
        return f"args for plugin {plugin} were not of type {wanted}.{API_GROUP}, got {kind}.{API_GROUP}"
    return ""


# ── values by type ──────────────────────────────────────────────────────────────────────────────────────────────────


def _struct(info: mi.StructType, raw: object, path: str, problems: list[str], known: tuple[str, ...] = ()) -> Any:
    if not isinstance(raw, Mapping):
        problems.append(_wrong_type(path, raw, "object"))
        return info.cls()
    fields = {field.encode_name: field for field in info.fields if field.encode_name not in NOT_IN_FILES}
    values: dict[str, Any] = {}
    # kube-scheduler converts YAML to JSON with sorted keys first, so its errors come in that order.
    for key, value in sorted(((str(key), value) for key, value in raw.items()), key=lambda item: item[0]):
        if key in fields:
            if value is not None:
                values[fields[key].name] = _value(fields[key].type, value, child(path, key), problems)
        elif key not in known:
            problems.append(f"strict decoding error: unknown field {quoted(child(path, key))}")
    return info.cls(**values)


def _value(kind: mi.Type, raw: object, path: str, problems: list[str]) -> Any:
    """The value; or the type's zero value and a problem."""
    match kind:
        case mi.UnionType():
            given = next(member for member in kind.types if not isinstance(member, mi.NoneType))
            return _value(given, raw, path, problems)
        case mi.StructType():
            return _struct(kind, {} if raw is None else raw, path, problems)
        case mi.VarTupleType():
            return _tuple(kind, raw, path, problems)
        case mi.DictType():
            return _mapping(kind, raw, path, problems)
        case mi.AnyType():
            return raw
        case _:
            return _scalar(kind, raw, path, problems)


def _tuple(kind: mi.VarTupleType, raw: object, path: str, problems: list[str]) -> tuple[Any, ...]:
    if not isinstance(raw, list | tuple):
        problems.append(_wrong_type(path, raw, "array"))
        return ()
    return tuple(_value(kind.item_type, item, index(path, i), problems) for i, item in enumerate(raw))


def _mapping(kind: mi.DictType, raw: object, path: str, problems: list[str]) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        problems.append(_wrong_type(path, raw, "object"))
        return {}
    return {str(key): _value(kind.value_type, raw[key], f"{path}[{key}]", problems) for key in raw}


def _scalar(kind: mi.Type, raw: object, path: str, problems: list[str]) -> Any:
    empty, expected, read = _reader(kind)
    if raw is None:
        return empty
    try:
        return read(kind, raw)
    except TypeError:
        problems.append(_wrong_type(path, raw, expected))
    except ValueError as error:
        problems.append(f"{path}: Invalid value: {_short(raw)}: {error}")
    return empty


def _reader(kind: mi.Type) -> tuple[Any, str, Callable[[mi.Type, object], Any]]:
    """For a type: its zero value, its name, and its parser."""
    match kind:
        case mi.Metadata(extra={"text": "duration"}):
            return 0, "string", _duration
        case mi.IntType(le=2147483647):
            return 0, "int32", _int
        case mi.IntType():
            return 0, "int64", _int
        case mi.FloatType():
            return 0.0, "number", _float
        case mi.BoolType():
            return False, "boolean", _bool
        case mi.StrType():
            return "", "string", _str
        case mi.BytesType():
            return b"", "string (base64)", _bytes
        case _:
            raise NotImplementedError(f"no reader for {kind}")


def _duration(_kind: mi.Type, raw: object) -> int:
    return parse_duration(_str(_kind, raw))


def _int(kind: mi.Type, raw: object) -> int:
    # An integer may be written `2.0`: JSON turns it into `2`.
    if isinstance(raw, float) and raw.is_integer():
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise TypeError
    if not _fits(kind, raw):
        raise TypeError
    return raw


def _float(kind: mi.Type, raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise TypeError
    if not _fits(kind, raw):
        raise TypeError
    return float(raw)


def _fits(kind: mi.Type, number: float) -> bool:
    if not isinstance(kind, mi.IntType | mi.FloatType):
        return False
    return (kind.ge is None or number >= kind.ge) and (kind.le is None or number <= kind.le)


def _bool(_kind: mi.Type, raw: object) -> bool:
    if not isinstance(raw, bool):
        raise TypeError
    return raw


def _str(_kind: mi.Type, raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError
    return raw


def _bytes(_kind: mi.Type, raw: object) -> bytes:
    try:
        return base64.b64decode(_str(_kind, raw), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("illegal base64 data") from error


# ── how a bad value is shown ────────────────────────────────────────────────────────────────────────────────────────


def _wrong_type(path: str, raw: object, expected: str) -> str:
    return f"{path}: Invalid value: {_short(raw)}: must be of type {expected}"


def _short(raw: object) -> str:
    text = go_json(raw) if isinstance(raw, str | int | float | bool | None) else _json_type(raw)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _json_type(raw: object) -> str:
    if isinstance(raw, Mapping):
        return "object"
    if isinstance(raw, list | tuple):
        return "array"
    return type(raw).__name__ if not isinstance(raw, str) else "string"
