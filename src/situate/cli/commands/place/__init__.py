"""`situate place`: where the pending pods of some files would go, and why. Prints nothing before all of it is known."""

import sys
from typing import Final

import click

from situate.cli import BadInput
from situate.cli.commands.place.rehearsal import PlacementOutcome, rehearse
from situate.cli.commands.place.summary import DetailLevel
from situate.cli.commands.place.table import table
from situate.cli.commands.place.values import as_values
from situate.cli.input.cluster import read_files
from situate.cli.input.files import mapped_sources
from situate.cli.input.notes import ignored_note, notes_on
from situate.cli.input.profiles import read_profiles
from situate.cli.options import config_option, output_option
from situate.cli.output.text import dump, echo_lines, echo_notes

NOT_ALL_PLACED: Final = 1
FOR_PROGRAMS: Final = ("json", "yaml")
PROGRESS_EVERY: Final = 500
"""How many pods are decided between two progress messages on a terminal."""


@click.command()
@click.option(
    "-f", "--filename", "names", multiple=True, required=True, metavar="FILE", help="File, folder or - (repeatable)."
)
@config_option
@output_option("table", "wide", *FOR_PROGRAMS)
@click.option("--every-node", is_flag=True, help="In JSON and YAML, include the result for each node.")
def place(names: tuple[str, ...], config: str | None, output: str, every_node: bool) -> None:
    """Place the pending pods of some files, and say where and why.

    The files are the cluster, and nothing is changed. Exits with 1 if a pod fits nowhere.
    """
    if every_node and output not in FOR_PROGRAMS:
        raise BadInput("--every-node needs -o json or -o yaml")
    objects, cluster = read_files(list(mapped_sources(names)))
    if not objects.ignored and not objects.kinds:
        raise BadInput(f"{', '.join(names)}: no objects found")
    profiles = read_profiles(config)
    detail = DetailLevel.EVERY_NODE if every_node else DetailLevel.PLACE if output == "table" else DetailLevel.REASONS
    notes = [*ignored_note(objects.ignored, "`place` reads Pods"), *notes_on(objects, ())]
    rehearsed = rehearse(objects.pods, cluster, profiles, detail=detail, progress=_progress)
    if output in FOR_PROGRAMS:
        click.echo(dump(as_values(rehearsed), output), nl=False)
    else:
        echo_lines(table(rehearsed, wide=output == "wide"))
    echo_notes(notes)
    if any(one.outcome is PlacementOutcome.REFUSED for one in rehearsed.placements):
        sys.exit(NOT_ALL_PLACED)


def _progress(done: int, of: int) -> None:
    if done % PROGRESS_EVERY == 0 and sys.stderr.isatty():
        click.echo(f"decided {done} of {of} pods", err=True)
