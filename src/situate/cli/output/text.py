"""Text for people: columns, colour, plurals, and nothing that a terminal would obey. Imports nothing heavy."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from situate.cli.output.formats import NAME, dump, for_people

MOST_ROWS: Final = 20
"""How many rows of a plan's table people see; programs get all."""


def printable(text: str) -> str:
    """The text without characters that control a terminal: plugins and files may say anything."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def plural(count: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def age(seconds: int) -> str:
    """`5s`, `3m`, `2h`, `4d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def uses_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """None: the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def headline(text: str, good: bool) -> str:
    """The first line of an answer, in green or red."""
    return click.style(printable(text), fg="green" if good else "red", bold=True) if uses_colour() else printable(text)


def columns(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    gap: int = 2,
    most: int | None = None,
    numbers: bool = False,
) -> list[str]:
    """A table, each column as wide as its widest cell.

    `most` limits the rows, and says how many more there are. `numbers` aligns all columns but the first to the right.
    """
    shown = [[printable(str(cell)) for cell in row] for row in rows[:most]]
    widths = [max(map(len, column)) for column in zip(headings, *shown, strict=True)]
    lines = []
    for row in [list(headings), *shown]:
        cells = [
            cell.rjust(width) if numbers and at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * gap).join(cells).rstrip())
    return lines if most is None or len(rows) <= most else [*lines, f"and {len(rows) - most} more: see -o json"]


def plan_columns(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    return columns(headings, rows, most=MOST_ROWS)


def echo_lines(lines: Sequence[str]) -> None:
    click.echo("".join(f"{line}\n" for line in lines), nl=False)


def echo_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"note: {note}", err=True)


def show(
    lines: Sequence[str],
    values: Mapping[str, Any] | Sequence[Any],
    notes: Sequence[str],
    output: str,
    names: Sequence[str] = (),
) -> None:
    """Print an answer: as text or names, with notes on stderr; or as one object, which contains the notes."""
    if output == NAME:
        lines = names
    elif not for_people(output):
        if isinstance(values, Mapping):
            values, notes = {**values, "notes": list(notes)}, ()
        click.echo(dump(values, output), nl=False)
        lines = ()
    echo_lines(lines)
    echo_notes(notes)
