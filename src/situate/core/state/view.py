"""A read-only view of the cluster: what a plugin sees.

A view may be an overlay (`without` some pods, `plus` others) and may be narrowed to one row (`at`). Preemption, gangs
and what-ifs are overlays, never undo. Every array has one entry per row of the view and is read-only.

A view records what was read through it (`reads`, `tallies_read`), so that a cached verdict knows when it is outdated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from situate.core.devices.allocated import NO_POOLS, PoolId, PoolUse
from situate.core.model.base import INT64_MAX
from situate.core.model.latency import PlaceLatencies
from situate.core.model.node import Node
from situate.core.model.policy import PodDisruptionBudget
from situate.core.model.tolerations import Taint
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import IdColumn, IntColumn, Mask, sealed
from situate.core.state.devices import Devices, with_overlay
from situate.core.state.nodes import NONZERO_CPU, NONZERO_MEMORY
from situate.core.state.objects import StorageObjects, WorkloadObjects
from situate.core.state.pods import BoundPod
from situate.core.state.terms import CarriedTerm
from situate.core.state.topology import TopologyTally
from situate.core.state.vocab import Vocab

T = TypeVar("T")
D = TypeVar("D", bound=np.generic)

LOAD: Final = 1
"""Read what is bound to rows: requests, ports, volumes, pods."""
STORAGE: Final = 2
WORKLOADS: Final = 4
TERMS: Final = 8
"""Read which terms are carried at all. The domains that carry one are in `tallies_read`."""
FEASIBLE: Final = 16
"""Read which nodes are feasible."""
OVERLAY: Final = 32
"""Read what an overlay changes. The cluster never changes it."""
DEVICES: Final = 64
"""Read the devices of the cluster, or which resources they serve."""
ROW_DEVICES: Final = 128
"""Read the devices of each row, and what is in use of them."""
CLAIMS: Final = 256
"""Read claims for devices."""

MEMO_CELLS: Final = 1 << 23
"""How many memos are kept between two changes of a node, in cells: a memo may have one per row."""


NO_MEMO: Final[Any] = object()


class OnARow(Protocol):
    @property
    def row(self) -> int: ...


class View:
    """Columns of the nodes, counts of the pods on them, and the objects around them, as of now."""

    __slots__ = (
        "_feasible",
        "added",
        "claimed",
        "cluster",
        "given",
        "is_plain",
        "once",
        "reads",
        "removed",
        "row",
        "rows",
        "size",
        "tallies_read",
        "versions_read",
    )  # fmt: skip

    def __init__(
        self,
        cluster: Cluster,
        *,
        row: int | None = None,
        removed: Mapping[int, None] | None = None,
        added: Sequence[tuple[PodClass, int]] = (),
        given: Sequence[str] = (),
        feasible: Mask | None = None,
        once: bool = False,
        claimed: Mapping[PoolId, PoolUse] = NO_POOLS,
    ) -> None:
        self.cluster = cluster
        self.row = row
        self.once = once
        """Whether nobody keeps what is computed from it: then counts that few pods make up need not be kept either."""
        self.removed: Mapping[int, None] = removed or {}
        self.added = added
        self.given = given
        """The devices of the added pods, in their order, as in the annotation; empty: not known. Those at the end may
        be left out."""
        self.is_plain = row is None and not removed and not added
        """Whether it shows all rows of the cluster as it is."""
        self.claimed = claimed
        """What is in use of the pools that the added pods claim devices of."""
        self._feasible = None if feasible is None else sealed(feasible)
        self.size = cluster.nodes.size if row is None else 1
        self.rows = slice(0, self.size) if row is None else slice(row, row + 1)
        """The rows of the cluster that this view shows."""
        self.reads = 0
        self.tallies_read: list[TopologyTally | CarriedTerm] = []
        self.versions_read: list[int] = []
        """Their versions when they were read: reading one may drop another, which then moves no more."""

    # -- other views ---------------------------------------------------------------------------------------------

    def without(self, pods: Sequence[OnARow]) -> View:
        removed = {**self.removed, **{pod.row: None for pod in pods}}
        return self._like(row=self.row, removed=removed, feasible=self._feasible)

    def plus(self, placements: Sequence[tuple[PodClass, int]], given: Sequence[str] = ()) -> View:
        """The same cluster with these pods bound as well: (class, node row); and the devices that they were given."""
        added = (*self.added, *placements)
        if given:
            given = (*self.given, *[""] * (len(self.added) - len(self.given)), *given)
        return View(
            self.cluster,
            row=self.row,
            removed=self.removed,
            added=added,
            given=given or self.given,
            feasible=self._feasible,
            claimed=self.claimed,
        )

    def claiming(self, claimed: Mapping[PoolId, PoolUse]) -> View:
        """The same cluster with this in use of these pools."""
        made = self._like(row=self.row, feasible=self._feasible)
        made.claimed = claimed
        return made

    def _like(
        self, *, row: int | None, removed: Mapping[int, None] | None = None, feasible: Mask | None = None
    ) -> View:
        removed = self.removed if removed is None else removed
        return View(
            self.cluster,
            row=row,
            removed=removed,
            added=self.added,
            given=self.given,
            feasible=feasible,
            claimed=self.claimed,
        )

    def at(self, row: int) -> View:
        """One row of the same cluster: every array has one entry. Domains and tallies are those of the whole."""
        return self._like(row=row)

    def scoring(self, feasible: Mask) -> View:
        """For scoring the nodes that passed the filters. A view that nobody keeps becomes that itself."""
        if self.once:
            self._feasible = sealed(feasible) if feasible.flags.writeable else feasible
            return self
        return self._like(row=self.row, feasible=feasible)

    @property
    def whole(self) -> View:
        """All rows, if this view is narrowed to one."""
        return self if self.row is None else self._like(row=None)

    # -- nodes ---------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Node names by row; empty where no node is."""
        return self.cluster.nodes.names[self.rows]

    @property
    def present(self) -> Mask:
        """Rows that hold a node; others are left over from nodes that went."""
        return self.cluster.nodes.shown_present[self.rows]

    @property
    def node_count(self) -> int:
        """How many nodes the cluster has, whatever this view is narrowed to."""
        return len(self.cluster.nodes.rows)

    @property
    def unschedulable(self) -> Mask:
        return self.cluster.nodes.shown_unschedulable[self.rows]

    def node(self, row: int) -> Node | None:
        return self.cluster.nodes.objects[self.absolute(row)]

    def find(self, name: str) -> int:
        """The row of a node in this view, or -1."""
        found = self.cluster.nodes.rows.get(name, -1)
        if self.row is None:
            return found
        return 0 if found == self.row else -1

    def label(self, key: str) -> tuple[IdColumn, Vocab]:
        """A label over all rows as ids (-1 where absent), and the vocabulary of those ids.

        The ids of a label are also the domains of the topology of that key.
        """
        column = self.cluster.nodes.label(key)
        return column.shown[self.rows], column.values

    def rows_in(self, topology_key: str, domain: int) -> IdColumn:
        """The cluster rows in a domain of a topology; in the one after the last, those without the label."""
        order, starts = self.memo(("rows in", topology_key), lambda whole: _by_domain(*whole.label(topology_key)))
        return order[starts[domain] : starts[domain + 1]]

    def by_taint_set(self, answer: Callable[[tuple[Taint, ...]], T]) -> list[T]:
        """Evaluate a function once per distinct set of taints; the results by set id (see `taint_set`)."""
        return [answer(taints) for taints in self.cluster.nodes.taint_sets]

    @property
    def taint_set(self) -> IdColumn:
        return self.cluster.nodes.shown_taint_set[self.rows]

    def image_holders(self, name: str) -> Mapping[int, int]:
        return self.cluster.images.holders(name)

    def memo(self, key: Hashable, compute: Callable[[View], T]) -> T:
        """A value that depends on node rows alone, computed over all rows, once until a node changes."""
        memos = self.cluster.memos
        found: T = memos.get(key, NO_MEMO)
        if found is not NO_MEMO:
            return found
        whole = View(self.cluster)
        made = compute(whole)
        if len(memos) >= MEMO_CELLS // (whole.size + 1):
            memos.clear()
        memos[key] = made
        return made

    def derived(
        self, key: Hashable, compute: Callable[[View], npt.NDArray[D]], at: Callable[[int], float]
    ) -> npt.NDArray[D]:
        """A column where each row depends on its node and the pods bound to it: `compute` for all, `at` for one.

        It is kept, and only the rows where a pod came or went since are computed again.
        """
        self.reads |= LOAD
        if self.removed or self.added:
            return compute(self)
        cluster = self.cluster
        position = cluster.touched_base + len(cluster.touched)
        found = cluster.derived.get(key)
        if found is None or found[1] < cluster.touched_base:
            column = compute(View(cluster))
        else:
            column = found[0]
            for row in cluster.touched[found[1] - cluster.touched_base :]:
                column[row] = at(row)
        cluster.derived[key] = (column, position)
        shown: npt.NDArray[D] = sealed(column[self.rows])
        return shown

    def by_row(
        self, key: Hashable, stamp: Hashable, compute: Callable[[View, IdColumn], npt.NDArray[D]]
    ) -> npt.NDArray[D]:
        """A column as with `derived`, but computed for many rows at once; and it may depend on something else, which
        `stamp` stands for.

        `compute` gets a view and rows of it. For an overlay only the rows that it changes are computed.
        """
        self.reads |= LOAD
        cluster = self.cluster
        position = cluster.touched_base + len(cluster.touched)
        found = cluster.stamped.get(key)
        if found is None or found[2] != stamp or found[1] < cluster.touched_base:
            column = compute(View(cluster), np.arange(cluster.nodes.size))
            if len(cluster.stamped) >= MEMO_CELLS // (cluster.nodes.size + 1):
                cluster.stamped.clear()
        else:
            column = found[0]
            touched = cluster.touched[found[1] - cluster.touched_base :]
            if touched:
                rows = np.fromiter(dict.fromkeys(touched), np.intp)
                column[rows] = compute(View(cluster), rows)
        cluster.stamped[key] = (column, position, stamp)
        if self.removed or self.added:
            column = column.copy()
            rows = np.fromiter(dict.fromkeys(row for _, row, _, _ in self.delta()), np.intp)
            column[rows] = compute(self.whole, rows)
        shown: npt.NDArray[D] = sealed(column[self.rows])
        return shown

    # -- load ----------------------------------------------------------------------------------------------------

    def resource(self, name: str) -> int:
        """The column of a resource, or -1 if no node and no pod has ever named it."""
        return self.cluster.resources.find(name)

    def allocatable(self, column: int) -> IntColumn:
        return self.cluster.nodes.shown_allocatable[column][self.rows]

    def requested(self, column: int) -> IntColumn:
        """What is requested of a resource, `pods` being a resource too."""
        self.reads |= LOAD
        base = self.cluster.nodes.shown_requested[column][self.rows]
        if not (self.removed or self.added):
            return base
        return self._changed(base, lambda kind: next((amount for at, amount in kind.takes if at == column), 0))

    def nonzero_requested(self, column: int) -> IntColumn:
        """CPU or MEMORY as scoring counts them: containers that request none count for a little."""
        self.reads |= LOAD
        which = NONZERO_CPU if column == 0 else NONZERO_MEMORY
        base = self.cluster.nodes.shown_nonzero[which][self.rows]
        if not (self.removed or self.added):
            return base
        return self._changed(base, lambda kind: kind.nonzero[which])

    def _changed(self, base: IntColumn, amount: Callable[[PodClass], int]) -> IntColumn:
        column = base.copy()
        for kind, row, sign, _ in self.delta():
            at = self.relative(row)
            if at >= 0:
                column[at] = min(int(column[at]) + sign * amount(kind), INT64_MAX)
        return column

    def delta(self) -> Iterator[tuple[PodClass, int, int, bool]]:
        """What the overlay changes: (class, cluster row, +1 or -1, whether it was being deleted)."""
        pods = self.cluster.pods
        for row in self.removed:
            yield pods.kind(row), pods.node_rows[row], -1, bool(pods.leaving[row])
        for kind, node_row in self.added:
            yield kind, node_row, 1, False

    def pod_rows_on(self, row: int) -> list[int]:
        """The rows of the pods that `pods_on` returns, for callers that read little of many pods."""
        self.reads |= LOAD
        here = self.cluster.nodes.pods[self.absolute(row)]
        return [pod for pod in here if pod not in self.removed] if self.removed else list(here)

    def pods_on(self, row: int) -> list[BoundPod]:
        """The pods bound to the node at a row of this view, in order of arrival, without those an overlay adds."""
        self.reads |= LOAD
        pods = self.cluster.pods
        here = self.cluster.nodes.pods[self.absolute(row)]
        return [pods.bound(pod) for pod in here if pod not in self.removed]

    def classes_on(self, row: int) -> list[PodClass]:
        """The classes of the pods on the node at a row of this view, one entry per pod, overlays included."""
        self.reads |= LOAD
        absolute = self.absolute(row)
        pods = self.cluster.pods
        here = [pods.kind(pod) for pod in self.cluster.nodes.pods[absolute] if pod not in self.removed]
        return here + [kind for kind, node_row in self.added if node_row == absolute]

    def devices(self, resource: str) -> Devices:
        """The devices that a resource stands for, and what is free of each, overlays included."""
        self.reads |= LOAD
        table = self.cluster.devices_of(resource)
        rows, shown = self.rows, table.shown
        found = Devices(
            shown.count[rows],
            shown.each[rows],
            shown.free[rows],
            shown.memory[rows],
            shown.largest[rows],
            shown.whole[rows],
        )
        return with_overlay(self, table, resource, found) if self.removed or self.added else found

    # -- topology ------------------------------------------------------------------------------------------------

    # -- objects -------------------------------------------------------------------------------------------------

    @property
    def storage(self) -> StorageObjects:
        self.reads |= STORAGE
        return self.cluster.objects.storage

    @property
    def workloads(self) -> WorkloadObjects:
        self.reads |= WORKLOADS
        return self.cluster.objects.workloads

    @property
    def budgets(self) -> list[PodDisruptionBudget]:
        return list(self.cluster.objects.budgets.values())

    def latencies(self, name: str) -> Mapping[str, PlaceLatencies] | None:
        """The latency table of this name, by place; None if there is none. `memo` may read it, too."""
        table = self.cluster.objects.latencies.get(name)
        return None if table is None else table.places

    @property
    def namespace_labels(self) -> Mapping[str, Mapping[str, str]]:
        return self.cluster.objects.namespace_labels

    # -- scoring -------------------------------------------------------------------------------------------------

    @property
    def feasible(self) -> Mask:
        """Which rows passed every filter; only while scoring."""
        if self._feasible is None:
            raise LookupError("which nodes are feasible is known only while scoring")
        self.reads |= FEASIBLE
        return self._feasible

    # -- rows ----------------------------------------------------------------------------------------------------

    def absolute(self, row: int) -> int:
        return row if self.row is None else self.row + row

    def relative(self, row: int) -> int:
        """A cluster row as a row of this view, or -1 if it is not shown."""
        if self.row is None:
            return row
        return 0 if row == self.row else -1


def _by_domain(ids: IdColumn, values: Vocab) -> tuple[IdColumn, list[int]]:
    """The rows domain by domain, those without the label last; and where each domain starts in that order."""
    domains = np.where(ids < 0, len(values), ids)
    order = np.argsort(domains, kind="stable")
    return sealed(order), np.searchsorted(domains[order], np.arange(len(values) + 2)).tolist()
