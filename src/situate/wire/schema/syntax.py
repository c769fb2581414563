"""Finds the syntax error in invalid JSON, in the words of Go's scanner. Linear in time, without recursion."""

import re
from typing import Final

MAX_DEPTH: Final = 10_000
"""Where Go's scanner stops."""
MAX_STEPS: Final = 100_000
"""The number of values to scan. An error beyond it gets a generic message."""
CUT_OFF: Final = "unexpected end of JSON input"

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_LETTERS: Final = re.compile(rb'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}')
"""A part of a string. The regex engine remembers each repetition, so a long string is matched in parts. (Possessive
quantifiers would not, but backtrack wrongly in the first releases of Python 3.11.)"""
_DIGITS: Final = re.compile(rb"[0-9]*")
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_OPEN: Final = {ord("{"): ord("}"), ord("["): ord("]")}
_HEX: Final = b"0123456789abcdefABCDEF"
_ESCAPES: Final = b'"\\/bfnrtu'


class _FaultError(Exception):
    """The scanner found the error."""


def syntax_fault(body: bytes) -> str:
    """The error in the body, or "" if there is none within MAX_STEPS."""
    try:
        _scan(body)
    except _FaultError as fault:
        return str(fault)
    return ""


def _scan(body: bytes) -> None:
    closers: list[int] = []
    at = _value(body, _space(body, 0), closers)
    steps = 0
    while closers:
        at = _next(body, at, closers)
        steps += 1
        if steps > MAX_STEPS:
            raise _FaultError
    at = _space(body, at)
    if at < len(body):
        raise _unexpected(body, at, "after top-level value")


def _next(body: bytes, at: int, closers: list[int]) -> int:
    """Scan from the end of a value, or the start of an object or list, to the next such place."""
    closer = closers[-1]
    begun = body[at - 1] in _OPEN
    at = _space(body, at)
    if at >= len(body):
        raise _FaultError(CUT_OFF)
    if body[at] == closer:
        closers.pop()
        return at + 1
    if not begun:
        if body[at] != ord(","):
            what = "after object key:value pair" if closer == ord("}") else "after array element"
            raise _unexpected(body, at, what)
        at = _space(body, at + 1)
    if closer == ord("}"):
        at = _key(body, at)
    return _value(body, at, closers)


def _key(body: bytes, at: int) -> int:
    if at >= len(body):
        raise _FaultError(CUT_OFF)
    if body[at] != ord('"'):
        raise _unexpected(body, at, "looking for beginning of object key string")
    at = _space(body, _string(body, at))
    if at >= len(body):
        raise _FaultError(CUT_OFF)
    if body[at] != ord(":"):
        raise _unexpected(body, at, "after object key")
    return _space(body, at + 1)


def _value(body: bytes, at: int, closers: list[int]) -> int:
    if at >= len(body):
        raise _FaultError(CUT_OFF)
    first = body[at]
    if first in _OPEN:
        closers.append(_OPEN[first])
        if len(closers) > MAX_DEPTH:
            raise _unexpected(body, at, "exceeded max depth")
        return at + 1
    if first == ord('"'):
        return _string(body, at)
    if first in _LITERALS:
        return _literal(body, at, _LITERALS[first])
    if first == ord("-") or ord("0") <= first <= ord("9"):
        return _number(body, at)
    raise _unexpected(body, at, "looking for beginning of value")


def _string(body: bytes, at: int) -> int:
    end = at + 1
    while (good := _LETTERS.match(body, end)) is not None:
        end = good.end()
    if end >= len(body):
        raise _FaultError(CUT_OFF)
    if body[end] == ord('"'):
        return end + 1
    if body[end] != ord("\\"):
        raise _unexpected(body, end, "in string literal")
    if end + 1 >= len(body):
        raise _FaultError(CUT_OFF)
    if body[end + 1] not in _ESCAPES:
        raise _unexpected(body, end + 1, "in string escape code")
    for place in range(end + 2, end + 6):
        if place >= len(body):
            raise _FaultError(CUT_OFF)
        if body[place] not in _HEX:
            raise _unexpected(body, place, "in \\u hexadecimal character escape")
    return end + 6


def _literal(body: bytes, at: int, word: bytes) -> int:
    for index, wanted in enumerate(word):
        if at + index >= len(body):
            raise _FaultError(CUT_OFF)
        if body[at + index] != wanted:
            what = f"in literal {word.decode()} (expecting {_shown(wanted)})"
            raise _unexpected(body, at + index, what)
    return at + len(word)


def _number(body: bytes, at: int) -> int:
    if body[at] == ord("-"):
        at = _digits(body, at + 1, "in numeric literal", single_zero=True)
    else:
        at = _digits(body, at, "in numeric literal", single_zero=True)
    if body[at : at + 1] == b".":
        at = _digits(body, at + 1, "after decimal point in numeric literal")
    if body[at : at + 1] in (b"e", b"E"):
        signed = body[at + 1 : at + 2] in (b"+", b"-")
        at = _digits(body, at + 1 + signed, "in exponent of numeric literal")
    return at


def _digits(body: bytes, at: int, what: str, *, single_zero: bool = False) -> int:
    if at >= len(body):
        raise _FaultError(CUT_OFF)
    if not ord("0") <= body[at] <= ord("9"):
        raise _unexpected(body, at, what)
    if single_zero and body[at] == ord("0"):
        return at + 1
    digits = _DIGITS.match(body, at)
    return digits.end() if digits else at


def _space(body: bytes, at: int) -> int:
    space = _SPACE.match(body, at)
    return space.end() if space else at


def _unexpected(body: bytes, at: int, where: str) -> _FaultError:
    return _FaultError(f"invalid character {_shown(body[at])} {where}")


def _shown(byte: int) -> str:
    """A byte as Go quotes it. Go's scanner treats a byte as a character."""
    named = {ord("'"): r"'\''", ord('"'): "'\"'", ord("\\"): r"'\\'", ord("\n"): r"'\n'", ord("\t"): r"'\t'"}
    named[ord("\r")] = r"'\r'"
    if byte in named:
        return named[byte]
    char = chr(byte)
    return f"'{char}'" if char.isprintable() else f"'\\x{byte:02x}'" if byte < 0x80 else f"'\\u{byte:04x}'"
