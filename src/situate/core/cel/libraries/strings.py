"""Functions of strings: the standard ones and version 2 of cel-go's extension."""

from collections.abc import Sequence
from typing import Any

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.formatting import go_print
from situate.core.cel.functions import Function, Library, Overload, member, overload
from situate.core.cel.libraries.string_format import format_string
from situate.core.cel.meter import (
    STRING_FACTOR,
    ceil_of,
    match_regex,
    plain_size,
    search,
    traverse_all,
    traverse_first,
)
from situate.core.cel.regex import RegexError, compile_regex
from situate.core.cel.types import BOOL, DYN, INT, STRING, list_of

_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
_QUOTED = str.maketrans(
    {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
        '"': '\\"',
    }
)  # fmt: skip
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _out_of_range(index: int) -> ErrorValue:
    return ErrorValue(f"index out of range: {index}")


def _test(name: str) -> Any:
    def run(text: Any, part: Any) -> Any:
        if not isinstance(text, str) or not isinstance(part, str):
            return no_such_overload()
        return part in text if name == "contains" else getattr(text, name)(part)

    return run


def _matches(text: Any, pattern: Any) -> Any:
    if not isinstance(pattern, str):
        return no_such_overload()
    try:
        return compile_regex(pattern).matches(text)
    except RegexError as error:
        return ErrorValue(str(error))


def _char_at(text: str, index: int) -> Any:
    return text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index)


def _index_of(text: str, part: str, offset: int = 0) -> Any:
    if not part:
        return offset
    if offset < 0:
        return _out_of_range(offset)
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> Any:
    if not part:
        return len(text)
    if len(text.encode()) < len(part.encode()):
        return -1
    return _last_index_before(text, part, len(text) - 1)


def _last_index_before(text: str, part: str, offset: int) -> Any:
    if not part:
        return offset
    if offset < 0:
        return _out_of_range(offset)
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str, count: int = -1) -> Any:
    if count == 0:
        return []
    limit = -1 if count < 0 else count - 1
    if separator:
        return text.split(separator, limit)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[:limit], text[limit:]]


def _substring(text: str, start: int) -> Any:
    return text[start:] if 0 <= start <= len(text) else _out_of_range(start)


def _substring_range(text: str, start: int, end: int) -> Any:
    if start > end:
        return ErrorValue(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            return _out_of_range(index)
    return text[start:end]


def _join(parts: list[Any], separator: str = "") -> Any:
    for part in parts:
        if not isinstance(part, str):
            return ErrorValue(f"join: invalid input: {go_print(part)}")
    return separator.join(parts)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _twice(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(plain_size(args[0]), 2 * STRING_FACTOR)


def _joined(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(plain_size(result), 2 * STRING_FACTOR)


def _once(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(plain_size(args[0]))


def _tests(name: str, overload_id: str, method: str, cost: Any) -> Function:
    return Function(name, (member(overload_id, (STRING, STRING), BOOL, _test(method), cost=cost),), guarded=False)


_STRINGS = list_of(STRING)

LIBRARY = Library(
    (
        _tests("contains", "contains_string", "contains", search),
        _tests("endsWith", "ends_with_string", "endswith", traverse_first),
        _tests("startsWith", "starts_with_string", "startswith", traverse_first),
        Function(
            "matches",
            (
                overload("matches", (STRING, STRING), BOOL),
                member("matches_string", (STRING, STRING), BOOL, cost=match_regex),
            ),
            code=_matches,
            takes=lambda value: isinstance(value, str),
        ),
        Function("charAt", (member("string_char_at_int", (STRING, INT), STRING, _char_at),)),
        Function(
            "indexOf",
            (
                member("string_index_of_string", (STRING, STRING), INT, _index_of),
                member("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
            ),
            cost=traverse_all,
        ),
        Function(
            "lastIndexOf",
            (
                member("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
                member("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_before),
            ),
            cost=traverse_all,
        ),
        Function(
            "lowerAscii",
            (member("string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_LOWER)),),
            cost=_once,
        ),
        Function(
            "replace",
            (
                member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
                member("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
            ),
            cost=_twice,
        ),
        Function(
            "split",
            (
                member("string_split_string", (STRING, STRING), _STRINGS, _split),
                member("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split),
            ),
            cost=_twice,
        ),
        Function(
            "substring",
            (
                member("string_substring_int", (STRING, INT), STRING, _substring),
                member("string_substring_int_int", (STRING, INT, INT), STRING, _substring_range),
            ),
            cost=_once,
        ),
        Function("trim", (member("string_trim", (STRING,), STRING, lambda text: text.strip(_SPACE)),), cost=_once),
        Function(
            "upperAscii",
            (member("string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_UPPER)),),
            cost=_once,
        ),
        Function(
            "format",
            (
                Overload(
                    "string_format",
                    (STRING, list_of(DYN)),
                    STRING,
                    format_string,
                    is_member=True,
                    cost=traverse_first,
                    variadic=True,
                ),
            ),
        ),
        Function("strings.quote", (overload("strings_quote", (STRING,), STRING, _quote, cost=traverse_first),)),
        Function(
            "join",
            (
                member("list_join", (_STRINGS,), STRING, _join),
                member("list_join_string", (_STRINGS, STRING), STRING, _join),
            ),
            cost=_joined,
        ),
    )
)
