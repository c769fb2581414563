"""Selectors as requests write them: `app in (a, b),!beta` of labels, `spec.nodeName=n1` of fields.

The grammars and the texts of their errors are Kubernetes'. Whether labels match is the core's business.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from situate.core.model.field_errors import quoted
from situate.core.model.integers import parse_int64
from situate.core.model.labels import (
    EVERYTHING,
    Requirement,
    Selector,
    SelectorError,
    requirement,
    selector_of,
)
from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.errors import bad_request
from situate.server.registry.selectable_fields import NAME, NAMESPACE, NODE_NAME, PODS, field_names, field_of
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import Resource

_OPERATORS: Final = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_EXPECTED: Final = "in, notin, =, ==, !=, gt, lt"
# Longest first. A run of symbols is read greedily, an identifier up to the next symbol or space.
_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|$)")
_SYMBOLS: Final = frozenset("=!(),<>") | {"==", "!="}
_END: Final = ""
MAX_SELECTOR: Final = 64 * 1024
"""Characters of a selector. Kubernetes leaves it to the limit of a request's headers."""

Term: TypeAlias = tuple[int, str, bool]
"""Which of the object's values, what to compare it with, and whether it shall be equal."""
_NAME_COLUMN, _NAMESPACE_COLUMN = -1, -2


class PathTerm(NamedTuple):
    """A field of a custom kind, what to compare it with, and whether it shall be equal."""

    resource: Resource
    path: tuple[str, ...]
    value: str
    equal: bool


class Selection(Struct, frozen=True, gc=False):
    """What a list or a watch asks for. The first three narrow the search, all are required."""

    namespace: str = ""
    name: str = ""
    node: str = ""
    """Of pods: spec.nodeName."""
    labels: Selector = EVERYTHING
    terms: tuple[Term, ...] = ()
    outside: bool = False
    """It contradicts itself: a name in one namespace, and in another."""
    paths: tuple[PathTerm, ...] = ()
    """Of a custom kind: terms about fields that are read from the object."""

    @property
    def filters(self) -> bool:
        """Whether there is a selector at all, and not only a namespace."""
        return bool(self.labels.requirements or self.terms or self.name or self.node or self.outside or self.paths)

    def matches(self, stored: StoredObject) -> bool:
        if self.namespace and stored.namespace != self.namespace:
            return False
        if (self.name and stored.name != self.name) or self.outside:
            return False
        for column, value, equal in self.terms:
            if (_value_at(stored, column) == value) is not equal:
                return False
        return self.matches_content(stored)

    @property
    def has_content(self) -> bool:
        """Whether it selects by what a conversion may change."""
        return bool(self.labels.requirements or self.paths)

    def without_content(self) -> Selection:
        return replace(self, labels=EVERYTHING, paths=())

    def matches_content(self, stored: StoredObject) -> bool:
        """The part about what a conversion may change: labels, and fields of a custom kind."""
        if self.labels.requirements and not self.labels.matches(stored.labels):
            return False
        return self.matches_paths(stored)

    def without_paths(self) -> Selection:
        """What is known without decoding an object."""
        return replace(self, paths=()) if self.paths else self

    def keep(self, stored: StoredObject) -> StoredObject | None:
        """The object, if its fields match too."""
        return stored if self.matches_paths(stored) else None

    def matches_paths(self, stored: StoredObject) -> bool:
        """The part about fields of a custom kind."""
        return not self.paths or _matches_paths(self.paths, stored)


def _matches_paths(terms: tuple[PathTerm, ...], stored: StoredObject) -> bool:
    texts = _selectable_texts(stored, terms[0].resource)
    return all((texts[one.path] == one.value) is one.equal for one in terms)


class _Read(NamedTuple):
    """The selectable fields of an object in a version of its kind, by their paths."""

    stored: StoredObject
    resource: Resource
    texts: dict[tuple[str, ...], str]


REMEMBERED: Final = 8
"""Objects whose selectable fields are remembered: of a change, that before it and that after it, in some versions. Each
of a thousand watches of a large object would decode it again."""
_read: Final[deque[_Read]] = deque(maxlen=REMEMBERED)


def _selectable_texts(stored: StoredObject, resource: Resource) -> dict[tuple[str, ...], str]:
    for one in _read:
        if one.stored is stored and one.resource is resource:
            return one.texts
    obj = stored.object(resource)
    names = () if resource.custom is None else resource.custom.selectable
    paths = [tuple(name.split(".")) for name in names]
    texts = {path: text_at(obj, path) for path in paths}
    _read.append(_Read(stored, resource, texts))
    return texts


def text_at(obj: Any, path: tuple[str, ...]) -> str:
    """The value of a field as field selectors compare it; "" if there is none."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    if isinstance(obj, bool):
        return "true" if obj else "false"
    return "" if obj is None else str(obj)


def _value_at(stored: StoredObject, column: int) -> str:
    if column >= 0:
        return stored.values[column]
    return stored.name if column == _NAME_COLUMN else stored.namespace


def selection(resource: Resource, namespace: str, name: str, labels: str, fields: str) -> Selection:
    """The selection of a list or watch. Raises 400."""
    if not labels and not fields:
        return Selection(namespace, name)
    if max(len(labels), len(fields)) > MAX_SELECTOR:
        raise bad_request(f"a selector has at most {MAX_SELECTOR} characters")
    parsed = parse_labels(labels) if labels else EVERYTHING
    return _narrowed(resource, namespace, name, parsed, fields)


# -- labels -----------------------------------------------------------------------------------------------------------


def parse_labels(text: str) -> Selector:
    """400 with Kubernetes' text for what is no selector."""
    try:
        return selector_of(_requirements(_Tokens(text)))
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None


class _Tokens:
    """What is left of a selector. At the end there is only _END."""

    def __init__(self, text: str) -> None:
        self._left = [match.group(1) for match in _TOKEN.finditer(text)]
        self._left.reverse()

    @property
    def next(self) -> str:
        return self._left[-1] if self._left else _END

    def take(self) -> str:
        return self._left.pop() if self._left else _END


def _is_word(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _requirements(tokens: _Tokens) -> Iterator[Requirement]:
    while tokens.next != _END:
        if not _is_word(tokens.next) and tokens.next != "!":
            raise bad_request(f"found '{tokens.next}', expected: !, identifier, or 'end of string'")
        yield _requirement(tokens)
        match tokens.take():
            case "":
                return
            case ",":
                if not _is_word(tokens.next) and tokens.next != "!":
                    raise bad_request(f"found '{tokens.next}', expected: identifier after ','")
            case other:
                raise bad_request(f"found '{other}', expected: ',' or 'end of string'")


def _requirement(tokens: _Tokens) -> Requirement:
    absent = tokens.next == "!"
    if absent:
        tokens.take()
    key = tokens.take()
    if not _is_word(key):
        raise SelectorError(f"found '{key}', expected: identifier")
    if problems := qualified_name_problems(key):
        raise SelectorError(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(problems)}")
    if absent:
        return requirement(key, "DoesNotExist", ())
    if tokens.next in (_END, ","):
        return requirement(key, "Exists", ())
    spelled = tokens.take()
    operator = _OPERATORS.get(spelled)
    if operator is None:
        raise SelectorError(f"found '{spelled}', expected: {_EXPECTED}")
    values = _values(tokens) if spelled in ("in", "notin") else [_value(tokens)]
    _check_values(key, operator, sorted(set(values)))
    return requirement(key, operator, values)


def _check_values(key: str, operator: str, values: list[str]) -> None:
    """Kubernetes' texts for requests differ from those for objects."""
    for index, value in enumerate(values):
        if operator in ("Gt", "Lt") and parse_int64(value) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise SelectorError(f"values[{index}]: Invalid value: {quoted(value)}: {why}")
        if problems := label_value_problems(value):
            raise SelectorError(f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(problems)}")


def _value(tokens: _Tokens) -> str:
    if tokens.next in (_END, ","):
        return ""
    value = tokens.take()
    if not _is_word(value):
        raise SelectorError(f"found '{value}', expected: identifier")
    return value


def _values(tokens: _Tokens) -> list[str]:
    """`(a, b)`; nothing before or after a comma is the empty value."""
    if (found := tokens.take()) != "(":
        raise SelectorError(f"found '{found}' expected: '('")
    values: list[str] = []
    word = ""
    while True:
        match tokens.take():
            case ")":
                return [*values, word]
            case ",":
                values.append(word)
                word = ""
            case token if _is_word(token) and not word:
                word = token
            case token if word:
                raise SelectorError(f"found '{token}', expected: ',' or ')'")
            case token:
                raise SelectorError(f"found '{token}', expected: ',', ')' or identifier")


# -- fields -----------------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    label: str
    value: str
    equal: bool


def _narrowed(resource: Resource, namespace: str, name: str, labels: Selector, text: str) -> Selection:
    names = field_names(resource.stored_as)
    node, outside = "", False
    terms: list[Term] = []
    paths: list[PathTerm] = []
    for label, value, equal in _fields(text):
        try:
            column = field_of(resource, label)
        except ValueError as error:
            raise bad_request(str(error)) from None
        if column == NAMESPACE and not equal:
            terms.append((_NAMESPACE_COLUMN, value, False))
        elif resource.custom is not None and column not in (NAME, NAMESPACE):
            paths.append(PathTerm(resource, tuple(column.split(".")), value, equal))
        elif column not in (NAME, NAMESPACE):
            terms.append((names.index(column), value, equal))
            if column == NODE_NAME and equal and resource.stored_as == PODS:
                node = value
        elif not equal:
            terms.append((_NAME_COLUMN, value, False))
        elif column == NAME:
            outside, name = outside or bool(name and name != value), value
        else:
            outside, namespace = outside or bool(namespace and namespace != value), value
    return Selection(namespace, name, node, labels, tuple(terms), outside, tuple(paths))


def _fields(text: str) -> Iterator[_Field]:
    for part in _split(text):
        if not part:
            continue
        found = re.search(r"!=|==|=", part)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        yield _Field(part[: found.start()], _unescaped(part[found.end() :]), found.group() != "!=")


def _split(text: str) -> list[str]:
    """By commas, but for those after a backslash."""
    return re.findall(r"(?:[^,\\]|\\.?)+", text, re.DOTALL)


def _unescaped(value: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match.group() in ("=", ","):
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(match.group())}")
        if match.group(1) not in ("\\", ",", "="):
            raise bad_request(f"invalid field selector: invalid escape sequence: {match.group()}")
        return match.group(1)

    return re.sub(r"\\(.?)|[=,]", plain, value, flags=re.DOTALL)
