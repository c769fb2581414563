"""`situate check`: what is wrong with workloads, before a scheduler finds out. For pipelines; changes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from situate.cli import BadInput
from situate.cli.cluster.connection import cluster_options, with_client
from situate.cli.input.files import read_sources

if TYPE_CHECKING:
    from situate.cli.commands.check.rules import Finding
    from situate.cli.input.workloads import Checked
    from situate.core.place.profile import Profile
    from situate.kube.client import Client

FOUND: Final = 1
NEVER: Final = "never"
COLOURS: Final = {"error": "red", "warning": "yellow", "info": "blue"}


@click.command()
@click.option("-f", "--filename", "names", multiple=True, metavar="FILE", help="File, folder or - (repeatable).")
@click.option("-n", "--namespace", metavar="NAME", help="Only workloads of this namespace.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Workloads of all namespaces of a cluster.")
@click.option("--config", metavar="FILE", help="Scheduler configuration.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Leave out these findings: SIT002 (repeatable).")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info", NEVER]),
    default="error",
    show_default=True,
    help="Exit with 1 if there is a finding as bad as this.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@cluster_options
def check(
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    config: str | None,
    ignore: tuple[str, ...],
    fail_on: str,
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Find what is wrong with workloads before a scheduler does.

    Checks the workloads of some files against the nodes, budgets and priority classes that are there too; without -f,
    those of a cluster. Exits with 1 if there are errors.
    """
    from situate.cli.commands.check.rules import RULES, Severity

    if names and (kubeconfig or context):
        raise BadInput("-f is for files, --kubeconfig and --context for a cluster: give one or the other")
    if namespace and all_namespaces:
        raise BadInput("-n and -A: give one or the other")
    ignored = _codes(ignore, [rule.code for rule in RULES])
    from situate.cli.input.profiles import read_profiles

    profile = next(iter(read_profiles(None if config is None else Path(config)).values())).profile
    read, space = _read(names, namespace, kubeconfig, context, everything=all_namespaces)
    found = [one for one in _findings(read, profile) if one.rule.code not in ignored and _in(one, space)]
    found.sort(key=lambda one: (-one.rule.severity, one.file, one.subject, one.rule.code, one.field))
    notes = _notes(read)
    if output == "json":
        from situate.wire.dump import dump_json

        click.echo(dump_json(_values(found, notes, read)), nl=False)
    else:
        click.echo(_table(found, read), nl=False)
        for note in notes:
            click.echo(f"note: {note}", err=True)
    if fail_on != NEVER and any(one.rule.severity >= Severity[fail_on.upper()] for one in found):
        sys.exit(FOUND)


def _codes(said: Sequence[str], known: Sequence[str]) -> list[str]:
    codes = [code.strip().upper() for word in said for code in word.split(",") if code.strip()]
    for code in codes:
        if code not in known:
            raise BadInput(f"--ignore {code}: there is no such code; there are {known[0]} to {known[-1]}")
    return codes


def _in(finding: Finding, space: str | None) -> bool:
    return space is None or finding.subject.partition(" ")[2].startswith(f"{space}/")


def _read(
    names: tuple[str, ...], namespace: str | None, kubeconfig: str | None, context: str | None, *, everything: bool
) -> tuple[Checked, str | None]:
    """What is to be checked, and the namespace to keep to, if any."""
    from situate.cli.input.workloads import read_files, read_live

    if names:
        read = read_files(read_sources(names))
        if not read.names:
            raise BadInput(f"{', '.join(names)}: no object in there")
        return read, namespace

    async def work(client: Client) -> tuple[Checked, str | None]:
        space = None if everything else namespace or client.access.namespace or "default"
        return await read_live(client), space

    return with_client(kubeconfig, context, work)


def _findings(read: Checked, profile: Profile) -> list[Finding]:
    from situate.cli.commands.check.budgets import check_budgets
    from situate.cli.commands.check.nodes import check_nodes
    from situate.cli.commands.check.pods import check_pods

    return [*check_pods(read), *check_nodes(read, profile), *check_budgets(read)]


def _notes(read: Checked) -> list[str]:
    """What could not be judged, because it was not there to read."""
    notes = [f"cannot list {kind}: {why}" for kind, why in sorted(read.refused.items())]
    if read.workloads and not read.nodes:
        told = (
            "whether nodes could take the workloads cannot be judged (SIT003, SIT006, SIT009, SIT011, part of SIT007)"
        )
        notes.append(f"no Node was given: {told}")
    named = sorted({one.pod.spec.priority_class_name for one in read.workloads if one.pod.spec.priority_class_name})
    if named and not read.priority_classes:
        notes.append(f"no PriorityClass was given: whether {', '.join(named)} is there cannot be judged (SIT010)")
    if read.budgets and not read.workloads:
        notes.append("no workload was given: what minAvailable of a budget comes to cannot be judged (SIT008)")
    if not read.workloads and not read.budgets:
        notes.append("no workload was given: there is nothing to check")
    return notes


# -- what is printed -------------------------------------------------------------------------------------------------


def _values(found: Sequence[Finding], notes: Sequence[str], read: Checked) -> dict[str, Any]:
    return {
        "summary": {"workloads": len(read.workloads), "nodes": len(read.nodes), **_counts(found)},
        "findings": [
            {
                "code": one.rule.code,
                "severity": one.rule.severity.word,
                "title": one.rule.title,
                "object": one.subject,
                "file": one.file,
                "field": one.field,
                "problem": one.problem,
                "change": one.change,
            }
            for one in found
        ],
        "notes": list(notes),
    }


def _counts(found: Sequence[Finding]) -> dict[str, int]:
    from situate.cli.commands.check.rules import Severity

    return {f"{one.word}s": sum(finding.rule.severity is one for finding in found) for one in reversed(Severity)}


def _table(found: Sequence[Finding], read: Checked) -> str:
    from situate.cli.commands.place.table import printable

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    lines = []
    for one in found:
        word = one.rule.severity.word
        shown = click.style(word, fg=COLOURS[word], bold=True) if colour else word
        lines.append(f"{shown} {one.rule.code} {printable(one.subject)} {printable(one.field)} ({printable(one.file)})")
        lines.append(f"    {printable(one.problem)}")
        lines.append(f"    → {printable(one.change)}")
    counts = ", ".join(f"{count} {word if count != 1 else word[:-1]}" for word, count in _counts(found).items())
    workloads = f"{len(read.workloads)} workload{'' if len(read.workloads) == 1 else 's'}"
    lines.append(f"{workloads}: {counts}")
    return "".join(f"{line}\n" for line in lines)
