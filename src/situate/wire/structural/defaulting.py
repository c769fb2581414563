"""Fills in the defaults of a schema, in place."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from situate.wire.structural.schema import ABSENT, Structural, levels

MAX_VALUES: Final = 32_768
"""Values that defaults may add to one object: as many as a body may have."""
MAX_BYTES: Final = 1_500_000
"""Of those values as JSON: no larger object can be stored."""


class TooManyDefaultsError(ValueError):
    """The defaults of a schema would make an object too large. Some are set already."""


class _Room:
    """What defaults may still add to an object."""

    __slots__ = ("_bytes", "_values")

    def __init__(self) -> None:
        self._values = MAX_VALUES
        self._bytes = MAX_BYTES

    def default_of(self, schema: Structural, name: str = "") -> Any:
        """A copy of the default. Raises TooManyDefaultsError before it is made."""
        values, size = schema.default_size
        self._values -= values
        self._bytes -= size + len(name)
        if self._values < 0:
            raise TooManyDefaultsError(f"the defaults of its schema add too many values: limit is {MAX_VALUES}")
        if self._bytes < 0:
            raise TooManyDefaultsError(f"the defaults of its schema add too much: limit is {MAX_BYTES} bytes")
        return deepcopy(schema.default)


def has_defaults(schema: Structural) -> bool:
    return any(one.default is not ABSENT for one in levels(schema))


def fill_defaults(obj: Any, schema: Structural) -> None:
    """Set the properties that are absent, or null where that is not allowed. Raises TooManyDefaultsError."""
    _fill(obj, schema, _Room())


def _fill(value: Any, schema: Structural | None, room: _Room) -> None:
    """Defaults may contain what has defaults."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, known in schema.properties.items():
            if known.default is not ABSENT and (name not in value or _is_wrong_null(value[name], known)):
                value[name] = room.default_of(known, name)
        for name, inner in value.items():
            field = schema.properties.get(name)
            if field is None and schema.has_additional:
                field = schema.additional
                if _is_wrong_null(inner, field):
                    value[name] = _instead_of_null(field, room)
            if isinstance(value[name], dict | list):
                _fill(value[name], field, room)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if _is_wrong_null(item, schema.items):
                value[index] = _instead_of_null(schema.items, room)
            if isinstance(value[index], dict | list):
                _fill(value[index], schema.items, room)


def _is_wrong_null(value: Any, schema: Structural | None) -> bool:
    return value is None and schema is not None and not schema.nullable


def _instead_of_null(schema: Structural | None, room: _Room) -> Any:
    return None if schema is None or schema.default is ABSENT else room.default_of(schema)
