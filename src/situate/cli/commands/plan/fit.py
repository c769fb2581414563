"""`situate plan fit`: how many more of a pod fit, where, and what stops the next one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.plan.input import (
    Asked,
    Workload,
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
    from situate.core.plan.fit import FitResult
    from situate.core.plan.sandbox import Sandbox
    from situate.core.plugins.support.prices import Bill

TOO_FEW: Final = 1
MOST: Final = 100_000


@click.command()
@click.argument("workload", required=False)
@click.option(
    "-w", "--workload", "files", multiple=True, metavar="FILE", help="A manifest with the pod or its template."
)
@click.option(
    "--at-least", type=click.IntRange(0, MOST), default=1, show_default=True, help="Exit with 1 if fewer fit."
)
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=MOST, show_default=True, help="Count no further than this."
)
@click.option("--waiting-first", is_flag=True, help="Place the pods that wait before counting.")
@world_options
def fit(
    asked: Asked, workload: str | None, files: tuple[str, ...], at_least: int, limit: int, waiting_first: bool
) -> None:
    """Say how many more of a pod fit, where, and what stops the next one.

    WORKLOAD is a pod (NAME, NAMESPACE/NAME) or what makes pods (deploy/NAME) in the cluster; -w takes it from a file.
    """
    if bool(workload) == bool(files):
        raise BadInput("name a pod or workload, or give a file with -w: one or the other")
    named = parse_reference(workload, asked) if workload else None
    world = read_world(asked, named)
    if named is not None:
        one = named_workload(world, named, asked)
    else:
        found = workloads_of(files, world)
        if len(found) > 1:
            subjects = ", ".join(each.subject for each in found[:5])
            raise BadInput(f"{', '.join(files)}: there are {len(found)} workloads in there ({subjects}): give one")
        one = found[0]
    from situate.core.plan.fit import fit as count

    sandbox = world.sandbox()
    waiting = _place_waiting(world, sandbox) if waiting_first else []
    before = _bill(world)
    copied, changed = to_copy(one)
    told = count(sandbox, copied, limit)
    money = None if before is None else (before, _bill(world))
    notes = notes_of(world, budgets=False) + _notes(one, world, waiting_first) + changed
    show(_lines(told, one, waiting, money), _values(told, one, waiting, money), notes, asked.output)
    if told.count < at_least:
        sys.exit(TOO_FEW)


def _place_waiting(world: World, sandbox: Sandbox) -> list[tuple[str, str]]:
    """Who waits, and where it went; an empty name if nowhere."""
    from situate.core.model.meta import key_of
    from situate.core.plan.rescheduling import Rescheduler

    pods = [pod for pod in _waiting(world) if key_of(pod.metadata) not in sandbox.pods]
    return [(one.key, one.node) for one in Rescheduler(sandbox).reschedule(pods) if not one.before]


def _waiting(world: World) -> list[Any]:
    from situate.core.state.cluster import FINISHED_PHASES

    return [
        pod
        for pod in world.seen.pods
        if not pod.spec.node_name
        and pod.status.phase not in FINISHED_PHASES
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
    ]


def _bill(world: World) -> Bill | None:
    from situate.core.plugins.support.prices import hourly
    from situate.core.state.view import View

    prices = world.prices
    return None if prices is None else hourly(prices, View(world.cluster))


def _notes(one: Workload, world: World, waiting_first: bool) -> list[str]:
    notes = []
    if one.pod.spec.scheduling_gates:
        notes.append("its scheduling gates are taken to be gone")
    waiting = len(_waiting(world))
    if waiting and not waiting_first:
        pods, count = ("pod waits", "is") if waiting == 1 else ("pods wait", "are")
        notes.append(f"{waiting} {pods} already, and {count} not counted: --waiting-first places them before")
    if one.pod.spec.scheduler_name not in world.profiles:
        notes.append(f"no profile is named {one.pod.spec.scheduler_name}: the first one was asked")
    return notes


def _lines(
    told: FitResult, one: Workload, waiting: list[tuple[str, str]], money: tuple[Bill, Bill | None] | None
) -> list[str]:
    count = f"{told.count} more" if told.stopped else f"at least {told.count} more"
    lines = [styled(f"{one.subject}: {count} fit{'s' if told.count == 1 else ''}", told.count > 0)]
    if waiting:
        placed = sum(bool(node) for _, node in waiting)
        lines.append(f"after {placed} of {len(waiting)} waiting pods were placed")
    if told.count:
        if len(told.by_zone) > 1 or "" not in told.by_zone:
            zones = [(zone or "-", count) for zone, count in sorted(told.by_zone.items())]
            lines += ["", *columns(("ZONE", "PODS"), zones)]
        lines += ["", *columns(("NODE", "PODS"), _most_first(told.by_node))]
    if told.stopped:
        lines += ["", f"the next one: {told.message}" if told.message else _driving(told)]
    if money is not None and money[1] is not None:
        from situate.cli.output.money import before_and_after

        lines += ["", before_and_after(money[0], money[1])]
    return lines


def _most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _driving(told: FitResult) -> str:
    return f"the next one fits only where others make room: it would evict {', '.join(told.evicts)} from {told.node}"


def _values(
    told: FitResult, one: Workload, waiting: list[tuple[str, str]], money: tuple[Bill, Bill | None] | None
) -> dict[str, Any]:
    from situate.cli.output.money import as_values

    return {
        "workload": one.subject,
        "fits": told.count,
        "limited": not told.stopped,
        "byZone": dict(sorted(told.by_zone.items())),
        "byNode": dict(sorted(told.by_node.items())),
        "next": {"message": told.message, "node": told.node or None, "evicts": list(told.evicts)},
        "waitingFirst": [{"pod": key, "node": node or None} for key, node in waiting],
        "money": None
        if money is None or money[1] is None
        else {"before": as_values(money[0]), "after": as_values(money[1])},
    }
