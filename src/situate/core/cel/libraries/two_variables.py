"""Loops over two variables: index and element, or key and value."""

from typing import Any

from situate.core.cel.errors import ErrorValue
from situate.core.cel.formatting import go_print
from situate.core.cel.functions import Function, Library, Overload, overload
from situate.core.cel.macros import TWO_VARIABLE_MACROS
from situate.core.cel.types import map_of, param
from situate.core.cel.values import MISSING, MapValue, MutableMap, map_key

_MAP = map_of(param("K"), param("V"))


def _insert(target: MapValue, key: Any, value: Any) -> Any:
    if target.find(key) is not MISSING:
        return ErrorValue(f"insert failed: key {go_print(key)} already exists")
    if not isinstance(target, MutableMap):
        target = MutableMap(dict(target.entries))
    target.entries[map_key(key)] = (key, value)
    return target


def _insert_all(target: MapValue, update: MapValue) -> Any:
    found: Any = target
    for key, value in update.items():
        found = _insert(found, key, value)
        if isinstance(found, ErrorValue):
            return found
    return found


LIBRARY = Library(
    (
        Function(
            "cel.@mapInsert",
            (
                Overload("@mapInsert_map_key_value", (_MAP, param("K"), param("V")), _MAP, _insert, variadic=True),
                overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
            ),
        ),
    ),
    macros=TWO_VARIABLE_MACROS,
)
