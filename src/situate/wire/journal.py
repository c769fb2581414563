"""The journal of the engine: its changes and effects, one line of JSON a record.

    9a3f01c7 {"record":"journal","version":1,...}                      first in every file: what the history is of
    5f00c0de {"record":"step","step":1,"now":0,"changes":[["NodeSeen",{...}],...]}
    00a1b2c3 {"record":"effects","step":1,"effects":[["Bind",{...}]]}

Before the JSON stands the CRC-32 of it. Every kind of Change and Effect goes there and back unchanged; a line that was
not written here, or was damaged since, is an InputError that says which it is. Opens nothing and knows no clock.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args, get_type_hints
from zlib import crc32

import msgspec
from msgspec.structs import replace

from situate import __version__
from situate.core.changes import Change, Millis, ObjectGone, ObjectSeen
from situate.core.config.decode import decode as decode_config
from situate.core.config.encode import encode as encode_config
from situate.core.config.errors import ConfigError
from situate.core.config.types import Extender, KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS
from situate.core.versions import DEFAULT, RULES, KubernetesRules
from situate.wire.errors import InputError, from_decoder

VERSION: Final = 1
"""Of the records. Any other version is rejected."""


class JournalHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first record of a file. A journal may span several files, each with a segment of it."""

    config: KubeSchedulerConfiguration
    batch: int
    """Pods to decide in one step, at most."""
    unschedulable_limit_ms: Millis = UNSCHEDULABLE_LIMIT_MS
    """After how long an unschedulable pod is retried without an event."""
    segment: int = 1
    first_step: int = 1
    situate: str = __version__
    """The release that wrote it."""
    format: str = ""
    """The fingerprint of that release's changes and effects."""


class StepChanges(msgspec.Struct, frozen=True):
    """The input of a step."""

    step: int
    now: Millis
    changes: tuple[Change, ...]


class StepEffects(msgspec.Struct, frozen=True):
    """The output of a step: the effects, or only their digest."""

    step: int
    effects: tuple[Effect, ...] | None
    digest: str = ""


JournalRecord: TypeAlias = JournalHeader | StepChanges | StepEffects

# ── the kinds ───────────────────────────────────────────────────────────────────────────────────────────────────────

_ITEMS: Final = {kind.__name__: kind for kind in get_args(get_type_hints(ObjectSeen)["item"])}
_WITH_ITEM: Final[Mapping[str, type[ObjectSeen | ObjectGone]]] = MappingProxyType(
    {kind.__name__: kind for kind in (ObjectSeen, ObjectGone)}
)
_CHANGES: Final = {kind.__name__: kind for kind in get_args(Change) if kind.__name__ not in _WITH_ITEM}
_EFFECTS: Final = {kind.__name__: kind for kind in get_args(Effect)}
_DECODERS: Final[Mapping[str, msgspec.json.Decoder[Any]]] = MappingProxyType(
    {name: msgspec.json.Decoder(kind) for name, kind in (_CHANGES | _EFFECTS | _ITEMS).items()}
)


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """A hash of all kinds with their fields and defaults. With equal fingerprints, equal bytes mean the same."""
    kinds = [*_CHANGES.values(), *_EFFECTS.values(), *_ITEMS.values()]
    schema = _without_words(msgspec.json.schema_components(kinds))
    return blake2b(json.dumps(schema, sort_keys=True).encode(), digest_size=8).hexdigest()


def _without_words(value: Any) -> Any:
    """A schema without titles and descriptions."""
    if isinstance(value, dict):
        words = ("description", "title") if "properties" in value else ()
        return {key: _without_words(held) for key, held in value.items() if key not in words}
    return [_without_words(held) for held in value] if isinstance(value, list | tuple) else value


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_Pair: TypeAlias = tuple[str, Any]


class _HeaderLine(msgspec.Struct, tag_field="record", tag="journal", omit_defaults=True):
    version: int
    situate: str
    format: str
    batch: int
    segment: int
    first_step: int
    config: dict[str, Any]
    parked_limit_ms: Millis = UNSCHEDULABLE_LIMIT_MS
    kubernetes: str = DEFAULT.version


class _ChangesLine(msgspec.Struct, tag_field="record", tag="step"):
    step: int
    now: int
    changes: list[tuple[str, msgspec.Raw]]


class _EffectsLine(msgspec.Struct, tag_field="record", tag="effects", omit_defaults=True):
    step: int
    effects: list[tuple[str, msgspec.Raw]] | None = None
    digest: str = ""


_ENCODER: Final = msgspec.json.Encoder()


def encode_record(record: JournalRecord) -> bytes:
    """One line, with its newline. Raises ValueError for text that is not UTF-8, such as a lone surrogate."""
    payload = _ENCODER.encode(_line(record))
    return b"%08x %s\n" % (crc32(payload), payload)


def _line(record: JournalRecord) -> object:
    match record:
        case JournalHeader():
            return _header_line(record)
        case StepChanges(step, now, changes):
            return {"record": "step", "step": step, "now": now, "changes": [_named(change) for change in changes]}
        case StepEffects(step, None, digest):
            return _EffectsLine(step, None, digest)
        case StepEffects(step, effects):
            return {"record": "effects", "step": step, "effects": [_named(effect) for effect in effects or ()]}


def _header_line(header: JournalHeader) -> _HeaderLine:
    return _HeaderLine(
        version=VERSION,
        situate=header.situate,
        format=header.format or fingerprint(),
        batch=header.batch,
        parked_limit_ms=header.unschedulable_limit_ms,
        segment=header.segment,
        first_step=header.first_step,
        config=encode_config(_without_keys(header.config)),
        kubernetes=header.config.kubernetes_version,
    )


def _without_keys(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Journals are shared, so they must not have the private keys of extenders."""
    return replace(config, extenders=tuple(_without_key(extender) for extender in config.extenders))


def _without_key(extender: Extender) -> Extender:
    tls = extender.tls_config
    return extender if tls is None else replace(extender, tls_config=replace(tls, key_data=b""))


def _named(one: Change | Effect) -> _Pair:
    name = type(one).__name__
    if isinstance(one, ObjectSeen | ObjectGone):
        return name, {"kind": type(one.item).__name__, "item": one.item}
    return name, one


def plain(one: Change | Effect) -> dict[str, Any]:
    """One change or effect as plain values, its kind first."""
    name, body = _named(one)
    fields: dict[str, Any] = msgspec.to_builtins(body)
    return {"is": name, **fields}


def digest_of(effects: Sequence[Effect]) -> str:
    """A digest of effects in their order."""
    return blake2b(_ENCODER.encode([_named(effect) for effect in effects]), digest_size=16).hexdigest()


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_CRC_CHARS: Final = 8
DAMAGED: Final = "damaged: its checksum is another"
NOT_A_RECORD: Final = "not a record of a journal"


class _Version(msgspec.Struct, tag_field="record", tag="journal"):
    version: int


class _Item(msgspec.Struct):
    kind: str
    item: msgspec.Raw


_VERSION: Final = msgspec.json.Decoder(_Version)
_LINE: Final[msgspec.json.Decoder[_HeaderLine | _ChangesLine | _EffectsLine]] = msgspec.json.Decoder(
    _HeaderLine | _ChangesLine | _EffectsLine
)
_ITEM: Final = msgspec.json.Decoder(_Item)
_Place: TypeAlias = tuple[str, str]
"""File and record, for messages."""


def decode_record(line: bytes, file: str = "", number: int = 0) -> JournalRecord:
    """Decode a line of `encode_record`; `number` is the line number. Raises InputError."""
    place = (file, f"record {number}" if number else "")
    payload = _checked(line, place)
    try:
        found = _LINE.decode(payload)
    except msgspec.ValidationError as error:
        _refuse_other_version(payload, place)
        raise _wrong(place, *from_decoder(str(error), None)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong(place, "", f"not JSON: {error}") from None
    if isinstance(found, _HeaderLine):
        return _header(found, place)
    if isinstance(found, _ChangesLine):
        return StepChanges(found.step, found.now, tuple(_read(_CHANGES, pair, place) for pair in found.changes))
    if found.effects is None:
        return StepEffects(found.step, None, found.digest)
    return StepEffects(found.step, tuple(_read(_EFFECTS, pair, place) for pair in found.effects))


def _checked(line: bytes, place: _Place) -> bytes:
    """The JSON of a line, after checking its checksum."""
    crc, blank, rest = line[:_CRC_CHARS], line[_CRC_CHARS : _CRC_CHARS + 1], line[_CRC_CHARS + 1 :]
    if blank != b" " or not rest.endswith(b"\n") or crc.strip(b"0123456789abcdef"):
        raise _wrong(place, "", NOT_A_RECORD)
    payload = rest[:-1]
    if crc != b"%08x" % crc32(payload):
        raise _wrong(place, "", DAMAGED)
    return payload


def _refuse_other_version(payload: bytes, place: _Place) -> None:
    """Reject another version first, since anything else in it may differ."""
    try:
        found = _VERSION.decode(payload)
    except msgspec.ValidationError:
        return
    _check_version(found.version, place)


def _check_version(version: int, place: _Place) -> None:
    if version != VERSION:
        raise _wrong(place, "", f"is of version {version}, and only version {VERSION} can be read")


def _header(line: _HeaderLine, place: _Place) -> JournalHeader:
    _check_version(line.version, place)
    try:
        config = decode_config(line.config, _rules(line.kubernetes, place))
    except ConfigError as error:
        raise _wrong(place, "config", error.problems[0]) from None
    if line.batch < 1 or line.parked_limit_ms < 0 or line.segment < 1 or line.first_step < 1:
        raise _wrong(place, "", NOT_A_RECORD)
    return JournalHeader(
        config=config,
        batch=line.batch,
        unschedulable_limit_ms=line.parked_limit_ms,
        segment=line.segment,
        first_step=line.first_step,
        situate=line.situate,
        format=line.format,
    )


def _rules(version: str, place: _Place) -> KubernetesRules:
    found = RULES.get(version)
    if found is None:
        raise _wrong(place, "kubernetes", f"is {version}, and only {', '.join(RULES)} are known")
    return found


def _read(kinds: Mapping[str, type], pair: tuple[str, msgspec.Raw], place: _Place) -> Any:
    name, body = pair
    try:
        if name in kinds:
            return _DECODERS[name].decode(body)
        if kinds is _CHANGES and name in _WITH_ITEM:
            held = _ITEM.decode(body)
            if held.kind in _ITEMS:
                return _WITH_ITEM[name](_DECODERS[held.kind].decode(held.item))
            name = held.kind
    except msgspec.ValidationError as error:
        raise _wrong(place, *from_decoder(str(error), None), subject=name) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong(place, "", f"not JSON: {error}", subject=name) from None
    what: Literal["change", "effect"] = "change" if kinds is _CHANGES else "effect"
    raise _wrong(place, "", f"has a {what} of an unknown kind, {json.dumps(name)}")


def _wrong(place: _Place, path: str, problem: str, subject: str = "") -> InputError:
    file, record = place
    return InputError(problem, file=file, subject=": ".join(part for part in (record, subject) if part), path=path)
