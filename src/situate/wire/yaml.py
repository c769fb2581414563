"""Decodes YAML as kubectl does, with limits against hostile files.

Values are built straight from the parser's events, one at a time, so depth and size are known before they can hurt:
the loaders that come with the parser recurse, and crash on deep nesting. Scalars follow kubectl: YAML 1.1's booleans
(`yes`, `on`, `y`), `0644` is octal, `1_000` a thousand; but times and dates stay text, and no number is of base 60.
Keys are always text. A key given twice is an error.
"""

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import yaml

from situate.wire.errors import InputError

MAX_BYTES = 256 * 1024 * 1024
MAX_JSON_BYTES = 2 * 1024 * 1024 * 1024  # of what is read as JSON: in a tenth of the time, and indented by kubectl
MAX_DOCUMENTS = 100_000
MAX_DEPTH = 100
MAX_ALIASED_NODES = 100_000  # nodes that all aliases together expand to: `*a` counts as many as `&a` has

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_BOOLEANS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_MERGE = object()  # in the place of a key: what follows is to be merged
# First characters of scalars that are not plain text.
_SPECIAL = frozenset("0123456789+-.~yYnNtTfFoO<")
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_MAX_NUMBER = 400  # characters; the longest float that is finite, and then some
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1
_EXACT = 2.0**53  # below it, a whole float is one whole number
_MAX_SHOWN = 120
_TAG = "tag:yaml.org,2002:"
_TAGGED_TYPES: dict[str, tuple[type, ...]] = {
    _TAG + "bool": (bool,),
    _TAG + "int": (int,),
    _TAG + "float": (float, int),
    _TAG + "null": (type(None),),
}
_TEXT_TAGS = frozenset((_TAG + "str", _TAG + "timestamp", "!"))
_COLLECTION_TAGS = frozenset((None, "!", _TAG + "map", _TAG + "seq"))


def load_yaml(data: bytes, file: str = "") -> Iterator[Any]:
    """The documents, one after the other: dicts, lists, text, numbers, booleans and None."""
    if len(data) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES} bytes", file=file)
    parser = _Loader(data)
    try:
        yield from _documents(parser, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "cannot be parsed"
        raise InputError(f"not YAML: {what}", file=file, path=_place(mark)) from None
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {_first_line(error)}", file=file) from None
    finally:
        parser.dispose()


def has_aliases(data: bytes) -> bool:
    """Whether there is an alias, which can make a small text a large value. Raises yaml.YAMLError, UnicodeError."""
    return b"*" in data and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(data, Loader=_Loader))


def _documents(parser: Any, file: str) -> Iterator[Any]:
    count = 0
    builder: _Builder | None = None
    while True:
        event = parser.get_event()
        kind = type(event)
        if kind is yaml.StreamEndEvent or event is None:
            return
        if kind is yaml.DocumentStartEvent:
            count += 1
            if count > MAX_DOCUMENTS:
                raise InputError(f"more than {MAX_DOCUMENTS} documents", file=file)
            builder = _Builder(file)
        elif kind is yaml.DocumentEndEvent:
            if builder is not None:
                yield builder.document
        elif builder is not None:
            builder.take(event, kind)


class _Frame:
    """A list or mapping that is not finished."""

    __slots__ = ("anchor", "height", "key", "nodes_before", "own_keys", "value")

    def __init__(self, value: Any, anchor: str | None, nodes_before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.nodes_before = nodes_before
        self.height = 1
        self.key: Any = None
        # The own keys of a mapping with merged ones.
        self.own_keys: set[str] | None = None


class _Builder:
    """One document, built event by event."""

    __slots__ = ("_aliased", "_anchors", "_file", "_nodes", "_stack", "document")

    def __init__(self, file: str) -> None:
        self.document: Any = None
        self._file = file
        self._stack: list[_Frame] = []
        # Anchor -> value, number of nodes, depth; None while it is being built.
        self._anchors: dict[str, tuple[Any, int, int] | None] = {}
        self._nodes = 0
        self._aliased = 0

    def take(self, event: Any, kind: type) -> None:
        if kind is yaml.ScalarEvent:
            self._scalar(event)
        elif kind is yaml.MappingStartEvent:
            self._open({}, event)
        elif kind is yaml.SequenceStartEvent:
            self._open([], event)
        elif kind is yaml.AliasEvent:
            self._alias(event)
        else:
            self._close(event)

    def _scalar(self, event: Any) -> None:
        self._nodes += 1
        stack = self._stack
        if stack and stack[-1].key is None and type(stack[-1].value) is dict:
            self._begin_entry(stack[-1], event)
            return
        value = self._resolved(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1, 0)
        self._add(value, 0, event)

    def _begin_entry(self, frame: _Frame, event: Any) -> None:
        if event.implicit[0] and event.value == "<<":
            frame.key = _MERGE
            return
        value = self._resolved(event)
        key = value if type(value) is str else _as_key(value)
        if key is None:
            raise self._error(event, "a mapping has a key that is not text")
        if key in (frame.value if frame.own_keys is None else frame.own_keys):
            raise self._error(event, f'key "{_shortened(key)}" is given twice')
        if frame.own_keys is not None:
            frame.own_keys.add(key)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1, 0)
        frame.key = key

    def _resolved(self, event: Any) -> Any:
        tag, text = event.tag, event.value
        if tag in _TEXT_TAGS or (tag is None and not event.implicit[0]):
            return text
        value = _plain(text)
        if tag is not None and type(value) not in _TAGGED_TYPES.get(tag, ()):
            raise self._error(event, f'"{_shortened(text)}" cannot have the tag {_shortened(tag)}')
        if type(value) is float and not math.isfinite(value):
            raise self._error(event, f"{text} is not a number that JSON has")
        return value

    def _open(self, value: list[Any] | dict[str, Any], event: Any) -> None:
        if event.tag not in _COLLECTION_TAGS:
            raise self._error(event, f"tag {_shortened(event.tag)} is not supported")
        stack = self._stack
        if stack and stack[-1].key is None and type(stack[-1].value) is dict:
            raise self._error(event, "a mapping has a key that is not text")
        if len(stack) >= MAX_DEPTH:
            raise self._error(event, f"nested deeper than {MAX_DEPTH} levels")
        self._nodes += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        stack.append(_Frame(value, event.anchor, self._nodes))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (frame.value, self._nodes - frame.nodes_before + 1, frame.height)
        self._add(frame.value, frame.height, event)

    def _alias(self, event: Any) -> None:
        name = event.anchor
        if name not in self._anchors:
            raise self._error(event, f'alias "{name}" has no anchor')
        found = self._anchors[name]
        if found is None:
            raise self._error(event, f'alias "{name}" is inside its own anchor')
        value, nodes, height = found
        self._nodes += nodes
        self._aliased += nodes
        if self._aliased > MAX_ALIASED_NODES:
            raise self._error(event, f"aliases stand for more than {MAX_ALIASED_NODES} nodes")
        if len(self._stack) + height > MAX_DEPTH:
            raise self._error(event, f"nested deeper than {MAX_DEPTH} levels")
        frame = self._stack[-1]
        if frame.key is None and isinstance(frame.value, dict):
            raise self._error(event, "a mapping has an alias for a key")
        self._add(value, height, event)

    def _add(self, value: Any, height: int, event: Any) -> None:
        if not self._stack:
            self.document = value
            return
        frame = self._stack[-1]
        if height >= frame.height:
            frame.height = height + 1
        into = frame.value
        if type(into) is list:
            into.append(value)
            return
        key, frame.key = frame.key, None
        if key is _MERGE:
            self._merge(frame, value, event)
        else:
            into[key] = value

    def _merge(self, frame: _Frame, value: Any, event: Any) -> None:
        """As in kubectl, keys after `<<` win over merged ones, and merged ones over keys before it."""
        mappings = value if type(value) is list else [value]
        if not all(type(one) is dict for one in mappings):
            raise self._error(event, "only mappings can be merged with <<")
        if frame.own_keys is None:
            frame.own_keys = set(frame.value)
        for mapping in reversed(mappings):
            frame.value.update(mapping)

    def _error(self, event: Any, problem: str) -> InputError:
        return InputError(problem, file=self._file, path=_place(event.start_mark))


def _plain(text: str) -> Any:
    """The value of an unquoted scalar."""
    if text and text[0] not in _SPECIAL:
        return text
    return _special(text)


@lru_cache(maxsize=4_096)
def _special(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _NOT_FINITE.fullmatch(text):
        return float(text.lower().replace(".", ""))
    plain = text.replace("_", "") if text[0] in "+-0123456789" else text
    if len(plain) > _MAX_NUMBER:
        return text
    if _INTEGER.fullmatch(plain):
        number = _integer(plain)
        return number if _INT64_MIN <= number <= _UINT64_MAX else _finite(plain, text)
    return _finite(plain, text) if _FLOAT.fullmatch(plain) else text


def _integer(text: str) -> int:
    digits = text.lstrip("+-").lower()
    if digits.startswith("0x"):
        number = int(digits, 16)
    elif digits.startswith("0b"):
        number = int(digits, 2)
    elif digits.startswith("0") and len(digits) > 1:
        number = int(digits.removeprefix("0o"), 8)
    else:
        number = int(digits)
    return -number if text[0] == "-" else number


def _finite(number: str, text: str) -> Any:
    """The float, or the text if it is out of range."""
    try:
        value = float(number)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def _as_key(value: Any) -> str | None:
    """JSON has only string keys; numbers and booleans are converted."""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    return repr(value) if isinstance(value, int | float) else None


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def _place(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
