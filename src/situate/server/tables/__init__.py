"""Tables, as `kubectl get` asks for them: which columns a resource has, and an object's cells in them.

Values in, values out: no HTTP, no clock, and nothing that goes by the reader. Objects are in the version that is shown,
with metadata.resourceVersion.
"""

from __future__ import annotations

from typing import Any

from situate.server.requests import Object
from situate.server.resources import Resource
from situate.server.tables.ages import human_duration
from situate.server.tables.columns import COLUMNS, PLAIN
from situate.server.tables.pods import pod_row_conditions
from situate.server.tables.rows import ROWS, Row, plain_cells

__all__ = ["cells_of", "columns_of", "conditions_of", "human_duration", "printer_of"]


def columns_of(resource: Resource) -> list[dict[str, Any]]:
    """Table.columnDefinitions. Shared: not to be changed."""
    return COLUMNS.get(f"{resource.group}/{resource.plural}", PLAIN)


def printer_of(resource: Resource) -> Row:
    """(object, now in nanoseconds) to cells: to be looked up once for a whole list."""
    return ROWS.get(f"{resource.group}/{resource.plural}", plain_cells)


def cells_of(resource: Resource, obj: Object, now_ns: int) -> list[Any]:
    """One row's cells, in the order of the columns; those of lower priority too, which the client leaves out."""
    return printer_of(resource)(obj, now_ns)


def conditions_of(resource: Resource, obj: Object) -> list[Object]:
    """A row's `conditions`: `Completed` for pods that are over, none for all else."""
    return pod_row_conditions(obj) if resource.plural == "pods" and not resource.group else []
