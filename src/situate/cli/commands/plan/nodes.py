"""`situate plan nodes`: how many nodes of which shapes a workload needs, and a lower bound."""

import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import click
from msgspec.structs import replace

from situate.cli import BadInput
from situate.cli.commands.plan.input import (
    PlanInput,
    PlanOptions,
    copied_pod,
    plan_notes,
    plan_options,
    read_input,
    workload_file_option,
    workloads_in,
)
from situate.cli.commands.plan.node_shapes import shapes_for
from situate.cli.input.cluster import ClusterObjects
from situate.cli.input.profiles import read_profiles
from situate.cli.input.workloads import PodWorkload
from situate.cli.output.text import headline, plan_columns, plural, show
from situate.core.explain.formatting import roughly
from situate.core.model.devices import ResourceClaim
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod
from situate.core.plan.eviction_rules import DAEMON, node_pod_verdict
from situate.core.plan.sandbox import Sandbox, recreated
from situate.core.plan.sizing import NodesNeeded, NodeTemplate, nodes_needed
from situate.core.plugins.support.prices import MILLIONTHS, format_price
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.core.state.device_objects import cleared
from situate.core.versions import DEFAULT

NOT_ALL: Final = 1
MOST_PODS: Final = 100_000


@click.command()
@workload_file_option
@click.option("--all-pods", is_flag=True, help="Place all pods of the cluster on new nodes only: could it be smaller?")
@click.option("--from-empty", is_flag=True, help="Ignore existing nodes and their free room.")
@click.option("--shapes", "file", metavar="FILE", help="Shapes of nodes, with prices; default: the cluster's.")
@click.option("--like", multiple=True, metavar="NODE", help="A shape like this node (repeatable).")
@click.option("--group-by", metavar="LABEL", help="A shape for each value of this label of nodes.")
@click.option(
    "--zone", "zones", multiple=True, metavar="NAME", help="Every shape is available in this zone (repeatable)."
)
@plan_options
def nodes(
    asked: PlanOptions,
    files: tuple[str, ...],
    all_pods: bool,
    from_empty: bool,
    file: str | None,
    like: tuple[str, ...],
    group_by: str | None,
    zones: tuple[str, ...],
) -> None:
    """Say how many nodes of which shapes a workload needs, and how many it needs at the very least.

    The scheduler places the workload on such nodes, so the answer was tried. Free room on existing nodes is used
    first. Exits with 1 if no number of nodes is enough.
    """
    if files and all_pods:
        raise BadInput("-w and --all-pods: give one or the other")
    read = _read(asked, needed=not (files and file))
    shapes = shapes_for(read, file, like, group_by, zones)
    pods, daemons = _pods(read, files, all_pods=all_pods)
    if not pods:
        raise BadInput(f"{read.where}: no pod is pending: give a workload with -w, or --all-pods")
    if len(pods) > MOST_PODS:
        raise BadInput(f"{len(pods)} pods are too many: the limit is {MOST_PODS}")
    sandbox = _empty(read) if from_empty or all_pods else read.sandbox()
    pods = [sandbox.with_claims(pod) for pod in pods]
    found = nodes_needed(sandbox, pods, shapes, daemons)
    notes = [] if files and not read.objects.nodes else plan_notes(read, budgets=False, pods=pods)
    before = len(read.objects.nodes) if all_pods else None
    more = bool(sandbox.cluster.nodes.rows)
    currency = "USD" if read.prices is None else read.prices.currency
    lines = _lines(found, shapes, before, currency, more=more)
    chosen = [shape.name for shape, count in zip(shapes, found.counts, strict=True) if count]
    show(lines, _values(found, shapes, before, currency), notes, asked.output, chosen)
    if found.left:
        sys.exit(NOT_ALL)


def _read(asked: PlanOptions, *, needed: bool) -> PlanInput:
    """An empty cluster, if -w and --shapes are enough and nobody names a cluster."""
    if asked.names or needed or asked.kubeconfig or asked.context:
        return read_input(asked)
    profiles = read_profiles(asked.config, asked.rules)
    cluster = Cluster(asked.rules or DEFAULT)
    return PlanInput(ClusterObjects(), cluster, profiles, "the workload", asked.namespace or "default")


def _empty(read: PlanInput) -> Sandbox:
    """The same cluster without nodes and pods."""
    cluster = Cluster(read.cluster.rules)
    cluster.load((), [cleared(one) if isinstance(one, ResourceClaim) else one for one in read.objects.named], ())
    return Sandbox(cluster, read.profiles, (), read.objects.templates)


def _pods(read: PlanInput, files: Sequence[str], *, all_pods: bool) -> tuple[list[Pod], list[Pod]]:
    """The pods to place, and the DaemonSet pods that every node gets."""
    if files:
        found = workloads_in(files, read)
        pods = [pod for one in found if one.kind != "DaemonSet" for pod in _copies(one)]
        return pods, [one.pod for one in found if one.kind == "DaemonSet"]
    alive = [
        pod
        for pod in read.objects.pods
        if pod.status.phase not in FINISHED_PHASES and pod.metadata.deletion_timestamp is None
    ]
    own = [pod for pod in alive if node_pod_verdict(pod) is DAEMON]
    if not all_pods:
        return [pod for pod in read.pending_pods() if node_pod_verdict(pod) is None], _daemons(own)
    return [recreated(pod) for pod in alive if node_pod_verdict(pod) is None], _daemons(own)


def _daemons(pods: Sequence[Pod]) -> list[Pod]:
    """One pod of each DaemonSet, without the node affinity that the controller gave it."""
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


def _copies(one: PodWorkload) -> list[Pod]:
    if one.kind == "Pod":
        return [copied_pod(one.pod)[0]]
    if one.at_once > MOST_PODS:
        raise BadInput(f"{one.subject}: {one.at_once} pods are too many: the limit is {MOST_PODS}")
    copied, meta = copied_pod(one.pod)[0], one.pod.metadata
    return [
        replace(copied, metadata=replace(meta, name=f"{meta.name}-{at}", uid=f"{one.kind}-{meta.name}-{at}"))
        for at in range(one.at_once)
    ]


def _lines(
    found: NodesNeeded, shapes: Sequence[NodeTemplate], before: int | None, currency: str, *, more: bool
) -> list[str]:
    if found.left:
        lines = [headline(f"no number of these nodes takes all {found.pods} pods", False), ""]
        return lines + [f"  {key}: {message}" for key, message in found.left]
    needs = f"{plural(found.pods, 'pod')} need{'s' if found.pods == 1 else ''}"
    head = f"{needs} {plural(found.nodes, 'more node' if more else 'node')}"
    if before is not None:
        head += f" instead of {before}"
    lines = [headline(head, True)]
    lines.append(f"no scheduler could do with fewer than {found.bound}")
    if found.cost is not None:
        lines.append(f"{_money(found.cost)} {currency} an hour; at least {_money(found.cost_bound)}")
    rows = [
        (shape.name, count, "-" if shape.price is None else _money(shape.price))
        for shape, count in zip(shapes, found.counts, strict=True)
        if count
    ]
    if rows:
        lines += ["", *plan_columns(("SHAPE", "NODES", "AN HOUR"), rows)]
        used = [
            (name, roughly(name, want), roughly(name, have), f"{min(100, 100 * want // have)}%" if have else "-")
            for name, (want, have) in found.used.items()
        ]
        lines += ["", *plan_columns(("RESOURCE", "REQUESTED", "ON NEW NODES", "USED"), used)]
    return lines


def _money(amount: Fraction | None) -> str:
    """Rounded down: a lower bound must not be rounded up."""
    return "-" if amount is None else format_price(int(amount * MILLIONTHS))


def _values(found: NodesNeeded, shapes: Sequence[NodeTemplate], before: int | None, currency: str) -> dict[str, Any]:
    return {
        "pods": found.pods,
        "nodes": None if found.left else found.nodes,
        "atLeast": found.bound,
        "before": before,
        "shapes": [
            {"name": shape.name, "nodes": count, "price": None if shape.price is None else _money(shape.price)}
            for shape, count in zip(shapes, found.counts, strict=True)
        ],
        "money": None
        if found.cost is None
        else {"currency": currency, "anHour": _money(found.cost), "atLeast": _money(found.cost_bound)},
        "used": {name: {"asked": want, "room": have} for name, (want, have) in found.used.items()},
        "left": [{"pod": key, "message": message} for key, message in found.left],
        "trials": found.trials,
    }
