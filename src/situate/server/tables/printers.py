"""The table of each resource. Objects are in the requested version, with metadata.resourceVersion.

An object that cannot be printed, because another release or somebody by hand stored it, has a row with
its name. The others have theirs.
"""

from typing import Any, Final

from situate.server.kinds import KINDS
from situate.server.objects import Object
from situate.server.resources import Resource
from situate.server.tables.columns import Printer, Row, printer
from situate.server.tables.durations import UNKNOWN

_PRINTERS: Final = {
    resource: kind.printer or printer(kind.columns, kind.cells, kind.timed)
    for kind in KINDS
    for resource in kind.resources
}


def _sure(made: Printer) -> Row:
    def row(obj: Object, now_ns: int) -> list[Any]:
        try:
            return made.row(obj, now_ns)
        except Exception:  # noqa: BLE001 - whatever is odd about this object, the others are shown
            return [obj["metadata"].get("name", UNKNOWN), *[UNKNOWN] * (len(made.columns) - 1)]

    return row


_ROWS: Final = {resource: _sure(made) for resource, made in _PRINTERS.items()}


def columns_of(resource: Resource) -> list[dict[str, Any]]:
    """Table.columnDefinitions. Do not change the list: every table shares it."""
    return _printer(resource).columns


def _printer(resource: Resource) -> Printer:
    return _PRINTERS[resource] if resource.custom is None else resource.custom.printer


def printer_of(resource: Resource) -> Row:
    """The function that prints a row. Look it up once for a list."""
    return _ROWS[resource] if resource.custom is None else _sure(resource.custom.printer)


def cells_of(resource: Resource, obj: Object, now_ns: int) -> list[Any]:
    """The cells of one row, with those of wide columns, which the client may leave out."""
    return printer_of(resource)(obj, now_ns)


def conditions_of(resource: Resource, obj: Object) -> list[Object]:
    """The `conditions` of a row: `Completed` for pods that have ended, none for anything else."""
    try:
        return _printer(resource).conditions(obj)
    except Exception:  # noqa: BLE001 - as above
        return []
