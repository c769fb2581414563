"""Writes the pages of the site that the program itself can write: its API resources, and the help of every command.

`python -m tools.reference DIRECTORY`. `make site` does so each time, so these pages cannot become stale.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from situate.cli import main as command_line
from situate.server.discovery import Discovery

WIDTH = 100
DISCOVERY = Discovery()


def _document(path: str) -> dict[str, Any]:
    found = DISCOVERY.plain(path, "")
    if found is None:
        raise LookupError(f"discovery has no document at {path}")
    return dict(json.loads(found.body))


def resources() -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Each resource that the API server serves: its version, what discovery says of it, and its subresources."""
    groups = _document("/apis")["groups"]
    paths = ["/api/v1", *(f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"])]
    for path in paths:
        listed = _document(path)
        version = listed["groupVersion"]
        found = {one["name"]: one for one in listed["resources"]}
        for name, one in found.items():
            if "/" not in name:
                yield version, one, sorted(each.partition("/")[2] for each in found if each.startswith(f"{name}/"))


def api_page() -> str:
    lines = [
        "# API resources",
        "",
        "What `situate up` and `situate server` serve. [The API server](api.md) says to whom, and how.",
        "",
        "| version | kind | name | short | in a namespace | verbs | subresources |",
        "|---|---|---|---|---|---|---|",
    ]
    for version, one, below in resources():
        short = ", ".join(f"`{name}`" for name in one.get("shortNames", ()))
        inside = "yes" if one["namespaced"] else "no"
        verbs, under = ", ".join(one["verbs"]), ", ".join(f"`{name}`" for name in below)
        lines.append(f"| `{version}` | {one['kind']} | `{one['name']}` | {short} | {inside} | {verbs} | {under} |")
    return "\n".join(lines) + "\n"


def commands(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from commands(child, f"{path} {name}")


def help_page() -> str:
    parts = ["# Help", "What `--help` prints, command by command. [Commands](commands.md) explains more.", ""]
    for path, text in commands(command_line, "situate"):
        parts += [f"## `{path}`", "", "```text", text.rstrip(), "```", ""]
    return "\n".join(parts)


PAGES = {"api-resources.md": api_page, "help.md": help_page}


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
