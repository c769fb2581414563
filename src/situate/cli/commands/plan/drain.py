"""`situate plan drain`: what draining some nodes would move, where to, in which waves, and what cannot move."""

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.plan.input import PlanInput, PlanOptions, plan_notes, plan_options, read_input
from situate.cli.output.formats import names_of_pods
from situate.cli.output.text import headline, plan_columns, plural, show
from situate.core.plan.drain import DrainResult, SkippedPod
from situate.core.plan.drain import drain as drained
from situate.core.plan.eviction_rules import DrainRules

NOT_ALL: Final = 1


@click.command()
@click.argument("nodes", nargs=-1)
@click.option("-l", "--selector", metavar="SELECTOR", help="The nodes with these labels: pool=old,zone in (a,b).")
@click.option("--force", is_flag=True, help="Evict pods without a controller, too; nothing replaces them.")
@click.option("--delete-emptydir-data", is_flag=True, help="Evict pods with local storage, too; their data is lost.")
@plan_options
def drain(
    asked: PlanOptions, nodes: tuple[str, ...], selector: str | None, force: bool, delete_emptydir_data: bool
) -> None:
    """Say what draining some nodes would move, and where to, with budgets respected. Moves nothing.

    NODES are drained together, as `kubectl drain` does: it cordons them first, and skips DaemonSet and static pods.
    Exits with 1 if the drain would not finish, or a pod would find no node.
    """
    if bool(nodes) == bool(selector):
        raise BadInput("name nodes, or choose them with -l: one or the other")
    read = read_input(asked, local=True)
    names = list(dict.fromkeys(nodes)) if nodes else _selected(read, selector or "")
    for name in names:
        read.node(name)
    rules = DrainRules(read.local, force=force, delete_emptydir_data=delete_emptydir_data)
    found = drained(read.sandbox(), names, rules)
    price = read.hourly_price(names)
    moving = names_of_pods([one.key for wave in found.waves for one in wave])
    show(_lines(found, price), drain_values(found, price), plan_notes(read, budgets=True), asked.output, moving)
    if not found.complete:
        sys.exit(NOT_ALL)


def _selected(read: PlanInput, text: str) -> list[str]:
    from situate.server.errors import StatusError
    from situate.server.registry.selectors import parse_labels

    try:
        selector = parse_labels(text)
    except StatusError as error:
        raise BadInput(f"-l {text}: {error}") from None
    found = [node.metadata.name for node in read.objects.nodes if selector.matches(node.metadata.labels)]
    if not found:
        raise BadInput(f"{read.where}: no node has {text}")
    return found


def _lines(found: DrainResult, price: dict[str, str] | None) -> list[str]:
    moved = sum(bool(one.node) for wave in found.waves for one in wave)
    nodes, waves = plural(len(found.nodes), "node"), plural(len(found.waves), "wave")
    head = f"draining {nodes} would move {plural(moved, 'pod')} in {waves}"
    if found.refused:
        head += f", and would not finish: {plural(len(found.refused), 'pod')} cannot leave"
    if found.unschedulable:
        head += f"; {plural(len(found.unschedulable), 'pod')} would find no node"
    lines = [headline(head, found.complete)]
    for number, wave in enumerate(found.waves, 1):
        rows = [(one.key, one.before, one.node or "-", _remark(one)) for one in wave]
        lines += ["", *plan_columns((f"WAVE {number}", "FROM", "TO", ""), rows)]
    for heading, those in (("CANNOT LEAVE", found.refused), ("DELETED FOR GOOD", found.ended), ("STAY", found.stay)):
        if those:
            lines += ["", *plan_columns((heading, "NODE", "WHY"), [(one.key, one.node, one.why) for one in those])]
    if price is not None:
        lines += ["", f"these nodes cost {price['amount']} {price['currency']} an hour"]
    return lines


def _remark(one: Any) -> str:
    if not one.node:
        return str(one.message)
    parts = [f"evicts {', '.join(one.evicts)}"] if one.evicts else []
    if one.evicted_by:
        parts.append(f"evicted by {one.evicted_by}")
    return "; ".join(parts)


def drain_values(found: DrainResult, price: dict[str, str] | None) -> dict[str, Any]:
    return {
        "nodes": list(found.nodes),
        "complete": found.complete,
        "waves": [
            [
                {
                    "pod": one.key,
                    "from": one.before,
                    "to": one.node or None,
                    "message": one.message,
                    "evicts": list(one.evicts),
                    "evictedBy": one.evicted_by or None,
                }
                for one in wave
            ]
            for wave in found.waves
        ],
        "refused": _left(found.refused),
        "deleted": _left(found.ended),
        "stay": _left(found.stay),
        "anHour": price,
    }


def _left(those: Sequence[SkippedPod]) -> list[dict[str, str]]:
    return [{"pod": one.key, "node": one.node, "why": one.why} for one in those]
