"""Field errors in Kubernetes' words: field path, kind of error, bad value, detail.

A problem is a plain string, and a check returns a list of them. Values are printed as Go prints them.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec


def child(path: str, *names: str) -> str:
    """The path of a field inside."""
    return ".".join((path, *names)) if path else ".".join(names)


MAX_PATH: Final = 2_048
"""Characters of a path that has names from an object."""


def extended(path: str, step: str) -> str:
    """A path with one more step, cut where it gets too long: a key of a map may be as long as a body, and is in the
    path of every value inside."""
    if len(path) + len(step) <= MAX_PATH:
        return path + step
    return path if len(path) > MAX_PATH else f"{path}{step}"[:MAX_PATH] + "..."


def index(path: str, i: int) -> str:
    """The path of an element."""
    return f"{path}[{i}]"


def invalid(path: str, value: object, detail: str, *, named: bool = False) -> str:
    """`named`: the value has a named string type in Go, which field errors print as JSON."""
    return f"{path}: Invalid value: {go_json(value) if named else shown(value)}: {detail}"


def required(path: str, detail: str = "") -> str:
    return f"{path}: Required value: {detail}" if detail else f"{path}: Required value"


def duplicate(path: str, value: object) -> str:
    return f"{path}: Duplicate value: {shown(value)}"


def forbidden(path: str, detail: str) -> str:
    return f"{path}: Forbidden: {detail}"


def unsupported(path: str, value: str, supported: Sequence[str]) -> str:
    # All such values are of named types.
    choices = ", ".join(quoted(choice) for choice in supported)
    return f"{path}: Unsupported value: {go_json(value)}: supported values: {choices}"


def distinct(problems: Iterable[str]) -> list[str]:
    """Each problem once, where it was first found."""
    return list(dict.fromkeys(problems))


def shown(value: object) -> str:
    """A value in a message: text in quotes, anything else as JSON."""
    return quoted(value) if isinstance(value, str) else go_json(value)


# Go's JSON encoder escapes what could end a script element.
_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def go_json(value: Any) -> str:
    """JSON as Go's encoder writes it, without blanks."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=msgspec.to_builtins)
    for plain, escaped in _HTML.items():
        text = text.replace(plain, escaped)
    return text


_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quoted(text: str) -> str:
    """A Go string literal: what %q prints."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
