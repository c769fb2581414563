"""Printer: the columns that `kubectl get` prints for a kind, and where each cell's value comes from.

Columns are declared as text, one entry a column: `Name!, Desired# = spec.replicas, +Selector = labels(spec.selector)`.
Before the name, `+` marks a column that only `-o wide` shows. After it, `#` is an integer, `?` a boolean, `@` a date
and `!` a name. After ` = ` comes the path of the value, in parentheses if one of FUNCTIONS converts it. `|` and a value
say what to show if the path leads nowhere, `||` and a value what to show if it leads nowhere or to something empty. A
column without a path is one of STANDARD, or has a function in `cells` or `timed`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from situate.server.objects import Object
from situate.server.tables.cells import containers, images, labels, selector, size
from situate.server.tables.durations import since

Cell: TypeAlias = Callable[[Object], Any]
Row: TypeAlias = Callable[[Object, int], list[Any]]
"""(object, now in nanoseconds) to cells."""

_DESCRIPTIONS: Final = {
    "Access Modes": "The ways in which the volume can be mounted.",
    "Active": "The number of running jobs.",
    "Age": "The time since the object was created.",
    "Allowed Disruptions": "How many more pods may be evicted now.",
    "Available": "How many pods have been ready for long enough.",
    "Capacity": "The size of the volume.",
    "Claim": "The claim that the volume is bound to.",
    "Cluster-IP": "The address of the service inside the cluster.",
    "Completions": "The number of pods that succeeded, and that must.",
    "Containers": "The containers of the template.",
    "Controller": "The owner that controls the object.",
    "Count": "The number of occurrences.",
    "Created At": "The time at which the object was created.",
    "Current": "How many pods exist.",
    "Data": "How many entries it holds.",
    "Desired": "How many pods should exist.",
    "Driver": "The driver whose devices these are.",
    "Drivers": "How many CSI drivers are registered on the node.",
    "Duration": "How long the job ran, or has been running.",
    "Effect": "What the taint does to pods that do not tolerate it.",
    "Endpoints": "The addresses behind the service.",
    "External-IP": "The address that is reachable from outside.",
    "First Seen": "The time since the first occurrence.",
    "Global-Default": "Whether pods that name no class get this one.",
    "Handler": "The runtime's configuration for such pods.",
    "Holder": "Who holds the lease.",
    "IP": "The address of the pod.",
    "Images": "The images of the template's containers.",
    "Internal-IP": "The address of the node inside the cluster.",
    "Key": "The key of the taint.",
    "Last Schedule": "The time since a job was last started.",
    "Last Seen": "The time since the last occurrence.",
    "Message": "What happened, in words.",
    "MinMember": "How many pods must be placed together.",
    "Name": "The name of the object, unique among its kind in its namespace.",
    "Node": "The name of the node.",
    "Node Selector": "The labels that a node must have.",
    "Nominated Node": "The node on which preemption makes room for the pod.",
    "Object": "The object that the event is about.",
    "Phase": "The phase of the object.",
    "Pods": "The number of pods.",
    "Policy": "How the pods of the group are scheduled.",
    "PreemptionPolicy": "Whether pods of the class may displace others.",
    "Readiness Gates": "The number of readiness gates that are true.",
    "Ready": "How many are ready.",
    "Reason": "Why, in one word.",
    "Restarts": "How often containers were restarted, and how long ago the last time was.",
    "Roles": "The roles of the node, by its labels.",
    "Schedule": "The cron schedule of the jobs.",
    "Score": "The score of the chosen node.",
    "Selector": "The labels of the pods that belong to it.",
    "State": "Whether the claim is allocated and reserved.",
    "Status": "The state of the object.",
    "TimeAdded": "The time since the taint was added.",
    "Type": "The type of the object.",
    "Up-to-date": "The number of pods with the newest template.",
    "Value": "The value of the taint; of a class of pods, their priority.",
    "Version": "The version.",
    "Workload": "The workload that the group is part of.",
}

_TYPES: Final = {
    "#": ("integer", "", 0),
    "?": ("boolean", "", False),
    "@": ("date", "", ""),
    "!": ("string", "name", ""),
}
STANDARD: Final = {
    "Name": "metadata.name",
    "Age": "since(metadata.creationTimestamp)",
    "Containers": "containers(spec.template)",
    "Images": "images(spec.template)",
    "Selector": "selector(spec.selector)",
}
FUNCTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "containers": containers,
    "count": lambda these: len(these or ()),
    "images": images,
    "labels": labels,
    "selector": selector,
    "size": size,
    "text": lambda value: None if value is None else str(value),
}
_NO_CELLS: Final[Mapping[str, Any]] = {}


class Printer(NamedTuple):
    columns: list[dict[str, Any]]
    """Table.columnDefinitions. Every table that is sent shares it."""
    row: Row
    conditions: Callable[[Object], list[Object]] = lambda _: []
    """The conditions of a row."""


def printer(
    text: str, cells: Mapping[str, Cell] = _NO_CELLS, timed: Mapping[str, Callable[[Object, int], Any]] = _NO_CELLS
) -> Printer:
    """`cells` are functions of the object, `timed` of the object and the time, by the name of the column."""
    columns: list[dict[str, Any]] = []
    sources: list[Callable[[Object, int], Any]] = []
    for entry in " ".join(text.split()).split(", "):
        head, _, source = entry.partition(" = ")
        column, zero = _column(head)
        name = column["name"]
        columns.append(column)
        if name in timed:
            sources.append(timed[name])
        elif name in cells:
            sources.append(_untimed(cells[name]))
        else:
            sources.append(_source(source or STANDARD[name], zero))
    return Printer(columns, lambda obj, now_ns: [source(obj, now_ns) for source in sources])


def columns_of(text: str) -> list[dict[str, Any]]:
    """The columns alone, for a kind that prints its rows in a function of its own."""
    return [_column(head)[0] for head in text.split(", ")]


def _column(head: str) -> tuple[dict[str, Any], Any]:
    """The definition, and the value of a cell without one."""
    bare = head.lstrip("+")
    kind, form, zero = _TYPES.get(bare[-1], ("string", "", ""))
    name = bare.rstrip("#?@!")
    text = _DESCRIPTIONS.get(name, f"The object's {name}.")
    priority = int(head.startswith("+"))
    return {"name": name, "type": kind, "format": form, "description": text, "priority": priority}, zero


def _untimed(cell: Cell) -> Callable[[Object, int], Any]:
    return lambda obj, _now_ns: cell(obj)


def _source(text: str, zero: Any) -> Callable[[Object, int], Any]:
    path, given, default = text.partition("|")
    or_empty = default.startswith("|")
    absent = _value(default.lstrip("|")) if given else zero
    function, called, inner = path.rstrip(")").partition("(")
    read = _reader(inner if called else path)
    if function == "since":
        return lambda obj, now_ns: absent if given and not read(obj) else since(read(obj), now_ns)
    convert = FUNCTIONS[function] if called else None

    def cell(obj: Object, _now_ns: int) -> Any:
        value = read(obj) if convert is None else convert(read(obj))
        return absent if value is None or (or_empty and not value) else value

    return cell


def _reader(path: str) -> Cell:
    names = path.split(".")

    def read(obj: Any) -> Any:
        for name in names:
            if obj is None:
                return None
            obj = obj.get(name)
        return obj

    return read


def _value(text: str) -> Any:
    """`0`, `true`, `null` and `"0"` as JSON says; anything else is text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
