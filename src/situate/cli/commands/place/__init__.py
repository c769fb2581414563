"""`situate place`: where the pending pods of some files would go, and why. Prints nothing before all of it is known."""

import sys
from typing import Final

import click

from situate.cli import BadInput
from situate.cli.commands.place.changes import change_lines, change_values, changes
from situate.cli.commands.place.rehearsal import PlacementOutcome, rehearse
from situate.cli.commands.place.summary import DetailLevel
from situate.cli.commands.place.table import table
from situate.cli.commands.place.values import as_values
from situate.cli.input.cluster import ClusterObjects, read_files
from situate.cli.input.expanded import add_workload_pods
from situate.cli.input.files import mapped_sources
from situate.cli.input.notes import device_needs, ignored_field_notes, ignored_note, notes_on, template_notes
from situate.cli.input.profiles import read_profiles
from situate.cli.options import compare_version_option, config_option, kubernetes_version_option, output_option
from situate.cli.output.formats import NAME, TABLE, WIDE, dump, for_people, names_of_pods
from situate.cli.output.text import echo_lines, echo_notes
from situate.core.versions import DEFAULT, KubernetesRules

NOT_ALL_PLACED: Final = 1
READS: Final = "`place` reads pods and the workloads that make them"
PROGRESS_EVERY: Final = 500
"""How many pods are decided between two progress messages on a terminal."""


@click.command()
@click.option(
    "-f", "--filename", "names", multiple=True, required=True, metavar="FILE", help="File, folder or - (repeatable)."
)
@config_option
@output_option()
@click.option("--every-node", is_flag=True, help="In JSON and YAML, include the result for each node.")
@kubernetes_version_option()
@compare_version_option
def place(
    names: tuple[str, ...],
    config: str | None,
    output: str,
    every_node: bool,
    rules: KubernetesRules | None,
    other: KubernetesRules | None,
) -> None:
    """Place the pending pods of some files, and say where and why.

    The files are the cluster, and nothing is changed. Workloads make the pods that do not exist yet, as their
    controllers would. Exits with 1 if a pod fits nowhere. With --compare-kubernetes-version, shows only what would
    change with that version, and exits with 0.
    """
    if every_node and (for_people(output) or output == NAME):
        raise BadInput("--every-node needs -o json, yaml or jsonpath")
    sources = list(mapped_sources(names))
    objects, cluster = read_files(sources, rules=rules, claims=True)
    if not objects.ignored and not objects.kinds:
        raise BadInput(f"{', '.join(names)}: no objects found")
    if add_workload_pods(objects, sources):
        objects.make_claims()
        cluster = objects.cluster(rules or DEFAULT)
    profiles = read_profiles(config, rules)
    if other is not None:
        _compare(objects, config, output, rules or DEFAULT, other)
        return
    detail = (
        DetailLevel.EVERY_NODE if every_node else DetailLevel.PLACE if output in (TABLE, NAME) else DetailLevel.REASONS
    )
    notes = [
        *ignored_note(objects.ignored, "`place` reads pods and the workloads that make them"),
        *notes_on(objects, device_needs(objects.pods)),
        *ignored_field_notes(objects.named),
    ]
    notes += template_notes(objects.pods, objects.templates)
    rehearsed = rehearse(objects.pods, cluster, profiles, detail=detail, progress=_progress)
    if output == NAME:
        echo_lines(names_of_pods([one.key for one in rehearsed.placements]))
    elif for_people(output):
        echo_lines(table(rehearsed, wide=output == WIDE))
    else:
        click.echo(dump(as_values(rehearsed), output), nl=False)
    echo_notes(notes)
    if any(one.outcome is PlacementOutcome.REFUSED for one in rehearsed.placements):
        sys.exit(NOT_ALL_PLACED)


def _compare(
    objects: ClusterObjects, config: str | None, output: str, rules: KubernetesRules, other: KubernetesRules
) -> None:
    """Place the pods by the rules of both versions, and show those that differ."""
    before, after = (
        rehearse(
            objects.pods,
            objects.cluster(each),
            read_profiles(config, each),
            detail=DetailLevel.PLACE,
            progress=_progress,
        )
        for each in (rules, other)
    )
    found, pods = changes(before, after), len(before.placements)
    if output == NAME:
        echo_lines(names_of_pods([one.before.key for one in found]))
    elif for_people(output):
        echo_lines(change_lines(found, pods, rules, other))
    else:
        click.echo(dump(change_values(found, pods, rules, other), output), nl=False)


def _progress(done: int, of: int) -> None:
    if done % PROGRESS_EVERY == 0 and sys.stderr.isatty():
        click.echo(f"decided {done} of {of} pods", err=True)
