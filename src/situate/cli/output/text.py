"""How plans are shown: columns for people, one object for programs. Writes to nothing but standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from situate.cli.commands.place.table import printable

ROWS: Final = 20
"""How many lines of one table people are shown; programs get all."""
GAP: Final = "  "


def columns(headings: Sequence[str], rows: Sequence[Sequence[object]], *, indent: str = "") -> list[str]:
    """A table, each column as wide as its widest cell; with too many rows, how many there are more."""
    shown = [[printable(str(cell)) for cell in row] for row in rows[:ROWS]]
    widths = [max(map(len, column)) for column in zip(headings, *shown, strict=True)]
    lines = [
        indent + GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [list(headings), *shown]
    ]
    return lines if len(rows) <= ROWS else [*lines, f"{indent}and {len(rows) - ROWS} more: -o json tells all"]


def styled(text: str, good: bool) -> str:
    """The headline."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return click.style(printable(text), fg="green" if good else "red", bold=True) if colour else printable(text)


def show(lines: Sequence[str], values: Mapping[str, Any], notes: Sequence[str], output: str) -> None:
    """Say it: as lines, with notes beside them, or as one object that has the notes in it."""
    if output == "text":
        click.echo("".join(f"{line}\n" for line in lines), nl=False)
        for note in notes:
            click.echo(f"note: {note}", err=True)
        return
    from situate.wire.dump import dump_json, dump_yaml

    told = {**values, "notes": list(notes)}
    click.echo(dump_json(told) if output == "json" else dump_yaml(told), nl=False)
