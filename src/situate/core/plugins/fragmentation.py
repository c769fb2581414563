"""Fragmentation: prefer the node and device where a pod wastes the least GPU capacity for the expected pods.

Free capacity that an expected pod cannot use is fragmented for that pod. Placing a pod makes some free capacity less
useful: that is the loss, averaged over the expected pods. Scores follow the order of the losses, because 101
proportional levels would make different losses equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situate.core.contract import Scores
from situate.core.model.base import Int32
from situate.core.model.field_errors import child
from situate.core.model.gpu import DEVICE_MILLI, GPU_RESOURCE
from situate.core.plugins.gpu_share import device_annotation
from situate.core.plugins.support.arguments import range_problems
from situate.core.plugins.support.gpu_mix import (
    NO_ROOM,
    SCALE,
    ExpectedPod,
    Mix,
    Rows,
    bound_mix,
    configured_mix,
    losses,
    rows_of,
    usable,
)
from situate.core.plugins.support.normalize import rank_scores
from situate.core.plugins.support.typical_pods import MAX_MILLI, TypicalPodsArgs
from situate.core.state.classes import CPU, PodClass
from situate.core.state.columns import FloatColumn, IdColumn, IntColumn
from situate.core.state.devices import need_of
from situate.core.state.holders import device_users
from situate.core.state.view import View


class FragmentationArgs(TypicalPodsArgs, frozen=True, kw_only=True):
    """`quantum` and `packing` are in thousandths of a GPU."""

    quantum: Int32 = 0
    packing: Int32 = 100

    def validate(self, path: str) -> list[str]:
        problems = super().validate(path)
        problems += range_problems(child(path, "quantum"), self.quantum, 0, MAX_MILLI)
        return problems + range_problems(child(path, "packing"), self.packing, 0, MAX_MILLI)


@dataclass(frozen=True, slots=True, eq=False)
class Fragmentation:
    """Node order breaks ties."""

    resource: str = GPU_RESOURCE
    mix: tuple[ExpectedPod, ...] = ()
    """The expected pods. Empty: the mix of the bound pods."""
    weight_exponent: float = 1.0
    """The exponent of their weights: 0 makes all equal, above 1 common pods count more."""
    quantum: int = 0
    """Losses are rounded down to multiples of this many thousandths of a GPU; 0: not rounded."""
    packing: int = 100
    """The charge for an empty node, in thousandths of a GPU; a half-full node is charged half. Where losses are about
    equal, this keeps emptier nodes free."""

    name: ClassVar[str] = "Fragmentation"

    @classmethod
    def from_args(cls, args: FragmentationArgs, points: frozenset[str]) -> Fragmentation:
        return cls(args.resource, args.mix, args.weight_exponent, args.quantum, args.packing)

    def score(self, pod: PodClass, view: View) -> Scores:
        return rank_scores(self.loss(pod, view), view.feasible)

    def loss(self, pod: PodClass, view: View) -> IntColumn:
        """The loss of placing the pod, by row: lower is better. Only the order has a meaning."""
        stamp, mix = self.mix_for(pod, view)
        asked = (need_of(pod, self.resource), pod.requests.milli_cpu, pod.requests.memory)
        before = view.by_row((self, "usable"), stamp, lambda seen, rows: usable(mix, self.rows(seen, rows)))
        after = view.by_row(
            (self, asked), stamp, lambda seen, rows: losses(mix, self.rows(seen, rows), *asked).min(axis=1)
        )
        return self._packed(before + after, view)

    def rows(self, view: View, rows: IdColumn) -> Rows:
        return rows_of(view, view.devices(self.resource), rows)

    def _packed(self, lost: FloatColumn, view: View) -> IntColumn:
        """The loss as it is compared, with the charge for emptier nodes."""
        if self.quantum:
            step = self.quantum * SCALE
            lost = np.floor(lost / step) * step
        return (lost + self.charge(view)).astype(np.int64)

    def charge(self, view: View) -> FloatColumn:
        """The charge for emptier nodes, by row, times SCALE."""
        if not self.packing:
            return np.zeros(view.size)
        return self.packing * SCALE * view.by_row((self, "left"), 0, self._left)

    def _left(self, view: View, rows: IdColumn) -> FloatColumn:
        """The mean of a node's free cpu and free GPU, each as a fraction of the largest node's."""
        cpus, gpus = view.memo((self.name, self, "largest"), self._largest)
        cpu = (view.allocatable(CPU)[rows] - view.requested(CPU)[rows]) / cpus
        gpu = view.devices(self.resource).free[rows].sum(axis=1) / gpus
        left: FloatColumn = (np.maximum(cpu, 0) + gpu) / 2
        return left

    def _largest(self, whole: View) -> tuple[float, float]:
        cpus = whole.allocatable(CPU).max(initial=1)
        return float(cpus), float(whole.devices(self.resource).count.max(initial=1)) * DEVICE_MILLI

    def mix_for(self, pod: PodClass, view: View) -> tuple[Hashable, Mix]:
        """The mix and a stamp that identifies it. Without any expected pod, the mix is the pod itself."""
        if self.mix:
            key = (self.name, self, "given")
            return 0, view.memo(key, lambda whole: configured_mix(self.mix, self.weight_exponent, whole))
        stamp, kinds = device_users(view, self.resource)
        kept: dict[Hashable, Mix] = view.memo((self.name, self, "bound"), lambda _: {})
        which: Hashable = stamp if kinds else (stamp, pod)
        if which not in kept:
            kept.clear()
            asked = list(kinds.items()) if kinds else [(pod, 1)]
            kept[which] = bound_mix(asked, self.resource, self.weight_exponent, view.whole)
        return which, kept[which]

    def assign(self, pod: PodClass, view: View, row: int) -> Mapping[str, str]:
        """The device with the lowest loss; among equals the fullest, then the lowest number."""
        need = need_of(pod, self.resource)
        if not need.devices:
            return {}
        whole, rows = view.whole, np.array([view.rows.start + row])
        at = self.rows(whole, rows)
        if need.whole:
            fits = np.flatnonzero((at.free[0] == DEVICE_MILLI) & (at.device_memory[0] >= need.memory))
            return device_annotation(fits[: need.devices].tolist() if len(fits) >= need.devices else ())
        lost = losses(self.mix_for(pod, view)[1], at, need, pod.requests.milli_cpu, pod.requests.memory)[0]
        if lost.min() >= NO_ROOM:
            return {}
        best = np.flatnonzero(lost == lost.min())
        return device_annotation([int(best[at.free[0][best].argmin()])])
