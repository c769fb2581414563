"""What the runs of a policy come to: how much of the GPUs was allocated, on average, and how far the seeds differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from situate.core.model.gpu import DEVICE_MILLI
from situate.sim.openb.experiment import MARKS, OpenbRun, capacity
from situate.sim.openb.published import GPUS, NODES, published
from situate.sim.openb.trace_files import TraceNode

__all__ = ["AllocationFigure", "PolicyFigures", "figures"]


@dataclass(frozen=True, slots=True)
class AllocationFigure:
    """Percent of the GPUs allocated at one mark."""

    mark: int
    by_seed: tuple[float, ...]
    published: float | None

    @property
    def mean(self) -> float:
        return fmean(self.by_seed)

    @property
    def deviation(self) -> float | None:
        """Of single seeds from the mean; None where there is one seed only."""
        return stdev(self.by_seed) if len(self.by_seed) > 1 else None


@dataclass(frozen=True, slots=True)
class PolicyFigures:
    policy: str
    runs: tuple[OpenbRun, ...]
    marks: tuple[AllocationFigure, ...]


def figures(workload: str, nodes: Sequence[TraceNode], policy: str, runs: Sequence[OpenbRun]) -> PolicyFigures:
    """Of the runs of one policy, in the order of seeds."""
    whole = capacity(nodes)
    is_theirs = len(nodes) == NODES and whole == GPUS * DEVICE_MILLI
    said = (published(workload, policy) if is_theirs else None) or (None,) * len(MARKS)
    marks = tuple(
        AllocationFigure(mark, tuple(100 * run.allocated[at] / whole for run in runs), said[at])
        for at, mark in enumerate(MARKS)
    )
    return PolicyFigures(policy, tuple(runs), marks)
