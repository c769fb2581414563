"""A rich console that draws into text: as wide as the terminal, in colour if it has any, the same on every machine."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Final

from situate.cli.output.text import terminal_width, uses_colour

if TYPE_CHECKING:
    from rich.console import Console

WIDTH: Final = 100
"""In characters, where the output is not a terminal."""
NARROWEST: Final = 60
"""A narrower terminal breaks the lines itself."""


def canvas(width: int = WIDTH) -> tuple[Console, StringIO]:
    """A console, and the text that it draws into."""
    from rich.console import Console

    text = StringIO()
    colour = uses_colour()
    console = Console(
        file=text,
        width=max(terminal_width() or width, NARROWEST),
        height=100,  # or it reads both from the environment
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    return console, text


def drawn(text: StringIO) -> list[str]:
    """The lines that were drawn, without blanks at their ends."""
    return [line.rstrip() for line in text.getvalue().splitlines()]
