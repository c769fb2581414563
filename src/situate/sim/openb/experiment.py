"""One run: the pods come in order, each goes where the policy says if it fits anywhere, and nobody leaves."""

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
from situate.sim.openb.arrivals import arrivals
from situate.sim.openb.objects import node_object, pod_object
from situate.sim.openb.policies import RANDOM
from situate.sim.openb.trace_files import TraceNode, TracePod

__all__ = ["MARKS", "OpenbRun", "capacity", "run"]

MARKS: Final = (100, 130)
"""At which arrivals it is looked how much is allocated: percent of the cluster's GPUs that were asked for by then."""


@dataclass(frozen=True, slots=True)
class OpenbRun:
    """What became of one run."""

    policy: str
    seed: int
    pods: int
    placed: int
    allocated: tuple[int, ...]
    """Thousandths of a GPU, at each mark."""


Choice = Callable[[PodClass], tuple[int, BindAnnotations]]
"""The row a pod of a class goes to, and what is written on it; a negative row: it fits nowhere."""


def capacity(nodes: Sequence[TraceNode]) -> int:
    """The cluster's GPUs, in thousandths."""
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
    """Fill the cluster from empty. The same arguments, the same outcome."""
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
    # The last mark is where the arrivals end, even if the last pod that would have come was too large for it.
    seen += [allocated] * (len(left) - len(seen))
    return OpenbRun(policy, seed, len(coming), placed, tuple(seen))


def _choice(cluster: Cluster, profile: Profile, policy: str, seed: int) -> Choice:
    placer = Placer(cluster, profile)
    if policy == RANDOM:
        return _by_lot(cluster, placer, Random(f"{RANDOM} {seed}"))  # noqa: S311

    def choose(kind: PodClass) -> tuple[int, BindAnnotations]:
        row = placer.choose(kind)
        return row, bind_annotations(profile, kind, View(cluster), row) if row >= 0 else ()

    return choose


def _by_lot(cluster: Cluster, placer: Placer, chance: Random) -> Choice:
    """Any node that fits, and any device of it that does."""

    def choose(kind: PodClass) -> tuple[int, BindAnnotations]:
        rows = np.flatnonzero(placer.looked_at(kind))
        if not len(rows):
            return -1, ()
        row = int(rows[chance.randrange(len(rows))])
        need = need_of(kind, GPU_RESOURCE)
        if not need.devices:
            return row, ()
        devices = View(cluster).devices(GPU_RESOURCE)
        found = fitting(need, devices.free[row].tolist(), devices.memory[row].tolist())
        chosen = sorted(chance.sample(found, need.devices))
        return row, ((GPU_DEVICES, ",".join(map(str, chosen))),)

    return choose
