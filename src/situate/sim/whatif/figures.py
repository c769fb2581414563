"""The figures of a run: placed and pending pods, utilization and fragmentation of nodes, and waiting times.

Computed from the ledger after the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from situate.core.changes import Millis
from situate.core.model.node import Node
from situate.core.state.classes import PODS
from situate.sim.whatif.curves import (
    Floats,
    Ints,
    Stays,
    Steps,
    nodes_used,
    pending_by_reason,
    requested,
    running,
    stays,
    steps,
)
from situate.sim.whatif.fragmentation import Mix, fragmentation, mix_of, snapshots
from situate.sim.whatif.ledger import OPEN, Origin, PodEnd, RunLedger
from situate.sim.whatif.world import SimulationRun

POINTS: Final = 120
"""The number of points of printed curves."""
MAP_ROWS: Final = 64
"""The maximum rows of the node map. With more nodes, several share a row."""
EXAMPLES: Final = 3
MILLION: Final = 1_000_000
ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class PodCounts:
    """`snapshot + arrived + remade` is the sum of the last five."""

    snapshot: int
    arrived: int
    remade: int
    placed: int
    """Arrived or remade pods that got a node, whatever became of them."""
    running: int
    pending: int
    finished: int
    deleted: int
    evicted: int


@dataclass(frozen=True, slots=True)
class PendingPods:
    """Pods that are pending at the end, for one reason."""

    reason: str
    pods: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """One resource over all nodes, as shares of the allocatable amount."""

    name: str
    allocatable: int
    mean: float
    peak: float
    end: float
    fragmentation: float | None
    """Weighted by time."""
    fragmentation_end: float | None


@dataclass(frozen=True, slots=True)
class SpreadFigures:
    """The spread of workloads with several pods, when most pods run."""

    workloads: int
    domains: int
    mean: float
    """For zones: how many more pods the fullest zone of a workload has than the emptiest. For hosts: how many pods of a
    workload the host with most of them has."""
    worst: int
    worst_workload: str


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """From arrival to a node, in milliseconds, for placed pods."""

    p50_ms: Millis | None
    p99_ms: Millis | None
    max_ms: Millis | None


@dataclass(frozen=True, slots=True)
class NodesUsed:
    """Nodes with at least one pod that is not a daemon."""

    total: int
    mean: float
    peak: int
    end: int


@dataclass(frozen=True, slots=True)
class Series:
    """All curves have the same moments."""

    moments: Ints
    utilisation: dict[str, Floats]
    pending: dict[str, Ints]
    nodes_used: Ints
    running: Ints
    money: Floats | None


@dataclass(frozen=True, slots=True)
class NodeMap:
    """The utilization of nodes: one row per node or per several of similar name, one column per time span."""

    labels: tuple[str, ...]
    shares: Floats
    """0 to 1, of the node's scarcest resource."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The price per hour of each node by row, in millionths; negative: unknown."""

    currency: str
    millionths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Money:
    """The cost per hour of the used nodes."""

    currency: str
    mean: float
    peak: float
    end: float
    all_nodes: float
    unpriced: int
    """Nodes without a price; they count as free."""


@dataclass(frozen=True, slots=True)
class Figures:
    end_ms: Millis
    counts: PodCounts
    pending: tuple[PendingPods, ...]
    resources: tuple[ResourceUsage, ...]
    nodes: NodesUsed
    zones: SpreadFigures
    hosts: SpreadFigures
    busiest_ms: Millis
    wait: WaitTimes
    evictions: int
    money: Money | None
    series: Series
    map: NodeMap


def figures_of(run: SimulationRun, prices: Prices | None, end_ms: Millis) -> Figures:
    """Figures up to `end_ms`, which is not before the run's end. Compared runs share one end, so that means are
    comparable.

    `prices` is None if no price is known.
    """
    ledger, table = run.ledger, run.engine.cluster.nodes
    held = stays(ledger, end_ms)
    size = table.size
    amounts = _amounts(ledger, len(table.allocatable))
    room = table.allocatable[:, :size]
    shown = _shown(room, amounts)
    moments = _moments(end_ms)
    run_curve = running(held, end_ms)
    counting = np.array([not shape.daemon for shape in ledger.shapes] or [True], np.bool_)
    used, *switched = nodes_used(held, counting, end_ms)
    asked = {at: requested(held, amounts[:, at], end_ms) for at in shown}
    came = np.frombuffer(ledger.origins, np.int8) != Origin.SNAPSHOT if ledger.keys else np.zeros(0, np.bool_)
    shapes = np.frombuffer(ledger.pod_shapes, np.int32).astype(np.int64) if ledger.keys else np.zeros(0, np.int64)
    mix = mix_of(shapes[came], amounts)
    broken, node_map = _over_nodes(held, amounts, room, moments, mix, shown, table.names)
    resources = tuple(
        _resource(table.resources.names[at], int(room[at].sum()), asked[at], [each[at] for each in broken])
        for at in shown
    )
    reasons = pending_by_reason(ledger, end_ms)
    busiest = int(run_curve.times[int(run_curve.values.argmax())])
    money, spent = _money(prices, switched, moments, end_ms)
    objects = table.objects[:size]
    zones, hosts = _spread(held, ledger, run.groups, busiest, objects)
    series = Series(
        moments,
        {one.name: asked[at].at(moments) / max(one.allocatable, 1) for at, one in zip(shown, resources, strict=True)},
        {ledger.reasons[at]: curve.at(moments) for at, curve in enumerate(reasons) if curve.values.any()},
        used.at(moments),
        run_curve.at(moments),
        spent,
    )
    return Figures(
        end_ms=end_ms,
        counts=_counts(ledger),
        pending=_pending(ledger),
        resources=resources,
        nodes=NodesUsed(sum(node is not None for node in objects), used.mean(), used.peak, used.last),
        zones=zones,
        hosts=hosts,
        busiest_ms=busiest,
        wait=_wait(ledger),
        evictions=ledger.evictions,
        money=money,
        series=series,
        map=node_map,
    )


def _amounts(ledger: RunLedger, resources: int) -> Ints:
    """The requests of each pod shape, by resource."""
    amounts = np.zeros((max(len(ledger.shapes), 1), resources), np.int64)
    for row, shape in enumerate(ledger.shapes):
        for column, amount in shape.takes:
            amounts[row, column] = amount
    return amounts


def _shown(room: Ints, amounts: Ints) -> list[int]:
    """Resources that nodes have and pods request, cpu and memory first."""
    return [at for at in range(len(room)) if room[at].any() and amounts[:, at].any()]


def _moments(end_ms: Millis) -> Ints:
    if end_ms <= 0:
        return np.zeros(1, np.int64)
    return np.unique(np.linspace(0, end_ms, POINTS + 1).round().astype(np.int64))


def _resource(name: str, allocatable: int, asked: Steps, broken: Sequence[float | None]) -> ResourceUsage:
    whole = max(allocatable, 1)
    known = [value for value in broken if value is not None]
    return ResourceUsage(
        name,
        allocatable,
        asked.mean() / whole,
        asked.peak / whole,
        asked.last / whole,
        sum(known) / len(known) if known else None,
        broken[-1] if broken else None,
    )


def _over_nodes(
    held: Stays, amounts: Ints, room: Ints, moments: Ints, mix: Mix, shown: Sequence[int], names: Sequence[str]
) -> tuple[list[list[float | None]], NodeMap]:
    """Fragmentation and the node map at each moment."""
    size = room.shape[1]
    present = np.flatnonzero((room > 0).any(axis=0))
    order = (
        present[np.argsort(np.array([names[row] for row in present.tolist()]), kind="stable")]
        if len(present)
        else present
    )
    scarce = [at for at in shown if at != PODS]
    groups = np.array_split(order, min(MAP_ROWS, max(len(order), 1)))
    broken: list[list[float | None]] = []
    columns = []
    for used in snapshots(held, amounts, size, moments):
        broken.append(fragmentation(room, used, mix))
        shares: Floats = np.zeros(size)
        for at in scarce:
            np.maximum(shares, used[at] / np.maximum(room[at], 1), out=shares, where=room[at] > 0)
        columns.append([float(shares[rows].mean()) if len(rows) else 0.0 for rows in groups])
    labels = tuple(_label(rows, names) for rows in groups)
    return broken, NodeMap(labels, np.array(columns).T)


def _label(rows: Ints, names: Sequence[str]) -> str:
    if len(rows) == 0:
        return ""
    first, last = names[int(rows[0])], names[int(rows[-1])]
    return first if len(rows) == 1 else f"{first} … {last}"


def _counts(ledger: RunLedger) -> PodCounts:
    origins, ends = np.frombuffer(ledger.origins, np.int8), np.frombuffer(ledger.ends, np.int8)
    bound = np.frombuffer(ledger.bound_ms, np.int64) != OPEN
    there = ends == PodEnd.THERE

    def count(mask: object) -> int:
        return int(np.count_nonzero(mask))  # type: ignore[call-overload]

    return PodCounts(
        snapshot=count(origins == Origin.SNAPSHOT),
        arrived=count(origins == Origin.ARRIVED),
        remade=count(origins == Origin.REMADE),
        placed=count(bound & (origins != Origin.SNAPSHOT)),
        running=count(there & bound),
        pending=count(there & ~bound),
        finished=count(ends == PodEnd.FINISHED),
        deleted=count(ends == PodEnd.DELETED),
        evicted=count(ends == PodEnd.EVICTED),
    )


def _pending(ledger: RunLedger) -> tuple[PendingPods, ...]:
    """By reason, most frequent first."""
    found: dict[int, list[str]] = {}
    for at, pod in enumerate(ledger.wait_pods):
        if ledger.wait_to[at] == OPEN:
            found.setdefault(ledger.wait_reasons[at], []).append(ledger.keys[pod])
    listed = [PendingPods(ledger.reasons[at], len(keys), tuple(keys[:EXAMPLES])) for at, keys in found.items()]
    return tuple(sorted(listed, key=lambda one: (-one.pods, one.reason)))


def _wait(ledger: RunLedger) -> WaitTimes:
    waits = sorted(
        bound - came
        for bound, came, origin in zip(ledger.bound_ms, ledger.came_ms, ledger.origins, strict=True)
        if bound != OPEN and origin != Origin.SNAPSHOT
    )
    if not waits:
        return WaitTimes(None, None, None)
    return WaitTimes(waits[ceil(len(waits) * 0.5) - 1], waits[ceil(len(waits) * 0.99) - 1], waits[-1])


def _spread(
    held: Stays, ledger: RunLedger, groups: Sequence[str], busiest: Millis, nodes: Sequence[Node | None]
) -> tuple[SpreadFigures, SpreadFigures]:
    """Over zones and hosts, when most pods run."""
    daemon = np.array([shape.daemon for shape in ledger.shapes] or [False], np.bool_)
    there = (held.begin <= busiest) & (held.end > busiest) & ~daemon[held.shapes]
    of = np.frombuffer(ledger.groups, np.int32)[held.pods[there]] if len(held.pods) else np.zeros(0, np.int32)
    at = held.nodes[there]
    zones = [None if node is None else node.metadata.labels.get(ZONE) for node in nodes]
    known = {zone: number for number, zone in enumerate(sorted({zone for zone in zones if zone is not None}))}
    zone_of = np.array([-1 if zone is None else known[zone] for zone in zones] or [-1], np.int64)
    counts = np.bincount(of, minlength=len(groups)) if len(of) else np.zeros(len(groups), np.int64)
    several = np.flatnonzero(counts >= 2)
    by_zone: list[tuple[int, int]] = []
    by_host: list[tuple[int, int]] = []
    order = np.argsort(of, kind="stable")
    of, at = of[order], at[order]
    for group in several.tolist():
        rows = at[np.searchsorted(of, group) : np.searchsorted(of, group, side="right")]
        by_host.append((int(np.unique(rows, return_counts=True)[1].max()), group))
        here = zone_of[rows]
        if len(known) > 1 and (here >= 0).any():
            spread = np.bincount(here[here >= 0], minlength=len(known))
            by_zone.append((int(spread.max() - spread.min()), group))
    present = sum(node is not None for node in nodes)
    return _summed(by_zone, len(known), groups), _summed(by_host, present, groups)


def _summed(found: Sequence[tuple[int, int]], domains: int, groups: Sequence[str]) -> SpreadFigures:
    if not found:
        return SpreadFigures(0, domains, 0.0, 0, "")
    worst, group = max(found, key=lambda one: (one[0], -one[1]))
    return SpreadFigures(len(found), domains, sum(value for value, _ in found) / len(found), worst, groups[group])


def _money(
    prices: Prices | None, switched: Sequence[Ints], moments: Ints, end_ms: Millis
) -> tuple[Money | None, Floats | None]:
    if prices is None:
        return None, None
    millionths = np.array(prices.millionths or [0], np.int64)
    known = np.maximum(millionths, 0)
    times, nodes, by = switched
    curve = steps(times, by * known[nodes], end_ms)
    money = Money(
        prices.currency,
        curve.mean() / MILLION,
        curve.peak / MILLION,
        curve.last / MILLION,
        float(known.sum()) / MILLION,
        int((millionths < 0).sum()),
    )
    return money, curve.at(moments) / MILLION
