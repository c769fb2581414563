"""`situate plan fit`: how many more of a pod fit, where, and what stops the next one."""

import sys
from typing import Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.plan.input import (
    PlanInput,
    PlanOptions,
    copied_pod,
    one_workload,
    parse_workload,
    plan_notes,
    plan_options,
    read_input,
    workload_file_option,
)
from situate.cli.output.money import as_values, before_and_after
from situate.cli.output.text import headline, plan_columns, plural, show
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.plan.fit import FitResult
from situate.core.plan.rescheduling import Rescheduler
from situate.core.plan.sandbox import Sandbox
from situate.core.plugins.support.prices import NodeCost, hourly_cost
from situate.core.state.view import View

TOO_FEW: Final = 1
MOST: Final = 100_000


@click.command()
@click.argument("workload", required=False)
@workload_file_option
@click.option(
    "--at-least", type=click.IntRange(0, MOST), default=1, show_default=True, help="Exit with 1 if fewer fit."
)
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=MOST, show_default=True, help="Count no further than this."
)
@click.option("--waiting-first", is_flag=True, help="Place the pending pods before counting.")
@plan_options
def fit(
    asked: PlanOptions, workload: str | None, files: tuple[str, ...], at_least: int, limit: int, waiting_first: bool
) -> None:
    """Say how many more of a pod fit, where, and what stops the next one.

    WORKLOAD is a pod (NAME, NAMESPACE/NAME) or a controller (deploy/NAME) of the cluster; -w takes it from a file.
    """
    if bool(workload) == bool(files):
        raise BadInput("name a pod or workload, or give a file with -w: one or the other")
    named = parse_workload(workload, asked) if workload else None
    read = read_input(asked, named)
    one, subject = one_workload(read, asked, named, files)
    from situate.core.plan.fit import fit as count

    sandbox = read.sandbox()
    waiting = _place_pending(read, sandbox) if waiting_first else []
    before = _bill(read)
    pod, changes = copied_pod(one.pod)
    found = count(sandbox, pod, limit)
    after = _bill(read)
    money = None if before is None or after is None else (before, after)
    notes = plan_notes(read, budgets=False, pods=[one.pod]) + _notes(one.pod, read, waiting_first) + changes
    lines = _lines(found, subject, waiting, money)
    nodes = [f"node/{name}" for name, count in sorted(found.by_node.items()) if count]
    show(lines, fit_values(found, subject, waiting, money), notes, asked.output, nodes)
    if found.count < at_least:
        sys.exit(TOO_FEW)


def _place_pending(read: PlanInput, sandbox: Sandbox) -> list[tuple[str, str]]:
    """The pending pods, and where they went; an empty name if nowhere."""
    pods = [pod for pod in read.pending_pods() if key_of(pod.metadata) not in sandbox.pods]
    return [(one.key, one.node) for one in Rescheduler(sandbox).reschedule(pods) if not one.before]


def _bill(read: PlanInput) -> NodeCost | None:
    prices = read.prices
    return None if prices is None else hourly_cost(prices, View(read.cluster))


def _notes(pod: Pod, read: PlanInput, waiting_first: bool) -> list[str]:
    notes = []
    if pod.spec.scheduling_gates:
        notes.append("assumes that its scheduling gates are removed")
    pending = len(read.pending_pods())
    if pending and not waiting_first:
        verb, them = ("is", "it") if pending == 1 else ("are", "them")
        notes.append(f"{plural(pending, 'pending pod')} {verb} not counted: --waiting-first places {them} first")
    if pod.spec.scheduler_name not in read.profiles:
        notes.append(f"no profile is named {pod.spec.scheduler_name}: the first profile was used")
    return notes


def _lines(
    found: FitResult, subject: str, waiting: list[tuple[str, str]], money: tuple[NodeCost, NodeCost] | None
) -> list[str]:
    least = "" if found.stopped else "at least "
    lines = [headline(f"{subject}: {least}{found.count} more fit{'s' if found.count == 1 else ''}", found.count > 0)]
    if waiting:
        placed = sum(bool(node) for _, node in waiting)
        lines.append(f"after placing {placed} of {plural(len(waiting), 'pending pod')}")
    if found.count:
        if len(found.by_zone) > 1 or "" not in found.by_zone:
            zones = [(zone or "-", count) for zone, count in sorted(found.by_zone.items())]
            lines += ["", *plan_columns(("ZONE", "PODS"), zones)]
        most_first = sorted(found.by_node.items(), key=lambda pair: (-pair[1], pair[0]))
        lines += ["", *plan_columns(("NODE", "PODS"), most_first)]
    if found.stopped:
        evicting = f"would fit only by evicting {', '.join(found.evicts)} from {found.node}"
        lines += ["", f"the next one: {found.message or evicting}"]
    if money is not None:
        lines += ["", before_and_after(*money)]
    return lines


def fit_values(
    found: FitResult, subject: str, waiting: list[tuple[str, str]], money: tuple[NodeCost, NodeCost] | None
) -> dict[str, Any]:
    return {
        "workload": subject,
        "fits": found.count,
        "limited": not found.stopped,
        "byZone": dict(sorted(found.by_zone.items())),
        "byNode": dict(sorted(found.by_node.items())),
        "next": {"message": found.message, "node": found.node or None, "evicts": list(found.evicts)},
        "waitingFirst": [{"pod": key, "node": node or None} for key, node in waiting],
        "money": None if money is None else {"before": as_values(money[0]), "after": as_values(money[1])},
    }
