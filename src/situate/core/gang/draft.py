"""A draft: the cluster with some pods added and some removed. It is never undone, only discarded.

Cached verdicts on a draft find in `moves` what has changed since they were computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from situate.core.devices.allocated import PoolId, PoolUse
from situate.core.model.devices import AllocationResult
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.pods import BoundPod
from situate.core.state.view import View


class Draft:
    __slots__ = ("_claimed", "_cluster", "_given", "_gone", "_gone_from", "_here", "_put", "far_moves", "moves")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._put: list[tuple[PodClass, int]] = []
        self._given: list[str] = []
        """The devices that they were given; empty where none or not known."""
        self._gone: dict[int, BoundPod] = {}
        self._here: dict[int, list[tuple[PodClass, int, str]]] = {}
        self._gone_from: dict[int, list[BoundPod]] = {}
        self._claimed: dict[PoolId, PoolUse] = {}
        self.moves: list[tuple[PodClass, int]] = []
        """The class and the node row of each pod that was added or removed, in order."""
        self.far_moves = 0
        """How many of them claimed devices that other nodes reach as well."""

    def copy(self) -> Draft:
        made = Draft(self._cluster)
        made._put, made._given = list(self._put), list(self._given)
        made._gone = dict(self._gone)
        made._here = {row: list(pods) for row, pods in self._here.items()}
        made._gone_from = {row: list(pods) for row, pods in self._gone_from.items()}
        made.moves = list(self.moves)
        made._claimed, made.far_moves = dict(self._claimed), self.far_moves
        return made

    def put(self, kind: PodClass, row: int, given: str = "") -> None:
        """`given`: the devices that the pod gets there."""
        self._put.append((kind, row))
        self._given.append(given)
        self._here.setdefault(row, []).append((kind, row, given))
        self.moves.append((kind, row))

    def claim(self, allocations: Iterable[AllocationResult]) -> None:
        """The pod that is put next gets these devices."""
        devices = self._cluster.objects.devices
        copied: dict[PoolId, PoolUse] = {}
        for result in (one for allocation in allocations for one in allocation.devices.results):
            pool = (result.driver, result.pool)
            if result.admin_access:
                continue
            if pool not in copied:
                known = self._claimed.get(pool)
                copied[pool] = (devices.allocated.of(pool) if known is None else known).copy()
            copied[pool].add(result, 1)
        self.far_moves += any(devices.inventory.local_node(pool) is None for pool in copied)
        self._claimed.update(copied)

    def take_off(self, pods: Sequence[BoundPod]) -> list[BoundPod]:
        """Remove bound pods; returns those that were not removed already."""
        new = list({pod.row: pod for pod in pods if pod.row not in self._gone}.values())
        for pod in new:
            self._gone[pod.row] = pod
            self._gone_from.setdefault(pod.node_row, []).append(pod)
            self.moves.append((pod.kind, pod.node_row))
        return new

    @property
    def view(self) -> View:
        view = View(self._cluster).without(list(self._gone.values())).plus(self._put, self._given)
        return view.claiming(self._claimed) if self._claimed else view

    def load_at(self, row: int) -> View:
        """One row, correct only in what is bound there."""
        here = View(self._cluster, row=row)
        gone = self._gone_from.get(row)
        if gone:
            here = here.without(gone)
        put = self._here.get(row, ())
        here = here.plus([(kind, at) for kind, at, _ in put], [given for _, _, given in put])
        return here.claiming(self._claimed) if self._claimed else here
