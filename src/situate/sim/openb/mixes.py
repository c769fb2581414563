"""Other mixes of pods, derived from those of a trace: what a policy is worth should not hang on one mix.

Each is drawn from the pods of the trace with a fixed seed. `random-N` draws its proportions too, from N.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from situate.core.model.gpu import DEVICE_MILLI
from situate.sim.openb.trace_files import TraceNode, TracePod, TraceRequest

RANDOM_MIX: Final = "random-"
"""The beginning of the name of a random mix; its seed follows."""
CPU_PODS_PERCENT: Final = 24
RESTRICTED_PERCENT: Final = 33
SMALL_MILLI: Final = (50, 100, 150, 200, 250, 300, 400, 500)
"""The shares of the small pods."""
CPU_PERCENT: Final = 130
"""The cpu of pods with GPUs that request much of it, in percent of what they request in the trace."""
MOST_CPU: Final = 96_000
"""Most nodes with eight GPUs have this much."""
TRIES: Final = 8
"""How many nodes are drawn to find one where a pod fits."""


@dataclass(frozen=True, slots=True)
class Proportions:
    """Parts of the pods, in percent: those without a GPU, with a share, with a whole GPU, and with 2, 4 and 8."""

    none: int
    share: int
    one: int
    two: int
    four: int
    eight: int


def mix_of(name: str, nodes: Sequence[TraceNode], trace: Sequence[TracePod]) -> tuple[TracePod, ...] | None:
    """The pods of a derived mix, as many as the trace has; None for an unknown name."""
    if name.startswith(RANDOM_MIX) and (seed := name.removeprefix(RANDOM_MIX)).isdecimal():
        asks = _random(int(seed), nodes, trace)
    elif name in MIXES:
        asks = MIXES[name](nodes, trace)
    else:
        return None
    return tuple(TracePod(f"{name}-{number:05}", ask) for number, ask in enumerate(asks))


def _cpu_pods(nodes: Sequence[TraceNode], trace: Sequence[TracePod]) -> list[TraceRequest]:
    """Many pods without a GPU."""
    rng = _rng("cpu-pods")
    with_gpu, without = _split(trace)
    return [rng.choice(without if rng.randrange(100) < CPU_PODS_PERCENT and without else with_gpu) for _ in trace]


def _whole_nodes(nodes: Sequence[TraceNode], trace: Sequence[TracePod]) -> list[TraceRequest]:
    """Mostly pods with eight GPUs, by demand."""
    return _drawn(_rng("whole-nodes"), trace, Proportions(10, 20, 40, 5, 5, 20))


def _small_shares(nodes: Sequence[TraceNode], trace: Sequence[TracePod]) -> list[TraceRequest]:
    """Nine in ten pods have a small share of a GPU, and of cpu and memory; the others are those of the trace."""
    rng = _rng("small-shares")
    with_gpu = _split(trace)[0]
    drawn = [rng.choice(with_gpu) for _ in trace]
    return [_shrunk(ask, rng.choice(SMALL_MILLI)) if ask.gpus == 1 and rng.randrange(10) else ask for ask in drawn]


def _shrunk(ask: TraceRequest, milli: int) -> TraceRequest:
    cpu, memory = (amount * milli // DEVICE_MILLI for amount in (ask.milli_cpu, ask.memory_mib))
    return replace(ask, gpu_milli=milli, milli_cpu=cpu, memory_mib=memory)


def _bimodal(nodes: Sequence[TraceNode], trace: Sequence[TracePod]) -> list[TraceRequest]:
    """Shares, and pods with eight GPUs."""
    return _drawn(_rng("bimodal"), trace, Proportions(5, 85, 0, 0, 0, 10))


def _models(nodes: Sequence[TraceNode], trace: Sequence[TracePod]) -> list[TraceRequest]:
    """A third of the pods with GPUs accept a single model, in proportion to the nodes with it."""
    rng = _rng("models")
    return [_restricted(rng, pod.ask, nodes, RESTRICTED_PERCENT) for pod in trace]


def _cpu_per_gpu(nodes: Sequence[TraceNode], trace: Sequence[TracePod]) -> list[TraceRequest]:
    """Pods with GPUs that request much cpu."""
    return [_with_cpu(pod.ask, CPU_PERCENT) if pod.ask.gpus else pod.ask for pod in trace]


def _with_cpu(ask: TraceRequest, percent: int) -> TraceRequest:
    return replace(ask, milli_cpu=max(ask.milli_cpu, min(ask.milli_cpu * percent // 100, MOST_CPU)))


def _random(seed: int, nodes: Sequence[TraceNode], trace: Sequence[TracePod]) -> list[TraceRequest]:
    """Proportions, models and cpu drawn at random."""
    rng = _rng(f"{RANDOM_MIX}{seed}")
    eight = rng.choice((0, 1, 3, 10, 25))
    four, two = rng.choice((0, 2, 6)), rng.choice((0, 2, 6))
    none = rng.choice((0, 10, 20, 25))
    one = rng.randrange(100 - none - eight - four - two + 1)
    asks = _drawn(rng, trace, Proportions(none, 100 - none - one - eight - four - two, one, two, four, eight))
    restricted, cpu = rng.choice((0, 0, 10, 25, 33)), rng.choice((100, 100, 115, 130))
    return [_restricted(rng, _with_cpu(ask, cpu) if ask.gpus else ask, nodes, restricted) for ask in asks]


MIXES: Final[Mapping[str, Callable[[Sequence[TraceNode], Sequence[TracePod]], list[TraceRequest]]]] = {
    "cpu-pods": _cpu_pods,
    "whole-nodes": _whole_nodes,
    "small-shares": _small_shares,
    "bimodal": _bimodal,
    "models": _models,
    "cpu-per-gpu": _cpu_per_gpu,
}


def _rng(name: str) -> Random:
    return Random(f"openb {name}")  # noqa: S311


def _split(trace: Sequence[TracePod]) -> tuple[list[TraceRequest], list[TraceRequest]]:
    asks = [pod.ask for pod in trace]
    return [ask for ask in asks if ask.gpus], [ask for ask in asks if not ask.gpus]


def _drawn(rng: Random, trace: Sequence[TracePod], parts: Proportions) -> list[TraceRequest]:
    """Each pod is one of the trace with the number of GPUs that is drawn for it."""
    with_gpu, without = _split(trace)
    groups = [
        without,
        [ask for ask in with_gpu if ask.demand < DEVICE_MILLI],
        *([ask for ask in with_gpu if ask.demand == gpus * DEVICE_MILLI] for gpus in (1, 2, 4, 8)),
    ]
    weights = (parts.none, parts.share, parts.one, parts.two, parts.four, parts.eight)
    there = [(group, weight) for group, weight in zip(groups, weights, strict=True) if group and weight]
    if not there:
        return [pod.ask for pod in trace]
    chosen = rng.choices([group for group, _ in there], [weight for _, weight in there], k=len(trace))
    return [rng.choice(group) for group in chosen]


def _restricted(rng: Random, ask: TraceRequest, nodes: Sequence[TraceNode], percent: int) -> TraceRequest:
    """With this probability, the pod accepts only the model of a node that is drawn among those where it fits."""
    if not ask.gpus or rng.randrange(100) >= percent:
        return ask
    for _ in range(TRIES):
        node = rng.choice(nodes)
        if node.model and node.gpus >= ask.gpus and node.milli_cpu >= ask.milli_cpu:
            return replace(ask, models=(node.model,))
    return ask
