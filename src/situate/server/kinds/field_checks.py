"""The checks that the table of messages states: ranges, enums and fields that must not be empty.

A kind calls a check where kube-apiserver makes it, so that errors keep its order. The table is compiled when a check is
first made.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from situate.server.kinds.field_errors import NOT_NEGATIVE, POSITIVE, Causes
from situate.wire.schema.table import Field, flat_fields, message

_Check: TypeAlias = Callable[[Any, str, Causes], None]
_Test: TypeAlias = Callable[[Any], bool]


class FieldChecks:
    """The checks of one message, by its name in the table: `core.v1.Container`."""

    __slots__ = ("_compiled", "_message")

    def __init__(self, message_name: str) -> None:
        self._message = message_name
        self._compiled: dict[str, list[tuple[str, _Test, _Check]]] = {}

    def check(self, obj: Mapping[str, Any], path: str, causes: Causes, names: str = "") -> None:
        """Check the named fields, separated by spaces, or all that have a rule in the table."""
        compiled = self._compiled.get(names)
        if compiled is None:
            compiled = self._compiled[names] = _compile(self._message, names)
        for name, is_right, report in compiled:
            if not is_right(obj.get(name)):
                report(obj.get(name), f"{path}.{name}" if path else name, causes)


def _compile(message_name: str, names: str) -> list[tuple[str, _Test, _Check]]:
    """Of each field: its name, whether a value is right, and what reports a wrong one."""
    fields = {field.name: field for field in flat_fields(message(message_name))}
    wanted = names.split() or [field.name for field in fields.values() if field.rules]
    return [(name, *_check(fields[name])) for name in wanted]


def _check(field: Field) -> tuple[_Test, _Check]:
    nonempty = "nonempty" in field.rules
    values = field.type.values
    if values:
        allowed = frozenset(values) | (frozenset() if nonempty or not field.pointer else {None})

        def report_enum(value: str | None, path: str, causes: Causes) -> None:
            if nonempty and not value:
                causes.required(path)
            else:
                causes.not_supported(path, value or "", values)

        return allowed.__contains__, report_enum
    if nonempty:
        return bool, lambda _value, path, causes: causes.required(path)
    least = int(field.rules[0].removeprefix(">="))
    text = POSITIVE if least == 1 else NOT_NEGATIVE
    absent = least if field.pointer else 0
    return (
        lambda value: (absent if value is None else value) >= least,
        lambda value, path, causes: causes.invalid(path, value or 0, text),
    )
