"""The table of a custom kind: its additionalPrinterColumns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from situate.server.objects import Object
from situate.server.tables.columns import Printer
from situate.server.tables.durations import INVALID, since
from situate.server.tables.json_path import JsonPathError, found_at, parse_json_path
from situate.wire.structural.numbers import shown_number

NAME: Final = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "The name of the object, unique among its kind in its namespace.",
    "priority": 0,
}
AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
"""The column of a kind that defines none."""
Cell = Callable[[Any, int], Any]


def custom_printer(columns: Sequence[Mapping[str, Any]]) -> Printer:
    """Columns after one whose path cannot be read are left out, as kube-apiserver does."""
    definitions: list[dict[str, Any]] = [dict(NAME)]
    cells: list[Callable[[Object, int], Any]] = []
    for one in columns or (AGE,):
        try:
            path = parse_json_path(one["jsonPath"])
        except JsonPathError:
            break
        fallback = f"Custom resource definition column (in JSONPath format): {one['jsonPath']}"
        definitions.append(
            {
                "name": one["name"],
                "type": one["type"],
                "format": one.get("format", ""),
                "description": one.get("description") or fallback,
                "priority": one.get("priority", 0),
            }
        )
        cells.append(_cell(path, _CELLS.get(one["type"], _nothing)))

    def row(obj: Object, now_ns: int) -> list[Any]:
        return [obj["metadata"].get("name", ""), *[cell(obj, now_ns) for cell in cells]]

    return Printer(definitions, row)


def _cell(path: Sequence[Any], shown: Cell) -> Callable[[Object, int], Any]:
    def cell(obj: Object, now_ns: int) -> Any:
        found = found_at(path, obj)
        return shown(found[0], now_ns) if found and found[0] is not None else None

    return cell


def _text(value: Any, _now_ns: int) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return shown_number(value)
    return msgspec.json.encode(value, order="sorted").decode()


def _integer(value: Any, _now_ns: int) -> Any:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: Any, _now_ns: int) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Any, _now_ns: int) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now_ns: int) -> Any:
    if not isinstance(value, str):
        return None
    shown = since(value, now_ns)
    return INVALID if value and shown == "<unknown>" else shown


def _nothing(_value: Any, _now_ns: int) -> Any:
    return None


_CELLS: Final[Mapping[str, Cell]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
