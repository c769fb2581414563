"""Where text for people is drawn: as wide as asked for, in colour if asked for, the same on every machine."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["NARROWEST", "WIDTH", "canvas", "drawn"]

WIDTH: Final = 100
"""In characters, where the output is not a terminal, which has a width of its own."""
NARROWEST: Final = 60
"""A terminal that is narrower breaks the lines itself."""


def canvas(terminal_width: int | None, *, colour: bool, width: int = WIDTH) -> tuple[Console, StringIO]:
    """To draw on, and where it is drawn. `terminal_width` is None where there is no terminal."""
    from rich.console import Console

    text = StringIO()
    console = Console(
        file=text,
        width=max(terminal_width or width, NARROWEST),
        height=100,  # or it asks the environment for both
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    return console, text


def drawn(text: StringIO) -> str:
    """What was drawn, without blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
