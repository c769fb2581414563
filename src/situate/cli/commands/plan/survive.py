"""`situate plan survive`: whether a cluster, or one of its workloads, survives the loss of any zone or node."""

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.plan.input import (
    PlanInput,
    PlanOptions,
    WorkloadName,
    named_workload,
    parse_workload,
    plan_notes,
    plan_options,
    read_input,
)
from situate.cli.output.formats import names_of_pods
from situate.cli.output.text import headline, plan_columns, show
from situate.core.model.meta import controller_of, key_of
from situate.core.plan.survive import Loss, losses

LOST: Final = 1
ZONE: Final = "topology.kubernetes.io/zone"
LABELS: Final = {"zone": ZONE, "region": "topology.kubernetes.io/region"}
PROGRESS_EVERY: Final = 200


@click.command()
@click.argument("workload", required=False)
@click.option(
    "--by",
    multiple=True,
    metavar="KEY",
    help="zone, node, region, or any label of nodes (repeatable); default: zone, node.",
)
@click.option("--nodes-stay", is_flag=True, help="Keep the lost nodes registered, as they are until deleted.")
@plan_options
def survive(asked: PlanOptions, workload: str | None, by: tuple[str, ...], nodes_stay: bool) -> None:
    """Say whether every pod would find a node again if any one zone or node were lost.

    Each loss is tried: the pods of the lost nodes are placed elsewhere, with all their constraints. With a WORKLOAD
    (NAME, deploy/NAME), only its pods count. Exits with 1 if a pod would find no node.
    """
    named = parse_workload(workload, asked) if workload else None
    read = read_input(asked, named)
    watched = None if named is None else _members(read, named, asked)
    found = _losses(read, [LABELS.get(word, word) for word in by] or [ZONE, "node"], nodes_stay)
    if by and not found:
        raise BadInput(f"{read.where}: no node has the label {', '.join(by)}")
    notes = plan_notes(read, budgets=False)
    if not by and not any(one.by == ZONE for one in found) and found:
        notes.append(f"no node has the label {ZONE}: zones were not tried")
    subject = None if named is None else named.text
    lost = dict.fromkeys(one.key for loss in found for one in _lost(loss, watched))
    values = survive_values(found, watched, subject)
    show(_lines(found, watched, subject), values, notes, asked.output, names_of_pods(list(lost)))
    if any(_lost(one, watched) for one in found):
        sys.exit(LOST)


def _members(read: PlanInput, named: WorkloadName, asked: PlanOptions) -> dict[str, None]:
    """The pods of a workload, by namespace/name."""
    one, _ = named_workload(read, named, asked)
    if one.kind == "Pod":
        return {key_of(one.pod.metadata): None}
    found: dict[str, None] = {}
    for pod in read.objects.pods:
        owner = controller_of(pod.metadata)
        if pod.metadata.namespace != one.namespace or owner is None:
            continue
        # A ReplicaSet is named after its Deployment, and a Job after its CronJob, each with a suffix of its own.
        through = {"Deployment": "ReplicaSet", "CronJob": "Job"}.get(one.kind)
        own = (owner.kind, owner.name) == (one.kind, one.name)
        if own or (owner.kind == through and owner.name.rpartition("-")[0] == one.name):
            found[key_of(pod.metadata)] = None
    if not found:
        raise BadInput(f"{read.where}: {one.subject} has no pods")
    return found


def _losses(read: PlanInput, by: Sequence[str], nodes_stay: bool) -> list[Loss]:
    sandbox = read.sandbox()
    found = []
    for key in by:
        for loss in losses(sandbox, key, nodes_stay=nodes_stay):
            found.append(loss)
            if len(found) % PROGRESS_EVERY == 0 and sys.stderr.isatty():
                click.echo(f"tried {len(found)} losses", err=True)
    return found


def _lost(loss: Loss, watched: dict[str, None] | None) -> list[Any]:
    return [one for one in loss.lost if watched is None or one.key in watched]


def _lines(found: Sequence[Loss], watched: dict[str, None] | None, subject: str | None) -> list[str]:
    if not found:
        return [headline("there are no nodes to lose", True)]
    fatal = [one for one in found if _lost(one, watched)]
    lines = [headline(_verdict(found, fatal, subject), not fatal), ""]
    shown = fatal + [one for one in found if one not in fatal and len(one.nodes) > 1]
    if not shown:
        shown = sorted(found, key=lambda one: -len(one.moved))
    rows = [
        (_word(one.by), one.domain, len(one.nodes), len(one.moved) + len(one.lost), len(_lost(one, watched)))
        for one in shown
    ]
    lines += plan_columns(("LOST", "NAME", "NODES", "PODS", "WITHOUT A NODE"), rows)
    for one in fatal[:10]:
        lines += ["", f"without {_word(one.by)} {one.domain}:"]
        lines += _grouped(_lost(one, watched))
    return lines


def _verdict(found: Sequence[Loss], fatal: Sequence[Loss], subject: str | None) -> str:
    """`not every workload survives the loss of one node or zone: 2 of 6 losses leave pods without a node`."""
    kinds = " or ".join(dict.fromkeys(_word(one.by) for one in found))
    if not fatal:
        return f"{subject or 'every workload'} survives the loss of any one {kinds} ({len(found)} tried)"
    survives = f"{subject} does not survive" if subject else "not every workload survives"
    return f"{survives} the loss of one {kinds}: {len(fatal)} of {len(found)} losses leave pods without a node"


def _grouped(lost: Sequence[Any]) -> list[str]:
    """Pods with the same message together."""
    by_message: dict[str, list[str]] = {}
    for one in lost:
        by_message.setdefault(one.message, []).append(one.key)
    lines = []
    for message, keys in by_message.items():
        more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
        lines.append(f"  {', '.join(keys[:3])}{more}: {message}")
    return lines


def _word(by: str) -> str:
    return next((word for word, key in LABELS.items() if key == by), by)


def survive_values(found: Sequence[Loss], watched: dict[str, None] | None, subject: str | None) -> dict[str, Any]:
    return {
        "subject": subject or "everything",
        "survives": not any(_lost(one, watched) for one in found),
        "losses": [
            {
                "by": one.by,
                "domain": one.domain,
                "nodes": list(one.nodes),
                "survives": not _lost(one, watched),
                "moved": [
                    {"pod": each.key, "from": each.before, "to": each.node, "evictedBy": each.evicted_by or None}
                    for each in one.moved
                ],
                "lost": [
                    {
                        "pod": each.key,
                        "from": each.before,
                        "message": each.message,
                        "evictedBy": each.evicted_by or None,
                        "counts": watched is None or each.key in watched,
                    }
                    for each in one.lost
                ],
            }
            for one in found
        ],
    }
