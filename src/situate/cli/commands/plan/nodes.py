"""`situate plan nodes`: how many nodes of which shapes a workload needs, and what nobody could do without."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.plan.input import (
    Asked,
    Workload,
    World,
    notes_of,
    read_world,
    to_copy,
    workloads_of,
    world_options,
)
from situate.cli.output.text import columns, show, styled

if TYPE_CHECKING:
    from situate.core.model.pod import Pod
    from situate.core.plan.sandbox import Sandbox
    from situate.core.plan.sizing import NodesNeeded, NodeTemplate

NOT_ALL: Final = 1
MOST_PODS: Final = 100_000


@click.command()
@click.option(
    "-w", "--workload", "files", multiple=True, metavar="FILE", help="What is to run (repeatable); default: what waits."
)
@click.option("--all-pods", is_flag=True, help="All pods of the cluster, on new nodes only: could it be smaller?")
@click.option("--from-empty", is_flag=True, help="As if there were no nodes yet: their free room is not used.")
@click.option("--shapes", "file", metavar="FILE", help="Shapes of nodes, with prices; default: those of the cluster.")
@click.option("--like", multiple=True, metavar="NODE", help="A shape like this node (repeatable).")
@click.option("--group-by", metavar="LABEL", help="A shape for each value of this label of nodes.")
@click.option(
    "--zone", "zones", multiple=True, metavar="NAME", help="Every shape can be had in this zone (repeatable)."
)
@world_options
def nodes(
    asked: Asked,
    files: tuple[str, ...],
    all_pods: bool,
    from_empty: bool,
    file: str | None,
    like: tuple[str, ...],
    group_by: str | None,
    zones: tuple[str, ...],
) -> None:
    """Say how many nodes of which shapes a workload needs, beside a number below which nothing would do.

    The workload is placed on such nodes by the scheduler, so that the answer is one that was tried. What is free on
    nodes that are there is used first. Exits with 1 if no number of nodes takes all of it.
    """
    if files and all_pods:
        raise BadInput("-w and --all-pods: give one or the other")
    world = _world(asked, needed=not (files and file))
    from situate.cli.commands.plan.node_shapes import shapes_for

    shapes = shapes_for(world, file, like, group_by, zones)
    pods, daemons = _pods(world, files, all_pods=all_pods)
    if not pods:
        raise BadInput(f"{world.where}: no pod waits: give a workload with -w, or --all-pods")
    if len(pods) > MOST_PODS:
        raise BadInput(f"{len(pods)} pods are too many: {MOST_PODS} are placed at most")
    from situate.core.plan.sizing import nodes_needed

    sandbox = _empty(world) if from_empty or all_pods else world.sandbox()
    told = nodes_needed(sandbox, pods, shapes, daemons)
    notes = [] if files and not world.seen.nodes else notes_of(world, budgets=False)
    before = len(world.seen.nodes) if all_pods else None
    more = bool(sandbox.cluster.nodes.rows)
    show(_lines(told, shapes, before, world, more=more), _values(told, shapes, before, world), notes, asked.output)
    if told.left:
        sys.exit(NOT_ALL)


def _world(asked: Asked, *, needed: bool) -> World:
    """Without -f, a cluster is asked; unless workload and shapes say everything, and there is none to be asked."""
    if asked.names or needed or asked.kubeconfig or asked.context:
        return read_world(asked)
    from pathlib import Path

    from situate.cli.input.cluster import Seen
    from situate.cli.input.profiles import read_profiles
    from situate.core.state.cluster import Cluster

    profiles = read_profiles(None if asked.config is None else Path(asked.config))
    return World(Seen(), Cluster(), profiles, "the workload", asked.namespace or "default")


def _empty(world: World) -> Sandbox:
    """The same cluster without nodes and pods."""
    from situate.core.plan.sandbox import Sandbox
    from situate.core.state.cluster import Cluster

    cluster = Cluster()
    cluster.load((), world.seen.named, ())
    return Sandbox(cluster, world.profiles, ())


def _pods(world: World, files: Sequence[str], *, all_pods: bool) -> tuple[list[Pod], list[Pod]]:
    """What is to be placed, and what every node gets."""
    from situate.core.plan.eviction_rules import DAEMON, node_pod_verdict
    from situate.core.plan.sandbox import recreated
    from situate.core.state.cluster import FINISHED_PHASES

    if files:
        found = workloads_of(files, world)
        pods = [pod for one in found if one.kind != "DaemonSet" for pod in _copies(one)]
        return pods, [one.pod for one in found if one.kind == "DaemonSet"]
    alive = [
        pod
        for pod in world.seen.pods
        if pod.status.phase not in FINISHED_PHASES and pod.metadata.deletion_timestamp is None
    ]
    own = [pod for pod in alive if node_pod_verdict(pod) is DAEMON]
    if not all_pods:
        waiting = [pod for pod in alive if not pod.spec.node_name and not pod.spec.scheduling_gates]
        return [pod for pod in waiting if node_pod_verdict(pod) is None], _daemons(own)
    return [recreated(pod) for pod in alive if node_pod_verdict(pod) is None], _daemons(own)


def _daemons(pods: Sequence[Pod]) -> list[Pod]:
    """One pod of each DaemonSet, without the affinity to its one node that the controller gave it."""
    from msgspec.structs import replace

    from situate.core.model.meta import controller_of
    from situate.core.plan.sandbox import recreated

    found: dict[tuple[str, str], Pod] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is not None and (pod.metadata.namespace, owner.name) not in found:
            made = recreated(pod)
            affinity = None if made.spec.affinity is None else replace(made.spec.affinity, node_affinity=None)
            spec = replace(made.spec, affinity=affinity)
            meta = replace(made.metadata, name=owner.name)
            found[pod.metadata.namespace, owner.name] = replace(made, spec=spec, metadata=meta)
    return list(found.values())


def _copies(one: Workload) -> list[Pod]:
    from msgspec.structs import replace

    if one.kind == "Pod":
        return [to_copy(one)[0]]
    if one.copies > MOST_PODS:
        raise BadInput(f"{one.subject}: {one.copies} pods are too many: {MOST_PODS} are placed at most")
    copied, meta = to_copy(one)[0], one.pod.metadata
    return [
        replace(copied, metadata=replace(meta, name=f"{meta.name}-{at}", uid=f"{one.kind}-{meta.name}-{at}"))
        for at in range(one.copies)
    ]


def _lines(
    told: NodesNeeded, shapes: Sequence[NodeTemplate], before: int | None, world: World, *, more: bool
) -> list[str]:
    if told.left:
        lines = [styled(f"no number of these nodes takes all {told.pods} pods", False), ""]
        return lines + [f"  {key}: {message}" for key, message in told.left]
    what = f"{told.pods} pod{' needs' if told.pods == 1 else 's need'}"
    head = f"{what} {told.nodes} {'more ' if more else ''}node{'' if told.nodes == 1 else 's'}"
    if before is not None:
        head += f" instead of {before}"
    lines = [styled(head, True)]
    lines.append(f"no fewer than {told.bound} would do, whatever the scheduler")
    if told.cost is not None:
        lines.append(f"{_money(told.cost)} {_currency(world)} an hour; no less than {_money(told.cost_bound)}")
    rows = [
        (shape.name, count, "-" if shape.price is None else _money(shape.price))
        for shape, count in zip(shapes, told.counts, strict=True)
        if count
    ]
    if rows:
        lines += ["", *columns(("SHAPE", "NODES", "AN HOUR"), rows)]
        used = [
            (name, _amount(name, want), _amount(name, have), _share(want, have))
            for name, (want, have) in told.used.items()
        ]
        lines += ["", *columns(("RESOURCE", "ASKED FOR", "ON NEW NODES", "USED"), used)]
    return lines


def _amount(resource: str, amount: int) -> str:
    from situate.core.explain.formatting import roughly

    return roughly(resource, amount)


def _share(want: int, have: int) -> str:
    return "-" if not have else f"{min(100, 100 * want // have)}%"


def _money(amount: Fraction | None) -> str:
    """Rounded down: a bound that is rounded up is none."""
    from situate.core.plugins.support.prices import MILLIONTHS, money

    return "-" if amount is None else money(int(amount * MILLIONTHS))


def _currency(world: World) -> str:
    return "USD" if world.prices is None else world.prices.currency


def _values(told: NodesNeeded, shapes: Sequence[NodeTemplate], before: int | None, world: World) -> dict[str, Any]:
    return {
        "pods": told.pods,
        "nodes": None if told.left else told.nodes,
        "atLeast": told.bound,
        "before": before,
        "shapes": [
            {"name": shape.name, "nodes": count, "price": None if shape.price is None else _money(shape.price)}
            for shape, count in zip(shapes, told.counts, strict=True)
        ],
        "money": None
        if told.cost is None
        else {"currency": _currency(world), "anHour": _money(told.cost), "atLeast": _money(told.cost_bound)},
        "used": {name: {"asked": want, "room": have} for name, (want, have) in told.used.items()},
        "left": [{"pod": key, "message": message} for key, message in told.left],
        "trials": told.trials,
    }
