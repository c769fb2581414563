"""JSONPath as kubectl and printer columns write it: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`.

Fields, quoted fields, indexes, slices, unions, `*`, `..` and filters with one comparison. A path finds a list of
values, in the order of the object; what is absent finds none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

MAX_PATH: Final = 4_096
"""Characters of a path."""
MAX_FOUND: Final = 10_000
"""Values that a step of a path may find."""

Step = Callable[[Any], Iterator[Any]]
_NAME: Final = re.compile(r"(?:[^.\[\]\\]|\\.)+")
_FILTER: Final = re.compile(r"\s*@((?:\.[^=<>!\s]+|\[[^\]]*\])*)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?))?\s*", re.DOTALL)
_SLICE: Final = re.compile(r"(-?\d*):(-?\d*)(?::(-?\d*))?")


class JsonPathError(ValueError):
    """The text is not such a path."""


@lru_cache(maxsize=1_024)
def parse_json_path(text: str) -> tuple[Step, ...]:
    """The steps of a path without braces. Raises JsonPathError."""
    if len(text) > MAX_PATH:
        raise JsonPathError(f"a path has at most {MAX_PATH} characters")
    return tuple(_steps(text))


def found_at(path: Sequence[Step], obj: Any, most: int = MAX_FOUND) -> list[Any]:
    """The values at a path, and no more of them."""
    found = [obj]
    for step in path:
        following: list[Any] = []
        for value in found:
            following.extend(step(value))
            if len(following) > most:
                return following[:most]
        found = following
    return found


def _steps(text: str) -> Iterator[Step]:
    at = 1 if text.startswith("$") else 0
    while at < len(text):
        if text.startswith("..", at):
            yield _descendants
            at += 2
            if at < len(text) and text[at] == "[":
                continue
            name, at = _name(text, at)
            yield _field(name)
        elif text[at] == ".":
            at += 1
            if at < len(text) and text[at] == "[":
                continue
            if at == len(text):
                return
            name, at = _name(text, at)
            yield _every if name == "*" else _field(name)
        elif text[at] == "[":
            inside, at = _bracket(text, at)
            yield _subscript(inside)
        else:
            name, at = _name(text, at)
            yield _field(name)


def _name(text: str, at: int) -> tuple[str, int]:
    match = _NAME.match(text, at)
    if match is None:
        raise JsonPathError(f"unrecognized character in action at {at}: {text}")
    return re.sub(r"\\(.)", r"\1", match.group()), match.end()


def _bracket(text: str, at: int) -> tuple[str, int]:
    """What is inside the brackets that open here, and where they end."""
    depth, quote, start = 0, "", at + 1
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if not depth:
                return text[start:at], at + 1
        at += 1
    raise JsonPathError(f"unterminated array: {text}")


def _subscript(text: str) -> Step:
    if text.startswith("?(") and text.endswith(")"):
        return _filter(text[2:-1])
    if text == "*":
        return _every
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0] and text[0] not in text[1:-1]:
        return _field(re.sub(r"\\(.)", r"\1", text[1:-1]))
    if (match := _SLICE.fullmatch(text)) is not None:
        bounds = slice(*(int(one) if one else None for one in match.groups()))
        return lambda value: iter(value[bounds] if isinstance(value, list) else ())
    if re.fullmatch(r"-?\d+", text):
        return _index(int(text))
    if "," in text:
        return _union([_subscript(part.strip()) for part in text.split(",")])
    raise JsonPathError(f"invalid array index {text}")


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(number: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= number < len(value):
            yield value[number]

    return step


def _union(steps: Sequence[Step]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for one in steps:
            yield from one(value)

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _descendants(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(list(_every(one))))


def _filter(text: str) -> Step:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise JsonPathError(f"unrecognized filter: {text}")
    path, operator, wanted = parse_json_path(match[1]), match[2], _literal(match[3])

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = found_at(path, item)
            if operator is None:
                if found:
                    yield item
            elif found and _compares(found[0], operator, wanted):
                yield item

    return step


def _literal(text: str | None) -> Any:
    if text is None:
        return None
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise JsonPathError(f"unrecognized value in filter: {text}") from None


def _compares(value: Any, operator: str, wanted: Any) -> bool:
    if isinstance(value, bool) != isinstance(wanted, bool):
        return operator == "!="
    if operator in ("==", "!="):
        return (value == wanted) is (operator == "==")
    try:
        match operator:
            case "<":
                return bool(value < wanted)
            case ">":
                return bool(value > wanted)
            case "<=":
                return bool(value <= wanted)
            case _:
                return bool(value >= wanted)
    except TypeError:
        return False
