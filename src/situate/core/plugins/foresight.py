"""Foresight: prefer the node and device where the least GPU capacity stays unused once the expected pods have arrived.

Fragmentation considers only the next pod. Foresight also simulates some futures of the node, sequences of pods from the
same mix, and measures what they leave free. A pod that takes the cpu which others would need for the last free GPU of a
node costs that GPU, although each of them still fits today.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Scores
from situate.core.model.base import Int32
from situate.core.model.field_errors import child
from situate.core.model.gpu import GpuNeed
from situate.core.plugins.fragmentation import Fragmentation
from situate.core.plugins.gpu_share import device_annotation
from situate.core.plugins.support.arguments import range_problems
from situate.core.plugins.support.gpu_futures import Futures, Room, futures_of, left_over
from situate.core.plugins.support.gpu_mix import NO_ROOM, SCALE, Mix, Rows, losses, usable
from situate.core.plugins.support.normalize import rank_scores
from situate.core.plugins.support.typical_pods import MAX_MILLI, TypicalPodsArgs
from situate.core.state.classes import PodClass
from situate.core.state.columns import FloatColumn, IdColumn, IntColumn
from situate.core.state.devices import need_of
from situate.core.state.view import View

PERCENT: Final = 100
MAX_FUTURES: Final = 256
MAX_PODS_PER_DEVICE: Final = 64
"""The plugin simulates each future on each node that changes, for each class of pods."""
MAX_PERCENT: Final = 10_000


class ForesightArgs(TypicalPodsArgs, frozen=True, kw_only=True):
    """`futures`: how many to simulate, each with `pods_per_device` for each of a node's devices. `now`: percent."""

    packing: Int32 = 20
    futures: Int32 = 8
    pods_per_device: Int32 = 8
    now: Int32 = 30

    def validate(self, path: str) -> list[str]:
        problems = super().validate(path)
        problems += range_problems(child(path, "packing"), self.packing, 0, MAX_MILLI)
        problems += range_problems(child(path, "futures"), self.futures, 1, MAX_FUTURES)
        problems += range_problems(child(path, "podsPerDevice"), self.pods_per_device, 1, MAX_PODS_PER_DEVICE)
        return problems + range_problems(child(path, "now"), self.now, 0, MAX_PERCENT)


@dataclass(frozen=True, slots=True, eq=False)
class Foresight:
    """`near` evaluates the next pod; it has the mix and the charge for emptier nodes. Node order breaks ties."""

    near: Fragmentation
    futures: int = 8
    """How many futures to simulate."""
    pods_per_device: int = 8
    """How many pods a future has, for each device of the node."""
    now: int = 30
    """The weight of the loss for the next pod, in percent of what the futures leave unused."""

    name: ClassVar[str] = "Foresight"

    @classmethod
    def from_args(cls, args: ForesightArgs, points: frozenset[str]) -> Foresight:
        near = Fragmentation(args.resource, args.mix, args.weight_exponent, packing=args.packing)
        return cls(near, args.futures, args.pods_per_device, args.now)

    def score(self, pod: PodClass, view: View) -> Scores:
        return rank_scores(self.loss(pod, view), view.feasible)

    def loss(self, pod: PodClass, view: View) -> IntColumn:
        """The loss of placing the pod, by row: lower is better. Only the order has a meaning."""
        stamp, mix = self.near.mix_for(pod, view)
        futures = self._futures(stamp, mix, view)
        asked = (need_of(pod, self.near.resource), pod.requests.milli_cpu, pod.requests.memory)
        before = view.by_row((self, "before"), stamp, lambda seen, rows: self._before(mix, futures, seen, rows))
        after = view.by_row(
            (self, asked), stamp, lambda seen, rows: self._after(mix, futures, seen, rows, *asked).min(axis=1)
        )
        lost: IntColumn = (before + after + self.near.charge(view)).astype(np.int64)
        return lost

    def assign(self, pod: PodClass, view: View, row: int) -> Mapping[str, str]:
        """The device with the lowest loss; among equals the fullest, then the lowest number."""
        need = need_of(pod, self.near.resource)
        if not need.devices or need.whole:
            return self.near.assign(pod, view, row)
        stamp, mix = self.near.mix_for(pod, view)
        futures, rows = self._futures(stamp, mix, view), np.array([view.rows.start + row])
        lost = self._after(mix, futures, view.whole, rows, need, pod.requests.milli_cpu, pod.requests.memory)[0]
        if lost.min() >= NO_ROOM:
            return {}
        best = np.flatnonzero(lost == lost.min())
        free = view.whole.devices(self.near.resource).free[rows[0]]
        return device_annotation([int(best[free[best].argmin()])])

    def _futures(self, stamp: Hashable, mix: Mix, view: View) -> Futures | None:
        kept: dict[Hashable, Futures | None] = view.memo((self.name, self, "futures"), lambda _: {})
        if stamp not in kept:
            kept.clear()
            most = int(view.whole.devices(self.near.resource).count.max(initial=1))
            kept[stamp] = futures_of(mix, self.futures, self.pods_per_device, most)
        return kept[stamp]

    def _before(self, mix: Mix, futures: Futures | None, view: View, rows: IdColumn) -> FloatColumn:
        """What the mix can use of each row now, minus what the futures leave unused; times SCALE."""
        at = self.near.rows(view, rows)
        can = usable(mix, at) * self.now / PERCENT
        if futures is None:
            return can
        rooms = _Rooms(futures, view.devices(self.near.resource).count, at)
        left = np.array([left_over(futures, rooms.room(place)) for place in range(len(rows))], np.float64)
        return can - left * (SCALE / self.futures)

    def _after(
        self, mix: Mix, futures: Futures | None, view: View, rows: IdColumn, need: GpuNeed, milli_cpu: int, memory: int
    ) -> FloatColumn:
        """A table: the same with the opposite sign, after the pod is placed; by device, if the pod needs a share."""
        at = self.near.rows(view, rows)
        near = losses(mix, at, need, milli_cpu, memory)
        if futures is None:
            return np.where(near < NO_ROOM, near * self.now / PERCENT, NO_ROOM)
        rooms = _Rooms(futures, view.devices(self.near.resource).count, at)
        left = np.zeros(near.shape)
        runs = (at.milli_cpu >= milli_cpu) & (at.memory >= memory) & (near.min(axis=1) < NO_ROOM)
        known: dict[Hashable, list[int]] = {}  # in an empty cluster, most rows are alike
        for place in np.flatnonzero(runs).tolist():
            which = rooms.alike(place)
            if which not in known:
                known[which] = rooms.left_by_device(place, need, milli_cpu, memory)
            left[place] = known[which]
        return np.where(near < NO_ROOM, near * self.now / PERCENT + left * (SCALE / self.futures), NO_ROOM)


class _Rooms:
    """The free capacity of some rows, as a simulation needs it."""

    __slots__ = ("_count", "_cpu", "_free", "_futures", "_kinds", "_memory")

    def __init__(self, futures: Futures, count: IntColumn, at: Rows) -> None:
        self._futures = futures
        self._count = count[at.rows].tolist()
        self._cpu = at.milli_cpu.tolist()
        self._free = at.free.tolist()
        nothing = [0] * len(at.rows)
        self._memory = at.memory.tolist() if futures.heeds_memory else nothing
        self._kinds = futures.labels[at.rows].tolist() if futures.labels is not None else nothing

    def room(self, place: int) -> Room:
        return self._with(place, tuple(sorted([milli for milli in self._free[place] if milli])), 0, 0)

    def alike(self, place: int) -> Hashable:
        """A key that is equal for rows that the simulation cannot tell apart."""
        return (*self._free[place], self._cpu[place], self._memory[place], self._count[place], self._kinds[place])

    def left_by_device(self, place: int, need: GpuNeed, milli_cpu: int, memory: int) -> list[int]:
        """What the futures leave unused after the pod is placed, for each device that has room for it."""
        free = sorted([milli for milli in self._free[place] if milli])
        if not need.devices:
            return [left_over(self._futures, self._with(place, tuple(free), milli_cpu, memory))]
        if need.whole:
            unused = tuple(free[: len(free) - need.devices])
            return [left_over(self._futures, self._with(place, unused, milli_cpu, memory))]
        by_milli: dict[int, int] = {}
        for milli in dict.fromkeys(free):
            if milli >= need.milli:
                rest = free.copy()
                rest.remove(milli)
                if milli > need.milli:
                    insort(rest, milli - need.milli)
                by_milli[milli] = left_over(self._futures, self._with(place, tuple(rest), milli_cpu, memory))
        return [by_milli.get(milli, 0) for milli in self._free[place]]

    def _with(self, place: int, free: tuple[int, ...], milli_cpu: int, memory: int) -> Room:
        left = self._memory[place] - memory if self._futures.heeds_memory else 0
        return free, self._cpu[place] - milli_cpu, left, self._count[place], self._kinds[place]
