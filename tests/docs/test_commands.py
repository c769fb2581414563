"""docs/COMMANDS.md names every command and every option that there is, and none that there is not."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from situate.cli import SUMMARIES, main

PAGE = (Path(__file__).parent.parent.parent / "docs" / "COMMANDS.md").read_text()
ON_EVERY_COMMAND = {"-h", "--help"}


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is None:
                raise RuntimeError(f"{path} lists {name} and does not have it")
            yield from walk(child, f"{path} {name}")


def options_of(command: click.Command) -> set[str]:
    return {
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in (*parameter.opts, *parameter.secondary_opts)
    } - ON_EVERY_COMMAND


def arguments_of(command: click.Command) -> set[str]:
    context = click.Context(command)
    return {
        re.sub(r"[^A-Z_]", "", parameter.make_metavar(context))
        for parameter in command.params
        if isinstance(parameter, click.Argument)
    }


def section(path: str) -> str:
    """What stands under the heading of this command, up to the next heading of any command."""
    found = re.search(rf"^#+ `{re.escape(path)}`$(.*?)(?=^#+ `situate|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


COMMANDS = list(walk(main, "situate"))
each_command = pytest.mark.parametrize("path, command", COMMANDS, ids=[path for path, _ in COMMANDS])


def test_the_headings_are_the_commands() -> None:
    assert sorted(re.findall(r"^#+ `(situate[^`]*)`$", PAGE, re.MULTILINE)) == sorted(path for path, _ in COMMANDS)


@each_command
def test_the_options_of_the_page_are_those_of_the_command(path: str, command: click.Command) -> None:
    rows = re.findall(r"^\| (`-.*?) \|", section(path), re.MULTILINE)
    named = {option for row in rows for option in re.findall(r"(?<![\w-])--?[a-z][\w-]*", row)}
    assert named == options_of(command)


@each_command
def test_the_arguments_of_a_command_are_in_its_section(path: str, command: click.Command) -> None:
    missing = {name for name in arguments_of(command) if name not in section(path)}
    assert missing == set()


@each_command
def test_a_command_says_what_it_does(path: str, command: click.Command) -> None:
    assert command.help


@pytest.mark.parametrize("name", sorted(SUMMARIES))
def test_the_summary_of_a_command_is_in_its_section(name: str) -> None:
    assert SUMMARIES[name] in section(f"situate {name}")
