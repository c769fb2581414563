"""The checks that the table of messages states: ranges, enums and fields that must not be empty.

A kind calls a check where kube-apiserver makes it, so that errors keep its order. The table is compiled when a check is
first made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from situate.server.kinds.field_errors import NOT_NEGATIVE, POSITIVE, Causes
from situate.wire.schema.table import Field, flat_fields, message

__all__ = ["FieldChecks"]

_Check: TypeAlias = Callable[[Any, str, Causes], None]


class FieldChecks:
    """The checks of one message, by its name in the table: `core.v1.Container`."""

    __slots__ = ("_message",)

    def __init__(self, message_name: str) -> None:
        self._message = message_name

    def check(self, obj: Mapping[str, Any], path: str, causes: Causes, names: str = "") -> None:
        """Check the named fields, separated by spaces, or all that have a rule in the table."""
        for name, check in _compiled(self._message, names):
            check(obj.get(name), f"{path}.{name}" if path else name, causes)


@cache
def _compiled(message_name: str, names: str) -> tuple[tuple[str, _Check], ...]:
    fields = {field.name: field for field in flat_fields(message(message_name))}
    wanted = names.split() or [field.name for field in fields.values() if field.rules]
    return tuple((name, _check(fields[name])) for name in wanted)


def _check(field: Field) -> _Check:
    values = field.type.of.values if field.type.of else field.type.values
    if values:
        return _enum(values, "nonempty" in field.rules, field.pointer or field.type.of is not None)
    if field.rules == ("nonempty",):
        return lambda value, path, causes: causes.require(value, path)
    least = int(field.rules[0].removeprefix(">="))
    text = POSITIVE if least == 1 else NOT_NEGATIVE

    def check(value: int | None, path: str, causes: Causes) -> None:
        if (value or 0) < least and not (value is None and field.pointer):
            causes.invalid(path, value or 0, text)

    return check


def _enum(values: tuple[str, ...], nonempty: bool, optional: bool) -> _Check:
    def check(value: Any, path: str, causes: Causes) -> None:
        for one in value if isinstance(value, list) else (value or "",):
            if nonempty and not one:
                causes.required(path)
            elif one not in values and not (value is None and optional):
                causes.not_supported(path, one, values)

    return check
