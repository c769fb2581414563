"""The nodes as columns, one row per node. Rows of nodes that left are reused, lowest first."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.model.node import Node
from situate.core.model.requests import allocatable
from situate.core.model.tolerations import Taint
from situate.core.state.classes import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from situate.core.state.columns import IdColumn, IntColumn, Mask, capacity_for, grown, sealed
from situate.core.state.vocab import ABSENT, Vocab

NONZERO_CPU: Final = 0
NONZERO_MEMORY: Final = 1

SPARE_VALUES: Final = 64
"""How many values that no node has are kept at least, beside one for every node."""


@dataclass(slots=True)
class LabelColumn:
    """The values of one label over all rows, as ids; ABSENT where a node does not have it."""

    ids: IdColumn
    values: Vocab
    shown: IdColumn
    """The same ids, read-only."""


class NodeTable:
    """Only the Cluster writes this."""

    def __init__(self, resources: Vocab) -> None:
        self.resources = resources
        self.size = 0
        """Rows in use are below this; some of them may be empty."""
        self.rows: dict[str, int] = {}
        self.names: list[str] = []
        self.objects: list[Node | None] = []
        self.pods: list[dict[int, None]] = []
        """The pod rows on each node, in order of arrival."""
        self.labels: dict[str, LabelColumn] = {}
        """Columns of labels, built when they are first asked for."""
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_ids: dict[tuple[Taint, ...], int] = {(): 0}
        self._free: list[int] = []
        self._allocate(capacity_for(1))

    def _allocate(self, capacity: int) -> None:
        self.capacity = capacity
        self.present: Mask = np.zeros(capacity, np.bool_)
        self.unschedulable: Mask = np.zeros(capacity, np.bool_)
        self.taint_set: IdColumn = np.zeros(capacity, np.intp)
        self.allocatable: IntColumn = np.zeros((len(self.resources), capacity), np.int64)
        self.requested: IntColumn = np.zeros((len(self.resources), capacity), np.int64)
        self.nonzero: IntColumn = np.zeros((2, capacity), np.int64)
        self._look()

    def _look(self) -> None:
        """Other accesses to the same memory, made once: as single cells, and as read-only columns for views.

        Reading or writing one number through a memory view costs a fifth of numpy's way.
        """
        self.allocatable_cells = [column.data for column in self.allocatable]
        self.requested_cells = [column.data for column in self.requested]
        self.nonzero_cells = [column.data for column in self.nonzero]
        self.shown_allocatable: list[IntColumn] = [sealed(column) for column in self.allocatable]
        self.shown_requested: list[IntColumn] = [sealed(column) for column in self.requested]
        self.shown_nonzero: list[IntColumn] = [sealed(column) for column in self.nonzero]
        self.shown_present: Mask = sealed(self.present)
        self.shown_unschedulable: Mask = sealed(self.unschedulable)
        self.shown_taint_set: IdColumn = sealed(self.taint_set)

    def _grow_rows(self) -> None:
        capacity = self.capacity * 2
        self.present = grown(self.present, capacity, False)
        self.unschedulable = grown(self.unschedulable, capacity, False)
        self.taint_set = grown(self.taint_set, capacity, 0)
        self.allocatable = grown(self.allocatable, capacity, 0)
        self.requested = grown(self.requested, capacity, 0)
        self.nonzero = grown(self.nonzero, capacity, 0)
        for column in self.labels.values():
            column.ids = grown(column.ids, capacity, ABSENT)
            column.shown = sealed(column.ids)
        self.capacity = capacity
        self._look()

    def fit_resources(self) -> bool:
        """Add a column for every resource of the vocabulary; whether any was missing."""
        missing = len(self.resources) - len(self.allocatable)
        if missing <= 0:
            return False
        room = np.zeros((missing, self.capacity), np.int64)
        self.allocatable = np.concatenate([self.allocatable, room])
        self.requested = np.concatenate([self.requested, room])
        self._look()
        return True

    def add(self, node: Node) -> int:
        row = heapq.heappop(self._free) if self._free else self._new_row()
        self.rows[node.metadata.name] = row
        self.names[row] = node.metadata.name
        self.present[row] = True
        self.write(row, node)
        return row

    def _new_row(self) -> int:
        if self.size == self.capacity:
            self._grow_rows()
        row = self.size
        self.size += 1
        self.names.append("")
        self.objects.append(None)
        self.pods.append({})
        return row

    def write(self, row: int, node: Node) -> None:
        """Fill the row from the object; what is bound there stays."""
        self.objects[row] = node
        self.unschedulable[row] = node.spec.unschedulable
        self.taint_set[row] = self._taint_id(tuple(node.spec.taints))
        for key, column in self.labels.items():
            value = node.metadata.labels.get(key)
            column.ids[row] = ABSENT if value is None else column.values.intern(value)
        room = allocatable(node)
        scalar = {self.resources.intern(name): amount for name, amount in room.scalar.items()}
        self.fit_resources()
        self.allocatable[:, row] = 0
        self.allocatable[CPU, row] = room.milli_cpu
        self.allocatable[MEMORY, row] = room.memory
        self.allocatable[EPHEMERAL_STORAGE, row] = room.ephemeral_storage
        self.allocatable[PODS, row] = room.pods
        for column_at, amount in scalar.items():
            self.allocatable[column_at, row] = amount

    def remove(self, row: int) -> None:
        """Empty the row. Its pods must be gone already."""
        del self.rows[self.names[row]]
        self.names[row] = ""
        self.objects[row] = None
        self.present[row] = False
        self.unschedulable[row] = False
        self.taint_set[row] = 0
        self.allocatable[:, row] = 0
        for column in self.labels.values():
            column.ids[row] = ABSENT
        heapq.heappush(self._free, row)

    def forget_old_values(self) -> None:
        """Drop label values and sets of taints that no node has any more, once most are of that kind.

        Nodes that come and go keep bringing new host names; counts by value must not grow with them.
        """
        limit = 2 * len(self.rows) + SPARE_VALUES
        for key in [key for key, column in self.labels.items() if len(column.values) > limit]:
            del self.labels[key]  # built again, from the nodes there are, when it is next asked for
        if len(self.taint_sets) > limit:
            self.taint_sets, self._taint_ids = [()], {(): 0}
            for row, node in enumerate(self.objects):
                self.taint_set[row] = 0 if node is None else self._taint_id(tuple(node.spec.taints))

    def label(self, key: str) -> LabelColumn:
        """The column of a label, built from the objects when it is first asked for."""
        column = self.labels.get(key)
        if column is None:
            ids = np.full(self.capacity, ABSENT, np.intp)
            column = LabelColumn(ids, Vocab(), sealed(ids))
            for row, node in enumerate(self.objects):
                value = None if node is None else node.metadata.labels.get(key)
                if value is not None:
                    column.ids[row] = column.values.intern(value)
            self.labels[key] = column
        return column

    def _taint_id(self, taints: tuple[Taint, ...]) -> int:
        found = self._taint_ids.get(taints)
        if found is None:
            found = self._taint_ids[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return found
