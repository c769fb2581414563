"""`situate plan drain`: what the drain of some nodes would move, where to, in which waves, and what cannot move."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.plan.input import Asked, World, notes_of, read_world, world_options
from situate.cli.output.text import columns, show, styled

if TYPE_CHECKING:
    from situate.core.plan.drain import DrainResult, SkippedPod

NOT_ALL: Final = 1


@click.command()
@click.argument("nodes", nargs=-1)
@click.option("-l", "--selector", metavar="SELECTOR", help="The nodes with these labels: pool=old,zone in (a,b).")
@click.option("--force", is_flag=True, help="Pods without a controller may go; nobody makes them again.")
@click.option("--delete-emptydir-data", is_flag=True, help="Pods with local storage may go; what is there is lost.")
@world_options
def drain(asked: Asked, nodes: tuple[str, ...], selector: str | None, force: bool, delete_emptydir_data: bool) -> None:
    """Say what the drain of some nodes would move and where to, with budgets respected. Moves nothing.

    NODES are drained together, as `kubectl drain` does: cordoned first, DaemonSets' pods and static ones passed over.
    Exits with 1 if the drain would not end, or a pod would find no place.
    """
    if bool(nodes) == bool(selector):
        raise BadInput("name nodes, or choose them with -l: one or the other")
    world = read_world(asked, local=True)
    names = list(dict.fromkeys(nodes)) if nodes else _selected(world, selector or "")
    for name in names:
        if name not in world.cluster.nodes.rows:
            raise BadInput(f'{world.where}: nodes "{name}" not found')
    from situate.core.plan.drain import drain as drained
    from situate.core.plan.eviction_rules import DrainRules

    rules = DrainRules(world.local, force=force, delete_emptydir_data=delete_emptydir_data)
    told = drained(world.sandbox(), names, rules)
    money = _freed(world, names)
    show(_lines(told, money), _values(told, money), notes_of(world, budgets=True), asked.output)
    if not told.complete:
        sys.exit(NOT_ALL)


def _selected(world: World, text: str) -> list[str]:
    from situate.server.errors import StatusError
    from situate.server.registry.selectors import parse_labels

    try:
        selector = parse_labels(text)
    except StatusError as error:
        raise BadInput(f"-l {text}: {error}") from None
    found = [node.metadata.name for node in world.seen.nodes if selector.matches(node.metadata.labels)]
    if not found:
        raise BadInput(f"{world.where}: no node has {text}")
    return found


def _freed(world: World, names: Sequence[str]) -> tuple[str, str] | None:
    """What the nodes cost an hour, and in which currency; None if that is not known of all of them."""
    from situate.core.plugins.support.prices import UNKNOWN, money

    if world.prices is None:
        return None
    nodes = [node for node in world.seen.nodes if node.metadata.name in names]
    found = [world.prices.of(node) for node in nodes]
    return None if UNKNOWN in found else (money(sum(found)), world.prices.currency)


def _lines(told: DrainResult, money: tuple[str, str] | None) -> list[str]:
    moved = sum(bool(one.node) for wave in told.waves for one in wave)
    waves = f"{len(told.waves)} wave{'' if len(told.waves) == 1 else 's'}"
    nodes = f"{len(told.nodes)} node{'' if len(told.nodes) == 1 else 's'}"
    head = f"the drain of {nodes} would move {moved} pod{'' if moved == 1 else 's'} in {waves}"
    if told.refused:
        head += f", and would not end: {len(told.refused)} cannot leave"
    if told.homeless:
        head += f"; {len(told.homeless)} would find no place"
    lines = [styled(head, told.complete)]
    for number, wave in enumerate(told.waves, 1):
        rows = [(one.key, one.before, one.node or "-", _remark(one)) for one in wave]
        lines += ["", *columns((f"WAVE {number}", "FROM", "TO", ""), rows)]
    for heading, those in (("CANNOT LEAVE", told.refused), ("DELETED FOR GOOD", told.ended), ("STAY", told.stay)):
        if those:
            lines += ["", *columns((heading, "NODE", "WHY"), [(one.key, one.node, one.why) for one in those])]
    if money is not None:
        lines += ["", f"these nodes cost {money[0]} {money[1]} an hour"]
    return lines


def _remark(one: Any) -> str:
    if not one.node:
        return str(one.message)
    parts = [f"evicts {', '.join(one.evicts)}"] if one.evicts else []
    if one.evicted_by:
        parts.append(f"driven out by {one.evicted_by}")
    return "; ".join(parts)


def _values(told: DrainResult, money: tuple[str, str] | None) -> dict[str, Any]:
    return {
        "nodes": list(told.nodes),
        "complete": told.complete,
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
            for wave in told.waves
        ],
        "refused": _left(told.refused),
        "deleted": _left(told.ended),
        "stay": _left(told.stay),
        "anHour": None if money is None else {"amount": money[0], "currency": money[1]},
    }


def _left(those: Sequence[SkippedPod]) -> list[dict[str, str]]:
    return [{"pod": one.key, "node": one.node, "why": one.why} for one in those]
