"""`situate check`: find problems in workloads before the scheduler does. For pipelines; changes nothing."""

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from situate.cli import BadInput
from situate.cli.cluster.connection import Client, with_client
from situate.cli.commands.check.budgets import check_budgets
from situate.cli.commands.check.devices import check_devices, device_notes
from situate.cli.commands.check.input import CheckInput, read_files, read_live
from situate.cli.commands.check.nodes import check_nodes
from situate.cli.commands.check.pods import check_pods
from situate.cli.commands.check.rules import RULES, Finding, Severity
from situate.cli.input.files import read_sources
from situate.cli.input.notes import refused_notes
from situate.cli.input.published import ClusterProfiles, cluster_profiles, local_profiles
from situate.cli.options import (
    FILES_OR_CLUSTER,
    cluster_options,
    config_option,
    files_option,
    kubernetes_version_option,
    output_option,
    require_one_scope,
    require_one_source,
)
from situate.cli.output.formats import dump
from situate.cli.output.text import echo_notes, plural, printable, show, uses_colour
from situate.core.versions import KubernetesRules

FOUND: Final = 1
NEVER: Final = "never"
COLOURS: Final = {"error": "red", "warning": "yellow", "info": "blue"}


@click.command()
@files_option
@click.option("-n", "--namespace", metavar="NAME", help="Only workloads of this namespace.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Workloads of all namespaces of a cluster.")
@config_option
@kubernetes_version_option(FILES_OR_CLUSTER)
@click.option("--ignore", multiple=True, metavar="CODE", help="Ignore this rule: SIT002 (repeatable).")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info", NEVER]),
    default="error",
    show_default=True,
    help="Exit with 1 on findings of this severity or worse.",
)
@output_option(more=("sarif",))
@cluster_options
def check(
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    config: str | None,
    rules: KubernetesRules | None,
    ignore: tuple[str, ...],
    fail_on: str,
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Find problems in workloads before the scheduler does.

    Checks the workloads of some files against the nodes, budgets and priority classes in them; without -f, those of a
    cluster. Exits with 1 if there are errors.
    """
    require_one_source(names, kubeconfig, context)
    require_one_scope(namespace, all_namespaces)
    ignored = _codes(ignore, [rule.code for rule in RULES])
    read, space, profiles = _read(names, namespace, kubeconfig, context, config, rules, everything=all_namespaces)
    profile = next(iter(profiles.frameworks.values())).profile
    all_found = [*check_pods(read), *check_nodes(read, profile), *check_budgets(read), *check_devices(read, profile)]
    inside = "" if space is None else f" {space}/"
    found = [
        one for one in all_found if one.rule.code not in ignored and (inside in one.subject or "/" not in one.subject)
    ]
    found.sort(key=lambda one: (-one.rule.severity, one.file, one.subject, one.rule.code, one.field))
    _show(found, read, output)
    if fail_on != NEVER and any(one.rule.severity >= Severity[fail_on.upper()] for one in found):
        sys.exit(FOUND)


def _show(found: Sequence[Finding], read: CheckInput, output: str) -> None:
    if output == "sarif":
        from situate.cli.commands.check.sarif import sarif

        click.echo(dump(sarif(found), "json"), nl=False)
        echo_notes(_notes(read))
        return
    show(_lines(found, read), _values(found, read), _notes(read), output, _names(found))


def _names(found: Sequence[Finding]) -> list[str]:
    """`Deployment shop/web` becomes `deployment/web`."""
    parted = [one.subject.partition(" ") for one in found]
    return list(dict.fromkeys(f"{kind.lower()}/{name.rpartition('/')[2]}" for kind, _, name in parted))


def _codes(words: Sequence[str], known: Sequence[str]) -> list[str]:
    codes = [code.strip().upper() for word in words for code in word.split(",") if code.strip()]
    for code in codes:
        if code not in known:
            raise BadInput(f"--ignore {code}: unknown code; use {known[0]} to {known[-1]}")
    return codes


def _read(
    names: tuple[str, ...],
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    rules: KubernetesRules | None,
    *,
    everything: bool,
) -> tuple[CheckInput, str | None, ClusterProfiles]:
    """What to check, the only namespace whose findings count, if any, and the profiles to check by."""
    if names:
        profiles = local_profiles(config, rules)
        read = read_files(read_sources(names))
        if not read.count:
            raise BadInput(f"{', '.join(names)}: no objects found")
        return read, namespace, profiles

    async def work(client: Client) -> tuple[CheckInput, str | None, ClusterProfiles]:
        space = None if everything else namespace or client.access.namespace or "default"
        profiles = await cluster_profiles(client, config, rules)
        read = await read_live(client)
        read.notes += profiles.notes_on(one.pod for one in read.workloads)
        return read, space, profiles

    return with_client(kubeconfig, context, work)


def _notes(read: CheckInput) -> list[str]:
    notes = [*read.notes, *refused_notes(read.refused)]
    if read.workloads and not read.nodes:
        notes.append("the input has no Node: SIT003, SIT006, SIT009, SIT011 and part of SIT007 are not checked")
    named = sorted({one.pod.spec.priority_class_name for one in read.workloads if one.pod.spec.priority_class_name})
    if named and not read.priority_classes:
        notes.append(f"the input has no PriorityClass: SIT010 is not checked for {', '.join(named)}")
    if read.budgets and not read.workloads:
        notes.append("the input has no workload: minAvailable of budgets (SIT008) is not checked")
    notes += device_notes(read)
    if not read.workloads and not read.budgets and not read.devices.claims and not read.devices.templates:
        notes.append("the input has no workload: there is nothing to check")
    return notes


def _values(found: Sequence[Finding], read: CheckInput) -> dict[str, Any]:
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
    }


def _counts(found: Sequence[Finding]) -> dict[str, int]:
    return {f"{one.word}s": sum(finding.rule.severity is one for finding in found) for one in reversed(Severity)}


def _lines(found: Sequence[Finding], read: CheckInput) -> list[str]:
    lines = []
    for one in found:
        word = one.rule.severity.word
        shown = click.style(word, fg=COLOURS[word], bold=True) if uses_colour() else word
        lines.append(f"{shown} {one.rule.code} {printable(one.subject)} {printable(one.field)} ({printable(one.file)})")
        lines.append(f"    {printable(one.problem)}")
        lines.append(f"    → {printable(one.change)}")
    counts = ", ".join(f"{count} {word if count != 1 else word[:-1]}" for word, count in _counts(found).items())
    return [*lines, f"{plural(len(read.workloads), 'workload')}: {counts}"]
