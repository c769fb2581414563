"""Decodes bodies as kube-apiserver does: on a fast path, or else field by field, with kube-apiserver's errors."""

import json
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import msgspec

from situate.core.model.field_errors import extended
from situate.wire.schema.slow_decoder import Number, Pairs, Walk, plain_value, walked
from situate.wire.schema.structs import builtin, decoder_of, from_builtin
from situate.wire.schema.syntax import syntax_fault
from situate.wire.schema.table import Message, message_of
from situate.wire.schema.values import ValueRefusedError, check_free

# What msgspec raises for an invalid body.
_REFUSED: Final = (msgspec.DecodeError, ValueError, RecursionError)
SUMMARY: Final = 30
"""Characters of a body in an error message."""
HEAD: Final = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
"""Go's name for the type with which it reads a body's kind."""
TOO_DEEP: Final = "exceeded max depth"
BAD_TEXT: Final = "invalid text: not UTF-8, or half of a surrogate pair"
ANYWHERE: Final = "DeleteOptions"
"""The kind that is the same in every group."""
SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class DecodeError(ValueError):
    """The body is not such an object. The text is kube-apiserver's answer (400), `why` its last part."""

    def __init__(self, text: str, why: str = "", converting: str = "") -> None:
        super().__init__(text)
        self.why = why or text
        self.converting = converting or self.why
        """`why`, where kube-apiserver converts a tree of values and reads no JSON."""


class Decoded(msgspec.Struct, frozen=True):
    """An object, and what strict field validation reports about it."""

    object: dict[str, Any]
    problems: tuple[str, ...] = ()


def decode(api_version: str, kind: str, body: bytes, *, strict: bool = True) -> Decoded:
    """The normalised object in a JSON body, with kind and apiVersion, which the body may leave out.

    `problems` are unknown and duplicate fields, in the order of the body. Without `strict`, duplicates are not
    detected. Raises DecodeError.
    """
    one = _known(api_version, kind)
    try:
        found = builtin(decoder_of(one.name).decode(body))
    except _REFUSED:
        return _careful(api_version, kind, one, body)
    if found.get("kind") != kind or found.get("apiVersion") != api_version:
        return _careful(api_version, kind, one, body)
    if strict and _may_repeat(body):
        return _careful(api_version, kind, one, body)
    return Decoded(found)


def normalised(api_version: str, kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """A new object, as Go would write it after reading this one, with kind and apiVersion. Raises DecodeError."""
    return checked(api_version, kind, obj).object


def checked(api_version: str, kind: str, obj: dict[str, Any]) -> Decoded:
    """Normalise an object and report its problems, as `decode` does for a body. Raises DecodeError."""
    one = _known(api_version, kind)
    walk = Walk()
    try:
        found = builtin(from_builtin(one.name, obj))
    except _REFUSED:
        found = _walked(api_version, kind, one, obj, walk)
    if found.get("kind") != kind or found.get("apiVersion") != api_version:
        head = {"kind": kind, "apiVersion": api_version}
        found = head | found | head
    return Decoded(found, tuple(walk.problems))


def _walked(api_version: str, kind: str, one: Message, tree: Any, walk: Walk) -> dict[str, Any]:
    try:
        return walked(one, tree, walk)
    except ValueRefusedError as refused:
        raise DecodeError(_refusal(api_version, kind, kind, str(refused)), str(refused), refused.converting) from None


def strict_refusal(api_version: str, kind: str, problems: Sequence[str]) -> str:
    """The answer (400) to a body with problems if fieldValidation is Strict."""
    return _refusal(api_version, kind, kind, f"strict decoding error: {', '.join(problems)}")


def _refusal(api_version: str, kind: str, wanted: str, why: str) -> str:
    version = api_version.rpartition("/")[2]
    return f'{kind} in version "{version}" cannot be handled as a {wanted}: {why}'


def refusal(api_version: str, kind: str, why: str) -> str:
    """The answer (400) to a body that cannot be read as its kind."""
    return _refusal(api_version, kind, kind, why)


def other_version(given: str, expected: str) -> str:
    return f"the API version in the data ({given}) does not match the expected API version ({expected})"


def decode_free(kind: str, body: bytes) -> dict[str, Any]:
    """Any JSON object, for a kind that is not in the table. Raises DecodeError."""
    tree = _tree(kind, body)
    if not isinstance(tree, dict):
        _not_an_object(kind, body, tree)
    check_free(plain := plain_value(tree))
    return dict(plain)


def _known(api_version: str, kind: str) -> Message:
    one = message_of(api_version, kind)
    if one is None:
        raise DecodeError(_refusal(api_version, kind, kind, _unregistered(api_version, kind)))
    return one


def _unregistered(api_version: str, kind: str) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" {SCHEME}'


# ── duplicates ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _may_repeat(body: bytes) -> bool:
    """Whether the body may have a duplicate field. A cheap test, which may be true without cause.

    It counts colons: every field has one. Text may have some, but as many before as after, unless it has escapes.
    """
    return _encode(_decode(body)).count(b":") != body.count(b":")


def duplicate_fields(body: bytes) -> tuple[str, ...]:
    """The duplicate fields of any JSON body, such as a patch. Raises DecodeError."""
    try:
        if not _may_repeat(body):
            return ()
    except _REFUSED:
        pass
    walk = Walk()
    waiting: list[tuple[str, Any]] = [("", _tree("", body))]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Pairs):
            within = [(extended(path, f".{name}" if path else name), inner) for name, inner in value.pairs]
            seen: set[str] = set()
            for (name, _), (there, _) in zip(value.pairs, within, strict=True):
                if name in seen:
                    walk.note("duplicate", there)
                seen.add(name)
            waiting.extend(reversed(within))
        elif isinstance(value, list):
            waiting.extend(reversed([(f"{path}[{index}]", inner) for index, inner in enumerate(value)]))
    return tuple(walk.problems)


# ── the careful way ──────────────────────────────────────────────────────────────────────────────────────────────────


def _careful(api_version: str, kind: str, one: Message, body: bytes) -> Decoded:
    tree = _tree(kind, body)
    if tree is not None and not isinstance(tree, dict):
        _not_an_object(kind, body, tree)
    given = _head(kind, body, tree or {})
    given = (given[0] or api_version, given[1] or kind)
    if given != (api_version, kind) and not (kind == given[1] == ANYWHERE):
        _mismatched(api_version, kind, *given, body)
    walk = Walk()
    found = _walked(api_version, kind, one, tree, walk)
    try:
        _encode(found)
    except UnicodeEncodeError:
        _unrecognised(kind, body, BAD_TEXT)
    return Decoded({"kind": kind, "apiVersion": api_version} | found, tuple(walk.problems))


def _not_an_object(kind: str, body: bytes, tree: Any) -> NoReturn:
    called = "array" if isinstance(tree, list) else "bool" if isinstance(tree, bool) else "string"
    called = "number" if isinstance(tree, Number) else "null" if tree is None else called
    _unrecognised(kind, body, f"json: cannot unmarshal {called} into Go value of type {HEAD}")


def _head(kind: str, body: bytes, tree: dict[str, Any]) -> tuple[str, str]:
    """The apiVersion and kind in a body."""
    for name in ("apiVersion", "kind"):
        value = tree.get(name)
        if value is not None and (not isinstance(value, str) or isinstance(value, Number)):
            called = {dict: "object", Pairs: "object", list: "array", bool: "bool"}.get(type(value), "number")
            _unrecognised(kind, body, f"json: cannot unmarshal {called} into Go struct field .{name} of type string")
    return tree.get("apiVersion") or "", tree.get("kind") or ""


def _mismatched(api_version: str, kind: str, given_version: str, given_kind: str, body: bytes) -> NoReturn:
    """Refuse a body of another kind or version."""
    if given_version.count("/") > 1:
        raise DecodeError(
            f"the object provided is unrecognized (must be of type {kind}): "
            f"unexpected GroupVersion string: {given_version} ({_summary(body)})"
        )
    group = api_version.rpartition("/")[0]
    if given_kind == kind and given_version.rpartition("/")[0] == group and group:
        raise DecodeError(other_version(given_version, api_version))
    if message_of(given_version, given_kind) is None:
        raise DecodeError(_refusal(given_version, given_kind, kind, _unregistered(given_version, given_kind)))
    version = given_version.rpartition("/")[2]
    inside = group.partition(".")[0] or "core"
    why = f"converting ({version}.{given_kind}) to ({inside}.{kind}): unknown conversion"
    raise DecodeError(_refusal(given_version, given_kind, kind, why))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_tree_decoder: Final = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=_no_constant
)


def _tree(kind: str, body: bytes) -> Any:
    """The body as a tree that keeps the text of numbers and duplicate fields."""
    tree: Any = None
    fault = ""
    try:
        tree = _tree_decoder.decode(body.decode())
    except RecursionError:
        fault = syntax_fault(body) or TOO_DEEP
    except UnicodeDecodeError:
        fault = syntax_fault(body) or BAD_TEXT
    except ValueError as wrong:
        fault = syntax_fault(body) or str(wrong)
    if fault:
        _unrecognised(kind, body, fault)
    return tree


def _unrecognised(kind: str, body: bytes, why: str) -> NoReturn:
    raise DecodeError(
        f"the object provided is unrecognized (must be of type {kind}): "
        f"couldn't get version/kind; json parse error: {why} ({_summary(body)})",
        why,
    )


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    start = body[:SUMMARY]
    shown = start.decode(errors="replace") if body[:1] == b"{" else start.hex()
    return f"{shown} ..." if len(body) > SUMMARY else shown
