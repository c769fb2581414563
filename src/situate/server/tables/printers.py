"""The table of each resource. Objects are in the requested version, with metadata.resourceVersion."""

from typing import Any, Final

from situate.server.kinds import KINDS
from situate.server.objects import Object
from situate.server.resources import Resource
from situate.server.tables.columns import Row, printer

_PRINTERS: Final = {
    resource: kind.printer or printer(kind.columns, kind.cells, kind.timed)
    for kind in KINDS
    for resource in kind.resources
}


def columns_of(resource: Resource) -> list[dict[str, Any]]:
    """Table.columnDefinitions. Do not change the list: every table shares it."""
    return _PRINTERS[resource].columns


def printer_of(resource: Resource) -> Row:
    """The function that prints a row. Look it up once for a list."""
    return _PRINTERS[resource].row


def cells_of(resource: Resource, obj: Object, now_ns: int) -> list[Any]:
    """The cells of one row, with those of wide columns, which the client may leave out."""
    return printer_of(resource)(obj, now_ns)


def conditions_of(resource: Resource, obj: Object) -> list[Object]:
    """The `conditions` of a row: `Completed` for pods that have ended, none for anything else."""
    return _PRINTERS[resource].conditions(obj)
