"""One run: pods arrive in order, each is placed by the policy if it fits, and none leaves.

The arrivals follow the protocol of the trace's authors: all pods in random order, then random pods until the requests
reach the demand. If the trace exceeds the demand, random pods are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

from situate.core.model.annotations import GPU_DEVICES
from situate.core.model.gpu import DEVICE_MILLI, GPU_RESOURCE
from situate.core.place.bind_annotations import BindAnnotations, bind_annotations, with_annotations
from situate.core.place.placer import Placer
from situate.core.place.profile import Profile
from situate.core.plugins.gpu_share import fitting
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.devices import need_of
from situate.core.state.view import View
from situate.sim.openb.objects import node_object, pod_object
from situate.sim.openb.policies import RANDOM
from situate.sim.openb.trace_files import TraceNode, TracePod

MARKS: Final = (80, 90, 100, 110, 120, 130)
"""The marks at which allocation is measured, in percent of the cluster's GPUs requested so far."""


@dataclass(frozen=True, slots=True)
class OpenbRun:
    policy: str
    seed: int
    pods: int
    placed: int
    allocated: tuple[int, ...]
    """Thousandths of a GPU at each mark."""


Choice = Callable[[PodClass], tuple[int, BindAnnotations]]
"""The row for a pod of a class, and its annotations; a negative row: it fits nowhere."""


def capacity(nodes: Sequence[TraceNode]) -> int:
    """The cluster's GPUs in thousandths."""
    return DEVICE_MILLI * sum(node.gpus for node in nodes)


def run(
    nodes: Sequence[TraceNode],
    trace: Sequence[TracePod],
    policy: str,
    profile: Profile,
    seed: int,
    *,
    redraw: bool = False,
) -> OpenbRun:
    """Fill an empty cluster. The same arguments give the same outcome."""
    whole = capacity(nodes)
    coming = arrivals(trace, seed, whole * MARKS[-1] // 100, redraw=redraw)
    cluster = Cluster()
    for node in nodes:
        cluster.add_node(node_object(node))
    choose = _choice(cluster, profile, policy, seed)
    kinds = {ask: cluster.class_of(pod_object("", ask)) for ask in dict.fromkeys(pod.ask for pod in coming)}
    left = [whole * mark // 100 for mark in MARKS]
    seen: list[int] = []
    arrived = allocated = placed = 0
    for number, pod in enumerate(coming):
        kind = kinds[pod.ask]
        row, notes = choose(kind)
        if row >= 0:
            cluster.put(with_annotations(pod_object(f"{pod.name}-{number}", pod.ask), notes), kind, row)
            allocated += pod.ask.demand
            placed += 1
        arrived += pod.ask.demand
        while len(seen) < len(left) and arrived >= left[len(seen)]:
            seen.append(allocated)
    # The last mark is the end of the arrivals, even if the last pod was too large for it.
    seen += [allocated] * (len(left) - len(seen))
    return OpenbRun(policy, seed, len(coming), placed, tuple(seen))


def arrivals(trace: Sequence[TracePod], seed: int, demand: int, *, redraw: bool = False) -> list[TracePod]:
    """Pods until their requests reach `demand` thousandths of a GPU. With `redraw` each is drawn from the trace, so
    some never arrive."""
    rng = Random(seed)  # noqa: S311
    coming: list[TracePod] = []
    asked = 0
    if not redraw:
        coming = list(trace)
        rng.shuffle(coming)
        asked = sum(pod.ask.demand for pod in coming)
        while asked > demand:
            asked -= coming.pop(rng.randrange(len(coming))).ask.demand
    while asked < demand:
        pod = trace[rng.randrange(len(trace))]
        if not redraw and asked + pod.ask.demand > demand:
            break
        coming.append(pod)
        asked += pod.ask.demand
    return coming


def _choice(cluster: Cluster, profile: Profile, policy: str, seed: int) -> Choice:
    placer = Placer(cluster, profile)
    if policy == RANDOM:
        return _by_lot(cluster, placer, Random(f"{RANDOM} {seed}"))  # noqa: S311

    def choose(kind: PodClass) -> tuple[int, BindAnnotations]:
        row = placer.choose(kind)
        return row, bind_annotations(profile, kind, View(cluster), row) if row >= 0 else ()

    return choose


def _by_lot(cluster: Cluster, placer: Placer, rng: Random) -> Choice:
    """A random feasible node, and random feasible devices of it."""

    def choose(kind: PodClass) -> tuple[int, BindAnnotations]:
        rows = np.flatnonzero(placer.looked_at(kind))
        if not len(rows):
            return -1, ()
        row = int(rows[rng.randrange(len(rows))])
        need = need_of(kind, GPU_RESOURCE)
        if not need.devices:
            return row, ()
        devices = View(cluster).devices(GPU_RESOURCE)
        found = fitting(need, devices.free[row].tolist(), devices.memory[row].tolist())
        chosen = sorted(rng.sample(found, need.devices))
        return row, ((GPU_DEVICES, ",".join(map(str, chosen))),)

    return choose
