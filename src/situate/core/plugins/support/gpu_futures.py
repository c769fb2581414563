"""What becomes of a node's free GPUs if the pods that are expected come, one after another.

A future is a row of pods drawn from a mix. It is played out on one node: each pod that fits goes to the fullest device
that has room for it, each other goes elsewhere. What is free in the end is left over, for want of pods that fit, of
cpu, or of memory. Several futures are played out, and what they leave is added up.

Nothing is left to chance: the pods of a future are those under the points of a sequence that steps by the golden ratio,
so that any stretch of it holds the mix in about its proportions, and each future begins at another point. All numbers
are whole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np

from situate.core.model.gpu import DEVICE_MILLI
from situate.core.plugins.support.gpu_mix import Mix
from situate.core.state.columns import IntColumn

CIRCLE: Final = 1 << 32
STEP: Final = 2_654_435_769
"""A golden section of the circle: however often it is gone, the points lie about evenly."""

MOST_KEPT: Final = 1 << 17
"""How many answers are kept before all are forgotten."""

Room: TypeAlias = tuple[tuple[int, ...], int, int, int, int]
"""What is free of devices, in rising order and without those that are full; cpu; memory; how many devices the node has;
and which pods it takes by its labels, by number."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A pod that is expected: its weight, and what it asks for."""

    milli_cpu: int
    memory: int
    devices: int
    milli: int
    weight: int
    at: int
    """Its place in the mix."""


@dataclass(frozen=True, slots=True)
class Future:
    """Pods in the order in which they come. The rest are sets of them, as bits: the first pod is the lowest."""

    pods: tuple[Expected, ...]
    by_cpu: tuple[int, ...]
    """At n, those that ask for one of the n lowest amounts that anybody asks for."""
    by_memory: tuple[int, ...]
    by_share: tuple[int, ...]
    """The same of the room on one device, among those that need one device only."""
    by_devices: tuple[int, ...]
    """At n, those that need several whole devices, and no more than n."""
    by_labels: tuple[int, ...]
    """At n, those that nodes with the n-th kind of labels take."""


@dataclass(frozen=True, slots=True)
class Futures:
    """The futures of a mix, and what they have in common. `kept` remembers answers: it never changes one."""

    futures: tuple[Future, ...]
    cpus: tuple[int, ...]
    memories: tuple[int, ...]
    shares: tuple[int, ...]
    labels: IntColumn | None
    """By row: which kind of labels its node has; None: all are of one."""
    pods_per_device: int
    heeds_memory: bool
    """Whether anybody asks for memory at all."""
    kept: dict[Room, int]


def expected(mix: Mix) -> list[Expected]:
    """The pods of a mix, the most common first."""
    found = []
    for at, weights in enumerate(mix.weights):
        demand = int(weights.argmax())
        if not weights[demand]:
            continue
        is_share = demand < mix.shares
        devices = 1 if is_share else int(mix.wholes[demand - mix.shares])
        milli = int(np.count_nonzero(mix.worth[:, demand] == 0)) if is_share else DEVICE_MILLI
        found.append(Expected(int(mix.milli_cpu[at]), int(mix.memory[at]), devices, milli, int(weights[demand]), at))
    return sorted(found, key=lambda pod: (-pod.weight, pod.milli_cpu, pod.devices, pod.milli, pod.memory, pod.at))


def futures_of(mix: Mix, count: int, pods_per_device: int, most_devices: int) -> Futures | None:
    """So many futures of a mix, each long enough for a node with the most devices; None if nobody is expected."""
    pods = expected(mix)
    if not pods:
        return None
    kinds, labels = _kinds(mix)
    cpus, memories, shares = (
        tuple(sorted(dict.fromkeys(amounts)))
        for amounts in (
            [pod.milli_cpu for pod in pods],
            [pod.memory for pod in pods],
            [pod.milli for pod in pods if pod.devices == 1] or [DEVICE_MILLI],
        )
    )
    ends = list(accumulate(pod.weight for pod in pods))
    futures = []
    for future in range(count):
        points = ((future * CIRCLE // count + step * STEP) % CIRCLE for step in range(pods_per_device * most_devices))
        drawn = tuple(pods[bisect_right(ends, point * ends[-1] // CIRCLE)] for point in points)
        futures.append(
            Future(
                drawn,
                _rising([pod.milli_cpu for pod in drawn], cpus),
                _rising([pod.memory for pod in drawn], memories),
                _rising([pod.milli if pod.devices == 1 else DEVICE_MILLI + 1 for pod in drawn], shares),
                tuple(_bits([1 < pod.devices <= whole for pod in drawn]) for whole in range(most_devices + 1)),
                tuple(_bits([kind[pod.at] for pod in drawn]) for kind in kinds),
            )
        )
    return Futures(tuple(futures), cpus, memories, shares, labels, pods_per_device, memories[-1] > 0, {})


def _kinds(mix: Mix) -> tuple[list[list[bool]], IntColumn | None]:
    """The kinds of labels there are: which pods of the mix each takes; and each row's."""
    if mix.allowed is None:
        return [[True] * len(mix.weights)], None
    kinds, labels = np.unique(mix.allowed, axis=0, return_inverse=True)
    return kinds.tolist(), labels.reshape(-1).astype(np.int64)


def _bits(chosen: Sequence[bool]) -> int:
    return sum(1 << at for at, one in enumerate(chosen) if one)


def _rising(asked: Sequence[int], levels: Sequence[int]) -> tuple[int, ...]:
    """At n, those that ask for no more than the n-th level, counted from 1; at 0, none."""
    return (0, *(_bits([amount <= level for amount in asked]) for level in levels))


def left_over(futures: Futures, room: Room) -> int:
    """What all futures together leave free of a node with this room."""
    kept = futures.kept
    if room not in kept:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        kept[room] = sum(_left(futures, future, room) for future in futures.futures)
    return kept[room]


def _left(futures: Futures, future: Future, room: Room) -> int:
    """Play a future out. It goes from one pod that fits to the next: the others are passed over all at once."""
    devices, milli_cpu, memory, count, kind = room
    free = list(devices)
    whole = free.count(DEVICE_MILLI)
    cpus, memories, shares, heeds_memory = futures.cpus, futures.memories, futures.shares, futures.heeds_memory
    by_cpu, by_share, by_devices, pods = future.by_cpu, future.by_share, future.by_devices, future.pods
    coming = future.by_labels[kind] & ((1 << futures.pods_per_device * count) - 1)
    while free:
        fitting = coming & by_cpu[bisect_right(cpus, milli_cpu)]
        fitting &= by_share[bisect_right(shares, free[-1])] | by_devices[whole]
        if heeds_memory:
            fitting &= future.by_memory[bisect_right(memories, memory)]
        if not fitting:
            break
        first = fitting & -fitting
        coming &= -(first << 1)
        pod = pods[first.bit_length() - 1]
        milli_cpu -= pod.milli_cpu
        memory -= pod.memory
        asked = pod.milli
        if pod.devices > 1:
            del free[-pod.devices :]
            whole -= pod.devices
            continue
        before = free.pop(bisect_left(free, asked))
        if before == DEVICE_MILLI:
            whole -= 1
        if before > asked:
            insort(free, before - asked)
    return sum(free)
