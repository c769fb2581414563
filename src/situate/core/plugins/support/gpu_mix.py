"""The mix of expected pods, and how much of a node's free GPU capacity each of them could use.

A pod can use the free part of a device if it would fit there. It can use nothing of a node where it cannot run: for
lack of cpu, memory or whole devices, or because of the node's labels. What a mix can use of a node is the average over
its pods; the rest of the free capacity is fragmented. (The idea is from "Beware of Fragmentation", USENIX ATC '23.)

All numbers are integers small enough for exact float64 sums: neither the order nor the number of rows changes a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.model.gpu import DEVICE_MILLI, GpuNeed
from situate.core.model.labels import IN, Requirement
from situate.core.model.nodeselector import Term
from situate.core.plugins.support.node_selectors import required_affinity_mask, term_mask
from situate.core.state.classes import CPU, MEMORY, PodClass
from situate.core.state.columns import FloatColumn, IdColumn, IntColumn, Mask
from situate.core.state.devices import Devices, level, need_of
from situate.core.state.view import View

SCALE: Final = 1 << 20
"""About the sum of a mix's weights."""
NO_ROOM: Final = float(1 << 42)
"""The loss where a device has no room for the pod: higher than any other."""


@dataclass(frozen=True, slots=True)
class ExpectedPod:
    """An expected pod: its relative frequency and its requests."""

    weight: float = 1.0
    milli_cpu: int = 0
    memory: int = 0
    devices: int = 1
    milli: int = DEVICE_MILLI
    """Of each device."""
    nodes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels, each with the values that a node may have."""


@dataclass(frozen=True, slots=True)
class Mix:
    """A mix compiled for the rows of a cluster. `pods` are those of the mix; `demands` are their device requests."""

    milli_cpu: IntColumn
    memory: IntColumn
    weights: FloatColumn
    """A table, pods by demands: each pod's weight at its demand. Pods are sorted by demand."""
    flat: FloatColumn
    """Each pod's weight."""
    starts: IdColumn
    """The first pod of each demand."""
    allowed: Mask | None
    """A table, rows by pods: whether the node's labels match; None: everywhere."""
    worth: FloatColumn
    """A table, free thousandths of a device by share: how many of them a pod with this share could use."""
    wholes: IntColumn
    """The demands after those for shares, as numbers of whole devices."""

    @property
    def shares(self) -> int:
        """The number of demands for a share."""
        return int(self.worth.shape[1])


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of some rows that a mix reads."""

    rows: IdColumn
    milli_cpu: IntColumn
    """What is left."""
    memory: IntColumn
    free: IntColumn
    device_memory: IntColumn
    whole: IntColumn


def rows_of(view: View, devices: Devices, rows: IdColumn) -> Rows:
    return Rows(
        rows,
        view.allocatable(CPU)[rows] - view.requested(CPU)[rows],
        view.allocatable(MEMORY)[rows] - view.requested(MEMORY)[rows],
        devices.free[rows],
        devices.memory[rows],
        devices.whole[rows],
    )


# -- making one ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    weight: float
    milli_cpu: int
    memory: int
    devices: int
    milli: int
    allowed: Mask | None


def configured_mix(typical: Sequence[ExpectedPod], exponent: float, whole: View) -> Mix:
    """The mix from the configuration."""
    return _compiled([_described(one, whole) for one in typical], exponent)


def _described(one: ExpectedPod, whole: View) -> _Entry:
    chosen = Term(tuple(Requirement(key, IN, values) for key, values in one.nodes))
    mask = term_mask(chosen, whole) if one.nodes else None
    return _Entry(one.weight, one.milli_cpu, one.memory, one.devices, one.milli, mask)


def bound_mix(kinds: Sequence[tuple[PodClass, int]], resource: str, exponent: float, view: View) -> Mix:
    """The mix of the bound pods, rounded so that it does not change with each pod."""
    weights: dict[tuple[int, int, int, int, bytes], float] = {}
    first: dict[tuple[int, int, int, int, bytes], PodClass] = {}
    for kind, count in kinds:
        need, requests = need_of(kind, resource), kind.requests
        if need.devices:
            asks = (need.devices, need.milli, requests.milli_cpu, requests.memory, kind.affinity_key)
            first.setdefault(asks, kind)
            weights[asks] = weights.get(asks, 0) + level(count)
    # Sorted, so that the order of arrival does not matter.
    entries = [
        _Entry(weights[asks], asks[2], asks[3], asks[0], asks[1], required_affinity_mask(first[asks], view))
        for asks in sorted(weights)
    ]
    return _compiled(entries, exponent)


def _compiled(entries: Sequence[_Entry], exponent: float) -> Mix:
    raised = [max(0.0, entry.weight) ** exponent for entry in entries]
    total = sum(raised) or 1.0
    shares = sorted({entry.milli: None for entry in entries if entry.milli < DEVICE_MILLI})
    wholes = sorted({entry.devices: None for entry in entries if entry.milli == DEVICE_MILLI})
    weights = np.zeros((len(entries), len(shares) + len(wholes)))
    demands = [
        shares.index(entry.milli) if entry.milli < DEVICE_MILLI else len(shares) + wholes.index(entry.devices)
        for entry in entries
    ]
    order = sorted(range(len(entries)), key=lambda at: demands[at])
    for place, at in enumerate(order):
        weights[place, demands[at]] = round(raised[at] / total * SCALE)
    entries, sorted_demands = [entries[at] for at in order], sorted(demands)
    milli = np.arange(DEVICE_MILLI + 1)[:, None]
    return Mix(
        np.array([entry.milli_cpu for entry in entries], np.int64),
        np.array([entry.memory for entry in entries], np.int64),
        weights,
        weights.sum(axis=1),
        np.searchsorted(sorted_demands, np.arange(weights.shape[1])),
        _allowed(entries),
        np.where(milli >= np.array(shares, np.int64), milli, 0).astype(np.float64),
        np.array(wholes, np.int64),
    )


def _allowed(entries: Sequence[_Entry]) -> Mask | None:
    masks = [entry.allowed for entry in entries]
    size = next((len(mask) for mask in masks if mask is not None), 0)
    if not size:
        return None
    return np.stack([np.ones(size, np.bool_) if mask is None else mask for mask in masks], axis=1)


# -- asking it -------------------------------------------------------------------------------------------------------


def usable(mix: Mix, at: Rows) -> FloatColumn:
    """How much of each row's free capacity the mix can use, times SCALE."""
    return _summed(_running(mix, at, 0, 0), _usable_by(mix, at))


def losses(mix: Mix, at: Rows, need: GpuNeed, milli_cpu: int, memory: int) -> FloatColumn:
    """A table: the negated amount, times SCALE, that the mix can still use of each row with the pod there. One column
    per device if the pod needs a share, else one column. NO_ROOM where the pod does not fit.

    Adding `usable` from before gives the losses.
    """
    running = _running(mix, at, milli_cpu, memory)
    left = _summed(running, _usable_by(mix, at))
    if not need.devices:
        return -left[:, None]
    shares = mix.shares
    of_wholes = _of_wholes(mix, at.whole)
    if need.whole:
        lost = need.devices * DEVICE_MILLI * running[:, :shares].sum(axis=1)
        after = _of_wholes(mix, np.maximum(at.whole - need.devices, 0))
        lost += _summed(running[:, shares:], of_wholes - after)
        return np.where(at.whole >= need.devices, lost - left, NO_ROOM)[:, None]
    taken = mix.worth.copy()
    taken[need.milli :] -= mix.worth[: DEVICE_MILLI + 1 - need.milli]
    by_device: FloatColumn = np.einsum("rdg,rg->rd", taken[at.free], running[:, :shares])
    one_less = _of_wholes(mix, np.maximum(at.whole - 1, 0))
    broken = _summed(running[:, shares:], of_wholes - one_less)
    by_device += (at.free == DEVICE_MILLI) * broken[:, None]
    fits = at.free >= need.milli
    if need.memory:
        fits &= at.device_memory >= need.memory
    return np.where(fits, by_device - left[:, None], NO_ROOM)


def _running(mix: Mix, at: Rows, milli_cpu: int, memory: int) -> FloatColumn:
    """A table, rows by demands: the weight of the pods that could run there apart from devices, with less left.

    A pod that requests no cpu or memory runs even on an overcommitted node.
    """
    runs = (mix.milli_cpu == 0) | (mix.milli_cpu <= (at.milli_cpu - milli_cpu)[:, None])
    runs &= (mix.memory == 0) | (mix.memory <= (at.memory - memory)[:, None])
    if mix.allowed is not None:
        runs &= mix.allowed[at.rows]
    if not len(mix.flat):
        return np.zeros((len(at.rows), 0))
    found: FloatColumn = np.add.reduceat(np.where(runs, mix.flat, 0.0), mix.starts, axis=1)
    return found


def _summed(one: FloatColumn, other: FloatColumn) -> FloatColumn:
    """For each row, the sum over demands of the product of two tables."""
    found: FloatColumn = np.einsum("rg,rg->r", one, other)
    return found


def _usable_by(mix: Mix, at: Rows) -> FloatColumn:
    """A table, rows by demands: how much of the free capacity each could use, by devices alone."""
    return np.concatenate([mix.worth[at.free].sum(axis=1), _of_wholes(mix, at.whole)], axis=1)


def _of_wholes(mix: Mix, whole: IntColumn) -> FloatColumn:
    """The same for demands of whole devices, by the number of entirely free devices."""
    found: FloatColumn = np.where(whole[:, None] >= mix.wholes, whole[:, None] * DEVICE_MILLI, 0).astype(np.float64)
    return found
