"""Errors by a schema as field errors."""

from __future__ import annotations

from collections.abc import Iterable

from situate.server.kinds.field_errors import Causes
from situate.wire.structural.checks import NO_PATH, SchemaError
from situate.wire.structural.rules import RuleError


def add_schema_errors(errors: Iterable[SchemaError], prefix: str, causes: Causes) -> None:
    """`prefix`: the path of the value that was checked; "" for a whole object."""
    for one in errors:
        path = _under(prefix, one.path)
        match one.kind:
            case "required":
                causes.required(path)
            case "enum":
                causes.not_supported(path, one.value, one.supported)
            case "length":
                causes.too_long(path, one.limit)
            case "count":
                causes.too_many(path, one.value, one.limit)
            case "type":
                causes.type_invalid(path, one.value, one.text)
            case "value":
                causes.invalid(path, one.value, one.text)


def add_rule_errors(errors: Iterable[RuleError], prefix: str, causes: Causes) -> None:
    """Rules of x-kubernetes-validations that an object breaks."""
    for one in errors:
        path = _under(prefix, one.path)
        match one.reason:
            case "FieldValueForbidden":
                causes.forbidden(path, one.text)
            case "FieldValueRequired":
                causes.required(path, one.text)
            case "FieldValueDuplicate":
                causes.duplicate(path, one.value)
            case _ if one.shows_value:
                causes.invalid(path, one.value, one.text)
            case _:
                causes.invalid_struct(path, one.text)


def _under(prefix: str, path: str) -> str:
    inner = path.removeprefix(".")
    if path == NO_PATH or not inner:
        return prefix or NO_PATH
    return f"{prefix}.{inner}" if prefix else inner
