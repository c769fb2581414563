"""Prunes an object: removes the fields that its schema does not specify, and reports where they were. In place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from situate.core.model.field_errors import extended
from situate.wire.structural.schema import ABSENT, META_FIELDS, Structural

Report = Callable[[str], None]
"""Gets the path of a field that was removed."""


def prune(obj: dict[str, Any], schema: Structural, report: Report) -> None:
    """Prune a whole object. Its apiVersion, kind and metadata stay."""
    _prune_object(obj, schema, "", report, is_resource=True)


def prune_value(value: Any, schema: Structural, report: Report) -> None:
    """Prune a part of an object."""
    _prune(value, schema, "", report)


def _prune(value: Any, schema: Structural | None, path: str, report: Report) -> None:
    if isinstance(value, dict):
        _prune_object(value, schema, path, report, is_resource=schema is not None and schema.embedded)
    elif isinstance(value, list):
        if schema is not None and schema.preserves:
            for index, item in enumerate(value):
                _keep(item, schema.items, f"{path}[{index}]", report)
            return
        inner = None if schema is None else schema.items
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                _prune(item, inner, f"{path}[{index}]", report)


def _prune_object(
    value: dict[str, Any], schema: Structural | None, path: str, report: Report, *, is_resource: bool
) -> None:
    if schema is not None and schema.preserves:
        _keep_object(value, schema, path, report, is_resource=is_resource)
        return
    unknown: list[str] = []
    for name, inner in value.items():
        if is_resource and name in META_FIELDS:
            continue
        known = None if schema is None else schema.properties.get(name)
        if known is None and (schema is None or not schema.has_additional):
            unknown.append(name)
        elif isinstance(inner, dict | list):
            _prune(inner, known or (schema.additional if schema is not None else None), _child(path, name), report)
    for name in unknown:
        if path or name not in META_FIELDS:
            report(_child(path, name))
        del value[name]


def _keep(value: Any, schema: Structural | None, path: str, report: Report) -> None:
    """Leave what the schema does not specify, and prune inside of what it does."""
    if schema is None:
        return
    if isinstance(value, dict):
        _keep_object(value, schema, path, report, is_resource=schema.embedded)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _keep(item, schema.items, f"{path}[{index}]", report)


def _keep_object(value: dict[str, Any], schema: Structural, path: str, report: Report, *, is_resource: bool) -> None:
    for name, inner in value.items():
        if (is_resource and name in META_FIELDS) or not isinstance(inner, dict | list):
            continue
        known = schema.properties.get(name)
        if known is not None or schema.has_additional:
            _prune(inner, known or schema.additional, _child(path, name), report)


def _child(path: str, name: str) -> str:
    return extended(path, f".{name}") if path else extended("", name)


def prune_nulls(value: Any, schema: Structural | None) -> None:
    """Remove nulls where the schema allows none, and has no default to take their place."""
    if isinstance(value, dict):
        gone: list[str] = []
        for name, inner in value.items():
            known = None if schema is None else schema.field(name)
            if inner is None:
                if known is not None and not known.nullable and known.default is ABSENT:
                    gone.append(name)
            elif isinstance(inner, dict | list):
                prune_nulls(inner, known)
        for name in gone:
            del value[name]
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict | list):
                prune_nulls(item, None if schema is None else schema.items)
