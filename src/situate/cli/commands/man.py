"""`situate man`: a manual page for each command, from what `--help` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from situate import __version__
from situate.cli import main

SECTION: Final = "1"


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def man(directory: Path) -> None:
    """Write a manual page for each command into DIRECTORY: situate.1, situate-why.1 and so on."""
    directory.mkdir(parents=True, exist_ok=True)
    count = 0
    for context in _commands(click.Context(main, info_name="situate")):
        name = context.command_path.replace(" ", "-")
        (directory / f"{name}.{SECTION}").write_text(manual_page(context))
        count += 1
    click.echo(f"{count} manual pages are in {directory}. Read one: man -l {directory}/situate.{SECTION}")


def _commands(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            child = context.command.get_command(context, name)
            if child is not None:
                yield from _commands(click.Context(child, info_name=name, parent=context))


def manual_page(context: click.Context) -> str:
    """The page in roff."""
    command = context.command
    path = context.command_path
    name, summary = path.replace(" ", "-"), command.get_short_help_str(200)
    lines = [
        f'.TH "{_escaped(name.upper())}" "{SECTION}" "" "situate {__version__}" "situate manual"',
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(summary)}",
        ".SH SYNOPSIS",
        f".B {_escaped(path)}",
        _escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
    ]
    for paragraph in (command.help or "").replace("\b\n", "").split("\n\n"):
        lines += [".PP", *(_escaped(line.strip()) for line in paragraph.splitlines() if line.strip())]
    options = [record for parameter in command.params if (record := parameter.get_help_record(context)) is not None]
    if options:
        lines.append(".SH OPTIONS")
    for flags, text in options:
        lines += [".TP", f"\\fB{_escaped(flags)}\\fR", _escaped(text)]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            said = "" if found is None else found.get_short_help_str(200)
            lines += [".TP", f"\\fB{_escaped(path)} {_escaped(child)}\\fR", _escaped(said)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Text that roff prints as it is: backslashes, dashes, and dots at the beginning of a line are its own."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain
