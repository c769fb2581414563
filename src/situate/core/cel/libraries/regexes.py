"""Kubernetes' functions of regular expressions: `find` and `findAll`."""

from typing import Any

from situate.core.cel.errors import ErrorValue
from situate.core.cel.functions import Function, Library, member
from situate.core.cel.meter import match_regex
from situate.core.cel.regex import CompiledRegex, RegexError, compile_regex
from situate.core.cel.types import INT, STRING, list_of

_STRINGS = list_of(STRING)


def _compiled(pattern: str) -> CompiledRegex | ErrorValue:
    try:
        return compile_regex(pattern)
    except RegexError as error:
        return ErrorValue(f"Illegal regex: {error}")


def _find(text: str, pattern: str) -> Any:
    compiled = _compiled(pattern)
    if isinstance(compiled, ErrorValue):
        return compiled
    span = compiled.find(text)
    return "" if span is None else text[span[0] : span[1]]


def _find_all(text: str, pattern: str, count: int = -1) -> Any:
    compiled = _compiled(pattern)
    if isinstance(compiled, ErrorValue):
        return compiled
    return compiled.find_all(text, count)


LIBRARY = Library(
    (
        Function("find", (member("string_find_string", (STRING, STRING), STRING, _find),), cost=match_regex),
        Function(
            "findAll",
            (
                member("string_find_all_string", (STRING, STRING), _STRINGS, _find_all),
                member("string_find_all_string_int", (STRING, STRING, INT), _STRINGS, _find_all),
            ),
            cost=match_regex,
        ),
    )
)
