"""Optional values."""

from typing import Any

from situate.core.cel.errors import ErrorValue
from situate.core.cel.formatting import go_print
from situate.core.cel.functions import Function, Library, member, overload
from situate.core.cel.macros import OPTIONAL_MACROS
from situate.core.cel.types import BOOL, DYN, INT, STRING, list_of, map_of, opaque, optional_of, param
from situate.core.cel.values import (
    NONE,
    DurationValue,
    MapValue,
    OptionalValue,
    TimestampValue,
)

K, V = param("K"), param("V")
_OPTIONAL = optional_of(V)
_LIST, _MAP = list_of(V), map_of(K, V)
# The time that Go takes for none, in seconds from 1970.
_ZERO_TIME = -62_135_596_800 * 10**9


def _is_zero(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (bool, int, float, str, bytes, list)):
        return not value
    if isinstance(value, MapValue):
        return len(value) == 0
    if isinstance(value, DurationValue):
        return value.nanos == 0
    return isinstance(value, TimestampValue) and value.nanos == _ZERO_TIME


def _of_non_zero(value: Any) -> OptionalValue:
    return NONE if _is_zero(value) else OptionalValue(value)


def _value(optional: OptionalValue) -> Any:
    return optional.value if optional.has_value else ErrorValue("optional.none() dereference")


def _unwrap(values: list[Any]) -> Any:
    for value in values:
        if not isinstance(value, OptionalValue):
            return ErrorValue(f"value {go_print(value)} is not optional")
    return [value.value for value in values if value.has_value]


LIBRARY = Library(
    (
        Function("optional.of", (overload("optional_of", (V,), _OPTIONAL, OptionalValue),)),
        Function("optional.ofNonZeroValue", (overload("optional_ofNonZeroValue", (V,), _OPTIONAL, _of_non_zero),)),
        Function("optional.none", (overload("optional_none", (), _OPTIONAL, lambda: NONE),)),
        Function("value", (member("optional_value", (_OPTIONAL,), V, _value),)),
        Function("hasValue", (member("optional_hasValue", (_OPTIONAL,), BOOL, lambda value: value.has_value),)),
        Function("or", (member("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL),)),
        Function("orValue", (member("optional_orValue_value", (_OPTIONAL, V), V),)),
        Function("_?._", (overload("select_optional_field", (DYN, STRING), _OPTIONAL),)),
        Function(
            "_[?_]",
            (
                overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
                overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
                overload("map_optindex_optional_value", (_MAP, K), _OPTIONAL),
                overload("optional_map_optindex_optional_value", (optional_of(_MAP), K), _OPTIONAL),
            ),
        ),
        Function(
            "_[_]",
            (
                overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
                overload("optional_map_index_value", (optional_of(_MAP), K), _OPTIONAL),
            ),
        ),
        Function(
            "last",
            (member("list_last", (_LIST,), _OPTIONAL, lambda values: OptionalValue(values[-1]) if values else NONE),),
        ),
        Function(
            "first",
            (member("list_first", (_LIST,), _OPTIONAL, lambda values: OptionalValue(values[0]) if values else NONE),),
        ),
        Function("optional.unwrap", (overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap),)),
        Function("unwrapOpt", (member("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap),)),
    ),
    macros=OPTIONAL_MACROS,
    types=(opaque("optional_type"),),
)
