"""`situate place`: where the waiting pods of some files would go, and why. Prints nothing before all of it is known."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from situate.cli import BadInput
from situate.cli.input.files import read_sources

if TYPE_CHECKING:
    from situate.cli.commands.place.rehearsal import Rehearsed
    from situate.wire.objects import Objects

NOT_ALL_PLACED = 1
FOR_PEOPLE = ("table", "wide")
FOR_PROGRAMS = ("json", "yaml")
PROGRESS_EVERY = 500
"""How many pods are decided between two words of progress, where somebody is watching."""


@click.command()
@click.option(
    "-f", "--filename", "names", multiple=True, required=True, metavar="FILE", help="File, folder or - (repeatable)."
)
@click.option("--config", metavar="FILE", help="Scheduler configuration.")
@click.option("-o", "--output", type=click.Choice([*FOR_PEOPLE, *FOR_PROGRAMS]), default="table", show_default=True)
@click.option("--every-node", is_flag=True, help="In JSON and YAML, say what was found on each node.")
def place(names: tuple[str, ...], config: str | None, output: str, every_node: bool) -> None:
    """Place the waiting pods of some files, and say where and why.

    Nothing is changed anywhere: the files are the cluster. Exits with 1 if a pod fits nowhere.
    """
    if every_node and output not in FOR_PROGRAMS:
        raise BadInput("--every-node needs -o json or -o yaml")
    objects = _read(names)
    from situate.cli.commands.place.rehearsal import Outcome, rehearse
    from situate.cli.commands.place.summary import Detail
    from situate.cli.input.profiles import read_profiles  # after reading: what is wrong with a file is soon said

    profiles = read_profiles(None if config is None else Path(config))
    detail = Detail.EVERY_NODE if every_node else Detail.PLACE if output == "table" else Detail.REASONS
    rehearsed = rehearse(objects, profiles, detail=detail, progress=_progress)
    click.echo(_shown(rehearsed, output), nl=False)
    _note(objects, rehearsed)
    if any(one.outcome is Outcome.REFUSED for one in rehearsed.placements):
        sys.exit(NOT_ALL_PLACED)


def _read(names: tuple[str, ...]) -> Objects:
    from situate.wire.objects import read_objects

    gc.disable()  # objects by the thousand are made here and none is let go of: looking for garbage only takes time
    try:
        objects = read_objects(read_sources(names))
    finally:
        gc.enable()
    gc.freeze()
    if not objects.ignored and next(objects.all(), None) is None:
        raise BadInput(f"{', '.join(names)}: no object in there")
    return objects


def _shown(rehearsed: Rehearsed, output: str) -> str:
    if output in FOR_PROGRAMS:
        from situate.cli.commands.place.values import as_values
        from situate.wire.dump import dump_json, dump_yaml

        values = as_values(rehearsed)
        return dump_json(values) if output == "json" else dump_yaml(values)
    from situate.cli.commands.place.table import table

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return table(rehearsed, wide=output == "wide", terminal_width=width, colour=colour)


def _progress(done: int, of: int) -> None:
    if done % PROGRESS_EVERY == 0 and sys.stderr.isatty():
        click.echo(f"decided {done} of {of} pods", err=True)


def _note(objects: Objects, rehearsed: Rehearsed) -> None:
    """What was read and does not count: somebody may have thought that it does."""
    if objects.ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(objects.ignored.items()))
        click.echo(f"note: not read, because scheduling does not: {kinds}", err=True)
    if rehearsed.homeless == 1:
        click.echo("note: 1 bound pod is on a node that no file has, and counts nowhere", err=True)
    elif rehearsed.homeless:
        click.echo(f"note: {rehearsed.homeless} bound pods are on nodes that no file has, and count nowhere", err=True)
