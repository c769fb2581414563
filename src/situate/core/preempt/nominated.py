"""The nominated pods, as a pod that looks for a node sees them.

On the node that it tries, a pod sees those of its priority or above as if they were bound already; on other nodes they
do not exist. It must fit with them, and without them too: they may end up elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import numpy as np

from situate.core.state.classes import LabelGroup, PodClass
from situate.core.state.columns import IntColumn
from situate.core.state.view import View

T = TypeVar("T", LabelGroup, PodClass)


class NominatedPods:
    """Which pods are nominated to which row, and what they request there."""

    __slots__ = ("_holders", "_loads", "_size", "by_row", "carriers", "groups", "version")

    def __init__(self, size: int = 0) -> None:
        self.version = 0
        """Set by the owner: changes with the nominations, 0 while there are none."""
        self.by_row: dict[int, list[PodClass]] = {}
        self.carriers: dict[PodClass, int] = {}
        """The classes with affinity terms, and how many pods of each there are."""
        self.groups: dict[LabelGroup, int] = {}
        """The label groups, likewise."""
        self._size = size
        self._holders: dict[PodClass, int] = {}
        """The classes that hold more than requests, such as ports and volumes, likewise."""
        self._loads: dict[int, IntColumn] = {}

    def __bool__(self) -> bool:
        return bool(self.by_row)

    def add(self, kind: PodClass, row: int) -> None:
        self.by_row.setdefault(row, []).append(kind)
        self._shift(kind, row, 1)

    def remove(self, kind: PodClass, row: int) -> None:
        here = self.by_row[row]
        here.remove(kind)
        if not here:
            del self.by_row[row]
        self._shift(kind, row, -1)

    def without(self, kind: PodClass, row: int) -> NominatedPods:
        found = NominatedPods(self._size)
        found.by_row = {at: list(kinds) for at, kinds in self.by_row.items()}
        found.carriers, found.groups, found._holders = dict(self.carriers), dict(self.groups), dict(self._holders)
        found._loads = {column: load.copy() for column, load in self._loads.items()}
        found.remove(kind, row)
        return found

    def at(self, row: int) -> list[tuple[PodClass, int]]:
        """The pods nominated to this row, as a view takes them."""
        return [(kind, row) for kind in self.by_row.get(row, ())]

    def load(self, column: int) -> IntColumn | None:
        """What they request of a resource, by row; None if nothing anywhere."""
        return self._loads.get(column)

    def holders(self) -> list[tuple[PodClass, int]]:
        """Those that hold more than requests, with their rows."""
        if not self._holders:
            return []
        return [(kind, row) for row, here in self.by_row.items() for kind in here if kind in self._holders]

    def _shift(self, kind: PodClass, row: int, sign: int) -> None:
        _count(self.groups, kind.group, sign)
        if kind.terms:
            _count(self.carriers, kind, sign)
        if kind.holds_volumes or kind.host_ports or kind.annotations or kind.requests.scalar:
            _count(self._holders, kind, sign)
        for column, amount in kind.takes:
            load = self._loads.get(column)
            if load is None:
                load = self._loads[column] = np.zeros(self._size, np.int64)
            load[row] += sign * amount


def _count(counts: dict[T, int], item: T, sign: int) -> None:
    counts[item] = counts.get(item, 0) + sign
    if not counts[item]:
        del counts[item]


NO_NOMINATED_PODS: Final = NominatedPods()


class WithNominated(View):
    """Every node with its nominated pods, for filters that read the load of single rows only.

    Requests that evictions would free can be subtracted as well.
    """

    __slots__ = ("_freed", "_nominated", "_under")

    def __init__(self, view: View, nominated: NominatedPods, freed: Mapping[int, IntColumn] | None = None) -> None:
        super().__init__(
            view.cluster, removed=view.removed, added=(*view.added, *nominated.holders()), given=view.given
        )
        self.is_plain = False
        self._under = view
        self._nominated = nominated
        self._freed = freed or {}

    def requested(self, column: int) -> IntColumn:
        found = self._under.requested(column)
        if (freed := self._freed.get(column)) is not None:
            found = found - freed
        if (load := self._nominated.load(column)) is not None:
            found = found + load
        return found
