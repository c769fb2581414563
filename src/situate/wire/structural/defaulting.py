"""Fills in the defaults of a schema, in place."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from situate.wire.structural.schema import ABSENT, Structural, levels


def has_defaults(schema: Structural) -> bool:
    return any(one.default is not ABSENT for one in levels(schema))


def fill_defaults(value: Any, schema: Structural | None) -> None:
    """Set the properties that are absent, or null where that is not allowed. Defaults may contain what has defaults."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, known in schema.properties.items():
            if known.default is not ABSENT and (name not in value or _is_wrong_null(value[name], known)):
                value[name] = deepcopy(known.default)
        for name, inner in value.items():
            field = schema.properties.get(name)
            if field is None and schema.has_additional:
                field = schema.additional
                if _is_wrong_null(inner, field):
                    value[name] = _default_of(field)
            if isinstance(value[name], dict | list):
                fill_defaults(value[name], field)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if _is_wrong_null(item, schema.items):
                value[index] = _default_of(schema.items)
            if isinstance(value[index], dict | list):
                fill_defaults(value[index], schema.items)


def _is_wrong_null(value: Any, schema: Structural | None) -> bool:
    return value is None and schema is not None and not schema.nullable


def _default_of(schema: Structural | None) -> Any:
    return None if schema is None or schema.default is ABSENT else deepcopy(schema.default)
