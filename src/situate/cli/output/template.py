"""Templates of `-o jsonpath`, as kubectl reads them: `{range .items[*]}{.metadata.name}{"\\n"}{end}`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any, Final

from situate.server.tables.json_path import JsonPathError, Step, found_at, parse_json_path

MAX_TEMPLATE: Final = 16_384
"""Characters of a template."""
HINT: Final = "write paths in braces, such as jsonpath='{.items[*].metadata.name}'"


class TemplateError(ValueError):
    """The text is not such a template."""


@dataclass(frozen=True, slots=True)
class PathPart:
    """The values at a path, with blanks between them."""

    path: tuple[Step, ...]

    def render(self, values: Any) -> str:
        return " ".join(_text(one) for one in found_at(self.path, values, most=sys.maxsize))


@dataclass(frozen=True, slots=True)
class RangePart:
    """The same parts for each value at a path."""

    path: tuple[Step, ...]
    body: PathTemplate

    def render(self, values: Any) -> str:
        return "".join(self.body.render(one) for one in found_at(self.path, values, most=sys.maxsize))


@dataclass(frozen=True, slots=True)
class PathTemplate:
    parts: tuple[str | PathPart | RangePart, ...]

    def render(self, values: Any) -> str:
        return "".join(one if isinstance(one, str) else one.render(values) for one in self.parts)


def parse_template(text: str) -> PathTemplate:
    """Raises TemplateError."""
    if len(text) > MAX_TEMPLATE:
        raise TemplateError(f"a template has at most {MAX_TEMPLATE} characters")
    if "{" not in text:
        raise TemplateError(HINT)
    parts, ended = _parts(_tokens(text))
    if ended:
        raise TemplateError("{end} without {range}")
    return PathTemplate(tuple(parts))


def _tokens(text: str) -> list[tuple[bool, str]]:
    """The text cut at braces; True: what was inside of them."""
    found: list[tuple[bool, str]] = []
    at = 0
    while at < len(text):
        opens = text.find("{", at)
        if opens < 0:
            opens = len(text)
        if opens > at:
            found.append((False, text[at:opens]))
        if opens == len(text):
            break
        closes = _closing(text, opens + 1)
        found.append((True, text[opens + 1 : closes].strip()))
        at = closes + 1
    found.reverse()
    return found


def _closing(text: str, at: int) -> int:
    quote = ""
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "}":
            return at
        at += 1
    raise TemplateError("a brace is not closed")


def _parts(rest: list[tuple[bool, str]]) -> tuple[list[str | PathPart | RangePart], bool]:
    """The parts up to the end, or up to `{end}`, and whether that was there. Takes tokens off the end of `rest`."""
    parts: list[str | PathPart | RangePart] = []
    while rest:
        action, text = rest.pop()
        if not action:
            parts.append(text)
        elif text == "end":
            return parts, True
        elif text == "range" or text.startswith("range "):
            path = _path(text.removeprefix("range").strip())
            body, ended = _parts(rest)
            if not ended:
                raise TemplateError("{range} without {end}")
            parts.append(RangePart(path, PathTemplate(tuple(body))))
        elif text[:1] in ("'", '"'):
            parts.append(_quoted(text))
        else:
            parts.append(PathPart(_path(text)))
    return parts, False


def _path(text: str) -> tuple[Step, ...]:
    """A path from the current value, which `@` and `$` stand for."""
    if not text:
        raise TemplateError("a path is missing")
    try:
        return parse_json_path(text[1:] if text[0] in "@$" else text)
    except JsonPathError as error:
        raise TemplateError(str(error)) from None


def _quoted(text: str) -> str:
    """Text in quotes, with the escapes of JSON."""
    if len(text) < 2 or text[-1] != text[0]:
        raise TemplateError(f"a quotation mark is missing: {text}")
    inner = text[1:-1] if text[0] == '"' else text[1:-1].replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        raise TemplateError(f"{text} is not text") from None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
