"""How many of the expected pods still fit into the cluster, and how scarce the room for each kind of them is.

Pods that fit on the same nodes, while those are empty, are a group. The room for a group is the GPU capacity that its
pods could use, if no others came. Where a group is expected to need most of its room, whoever takes some of it is
charged. Few nodes may have eight free devices, much cpu, or a model that some pods insist on, although much is free.

All numbers are integers, small enough for exact float64 sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Final

import numpy as np

from situate.core.model.gpu import DEVICE_MILLI, GpuNeed
from situate.core.plugins.support.gpu_futures import expected
from situate.core.plugins.support.gpu_mix import Mix, Rows
from situate.core.state.columns import FloatColumn, IdColumn, IntColumn, Mask

UNIT: Final = 1 << 10
"""The weights of the pods of a group add up to about this; and the highest price."""
MOST_GROUPS: Final = 32
"""The groups with the least demand are left out."""
PLENTY: Final = 1 << 20
"""More pods than fit on a node."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The pods of a mix by group. Columns are by pod, the pods of a group next to each other."""

    milli_cpu: IntColumn
    memory: IntColumn
    devices: IntColumn
    share: IdColumn
    """Its column in `fits`; that after the last one, if the pod needs whole devices."""
    fits: IntColumn
    """A table, free thousandths of a device by share: how many pods with this share fit."""
    worth: IntColumn
    """The thousandths of GPUs that it requests, times its weight in its group."""
    starts: IdColumn
    """The first pod of each group."""
    allowed: Mask | None
    """A table, rows by pods: whether the node's labels match; None: everywhere."""
    demand: tuple[int, ...]
    """By group: its demand for GPUs in the mix."""
    each: tuple[int, ...]
    """By group: the mean demand of its pods, in thousandths of a GPU."""
    total: int
    """The demand of the whole mix."""


def slots_of(mix: Mix, milli_cpu: IntColumn, memory: IntColumn, count: IntColumn) -> Slots | None:
    """The groups of a mix, for nodes with this much when they are empty; None for an empty mix."""
    groups: dict[bytes, list[int]] = {}
    pods = expected(mix)
    for number, pod in enumerate(pods):
        accept = (milli_cpu >= pod.milli_cpu) & (memory >= pod.memory) & (count >= pod.devices)
        if mix.allowed is not None:
            accept &= mix.allowed[:, pod.at]
        if accept.any():
            groups.setdefault(accept.tobytes(), []).append(number)
    if not groups:
        return None

    def demand(members: list[int]) -> int:
        return sum(pods[number].weight * pods[number].devices * pods[number].milli for number in members)

    kept = sorted(groups.values(), key=lambda members: (-demand(members), members))[:MOST_GROUPS]
    chosen = [pods[number] for members in kept for number in members]
    shares = sorted({pod.milli: None for pod in chosen if pod.milli < DEVICE_MILLI})
    weights = [sum(pods[number].weight for number in members) for members in kept]
    worth = [
        pods[number].weight * UNIT // weight * pods[number].devices * pods[number].milli
        for members, weight in zip(kept, weights, strict=True)
        for number in members
    ]
    at = np.array([pod.at for pod in chosen], np.intp)
    return Slots(
        np.array([pod.milli_cpu for pod in chosen], np.int64),
        np.array([pod.memory for pod in chosen], np.int64),
        np.array([pod.devices for pod in chosen], np.int64),
        np.array([shares.index(pod.milli) if pod.milli < DEVICE_MILLI else len(shares) for pod in chosen], np.intp),
        np.arange(DEVICE_MILLI + 1)[:, None] // np.array(shares, np.int64)[None, :],
        np.array(worth, np.int64),
        np.cumsum([0, *(len(members) for members in kept[:-1])]),
        None if mix.allowed is None else mix.allowed[:, at],
        tuple(demand(members) for members in kept),
        tuple(demand(members) // weight for members, weight in zip(kept, weights, strict=True)),
        sum(demand(members) for members in groups.values()),
    )


def room(slots: Slots, at: Rows) -> FloatColumn:
    """A table, rows by groups: how much of the free capacity each group could use, times UNIT."""
    return _room(slots, at.rows, at.milli_cpu, at.memory, at.free)


def room_after(
    slots: Slots, at: Rows, need: GpuNeed, milli_cpu: int, memory: int, device: IdColumn | None = None
) -> FloatColumn:
    """The same with a pod on each row. `device`, by row, is the one that gets a share."""
    free = at.free
    if need.devices:
        free = free.copy()
        if device is None:
            whole = free == DEVICE_MILLI
            free[whole & (whole.cumsum(axis=1) <= need.devices)] = 0
        else:
            every = np.arange(len(free))
            free[every, device] = np.maximum(free[every, device] - need.milli, 0)
    return _room(slots, at.rows, at.milli_cpu - milli_cpu, at.memory - memory, free)


def _room(slots: Slots, rows: IdColumn, milli_cpu: IntColumn, memory: IntColumn, free: IntColumn) -> FloatColumn:
    whole = np.count_nonzero(free == DEVICE_MILLI, axis=1)
    by_share = slots.fits[free].sum(axis=1)
    fit = np.concatenate([by_share, whole[:, None]], axis=1)[:, slots.share] // slots.devices
    fit = np.minimum(fit, _times(milli_cpu, slots.milli_cpu))
    if slots.memory.any():
        fit = np.minimum(fit, _times(memory, slots.memory))
    if slots.allowed is not None:
        fit = np.where(slots.allowed[rows], fit, 0)
    found: IntColumn = np.add.reduceat(fit * slots.worth, slots.starts, axis=1)
    return found.astype(np.float64)


def _times(left: IntColumn, asked: IntColumn) -> IntColumn:
    """How many times each request fits into what is left of each row."""
    times: IntColumn = np.maximum(left, 0)[:, None] // np.maximum(asked, 1)
    return np.where(asked == 0, PLENTY, times)


def prices(slots: Slots, rooms: FloatColumn, free: int) -> IntColumn:
    """By group: the price of its room, from 0 to UNIT. `rooms` is the room in the whole cluster, `free` its free
    thousandths of GPUs.

    The mix is expected to fill what is free. The price is the part of the room that the group needs then, cubed: while
    there is plenty, it is next to nothing.
    """
    found = []
    for demand, each, there in zip(slots.demand, slots.each, map(int, rooms.tolist()), strict=True):
        needed = free * demand // slots.total
        needed += isqrt(needed * each)  # as many pods more as their number may well deviate
        part = min(UNIT, needed * UNIT * UNIT // there) if there else 0
        found.append(part**3 // UNIT**2)
    return np.array(found, np.int64)
