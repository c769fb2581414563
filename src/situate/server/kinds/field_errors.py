"""The vocabulary of field errors: a Cause with the API server's exact form of words for each kind of mistake.

Paths are text, as `spec.containers[0].image`; whoever validates builds them only where something is wrong, or once a
list. Checks append to a list of causes that the caller owns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.errors import Cause

__all__ = [
    "IMMUTABLE",
    "NOT_NEGATIVE",
    "Causes",
    "at_least_zero",
    "check",
    "duplicate",
    "forbidden",
    "immutable",
    "internal",
    "invalid",
    "label_key",
    "label_selector",
    "labels",
    "not_found",
    "not_supported",
    "positive",
    "quoted",
    "required",
    "shown",
    "too_few",
    "too_long",
    "too_many",
]

Causes: TypeAlias = list[Cause]

IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
POSITIVE: Final = "must be greater than zero"

_SHORT_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_SHORT_ESCAPES |= {'"': r"\"", "\\": r"\\"}


def _escaped(letter: str) -> str:
    if letter in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted(text: str) -> str:
    """Text in double quotes with Go's escapes."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def shown(value: object) -> str:
    """A value in a message: text quoted, all else as compact JSON with the API server's escapes."""
    if isinstance(value, str):
        return quoted(value)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _detailed(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def required(path: str, detail: str = "") -> Cause:
    return Cause(path, _detailed("Required value", detail), "FieldValueRequired")


def invalid(path: str, value: object, detail: str) -> Cause:
    return Cause(path, _detailed(f"Invalid value: {shown(value)}", detail), "FieldValueInvalid")


def not_supported(path: str, value: object, supported: Iterable[str]) -> Cause:
    """`supported` in the order to be shown: Kubernetes' sets are sorted, its slices as written."""
    listed = ", ".join(map(quoted, supported))
    detail = f"supported values: {listed}" if listed else ""
    return Cause(path, _detailed(f"Unsupported value: {shown(value)}", detail), "FieldValueNotSupported")


def forbidden(path: str, detail: str) -> Cause:
    return Cause(path, _detailed("Forbidden", detail), "FieldValueForbidden")


def duplicate(path: str, value: object) -> Cause:
    return Cause(path, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def not_found(path: str, value: object) -> Cause:
    return Cause(path, f"Not found: {shown(value)}", "FieldValueNotFound")


def too_long(path: str, limit: int) -> Cause:
    detail = f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}"
    return Cause(path, f"Too long: {detail}", "FieldValueTooLong")


def too_many(path: str, actual: int, limit: int) -> Cause:
    detail = f"must have at most {limit} {'item' if limit == 1 else 'items'}"
    return Cause(path, f"Too many: {actual}: {detail}", "FieldValueTooMany")


def too_few(path: str, actual: int, least: int) -> Cause:
    detail = f"must have at least {least} {'item' if least == 1 else 'items'}"
    return Cause(path, f"Too few: {actual}: {detail}", "FieldValueTooFew")


def internal(path: str, detail: str) -> Cause:
    return Cause(path, f"Internal error: {detail}", "InternalError")


def immutable(new: Any, old: Any, path: str, causes: Causes) -> None:
    """None is what was left out."""
    if new != old:
        causes.append(invalid(path, new, IMMUTABLE))


def check(problems: Callable[[Any], Sequence[str]], value: Any, path: str, causes: Causes) -> None:
    """By a rule of `naming`: one cause for each thing wrong."""
    for problem in problems(value):
        causes.append(invalid(path, value, problem))


def at_least_zero(value: int, path: str, causes: Causes) -> None:
    if value < 0:
        causes.append(invalid(path, value, NOT_NEGATIVE))


def positive(value: int, path: str, causes: Causes) -> None:
    if value <= 0:
        causes.append(invalid(path, value, POSITIVE))


def label_key(key: str, path: str, causes: Causes) -> None:
    for problem in qualified_name_problems(key):
        causes.append(invalid(path, key, problem))


def labels(found: Mapping[str, str], path: str, causes: Causes) -> None:
    for key, value in found.items():
        for problem in qualified_name_problems(key):
            causes.append(invalid(path, key, problem))
        for problem in label_value_problems(value):
            causes.append(invalid(path, value, problem))


def label_selector(selector: Mapping[str, Any] | None, path: str, causes: Causes) -> None:
    """metav1.LabelSelector: matchLabels and matchExpressions."""
    if not selector:
        return
    if asked := selector.get("matchLabels"):
        labels(asked, f"{path}.matchLabels", causes)
    for index, expression in enumerate(selector.get("matchExpressions", ())):
        _requirement(expression, f"{path}.matchExpressions[{index}]", causes)


def _requirement(expression: Mapping[str, Any], path: str, causes: Causes) -> None:
    operator, values = expression.get("operator", ""), expression.get("values", ())
    if operator in ("In", "NotIn"):
        if not values:
            causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(forbidden(f"{path}.values", detail))
    else:
        causes.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    label_key(expression.get("key", ""), f"{path}.key", causes)
    for index, value in enumerate(values):
        for problem in label_value_problems(value):
            causes.append(invalid(f"{path}.values[{index}]", value, problem))
