"""docs/reference/commands.md names every command and every option; no page names one that there is not."""

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest

from situate.cli import SUMMARIES, main
from situate.cli.commands.scheduler import NO_EFFECT

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text()
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
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
    named = {option for row in rows for option in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", row)}
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


def test_the_page_says_why_a_flag_has_no_effect() -> None:
    rows = re.findall(r"^\| (`--[^|]*) \| (.*?)\.? \|$", section("situate scheduler"), re.MULTILINE)
    told = {name: why.lower() for flags, why in rows for name in re.findall(r"`--([\w-]+)`", flags)}
    assert {name: told.get(name) for name in NO_EFFECT} == {name: why.lower() for name, why in NO_EFFECT.items()}


# ── what other pages have one type ──────────────────────────────────────────────────────────────────────────────────


def typed_in(page: Path) -> list[str]:
    """The lines of fenced blocks, and the code in sentences, that begin with our command."""
    text = page.read_text()
    fenced = [
        line.removeprefix("$ ")
        for block in re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL)
        for line in block.split("\n")
    ]
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [line for line in (*fenced, *inline) if re.match(r"situate( |$)", line)]


TYPED = list(dict.fromkeys((page, line) for page in PAGES for line in typed_in(page)))


@pytest.mark.parametrize("page, line", TYPED, ids=lambda value: value if isinstance(value, str) else value.name)
def test_what_a_page_has_one_type_is_a_command_with_its_options(page: Path, line: str) -> None:
    if line in NOT_THERE_YET:
        return
    command: click.Command = main
    words = list(takewhile(lambda word: word != "|", shlex.split(line, comments=True)[1:]))
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(command)
        child = command.get_command(context, words[0])
        assert child is not None, f"there is no {words[0]}"
        command, words = child, words[1:]
    named = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert named - options_of(command) - ON_EVERY_COMMAND == set()


NOT_THERE_YET: tuple[str, ...] = ()
"""The README names these to say that they are not there."""


def test_what_is_said_not_to_be_there_is_not_there() -> None:
    assert [line for line in NOT_THERE_YET if line.split()[1] in SUMMARIES] == []
