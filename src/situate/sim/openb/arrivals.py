"""Who comes, in which order: the protocol of the trace's authors, by a seed.

All pods of the trace come in an order drawn by lot; then pods drawn from it, again and again, until those that came ask
for so much of the cluster's GPUs. Where the trace asks for more than that, pods drawn from it stay away. Nobody leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from situate.sim.openb.trace_files import TracePod

__all__ = ["arrivals"]


def arrivals(trace: Sequence[TracePod], seed: int, demand: int, *, redraw: bool = False) -> list[TracePod]:
    """The pods that come, until they ask for `demand` thousandths of a GPU; `redraw`: each of them drawn from the
    trace, so that some never come. The same seed, the same pods."""
    chance = Random(seed)  # noqa: S311
    coming: list[TracePod] = []
    asked = 0
    if not redraw:
        coming = list(trace)
        chance.shuffle(coming)
        asked = sum(pod.ask.demand for pod in coming)
        while asked > demand:
            asked -= coming.pop(chance.randrange(len(coming))).ask.demand
    while asked < demand:
        pod = trace[chance.randrange(len(trace))]
        if not redraw and asked + pod.ask.demand > demand:
            break
        coming.append(pod)
        asked += pod.ask.demand
    return coming
