"""`situate plan survive`: whether a cluster, or one workload of it, would live through the loss of any zone or node."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from situate.cli import BadInput
from situate.cli.commands.plan.input import (
    Asked,
    Reference,
    World,
    named_workload,
    notes_of,
    parse_reference,
    read_world,
    world_options,
)
from situate.cli.output.text import columns, show, styled

if TYPE_CHECKING:
    from situate.core.plan.survive import Loss

WOULD_NOT: Final = 1
ZONE: Final = "topology.kubernetes.io/zone"
WORDS: Final = {"zone": ZONE, "region": "topology.kubernetes.io/region"}
PROGRESS_EVERY: Final = 200


@click.command()
@click.argument("workload", required=False)
@click.option(
    "--by",
    multiple=True,
    metavar="KEY",
    help="zone, node, region, or any label of nodes (repeatable); default: zone, node.",
)
@click.option("--nodes-stay", is_flag=True, help="The lost nodes stay registered, as until somebody deletes them.")
@world_options
def survive(asked: Asked, workload: str | None, by: tuple[str, ...], nodes_stay: bool) -> None:
    """Say whether everything would find a place again if any one zone or node were lost.

    Each loss is tried: the pods of the lost nodes are placed elsewhere, with all their constraints. With a WORKLOAD
    (NAME, deploy/NAME), only its pods count. Exits with 1 if a pod would find no place.
    """
    named = parse_reference(workload, asked) if workload else None
    world = read_world(asked, named)
    watched = None if named is None else _members(world, named, asked)
    told = _losses(world, [WORDS.get(word, word) for word in by] or [ZONE, "node"], nodes_stay)
    if by and not told:
        raise BadInput(f"{world.where}: no node has the label {', '.join(by)}")
    notes = notes_of(world, budgets=False)
    if not by and not any(one.by == ZONE for one in told) and told:
        notes.append(f"no node has the label {ZONE}: zones were not tried")
    subject = "everything" if named is None else named.text
    lost = any(_counted(one, watched) for one in told)
    show(_lines(told, watched, subject), _values(told, watched, subject), notes, asked.output)
    if lost:
        sys.exit(WOULD_NOT)


def _members(world: World, named: Reference, asked: Asked) -> dict[str, None]:
    """The pods of a workload, by namespace/name."""
    from situate.core.model.meta import controller_of, key_of

    one = named_workload(world, named, asked)
    if one.kind == "Pod":
        return {key_of(one.pod.metadata): None}
    space, name = one.pod.metadata.namespace, one.pod.metadata.name
    found: dict[str, None] = {}
    for pod in world.seen.pods:
        owner = controller_of(pod.metadata)
        if pod.metadata.namespace != space or owner is None:
            continue
        # A ReplicaSet is named after its Deployment, and a Job after its CronJob, with a part of its own at the end.
        through = {"Deployment": "ReplicaSet", "CronJob": "Job"}.get(one.kind)
        own = (owner.kind, owner.name) == (one.kind, name)
        if own or (owner.kind == through and owner.name.rpartition("-")[0] == name):
            found[key_of(pod.metadata)] = None
    if not found:
        raise BadInput(f"{world.where}: {one.subject} has no pods")
    return found


def _losses(world: World, by: Sequence[str], nodes_stay: bool) -> list[Loss]:
    from situate.core.plan.survive import losses

    sandbox = world.sandbox()
    told = []
    for key in by:
        for loss in losses(sandbox, key, nodes_stay=nodes_stay):
            told.append(loss)
            if len(told) % PROGRESS_EVERY == 0 and sys.stderr.isatty():
                click.echo(f"tried {len(told)} losses", err=True)
    return told


def _counted(loss: Loss, watched: dict[str, None] | None) -> list[Any]:
    return [one for one in loss.lost if watched is None or one.key in watched]


def _lines(told: Sequence[Loss], watched: dict[str, None] | None, subject: str) -> list[str]:
    fatal = [one for one in told if _counted(one, watched)]
    if not told:
        return [styled("there is nothing to lose", True)]
    kinds = ", ".join(dict.fromkeys(_word(one.by) for one in told))
    head = f"{subject} survives the loss of any one of {len(told)} ({kinds})"
    if fatal:
        head = f"{subject} does not survive the loss of {len(fatal)} of {len(told)} ({kinds})"
    lines = [styled(head, not fatal), ""]
    shown = fatal + [one for one in told if one not in fatal and len(one.nodes) > 1]
    if not shown:
        shown = sorted(told, key=lambda one: -len(one.moved))
    rows = [
        (_word(one.by), one.domain, len(one.nodes), len(one.moved) + len(one.lost), len(_counted(one, watched)))
        for one in shown
    ]
    lines += columns(("LOST", "NAME", "NODES", "PODS", "WITHOUT A PLACE"), rows)
    for one in fatal[:10]:
        lines += ["", f"without {_word(one.by)} {one.domain}:"]
        lines += _grouped(_counted(one, watched))
    return lines


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
    return next((word for word, key in WORDS.items() if key == by), by)


def _values(told: Sequence[Loss], watched: dict[str, None] | None, subject: str) -> dict[str, Any]:
    return {
        "subject": subject,
        "survives": not any(_counted(one, watched) for one in told),
        "losses": [
            {
                "by": one.by,
                "domain": one.domain,
                "nodes": list(one.nodes),
                "survives": not _counted(one, watched),
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
            for one in told
        ],
    }
