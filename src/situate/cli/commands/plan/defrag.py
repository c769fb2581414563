"""`situate plan defrag`: the fewest moves that free a shape or a node. Shown; carried out only with `--apply`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.plan.input import (
    Asked,
    World,
    named_workload,
    notes_of,
    parse_reference,
    read_world,
    to_copy,
    workloads_of,
    world_options,
)
from situate.cli.output.text import columns, show, styled

if TYPE_CHECKING:
    from situate.core.plan.defrag import DefragPlan
    from situate.core.plan.eviction_rules import DrainRules
    from situate.core.plan.goals import Goal

NO_PLAN: Final = 1
TIMEOUT_S: Final = 300
ROOM: Final = "room for"


@click.command()
@click.argument("workload", required=False)
@click.option(
    "-w", "--workload", "files", multiple=True, metavar="FILE", help="A manifest with the pod or its template."
)
@click.option("--node", metavar="NAME", help="Free this node of all pods but its own.")
@click.option("--any-node", is_flag=True, help="Free the node that takes the fewest moves.")
@click.option("--delete-emptydir-data", is_flag=True, help="Pods with local storage may move; what is there is lost.")
@click.option("--apply", is_flag=True, help="Carry the plan out, one step at a time.")
@click.option(
    "--timeout",
    type=click.IntRange(1, 86_400),
    default=TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="How long one step may take.",
)
@world_options
def defrag(
    asked: Asked,
    workload: str | None,
    files: tuple[str, ...],
    node: str | None,
    any_node: bool,
    delete_emptydir_data: bool,
    apply: bool,
    timeout: int,
) -> None:
    """Find the fewest moves of pods that free a shape or a node, each step legal when it is taken.

    The shape is that of WORKLOAD (a pod, or deploy/NAME), or of the file -w. Nothing is moved without --apply. Exits
    with 1 if there is no plan, or it could not be carried out.
    """
    if sum((bool(workload), bool(files), node is not None, any_node)) != 1:
        raise BadInput("say what to free: WORKLOAD, -w FILE, --node NAME or --any-node, one of them")
    if apply and asked.names:
        raise BadInput("--apply is for a cluster, and -f are files: nothing can be moved in them")
    named = parse_reference(workload, asked) if workload else None
    world = read_world(asked, named, local=True)
    goal, subject = _goal(world, asked, workload, files, node)
    from situate.core.plan.defrag import defrag as search
    from situate.core.plan.eviction_rules import DrainRules

    rules = DrainRules(world.local, delete_emptydir_data=delete_emptydir_data, honours_annotation=True)
    told = search(world.sandbox(), goal, rules)
    notes = notes_of(world, budgets=True)
    show(_lines(told, subject, world), _values(told, subject, world), notes, asked.output)
    if not told.found:
        sys.exit(NO_PLAN)
    if apply and told.moves:
        _carry_out(asked, world, goal, told, rules, timeout)
    elif told.moves and asked.output == "text":
        click.echo("nothing was moved: --apply does it", err=True)


def _goal(
    world: World, asked: Asked, workload: str | None, files: tuple[str, ...], node: str | None
) -> tuple[Goal, str]:
    from situate.core.plan.goals import NodeGoal, ShapeGoal
    from situate.core.plan.sandbox import recreated

    if node is not None:
        if node not in world.cluster.nodes.rows:
            raise BadInput(f'{world.where}: nodes "{node}" not found')
        return NodeGoal(node), f"node {node}"
    if not workload and not files:
        return NodeGoal(), "a node"
    if files:
        found = workloads_of(files, world)
        if len(found) > 1:
            raise BadInput(f"{', '.join(files)}: there are {len(found)} workloads in there: give one")
        one = found[0]
    else:
        one = named_workload(world, parse_reference(workload or "", asked), asked)
    made = recreated(to_copy(one)[0])
    if made.metadata.name in {pod.metadata.name for pod in world.seen.pods if pod.spec.node_name}:
        from msgspec.structs import replace

        made = replace(made, metadata=replace(made.metadata, name=f"{made.metadata.name}-one-more"))
    return ShapeGoal(made), f"{ROOM} {one.subject}"


def _carry_out(asked: Asked, world: World, goal: Goal, told: DefragPlan, rules: DrainRules, timeout: int) -> None:
    from situate.cli.cluster.connection import with_client
    from situate.cli.commands.plan.apply import Applying, StoppedError
    from situate.kube.client import Client

    async def work(client: Client) -> None:
        await Applying(client, asked, world, told, goal, rules, timeout).run()

    try:
        with_client(asked.kubeconfig, asked.context, work)
    except StoppedError as error:
        raise click.ClickException(str(error)) from None


def _lines(told: DefragPlan, subject: str, world: World) -> list[str]:
    if not told.found:
        lines = [styled(f"no plan was found that frees {subject}", False)]
        lines += [f"  {key} cannot move: {why}" for key, why in told.stuck[:10]]
        if not told.stuck and told.bound:
            limit = "" if told.complete else ", and the search came to its limit"
            tried = f"none of {told.attempts} choices tried would do{limit}"
            lines.append(f"  it takes {told.bound} moves at least, and {tried}")
        return lines
    if not told.moves:
        return [styled(f"{subject}: there is one already, {told.node}", True)]
    count = f"{len(told.moves)} move{'' if len(told.moves) == 1 else 's'}"
    bound = "and no plan has fewer" if told.fewest else f"and it takes {told.bound} at least"
    freed = f"{subject} on {told.node}" if subject.startswith(ROOM) else told.node
    lines = [styled(f"{count} free{'s' if len(told.moves) == 1 else ''} {freed}, {bound}", True)]
    rows = [
        (number, move.key, move.source, move.to, ", ".join(move.holds) or "-")
        for number, move in enumerate(told.moves, 1)
    ]
    lines += ["", *columns(("STEP", "POD", "FROM", "TO", "HELD MEANWHILE"), rows)]
    money = _price(told, world)
    if money is not None and not subject.startswith(ROOM):
        lines += ["", f"{told.node} costs {money[0]} {money[1]} an hour"]
    return lines


def _price(told: DefragPlan, world: World) -> tuple[str, str] | None:
    from situate.core.plugins.support.prices import UNKNOWN, money

    node = next((node for node in world.seen.nodes if node.metadata.name == told.node), None)
    if world.prices is None or node is None or world.prices.of(node) == UNKNOWN:
        return None
    return money(world.prices.of(node)), world.prices.currency


def _values(told: DefragPlan, subject: str, world: World) -> dict[str, Any]:
    money = _price(told, world)
    return {
        "frees": subject,
        "node": told.node or None,
        "moves": [
            {"step": number, "pod": move.key, "from": move.source, "to": move.to, "holds": list(move.holds)}
            for number, move in enumerate(told.moves, 1)
        ],
        "found": told.found,
        "atLeast": told.bound,
        "fewest": told.fewest,
        "searchedAll": told.complete,
        "attempts": told.attempts,
        "stuck": [{"pod": key, "why": why} for key, why in told.stuck],
        "anHour": None if money is None else {"amount": money[0], "currency": money[1]},
    }
