"""A draft: the cluster with some pods added and some removed. It is never undone, only discarded.

Cached verdicts on a draft find in `moves` what has changed since they were computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.pods import BoundPod
from situate.core.state.view import View


class Draft:
    __slots__ = ("_cluster", "_given", "_gone", "_gone_from", "_here", "_put", "moves")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._put: list[tuple[PodClass, int]] = []
        self._given: list[str] = []
        """The devices that they were given; empty where none or not known."""
        self._gone: dict[int, BoundPod] = {}
        self._here: dict[int, list[tuple[PodClass, int, str]]] = {}
        self._gone_from: dict[int, list[BoundPod]] = {}
        self.moves: list[tuple[PodClass, int]] = []
        """The class and the node row of each pod that was added or removed, in order."""

    def copy(self) -> Draft:
        made = Draft(self._cluster)
        made._put, made._given = list(self._put), list(self._given)
        made._gone = dict(self._gone)
        made._here = {row: list(pods) for row, pods in self._here.items()}
        made._gone_from = {row: list(pods) for row, pods in self._gone_from.items()}
        made.moves = list(self.moves)
        return made

    def put(self, kind: PodClass, row: int, given: str = "") -> None:
        """`given`: the devices that the pod gets there."""
        self._put.append((kind, row))
        self._given.append(given)
        self._here.setdefault(row, []).append((kind, row, given))
        self.moves.append((kind, row))

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
        return View(self._cluster).without(list(self._gone.values())).plus(self._put, self._given)

    def load_at(self, row: int) -> View:
        """One row, correct only in what is bound there."""
        here = View(self._cluster, row=row)
        gone = self._gone_from.get(row)
        if gone:
            here = here.without(gone)
        put = self._here.get(row, ())
        return here.plus([(kind, at) for kind, at, _ in put], [given for _, _, given in put])
