"""BinPack: best fit. Prefer the nodes that the pod would leave with the least room.

The plugin compares amounts, in thousandths of the largest node, not shares of each node. So of two empty nodes the
smaller one fits better, and a node without a resource wastes none of it: a pod without a GPU goes to a node without
GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Scores
from situate.core.model.field_errors import child, index
from situate.core.plugins.support.arguments import (
    CPU_AND_MEMORY,
    PluginArgs,
    ResourceSpec,
    label_name_problems,
    repeated_name,
    weight_problems,
    with_weights,
)
from situate.core.plugins.support.normalize import normalized
from situate.core.plugins.support.resource_scoring import EXACT_FLOATS, request_of, used_column
from situate.core.state.classes import PodClass
from situate.core.state.columns import FloatColumn
from situate.core.state.view import View

WHOLE: Final = 1_000
"""Free amounts are in thousandths of the largest node."""


class BinPackArgs(PluginArgs, frozen=True, kw_only=True):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def with_defaults(self) -> BinPackArgs:
        return BinPackArgs(resources=with_weights(self.resources))

    def validate(self, path: str) -> list[str]:
        here = child(path, "resources")
        problems = weight_problems(here, self.resources)
        for i, resource in enumerate(self.resources):
            problems += repeated_name(index(here, i), self.resources, i)
            problems += label_name_problems(child(index(here, i), "name"), resource.name)
        return problems


@dataclass(frozen=True, slots=True)
class FreeCapacity:
    """One resource over all rows, in units of which the largest node has `most`."""

    allocatable: FloatColumn
    most: float
    unit: int
    """1, unless a thousand times the amount would not be exact as a float."""


@dataclass(frozen=True, slots=True)
class BinPack:
    """The less the pod would leave free, the higher the score, relative to the node with the most left.

    Does not score if no node has any of the resources.
    """

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    name: ClassVar[str] = "BinPack"

    @classmethod
    def from_args(cls, args: BinPackArgs, points: frozenset[str]) -> BinPack:
        return cls(args.resources)

    def score(self, pod: PodClass, view: View) -> Scores | None:
        total: FloatColumn | None = None
        for resource in self.resources:
            column = view.resource(resource.name)
            room = None if column < 0 else _room(view, column)
            if room is None:
                continue
            left = _left(view, column, request_of(pod.requests, resource.name, nonzero=False), room)
            left *= resource.weight
            total = left if total is None else np.add(total, left, out=total)
        if total is None:
            return None
        return normalized(total.astype(np.int64), view.feasible, reverse=True)


def _left(view: View, column: int, amount: int, room: FreeCapacity) -> FloatColumn:
    """The free amount after the pod, in thousandths of the largest node, rounded down, at least 0."""
    left: FloatColumn = room.allocatable[view.rows] - used_column(view, column, nonzero=False)
    left -= amount
    np.maximum(left, 0.0, out=left)
    if room.unit > 1:
        np.floor(np.divide(left, room.unit, out=left), out=left)
    left *= WHOLE
    left /= room.most
    return np.floor(left, out=left)


def _room(view: View, column: int) -> FreeCapacity | None:
    """None if no node has any."""

    def compute(whole: View) -> FreeCapacity | None:
        allocatable = whole.allocatable(column)
        most = int(allocatable[whole.present].max(initial=0))
        unit = 1
        while most // unit * WHOLE >= EXACT_FLOATS:
            unit *= 2
        return FreeCapacity(allocatable.astype(np.float64), float(most // unit), unit) if most else None

    return view.memo((BinPack.name, column), compute)
