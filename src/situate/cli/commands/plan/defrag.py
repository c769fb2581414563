"""`situate plan defrag`: the fewest moves that free a node, or room for a pod. Carried out only with `--apply`."""

import sys
from typing import Any, Final

import click
from msgspec.structs import replace

from situate.cli import BadInput
from situate.cli.cluster.connection import Client, with_client
from situate.cli.commands.plan.input import (
    PlanInput,
    PlanOptions,
    WorkloadName,
    copied_pod,
    one_workload,
    parse_workload,
    plan_notes,
    plan_options,
    read_input,
    workload_file_option,
)
from situate.cli.output.formats import for_people, names_of_pods
from situate.cli.output.text import headline, plan_columns, plural, show
from situate.core.plan.defrag import DefragPlan
from situate.core.plan.defrag import defrag as search
from situate.core.plan.eviction_rules import DrainRules
from situate.core.plan.goals import Goal, NodeGoal, ShapeGoal
from situate.core.plan.sandbox import recreated

NO_PLAN: Final = 1
TIMEOUT_S: Final = 300
ROOM: Final = "room for"


@click.command()
@click.argument("workload", required=False)
@workload_file_option
@click.option("--node", metavar="NAME", help="Free this node of all pods but its own.")
@click.option("--any-node", is_flag=True, help="Free the node that takes the fewest moves.")
@click.option("--delete-emptydir-data", is_flag=True, help="Move pods with local storage, too; their data is lost.")
@click.option("--apply", is_flag=True, help="Carry the plan out, one step at a time.")
@click.option(
    "--timeout",
    type=click.IntRange(1, 86_400),
    default=TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="How long one step may take.",
)
@plan_options
def defrag(
    asked: PlanOptions,
    workload: str | None,
    files: tuple[str, ...],
    node: str | None,
    any_node: bool,
    delete_emptydir_data: bool,
    apply: bool,
    timeout: int,
) -> None:
    """Find the fewest moves that empty a node, or make room for a pod. Each step fits, and respects budgets.

    The pod is one of WORKLOAD (a pod, or deploy/NAME), or of the file -w. Nothing moves without --apply. Exits with 1
    if there is no plan, or it could not be carried out.
    """
    if sum((bool(workload), bool(files), node is not None, any_node)) != 1:
        raise BadInput("say what to free: give one of WORKLOAD, -w FILE, --node NAME and --any-node")
    if apply and asked.names:
        raise BadInput("--apply needs a cluster: it cannot move pods in files (-f)")
    named = parse_workload(workload, asked) if workload else None
    read = read_input(asked, named, local=True)
    goal, subject = _goal(read, asked, named, files, node)
    rules = DrainRules(read.local, delete_emptydir_data=delete_emptydir_data, honours_annotation=True)
    found = search(read.sandbox(), goal, rules)
    price = read.hourly_price([found.node] if found.node else [])
    notes = plan_notes(read, budgets=True)
    names = names_of_pods([move.key for move in found.moves])
    show(_lines(found, subject, price), _values(found, subject, price), notes, asked.output, names)
    if not found.found:
        sys.exit(NO_PLAN)
    if apply and found.moves:
        _carry_out(asked, read, goal, found, rules, timeout)
    elif found.moves and for_people(asked.output):
        click.echo("nothing was moved: --apply carries the plan out", err=True)


def _goal(
    read: PlanInput, asked: PlanOptions, named: WorkloadName | None, files: tuple[str, ...], node: str | None
) -> tuple[Goal, str]:
    if node is not None:
        read.node(node)
        return NodeGoal(node), f"node {node}"
    if named is None and not files:
        return NodeGoal(), "a node"
    one, subject = one_workload(read, asked, named, files)
    made = recreated(copied_pod(one.pod)[0])
    if made.metadata.name in {pod.metadata.name for pod in read.objects.pods if pod.spec.node_name}:
        made = replace(made, metadata=replace(made.metadata, name=f"{made.metadata.name}-one-more"))
    return ShapeGoal(made), f"{ROOM} {subject}"


def _carry_out(
    asked: PlanOptions, read: PlanInput, goal: Goal, plan: DefragPlan, rules: DrainRules, timeout: int
) -> None:
    from situate.cli.commands.plan.apply import PlanExecution, StoppedError  # asyncio is slow to import

    async def work(client: Client) -> None:
        await PlanExecution(client, asked, read, plan, goal, rules, timeout).run()

    try:
        with_client(asked.kubeconfig, asked.context, work, changes=True)
    except StoppedError as error:
        raise click.ClickException(str(error)) from None


def _lines(found: DefragPlan, subject: str, price: dict[str, str] | None) -> list[str]:
    if not found.found:
        lines = [headline(f"no plan frees {subject}", False)]
        lines += [f"  {key} cannot move: {why}" for key, why in found.stuck[:10]]
        if not found.stuck and found.bound:
            limit = "" if found.complete else ", and the search reached its limit"
            tried = f"none of {found.attempts} tried choices works{limit}"
            lines.append(f"  it takes at least {plural(found.bound, 'move')}, and {tried}")
        return lines
    if not found.moves:
        return [headline(f"{subject}: {found.node} already has it", True)]
    bound = "and no plan has fewer" if found.fewest else f"and it takes at least {found.bound}"
    freed = f"{subject} on {found.node}" if subject.startswith(ROOM) else found.node
    verb = "frees" if len(found.moves) == 1 else "free"
    lines = [headline(f"{plural(len(found.moves), 'move')} {verb} {freed}, {bound}", True)]
    rows = [
        (number, move.key, move.source, move.to, ", ".join(move.holds) or "-")
        for number, move in enumerate(found.moves, 1)
    ]
    lines += ["", *plan_columns(("STEP", "POD", "FROM", "TO", "CORDONED MEANWHILE"), rows)]
    if price is not None and not subject.startswith(ROOM):
        lines += ["", f"{found.node} costs {price['amount']} {price['currency']} an hour"]
    return lines


def _values(found: DefragPlan, subject: str, price: dict[str, str] | None) -> dict[str, Any]:
    return {
        "frees": subject,
        "node": found.node or None,
        "moves": [
            {"step": number, "pod": move.key, "from": move.source, "to": move.to, "holds": list(move.holds)}
            for number, move in enumerate(found.moves, 1)
        ],
        "found": found.found,
        "atLeast": found.bound,
        "fewest": found.fewest,
        "searchedAll": found.complete,
        "attempts": found.attempts,
        "stuck": [{"pod": key, "why": why} for key, why in found.stuck],
        "anHour": price,
    }
