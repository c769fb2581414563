"""How many nodes of which shapes a workload needs, so that the scheduler places all of it.

A first guess fills one node after another with the pods of most value (`lower_bound` has the values). Then the
scheduler places the workload on these nodes; nodes for leftover pods are added; finally superfluous nodes are removed.
So the answer was tried, and it depends on the profile: spreading needs more nodes than packing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np
from msgspec.structs import replace

from situate.core.explain.node_shapes import slices_like
from situate.core.model.devices import ResourceSlice
from situate.core.model.meta import ObjectMeta, key_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodStatus
from situate.core.place.filtering import Filtered, combine
from situate.core.place.profile import Profile
from situate.core.place.selecting import NOWHERE
from situate.core.plan.lower_bound import ClassDemand, LowerBound, lower_bound
from situate.core.plan.rescheduling import queue_key
from situate.core.plan.sandbox import Sandbox, recreated
from situate.core.plugins.support.claim_changes import fewest_devices
from situate.core.state.classes import PodClass, TermKind
from situate.core.state.view import View

PLACEMENTS: Final = 400_000
"""How many placements all trials may take together, unless one trial takes more."""
TRIALS: Final = 80
"""The maximum number of trials."""
FEWEST_TRIALS: Final = 6
MOST_NODES: Final = 50_000
"""Larger guesses are not tried."""
HOSTNAME: Final = "kubernetes.io/hostname"
ALONE: Final = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
"""The filters whose refusal of an empty node is final, whatever other pods there are."""


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A kind of node to add: the node object, and its hourly price if known."""

    name: str
    node: Node
    price: Fraction | None = None
    slices: tuple[ResourceSlice, ...] = ()
    """The devices of such a node."""

    def made(self, number: int) -> Node:
        name = f"{self.name}-{number}"
        labels = {**self.node.metadata.labels, HOSTNAME: name}
        return replace(self.node, metadata=ObjectMeta(name=name, labels=labels))

    def devices(self, number: int) -> tuple[ResourceSlice, ...]:
        return slices_like(self.slices, f"{self.name}-{number}")


@dataclass(frozen=True, slots=True)
class NodesNeeded:
    """The result. `counts` is by shape, in the given order."""

    counts: tuple[int, ...]
    pods: int
    left: tuple[tuple[str, str], ...]
    """Pods that no tried number of these nodes accepted, and kube-scheduler's message."""
    bound: int
    """A lower bound for any scheduler."""
    cost: Fraction | None
    """Per hour; None if a price is unknown."""
    cost_bound: Fraction | None
    used: Mapping[str, tuple[int, int]]
    """By resource, what the workload requests of the new nodes, and what they have."""
    trials: int

    @property
    def nodes(self) -> int:
        return sum(self.counts)


@dataclass(slots=True)
class _SizingProblem:
    """The workload by class, and what each shape offers."""

    pods: list[Pod]
    """In the order of placement."""
    daemons: list[Pod]
    shapes: Sequence[NodeTemplate]
    rooms: list[tuple[int, ...]] = field(default_factory=list)
    demands: list[ClassDemand] = field(default_factory=list)
    fills: list[tuple[int, ...]] = field(default_factory=list)
    """For each of `demands`, how many the scheduler places on an empty node of each shape, by their devices."""
    at: dict[str, int] = field(default_factory=dict)
    """The index in `demands` of each pod, by namespace/name."""
    unschedulable: list[tuple[str, str]] = field(default_factory=list)
    trials: int = 0

    @property
    def costs(self) -> list[Fraction]:
        """The cost of a node of each shape: its price, or 1 if any price is unknown."""
        prices = [shape.price for shape in self.shapes]
        return [price for price in prices if price is not None] if None not in prices else [Fraction(1)] * len(prices)

    @property
    def budget(self) -> int:
        return min(TRIALS, max(FEWEST_TRIALS, PLACEMENTS // max(1, len(self.pods))))


def nodes_needed(
    sandbox: Sandbox, pods: Sequence[Pod], shapes: Sequence[NodeTemplate], daemons: Sequence[Pod] = ()
) -> NodesNeeded:
    """Uses the free capacity of existing nodes first. Leaves the sandbox unchanged."""
    problem = _SizingProblem(_in_order(sandbox, pods), list(daemons), shapes)
    _look(sandbox, problem)
    if problem.unschedulable:
        return NodesNeeded((0,) * len(shapes), len(pods), tuple(problem.unschedulable), 0, None, None, {}, 0)
    free = _free(sandbox, len(problem.rooms[0])) if sandbox.cluster.nodes.rows else None
    bound = lower_bound(problem.demands, problem.rooms, [Fraction(1)] * len(shapes), free)
    priced = None not in [shape.price for shape in shapes]
    worth = lower_bound(problem.demands, problem.rooms, problem.costs, free) if priced else bound
    counts, left = _enough(sandbox, problem, worth)
    if not left:
        counts = _trimmed(sandbox, problem, counts)
    cost = sum((count * price for count, price in zip(counts, problem.costs, strict=True)), Fraction(0))
    return NodesNeeded(
        counts=tuple(counts),
        pods=len(pods),
        left=tuple(left),
        bound=bound.whole,
        cost=cost if priced else None,
        cost_bound=worth.worth if priced else None,
        used=_used(sandbox, problem, counts),
        trials=problem.trials,
    )


def _in_order(sandbox: Sandbox, pods: Sequence[Pod]) -> list[Pod]:
    """In queue order; ties class by class."""
    alike: dict[PodClass, int] = {}
    keyed = []
    for at, pod in enumerate(pods):
        made = recreated(pod)
        kind = sandbox.kind_of(made)
        keyed.append((queue_key(pod), alike.setdefault(kind, len(alike)), at, made))
    keyed.sort(key=lambda one: one[:3])
    return [made for *_, made in keyed]


# -- what there is to know beforehand ----------------------------------------------------------------------------------


def _look(sandbox: Sandbox, problem: _SizingProblem) -> None:
    """Find what shapes offer, on one empty node of each."""
    mark = sandbox.savepoint()
    try:
        rows = []
        for shape in problem.shapes:
            sandbox.set_node(shape.made(0))
            sandbox.put_slices(shape.devices(0))
            rows.append(sandbox.row(shape.made(0).metadata.name))
        kinds: dict[PodClass, list[Pod]] = {}
        for pod in problem.pods:
            kinds.setdefault(sandbox.kind_of(pod), []).append(pod)
        daemons = [sandbox.cluster.class_of(pod) for pod in problem.daemons]
        width = len(sandbox.cluster.resources)
        problem.rooms = [_room(sandbox, row, daemons, width) for row in rows]
        for kind, those in kinds.items():
            allowed = _alone(sandbox, kind).feasible[rows].tolist()
            most = tuple(
                _within_devices(sandbox, those[0], shape, _most(sandbox, kind, room)) if fits else 0
                for fits, room, shape in zip(allowed, problem.rooms, problem.shapes, strict=True)
            )
            problem.fills.append(
                tuple(_with_devices(sandbox, those[0], row, one) for row, one in zip(rows, most, strict=True))
            )
            amounts = dict(kind.asks)
            asks = tuple(amounts.get(column, 0) for column in range(width))
            for pod in those:
                problem.at[key_of(pod.metadata)] = len(problem.demands)
            problem.demands.append(ClassDemand(len(those), asks, most))
            if not any(problem.fills[-1]) and sandbox.choose(those[0]) == NOWHERE:
                problem.unschedulable += [(key_of(those[0].metadata), sandbox.decide(those[0]).message)]
    finally:
        sandbox.rollback(mark)


def _alone(sandbox: Sandbox, kind: PodClass) -> Filtered:
    profile = sandbox.framework(kind.pod).profile
    filters = tuple(plugin for plugin in profile.filters if plugin.name in ALONE)
    view = View(sandbox.cluster)
    narrowed = Profile(profile.scheduler_name, filters, ())
    return combine(narrowed, [plugin.check(kind, view) for plugin in filters], view)


def _room(sandbox: Sandbox, row: int, daemons: Sequence[PodClass], width: int) -> tuple[int, ...]:
    """A node's capacity without its DaemonSet pods."""
    room = [int(sandbox.cluster.nodes.allocatable[column, row]) for column in range(width)]
    for kind in daemons:
        if _alone(sandbox, kind).feasible[row]:
            for column, amount in kind.takes:
                room[column] -= amount
    return tuple(max(0, amount) for amount in room)


def _most(sandbox: Sandbox, kind: PodClass, room: Sequence[int]) -> int:
    """The maximum number of pods of a class on an empty node."""
    most = min((room[column] // amount for column, amount in kind.asks if amount), default=0)
    names = sandbox.cluster.objects.namespace_labels
    shuns = kind.terms_of(TermKind.REQUIRED_ANTI_AFFINITY)
    if kind.host_ports or any(term.pods.matches(kind.namespace, kind.labels, names) for term in shuns):
        return min(most, 1)
    return most


def _within_devices(sandbox: Sandbox, pod: Pod, shape: NodeTemplate, most: int) -> int:
    """The same, if the node's devices are the only ones and none is shared: for any scheduler."""
    least = fewest_devices(sandbox.cluster, pod)
    elsewhere = any(not one.spec.node_name for one in sandbox.cluster.objects.devices.slices.values())
    devices = [device for item in shape.slices for device in item.spec.devices]
    if not least or elsewhere or any(device.allow_multiple_allocations for device in devices):
        return most
    return min(most, len(devices) // least)


def _with_devices(sandbox: Sandbox, pod: Pod, row: int, most: int) -> int:
    """How many the scheduler places there, as far as their devices are concerned."""
    if not pod.spec.resource_claims and not sandbox.cluster.objects.devices.extended.classes:
        return most
    mark = sandbox.savepoint()
    try:
        for count in range(most):
            name = f"{pod.metadata.name}-{count}"
            copy = replace(recreated(pod), metadata=replace(pod.metadata, name=name, uid=name), status=PodStatus())
            if not sandbox.take_devices(sandbox.with_claims(copy, pod), row):
                return count
        return most
    finally:
        sandbox.rollback(mark)


def _free(sandbox: Sandbox, width: int) -> list[int]:
    """The total free capacity of existing nodes that are not cordoned."""
    nodes = sandbox.cluster.nodes
    usable = nodes.present & ~nodes.unschedulable
    left = np.maximum(nodes.allocatable[:, usable] - nodes.requested[:, usable], 0).sum(axis=1)
    return [int(left[column]) if column < len(left) else 0 for column in range(width)]


# -- a guess -----------------------------------------------------------------------------------------------------------


def _guess(problem: _SizingProblem, counts: Sequence[int], bound: LowerBound, already: Sequence[int]) -> list[int]:
    """Nodes for `counts` pods of each class, best value for the cost first."""
    left = list(counts)
    opened = list(already)
    order = sorted(range(len(left)), key=lambda kind: -_density(problem, kind))
    while any(left) and sum(opened) <= MOST_NODES:
        fills = [_filled(problem, shape, left, order) for shape in range(len(problem.shapes))]
        values = [sum(count * bound.values[kind] for kind, count in fill.items()) for fill in fills]
        worths = [value / float(cost or 1) for value, cost in zip(values, problem.costs, strict=True)]
        best = max(range(len(fills)), key=lambda shape: (worths[shape], sum(fills[shape].values()), -opened[shape]))
        fill = fills[best]
        if not fill:
            break
        alike = [shape for shape, one in enumerate(fills) if one == fill and worths[shape] == worths[best]]
        times = max(1, min(left[kind] // count for kind, count in fill.items()))
        for _ in range(times):
            opened[min(alike, key=lambda shape: opened[shape])] += 1  # round-robin among equal shapes, such as zones
        for kind, count in fill.items():
            left[kind] -= min(left[kind], count * times)
    return opened


def _density(problem: _SizingProblem, kind: int) -> float:
    """The pod's largest share of a node: large pods go first, small ones fill the gaps."""
    one = problem.demands[kind]
    return max(
        (
            amount / room[column]
            for room, most in zip(problem.rooms, one.most, strict=True)
            if most
            for column, amount in enumerate(one.asks)
            if room[column]
        ),
        default=0.0,
    )


def _filled(problem: _SizingProblem, shape: int, left: Sequence[int], order: Sequence[int]) -> dict[int, int]:
    """The pods that fill one node, by class."""
    room = list(problem.rooms[shape])
    fill: dict[int, int] = {}
    for kind in order:
        one = problem.demands[kind]
        if not left[kind] or not problem.fills[kind][shape]:
            continue
        fits = min((room[column] // amount for column, amount in enumerate(one.asks) if amount), default=left[kind])
        count = min(fits, left[kind], problem.fills[kind][shape])
        if count > 0:
            fill[kind] = count
            for column, amount in enumerate(one.asks):
                room[column] -= amount * count
    return fill


# -- trying it ---------------------------------------------------------------------------------------------------------


def _enough(sandbox: Sandbox, problem: _SizingProblem, bound: LowerBound) -> tuple[list[int], list[tuple[str, str]]]:
    """Nodes on which the scheduler places everything; or the last tried, and the leftover pods."""
    counts = [0] * len(problem.shapes)
    left: list[Pod] = list(problem.pods)
    message: list[tuple[str, str]] = []
    if sandbox.cluster.nodes.rows:
        left, message = _tried(sandbox, problem, counts)
    while left and problem.trials < problem.budget:
        by_class = [0] * len(problem.demands)
        for pod in left:
            by_class[problem.at[key_of(pod.metadata)]] += 1
        more = _guess(problem, by_class, bound, counts)
        if more == counts or sum(more) > MOST_NODES:
            break
        before, counts = len(left), more
        left, message = _tried(sandbox, problem, counts)
        if left and len(left) >= before and problem.trials >= FEWEST_TRIALS:
            break  # more nodes do not help
    return counts, message


def _tried(sandbox: Sandbox, problem: _SizingProblem, counts: Sequence[int]) -> tuple[list[Pod], list[tuple[str, str]]]:
    """The leftover pods on these nodes, and the message of the first of each class. Leaves the sandbox unchanged."""
    problem.trials += 1
    mark = sandbox.savepoint()
    try:
        _built(sandbox, problem, counts)
        left: list[Pod] = []
        messages: dict[PodClass, tuple[str, str]] = {}
        for pod in problem.pods:
            row = sandbox.choose(pod)
            if row != NOWHERE:
                sandbox.bind(pod, row)
                continue
            left.append(pod)
            kind = sandbox.kind_of(pod)
            if kind not in messages:
                messages[kind] = (key_of(pod.metadata), sandbox.decide(pod).message)
        return left, list(messages.values())
    finally:
        sandbox.rollback(mark)


def _built(sandbox: Sandbox, problem: _SizingProblem, counts: Sequence[int]) -> None:
    """Add the nodes, each with its DaemonSet pods."""
    rows = []
    for shape, count in zip(problem.shapes, counts, strict=True):
        for number in range(1, count + 1):
            node = shape.made(number)
            sandbox.set_node(node)
            sandbox.put_slices(shape.devices(number))
            rows.append(sandbox.row(node.metadata.name))
    for at, pod in enumerate(problem.daemons):
        fits = _alone(sandbox, sandbox.cluster.class_of(pod)).feasible
        for row in rows:
            if fits[row]:
                name = f"{pod.metadata.name}-{at}-{sandbox.name(row)}"
                sandbox.bind(replace(pod, metadata=replace(pod.metadata, name=name, uid=name)), row)


def _trimmed(sandbox: Sandbox, problem: _SizingProblem, counts: Sequence[int]) -> list[int]:
    """Remove superfluous nodes: the most expensive first, in growing steps while that succeeds."""
    kept = list(counts)
    step = dict.fromkeys(range(len(kept)), 1)
    order = sorted(step, key=lambda shape: -problem.costs[shape])
    remaining = [shape for shape in order if kept[shape]]
    while remaining and problem.trials < problem.budget:
        shape = remaining[0]
        less = list(kept)
        less[shape] = max(0, kept[shape] - step[shape])
        if not _tried(sandbox, problem, less)[0]:
            kept = less
            step[shape] *= 2
            if not kept[shape]:
                remaining.pop(0)
        elif step[shape] > 1:
            step[shape] = 1
        else:
            remaining.pop(0)
    return kept


def _used(sandbox: Sandbox, problem: _SizingProblem, counts: Sequence[int]) -> dict[str, tuple[int, int]]:
    names = sandbox.cluster.resources.names
    found = {}
    for column, name in enumerate(names[: len(problem.rooms[0])]):
        want = sum(one.count * one.asks[column] for one in problem.demands)
        have = sum(count * room[column] for count, room in zip(counts, problem.rooms, strict=True))
        if want:
            found[name] = (want, have)
    return found
