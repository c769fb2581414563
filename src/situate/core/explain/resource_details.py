"""Resources: how much a pod requests, how much is free, how much is missing, and which pods hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from situate.core.explain.detail import NAMED, VerdictDetail
from situate.core.explain.formatting import counted, quantity, roughly
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.state.classes import PODS, PodClass
from situate.core.state.columns import IdColumn, IntColumn
from situate.core.state.view import View

HOLDERS: Final = 3
"""How many of the largest pods are named for each node."""
ALL_HOLDERS: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Shortage:
    """The shortage of one resource on one node. `free` may be negative: a node can be overcommitted."""

    node: str
    resource: str
    asked: int
    allocatable: int
    free: int
    holders: tuple[tuple[str, int], ...]
    """Pods by namespace/name and the amount each requests, largest first."""

    @property
    def short(self) -> int:
        return self.asked - self.free


def room_details(plugin: NodeResourcesFit, pod: PodClass, view: View, rows: IdColumn, text: str) -> list[VerdictDetail]:
    """For each resource that the rows are short of: the nodes that come closest."""
    names = view.cluster.resources.names
    one = len(rows) == 1
    found = []
    for column, asked in plugin.asked(pod, view):
        free = free_of(view, column)
        short = rows[free[rows] < asked]
        if not len(short) or not text.endswith("pods" if column == PODS else f" {names[column]}"):
            continue
        closest = short[np.argsort(-free[short], kind="stable")]
        holders = ALL_HOLDERS if one else HOLDERS
        shortages = [shortage(view, int(row), column, asked, holders) for row in closest[:NAMED].tolist()]
        total = int(np.maximum(free[view.present], 0).sum())
        found.append(_detail(shortages, len(short), total))
    return found


def free_of(view: View, column: int) -> IntColumn:
    return view.allocatable(column) - view.requested(column)


def shortage(view: View, row: int, column: int, asked: int, holders: int = HOLDERS) -> Shortage:
    allocatable = int(view.allocatable(column)[row])
    return Shortage(
        node=view.names[row],
        resource=view.cluster.resources.names[column],
        asked=asked,
        allocatable=allocatable,
        free=allocatable - int(view.requested(column)[row]),
        holders=held(view, row, column)[:holders],
    )


def held(view: View, row: int, column: int) -> tuple[tuple[str, int], ...]:
    """The pods on a node that request a resource, largest first."""
    pods = view.cluster.pods
    amounts = [
        (pods.keys[pod], amount)
        for pod in view.pod_rows_on(row)
        if (amount := next((taken for at, taken in pods.kind(pod).takes if at == column), 0))
    ]
    return tuple(sorted(amounts, key=lambda one: (-one[1], one[0])))


def _detail(shortages: list[Shortage], count: int, total: int) -> VerdictDetail:
    first = shortages[0]
    name, what = first.resource, "pods" if first.resource == "pods" else first.resource
    asks = "" if name == "pods" else f"asks for {roughly(name, first.asked)} {what}; "
    sums = f"{roughly(name, total)} free in all; " if count > 1 and name != "pods" else ""
    lines = "; ".join(_shortage_text(one) for one in shortages)
    return VerdictDetail(
        text=f"{asks}{sums}{'closest: ' if count > 1 else ''}{lines}",
        nodes=tuple(one.node for one in shortages),
        count=count,
        values={
            "resource": name,
            "asked": quantity(name, first.asked),
            "freeInAll": quantity(name, total),
            "closest": [shortage_values(one) for one in shortages],
        },
    )


def _shortage_text(one: Shortage) -> str:
    name = one.resource
    text = f"{one.node} has {roughly(name, one.free)} of {roughly(name, one.allocatable)} free"
    if name == "pods":
        return f"{one.node} holds {one.allocatable - one.free} of {counted(one.allocatable, 'pod')}"
    text += f", short by {roughly(name, one.short)}"
    if one.holders:
        text += f", held by {', '.join(f'{pod} {roughly(name, amount)}' for pod, amount in one.holders[:HOLDERS])}"
    return text


def shortage_values(one: Shortage) -> dict[str, Any]:
    name = one.resource
    return {
        "node": one.node,
        "allocatable": quantity(name, one.allocatable),
        "free": quantity(name, one.free),
        "short": quantity(name, one.short),
        "holders": [{"pod": pod, "amount": quantity(name, amount)} for pod, amount in one.holders],
    }
