"""The figures of a policy: the mean share of allocated GPUs, and its deviation over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from situate.core.model.gpu import DEVICE_MILLI
from situate.sim.openb.experiment import MARKS, OpenbRun, capacity
from situate.sim.openb.published import GPUS, NODES, published
from situate.sim.openb.trace_files import TraceNode


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
        """The standard deviation over the seeds; None for one seed."""
        return stdev(self.by_seed) if len(self.by_seed) > 1 else None


@dataclass(frozen=True, slots=True)
class PolicyFigures:
    policy: str
    runs: tuple[OpenbRun, ...]
    marks: tuple[AllocationFigure, ...]

    @property
    def deviation(self) -> float | None:
        """The largest standard deviation of the marks; None for one seed."""
        return max((figure.deviation for figure in self.marks if figure.deviation is not None), default=None)


def figures(workload: str, nodes: Sequence[TraceNode], policy: str, runs: Sequence[OpenbRun]) -> PolicyFigures:
    """The runs are in the order of the seeds."""
    whole = capacity(nodes)
    is_theirs = len(nodes) == NODES and whole == GPUS * DEVICE_MILLI
    said = published(workload, policy) if is_theirs else {}
    marks = tuple(
        AllocationFigure(mark, tuple(100 * run.allocated[at] / whole for run in runs), said.get(mark))
        for at, mark in enumerate(MARKS)
    )
    return PolicyFigures(policy, tuple(runs), marks)
