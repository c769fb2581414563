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
from situate.core.model.gpu import DEVICE_MILLI, GpuNeed
from situate.core.plugins.fragmentation import Fragmentation
from situate.core.plugins.gpu_share import device_annotation
from situate.core.plugins.support.arguments import range_problems
from situate.core.plugins.support.gpu_futures import Expected, Futures, Room, cpu_price, futures_of, left_over
from situate.core.plugins.support.gpu_mix import NO_ROOM, SCALE, ExpectedPod, Mix, Rows, losses, usable
from situate.core.plugins.support.gpu_slots import Slots, prices, room, room_after, slots_of
from situate.core.plugins.support.normalize import rank_scores
from situate.core.plugins.support.typical_pods import MAX_MILLI, TypicalPodsArgs
from situate.core.state.classes import CPU, MEMORY, PodClass
from situate.core.state.columns import FloatColumn, IdColumn, IntColumn
from situate.core.state.devices import need_of
from situate.core.state.view import View

PERCENT: Final = 100
MAX_FUTURES: Final = 256
MAX_PODS_PER_DEVICE: Final = 64
"""The plugin simulates each future on each node that changes, for each class of pods."""
MAX_PERCENT: Final = 10_000
NEVER: Final = float(1 << 50)
"""The loss of an option without room: higher than any other, whatever is charged."""

USABLE, IDLE = 0, 1
"""The columns of `_before`."""


class ForesightArgs(TypicalPodsArgs, frozen=True, kw_only=True):
    """`futures`: how many to simulate, each with `pods_per_device` for each of a node's devices. `now`: percent."""

    packing: Int32 = 20
    futures: Int32 = 8
    pods_per_device: Int32 = 8
    now: Int32 = 30
    scarcity: Int32 = 100

    @property
    def others(self) -> tuple[ExpectedPod, ...]:
        """The typical pods without GPUs: they take cpu and memory that others need for GPUs."""
        return tuple(pod.parse() for pod in self.typical_pods if not (pod.gpu or pod.gpu_milli))

    def validate(self, path: str) -> list[str]:
        problems = super().validate(path)
        problems += range_problems(child(path, "packing"), self.packing, 0, MAX_MILLI)
        problems += range_problems(child(path, "futures"), self.futures, 1, MAX_FUTURES)
        problems += range_problems(child(path, "podsPerDevice"), self.pods_per_device, 1, MAX_PODS_PER_DEVICE)
        problems += range_problems(child(path, "now"), self.now, 0, MAX_PERCENT)
        return problems + range_problems(child(path, "scarcity"), self.scarcity, 0, MAX_PERCENT)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What a mix makes of the cluster: sequences of pods for each node, and groups of pods for the whole of it."""

    futures: Futures
    slots: Slots


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
    scarcity: int = 100
    """The weight of the room that the expected pods are going to need, in percent of its price."""
    others: tuple[ExpectedPod, ...] = ()
    """The expected pods without GPUs, if the mix is configured."""

    name: ClassVar[str] = "Foresight"

    @classmethod
    def from_args(cls, args: ForesightArgs, points: frozenset[str]) -> Foresight:
        near = Fragmentation(args.resource, args.mix, args.weight_exponent, packing=args.packing)
        return cls(near, args.futures, args.pods_per_device, args.now, args.scarcity, args.others)

    def score(self, pod: PodClass, view: View) -> Scores:
        return rank_scores(self.loss(pod, view), view.feasible)

    def loss(self, pod: PodClass, view: View) -> IntColumn:
        """The loss of placing the pod, by row: lower is better. Only the order has a meaning."""
        stamp, mix = self.near.mix_for(pod, view)
        ahead = self._ahead(stamp, mix, view)
        asked = (need_of(pod, self.near.resource), pod.requests.milli_cpu, pod.requests.memory)
        before = view.by_row((self, "before"), stamp, lambda seen, rows: self._before(mix, ahead, seen, rows))
        options = view.by_row((self, asked), stamp, lambda seen, rows: self._options(mix, ahead, seen, rows, *asked))
        after = self._charged(stamp, ahead, view, before, options).min(axis=1)
        lost: IntColumn = (before[:, USABLE] + after + self.near.charge(view)).astype(np.int64)
        return lost

    def assign(self, pod: PodClass, view: View, row: int) -> Mapping[str, str]:
        """The device with the lowest loss; among equals the fullest, then the lowest number."""
        need = need_of(pod, self.near.resource)
        if not need.devices or need.whole:
            return self.near.assign(pod, view, row)
        stamp, mix = self.near.mix_for(pod, view)
        ahead, rows = self._ahead(stamp, mix, view), np.array([view.rows.start + row])
        asked = (need, pod.requests.milli_cpu, pod.requests.memory)
        by_device, idle = self._after(mix, ahead, view.whole, rows, *asked)
        lost = by_device[0]
        if lost.min() >= NO_ROOM:
            return {}
        free = view.whole.devices(self.near.resource).free[rows[0]]
        if ahead is not None:
            before = self._before(mix, ahead, view.whole, rows)
            options = self._with_room(ahead, view.whole, rows, by_device, idle, *asked)
            used, unused = self._charged(stamp, ahead, view.whole, before, options, rows)[0].tolist()
            lost = np.where((free == DEVICE_MILLI) == (unused < used), lost, NO_ROOM)
        best = np.flatnonzero(lost == lost.min())
        return device_annotation([int(best[free[best].argmin()])])

    def _ahead(self, stamp: Hashable, mix: Mix, view: View) -> _Ahead | None:
        kept: dict[Hashable, _Ahead | None] = view.memo((self.name, self, "ahead"), lambda _: {})
        if stamp not in kept:
            kept.clear()
            whole = view.whole
            count = whole.devices(self.near.resource).count
            others = self._without_gpu()
            futures = futures_of(mix, others, self.futures, self.pods_per_device, int(count.max(initial=1)))
            slots = slots_of(mix, whole.allocatable(CPU), whole.allocatable(MEMORY), count)
            kept[stamp] = None if futures is None or slots is None else _Ahead(futures, slots)
        return kept[stamp]

    def _without_gpu(self) -> list[Expected]:
        """The expected pods without GPUs, weighted as those of the mix."""
        exponent = self.near.weight_exponent
        total = sum(one.weight**exponent for one in self.near.mix)
        weighted = [(one, round(one.weight**exponent / total * SCALE)) for one in self.others if total]
        return [Expected(one.milli_cpu, one.memory, 0, 0, weight, -1) for one, weight in weighted if weight]

    def _options(
        self, mix: Mix, ahead: _Ahead | None, view: View, rows: IdColumn, need: GpuNeed, milli_cpu: int, memory: int
    ) -> FloatColumn:
        """A table: for each option, what `_after` says, and then the room that each group has left. A share has two:
        the best device that others use as well, and the best that nobody uses."""
        lost, idle = self._after(mix, ahead, view, rows, need, milli_cpu, memory)
        if ahead is None:
            only: FloatColumn = lost.min(axis=1)[:, None]
            return only
        return self._with_room(ahead, view, rows, lost, idle, need, milli_cpu, memory)

    def _with_room(
        self,
        ahead: _Ahead,
        view: View,
        rows: IdColumn,
        lost: FloatColumn,
        idle: FloatColumn,
        need: GpuNeed,
        milli_cpu: int,
        memory: int,
    ) -> FloatColumn:
        at = self.near.rows(view, rows)
        if not need.devices or need.whole:
            return np.concatenate([lost, idle, room_after(ahead.slots, at, need, milli_cpu, memory)], axis=1)
        found = []
        for fits in (at.free < DEVICE_MILLI, at.free == DEVICE_MILLI):
            by_device = np.where(fits, lost, NO_ROOM)
            best = by_device.argmin(axis=1)
            left = room_after(ahead.slots, at, need, milli_cpu, memory, best)
            found += [*(np.take_along_axis(table, best[:, None], axis=1) for table in (by_device, idle)), left]
        return np.concatenate(found, axis=1)

    def _charged(
        self,
        stamp: Hashable,
        ahead: _Ahead | None,
        view: View,
        before: FloatColumn,
        options: FloatColumn,
        rows: IdColumn | None = None,
    ) -> FloatColumn:
        """A table, rows by options: the losses, and the price of the cpu that stays idle and of the room that is taken
        from the groups."""
        if ahead is None:
            return options
        slots, whole = ahead.slots, view.whole
        rooms = whole.by_row((self, "room"), stamp, lambda seen, which: room(slots, self.near.rows(seen, which)))
        free = int(whole.devices(self.near.resource).free.sum())
        price = (prices(slots, rooms.sum(axis=0), free) * self.scarcity // PERCENT).astype(np.float64)
        of_cpu = self._cpu_price(ahead, whole, free)
        shape = len(options), options.shape[1] // (2 + len(price))
        table = options.reshape(-1, 2 + len(price))
        lost, left = table[:, 0].reshape(shape), (table[:, 2:] @ price - table[:, 1] * of_cpu).reshape(shape)
        had = rooms[view.rows if rows is None else rows] @ price - before[:, IDLE] * of_cpu
        charged: FloatColumn = np.where(lost < NO_ROOM, lost + (had[:, None] - left), NEVER)
        return charged

    def _cpu_price(self, ahead: _Ahead, whole: View, free_gpu: int) -> float:
        """Of the cpu that all futures together leave idle."""
        free_cpu = int((whole.allocatable(CPU) - whole.requested(CPU)).sum())
        price = cpu_price(ahead.futures, free_gpu, free_cpu, SCALE * self.scarcity)
        return float(price // (PERCENT * self.futures))

    def _before(self, mix: Mix, ahead: _Ahead | None, view: View, rows: IdColumn) -> FloatColumn:
        """USABLE: what the mix can use of each row now, minus what the futures leave unused; times SCALE. IDLE: the cpu
        that they leave."""
        at = self.near.rows(view, rows)
        can = usable(mix, at) * self.now / PERCENT
        if ahead is None:
            return np.stack([can, np.zeros(len(rows))], axis=1)
        futures = ahead.futures
        rooms = _Rooms(futures, view.devices(self.near.resource).count, at)
        left = np.array([left_over(futures, rooms.room(place)) for place in range(len(rows))], np.float64)
        left = left.reshape(-1, 2)
        left[:, USABLE] = can - left[:, USABLE] * (SCALE / self.futures)
        return left

    def _after(
        self, mix: Mix, ahead: _Ahead | None, view: View, rows: IdColumn, need: GpuNeed, milli_cpu: int, memory: int
    ) -> tuple[FloatColumn, FloatColumn]:
        """Two tables: the first of these with the opposite sign, and the second, after the pod is placed; by device, if
        the pod needs a share."""
        at = self.near.rows(view, rows)
        near = losses(mix, at, need, milli_cpu, memory)
        left = np.zeros((*near.shape, 2))
        if ahead is not None:
            rooms = _Rooms(ahead.futures, view.devices(self.near.resource).count, at)
            runs = (at.milli_cpu >= milli_cpu) & (at.memory >= memory) & (near.min(axis=1) < NO_ROOM)
            known: dict[Hashable, list[tuple[int, int]]] = {}  # in an empty cluster, most rows are alike
            for place in np.flatnonzero(runs).tolist():
                which = rooms.alike(place)
                if which not in known:
                    known[which] = rooms.left_by_device(place, need, milli_cpu, memory)
                left[place] = known[which]
        lost = near * self.now / PERCENT + left[:, :, 0] * (SCALE / self.futures)
        return np.where(near < NO_ROOM, lost, NO_ROOM), left[:, :, 1]


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

    def left_by_device(self, place: int, need: GpuNeed, milli_cpu: int, memory: int) -> list[tuple[int, int]]:
        """What the futures leave unused after the pod is placed, for each device that has room for it."""
        free = sorted([milli for milli in self._free[place] if milli])
        if not need.devices:
            return [left_over(self._futures, self._with(place, tuple(free), milli_cpu, memory))]
        if need.whole:
            unused = tuple(free[: len(free) - need.devices])
            return [left_over(self._futures, self._with(place, unused, milli_cpu, memory))]
        by_milli: dict[int, tuple[int, int]] = {}
        for milli in dict.fromkeys(free):
            if milli >= need.milli:
                rest = free.copy()
                rest.remove(milli)
                if milli > need.milli:
                    insort(rest, milli - need.milli)
                by_milli[milli] = left_over(self._futures, self._with(place, tuple(rest), milli_cpu, memory))
        return [by_milli.get(milli, (0, 0)) for milli in self._free[place]]

    def _with(self, place: int, free: tuple[int, ...], milli_cpu: int, memory: int) -> Room:
        left = self._memory[place] - memory if self._futures.heeds_memory else 0
        return free, self._cpu[place] - milli_cpu, left, self._count[place], self._kinds[place]
