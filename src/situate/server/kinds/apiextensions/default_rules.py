"""Defaults in a schema must themselves fit the schema, and have no fields that would be pruned."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from situate.server.kinds.apiextensions.schema_causes import add_schema_errors
from situate.server.kinds.field_errors import Causes
from situate.wire.structural.checks import SchemaChecks
from situate.wire.structural.patterns import PatternWorkError
from situate.wire.structural.pruning import prune_value
from situate.wire.structural.schema import ABSENT, Structural


def check_defaults(schema: Structural, path: str, causes: Causes) -> None:
    if schema.default is not ABSENT:
        _check_default(schema, schema.default, f"{path}.default", causes)
    if schema.items is not None:
        check_defaults(schema.items, f"{path}.items", causes)
    for name, inner in schema.properties.items():
        check_defaults(inner, f"{path}.properties[{name}]", causes)


def _check_default(schema: Structural, value: Any, path: str, causes: Causes) -> None:
    unknown: list[str] = []
    prune_value(deepcopy(value), schema, unknown.append)
    if unknown:
        causes.invalid(path, value, "must not have unknown fields")
    try:
        add_schema_errors(SchemaChecks(schema.source).errors(value), path, causes)
    except PatternWorkError as error:
        causes.invalid(path, value, str(error))
