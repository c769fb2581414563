"""`"%s of %d".format([a, b])`."""

import re
from collections.abc import Callable
from math import isinf, isnan
from typing import Any

from situate.core.cel.errors import ErrorValue
from situate.core.cel.formatting import duration_text, go_quote
from situate.core.cel.libraries.conversions import to_string
from situate.core.cel.libraries.times import format_timestamp
from situate.core.cel.values import (
    DurationValue,
    MapValue,
    TimestampValue,
    TypeValue,
    UInt,
    Value,
    type_name,
)

DEFAULT_PRECISION = 6
STRING_CLAUSE = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps, was given "
)
CLAUSES = {
    "s": STRING_CLAUSE,
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}
_PRECISION = re.compile(r"\.([0-9]*)", re.ASCII)
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class FormatClauseError(ValueError):
    """The format or an argument does not do; `reason` is without what wraps it."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


def _during(reason: str) -> FormatClauseError:
    return FormatClauseError(f"error during formatting: {reason}", reason)


def interpolate(text: str, argument: Callable[[int], Any], write: Callable[[str, int | None, Any], str]) -> str:
    """The text with each clause replaced by what `write` makes of its argument; raises FormatClauseError."""
    parts: list[str] = []
    position, index = 0, 0
    while True:
        percent = text.find("%", position)
        if percent < 0:
            return "".join((*parts, text[position:]))
        parts.append(text[position:percent])
        if text.startswith("%%", percent):
            parts.append("%")
            position = percent + 2
            continue
        value = argument(index)
        if percent + 1 >= len(text):
            raise FormatClauseError("unexpected end of string")
        clause, precision, position = _clause(text, percent + 1)
        parts.append(write(clause, precision, value))
        index += 1


def _clause(text: str, at: int) -> tuple[str, int | None, int]:
    precision: int | None = None
    trouble = "could not parse formatting clause: "
    if found := _PRECISION.match(text, at):
        at = found.end()
        wrong = f"{trouble}error while parsing precision: "
        if at >= len(text):
            raise FormatClauseError(f"{wrong}could not find end of precision specifier")
        if not found[1] or len(found[1]) > 18:
            problem = "invalid syntax" if not found[1] else "value out of range"
            number = f"strconv.Atoi: parsing {go_quote(found[1])}: {problem}"
            raise FormatClauseError(f"{wrong}error while converting precision to integer: {number}")
        precision = int(found[1])
    clause = text[at]
    if clause not in CLAUSES:
        # Go looks at one byte.
        shown = chr(clause.encode()[0])
        raise FormatClauseError(f'{trouble}unrecognized formatting clause "{shown}"')
    return clause, precision, at + 1


def format_string(text: str, args: list[Any]) -> Any:
    def argument(index: int) -> Any:
        if index >= len(args):
            raise FormatClauseError(f"index {index} out of range")
        return args[index]

    try:
        return interpolate(text, argument, _write)
    except FormatClauseError as error:
        return ErrorValue(str(error))


def _write(clause: str, precision: int | None, value: Any) -> str:
    refused = _during(CLAUSES[clause] + type_name(value))
    match clause:
        case "s":
            return _string(value)
        case "d":
            if type(value) not in (int, UInt):
                raise refused
            return str(int(value))
        case "f" | "e":
            return _float(clause, DEFAULT_PRECISION if precision is None else precision, value, refused)
        case "b":
            if isinstance(value, bool):
                return "1" if value else "0"
            return _integer(value, "b", refused)
        case "o":
            return _integer(value, "o", refused)
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return value.hex().upper() if clause == "X" else value.hex()
    return _integer(value, clause, refused)


def _integer(value: Any, style: str, refused: FormatClauseError) -> str:
    if type(value) not in (int, UInt):
        raise refused
    return f"{int(value):{style}}"


def _float(clause: str, precision: int, value: Any, refused: FormatClauseError) -> str:
    if isinstance(value, str) and value in _SPECIAL:
        value = _SPECIAL[value]
    if not isinstance(value, float):
        raise refused
    if isnan(value) or isinf(value):
        special = "NaN" if isnan(value) else "∞" if value > 0 else "-∞"
        return special.rjust(precision) if clause == "e" else special
    value += 0.0  # zero has no sign
    if clause == "f":
        return f"{value:,.{precision}f}"
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    power = f"{int(exponent):03d}" if int(exponent) < 0 else f"{int(exponent):02d}"
    return f"{mantissa}×10{power.translate(_SUPERSCRIPT)}".rjust(precision)


def _string(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_element, value))}]"
    if isinstance(value, MapValue):
        entries = sorted((_key(key), _element(element)) for key, element in value.items())
        return f"{{{', '.join(f'{key}:{element}' for key, element in entries)}}}"
    text = _plain(value)
    if text is None:
        raise _during(STRING_CLAUSE + type_name(value))
    return text


def _plain(value: Value) -> str | None:
    if not isinstance(value, (bool, int, float, str, bytes, DurationValue, TimestampValue, TypeValue)):
        return None
    text = to_string(value)
    if isinstance(text, ErrorValue):
        raise _during(f"could not convert argument {go_quote(text.message)} to string")
    return str(text)


def _element(value: Any) -> str:
    """An element of a list or map, quoted as CEL would have it."""
    match value:
        case str():
            return go_quote(value)
        case bytes():
            return "b" + go_quote(_string(value))
        case float():
            if isinf(value) or isnan(value):
                return '"NaN"' if isnan(value) else ('"+Inf"' if value > 0 else '"-Inf"')
            return f"{value:.6f}"
        case TimestampValue():
            return f"timestamp({go_quote(format_timestamp(value))})"
        case DurationValue():
            return f"duration({go_quote(duration_text(value))})"
        case None | bool() | int() | list() | MapValue() | TypeValue():
            return _string(value)
    raise _during(f"no formatting function for {type_name(value)}")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return go_quote(key)
    if isinstance(key, (bool, int)):
        return _string(key)
    raise _during(f"no formatting function for map key of type {type_name(key)}")
