"""Step functions of time, from a ledger. A value holds until the next step.

Of all changes at one moment only the result counts: a pod that replaces a leaving one is never next to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from situate.core.changes import Millis
from situate.sim.whatif.ledger import OPEN, RunLedger

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Steps:
    """`values[i]` holds from `times[i]` on. The first time is 0."""

    times: Ints
    values: Ints
    end_ms: Millis

    def mean(self) -> float:
        """Weighted by time; the last value if no time passes."""
        if self.end_ms <= 0:
            return self.last
        lengths = np.diff(np.append(self.times, self.end_ms)).astype(np.float64)
        return float((self.values * lengths).sum() / self.end_ms)

    @property
    def peak(self) -> int:
        return int(self.values.max())

    @property
    def last(self) -> int:
        return int(self.values[-1])

    def at(self, moments: Ints) -> Ints:
        return self.values[np.searchsorted(self.times, moments, side="right") - 1]


@dataclass(frozen=True, slots=True)
class Stays:
    """The stays of a ledger as arrays; open ones end after the end."""

    pods: Ints
    nodes: Ints
    begin: Ints
    end: Ints
    shapes: Ints


def stays(ledger: RunLedger, end_ms: Millis) -> Stays:
    pods = _ints(ledger.stay_pods, np.int32)
    until = _ints(ledger.stay_to, np.int64)
    shapes = _ints(ledger.pod_shapes, np.int32)[pods]
    return Stays(
        pods,
        _ints(ledger.stay_nodes, np.int32),
        _ints(ledger.stay_from, np.int64),
        np.where(until == OPEN, end_ms + 1, until),
        shapes,
    )


def _ints(values: object, kind: type) -> Ints:
    return np.frombuffer(values, dtype=kind).astype(np.int64) if len(values) else np.zeros(0, np.int64)  # type: ignore[arg-type,call-overload]


def steps(times: Ints, changes: Ints, end_ms: Millis) -> Steps:
    """The cumulative sum of changes in any order, up to the end."""
    kept = times <= end_ms
    times, changes = np.append(times[kept], 0), np.append(changes[kept], 0)
    order = np.argsort(times, kind="stable")
    times, sums = times[order], np.cumsum(changes[order])
    last = np.append(times[1:] != times[:-1], True)
    return Steps(times[last], sums[last], end_ms)


def requested(held: Stays, amounts: Ints, end_ms: Millis) -> Steps:
    """The requests of a resource on all nodes; `amounts` by pod shape."""
    taken = amounts[held.shapes]
    return steps(np.concatenate([held.begin, held.end]), np.concatenate([taken, -taken]), end_ms)


def running(held: Stays, end_ms: Millis) -> Steps:
    ones = np.ones(len(held.pods), np.int64)
    return steps(np.concatenate([held.begin, held.end]), np.concatenate([ones, -ones]), end_ms)


def nodes_used(held: Stays, counts: npt.NDArray[np.bool_], end_ms: Millis) -> tuple[Steps, Ints, Ints, Ints]:
    """How many nodes run a pod of a counted shape; and the changes: (time, node, +1 or -1)."""
    mine = counts[held.shapes]
    ones = np.ones(int(mine.sum()), np.int64)
    times = np.concatenate([held.begin[mine], held.end[mine]])
    nodes = np.concatenate([held.nodes[mine], held.nodes[mine]])
    by = np.concatenate([ones, -ones])
    order = np.lexsort((times, nodes))
    times, nodes, by = times[order], nodes[order], by[order]
    # Per node: the number of pods after each moment, and so when it becomes used or empty.
    sums = np.cumsum(by)
    if len(nodes):
        starts = np.append(0, np.flatnonzero(nodes[1:] != nodes[:-1]) + 1)
        before = np.append(0, sums)[starts]
        sums = sums - np.repeat(before, np.diff(np.append(starts, len(nodes))))
        final = np.append((times[1:] != times[:-1]) | (nodes[1:] != nodes[:-1]), True)
        times, nodes, busy = times[final], nodes[final], (sums[final] > 0).astype(np.int64)
        first = np.append(True, nodes[1:] != nodes[:-1])
        by = busy - np.where(first, 0, np.append(0, busy[:-1]))
    return steps(times, by, end_ms), times, nodes, by


def pending_by_reason(ledger: RunLedger, end_ms: Millis) -> list[Steps]:
    """The number of waiting pods for each reason."""
    reasons = _ints(ledger.wait_reasons, np.int32)
    begin, until = _ints(ledger.wait_from, np.int64), _ints(ledger.wait_to, np.int64)
    until = np.where(until == OPEN, end_ms + 1, until)
    found = []
    for reason in range(len(ledger.reasons)):
        mine = reasons == reason
        ones = np.ones(int(mine.sum()), np.int64)
        found.append(steps(np.concatenate([begin[mine], until[mine]]), np.concatenate([ones, -ones]), end_ms))
    return found
