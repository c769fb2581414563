"""Simulates what becomes of a node's free GPUs and cpu as the expected pods arrive one after another.

A future is a sequence of pods from a mix, simulated on one node: each pod that fits goes to the fullest device with
room for it, each other pod goes elsewhere. What is free in the end stays unused, for lack of fitting pods, cpu or
memory. The results of several futures are added up.

The simulation is deterministic: a golden-ratio sequence draws the pods of a future, so that any stretch of it holds the
mix in about its proportions, and each future starts at another point. All numbers are integers.
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
"""The golden ratio as a fraction of the circle: any number of steps spreads the points about evenly."""

MOST_KEPT: Final = 1 << 17
"""How many results are cached before the cache is cleared."""

Room: TypeAlias = tuple[tuple[int, ...], int, int, int, int]
"""Free thousandths of the devices that are not full, ascending; free cpu; free memory; the number of devices; and the
id of the node's kind of labels."""


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected pod: its weight and its requests."""

    milli_cpu: int
    memory: int
    devices: int
    milli: int
    weight: int
    at: int
    """Its index in the mix."""


@dataclass(frozen=True, slots=True)
class Future:
    """Pods in the order of arrival. The other fields are sets of pods as bits: the first pod is the lowest."""

    pods: tuple[Expected, ...]
    by_cpu: tuple[int, ...]
    """At n, the pods that request one of the n lowest amounts."""
    by_memory: tuple[int, ...]
    by_share: tuple[int, ...]
    """The same for one device's share, of pods that need only one device."""
    by_devices: tuple[int, ...]
    """At n, the pods that need several whole devices, at most n."""
    by_labels: tuple[int, ...]
    """At n, the pods that nodes with the n-th kind of labels accept."""
    without: int
    """The pods that need no device."""


@dataclass(frozen=True, slots=True)
class Futures:
    """The futures of a mix, and what they share. `kept` is a cache of results."""

    futures: tuple[Future, ...]
    cpus: tuple[int, ...]
    memories: tuple[int, ...]
    shares: tuple[int, ...]
    labels: IntColumn | None
    """By row: the kind of labels of its node; None: all are the same."""
    pods_per_device: int
    heeds_memory: bool
    """Whether any pod requests memory."""
    gpu: int
    """The demand of the whole mix, in thousandths, times the weights."""
    cpu: int
    kept: dict[Room, tuple[int, int]]


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


def futures_of(
    mix: Mix, others: Sequence[Expected], count: int, pods_per_device: int, most_devices: int
) -> Futures | None:
    """`count` futures of a mix, each long enough for the node with the most devices; None for an empty mix. `others`
    are expected pods without GPUs."""
    pods = expected(mix)
    if not pods:
        return None
    pods += others
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
                tuple(_bits([not pod.devices or kind[pod.at] for pod in drawn]) for kind in kinds),
                _bits([not pod.devices for pod in drawn]),
            )
        )
    gpu = sum(pod.weight * pod.devices * pod.milli for pod in pods)
    cpu = sum(pod.weight * pod.milli_cpu for pod in pods)
    return Futures(tuple(futures), cpus, memories, shares, labels, pods_per_device, memories[-1] > 0, gpu, cpu, {})


def _kinds(mix: Mix) -> tuple[list[list[bool]], IntColumn | None]:
    """The kinds of labels: which pods of the mix each accepts, and the kind of each row."""
    if mix.allowed is None:
        return [[True] * len(mix.weights)], None
    kinds, labels = np.unique(mix.allowed, axis=0, return_inverse=True)
    return kinds.tolist(), labels.reshape(-1).astype(np.int64)


def _bits(chosen: Sequence[bool]) -> int:
    return sum(1 << at for at, one in enumerate(chosen) if one)


def _rising(asked: Sequence[int], levels: Sequence[int]) -> tuple[int, ...]:
    """At n, the pods that request at most the n-th level, counted from 1; at 0, none."""
    return (0, *(_bits([amount <= level for amount in asked]) for level in levels))


def left_over(futures: Futures, room: Room) -> tuple[int, int]:
    """What all futures together leave unused on a node with this free capacity: of its GPUs, and of its cpu."""
    kept = futures.kept
    if room not in kept:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        left = [_left(futures, future, room) for future in futures.futures]
        kept[room] = sum(gpu for gpu, _ in left), sum(cpu for _, cpu in left)
    return kept[room]


def cpu_price(futures: Futures, free_gpu: int, free_cpu: int, scale: int) -> int:
    """What a unit of unused cpu is worth, in units of GPU times `scale`, if so much is free in the whole cluster.

    If the mix needs more cpu than there is, every GPU that stays unused does so for lack of cpu: then cpu is worth the
    GPUs that the mix would use with it. While there is plenty of cpu, it is worth next to nothing.
    """
    needed, there = free_gpu * futures.cpu, futures.gpu * free_cpu
    if not needed:
        return 0
    if needed >= there:
        needed = there = 1
    return scale * futures.gpu * needed**3 // (futures.cpu * there**3)


def _left(futures: Futures, future: Future, room: Room) -> tuple[int, int]:
    """Simulate a future. It jumps from one fitting pod to the next and skips the others at once."""
    devices, milli_cpu, memory, count, kind = room
    free = list(devices)
    whole = free.count(DEVICE_MILLI)
    cpus, memories, shares, heeds_memory = futures.cpus, futures.memories, futures.shares, futures.heeds_memory
    by_cpu, by_share, by_devices, pods = future.by_cpu, future.by_share, future.by_devices, future.pods
    without = future.without
    coming = future.by_labels[kind] & ((1 << futures.pods_per_device * count) - 1)
    while True:
        fitting = coming & by_cpu[bisect_right(cpus, milli_cpu)]
        if free:
            fitting &= by_share[bisect_right(shares, free[-1])] | by_devices[whole] | without
        else:
            fitting &= without
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
        if not pod.devices:
            continue
        if pod.devices > 1:
            del free[-pod.devices :]
            whole -= pod.devices
            continue
        before = free.pop(bisect_left(free, asked))
        if before == DEVICE_MILLI:
            whole -= 1
        if before > asked:
            insort(free, before - asked)
    return sum(free), milli_cpu
