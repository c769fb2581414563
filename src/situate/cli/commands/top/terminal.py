"""The terminal of `situate top`: its screen, its keys, and how it was before."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from situate.cli.commands.top.frame import VIEWS, Screen, frame
from situate.cli.output.text import uses_colour
from situate.web.model import ClusterModel, ModelEndedError

OPEN: Final = "\x1b[?1049h\x1b[?25l"
CLOSE: Final = "\x1b[?25h\x1b[?1049l"
HOME: Final = "\x1b[H"
END_OF_LINE: Final = "\x1b[K"
END_OF_SCREEN: Final = "\x1b[J"
BETWEEN_S: Final = 0.2
"""The shortest time between two frames."""
CLOCK_S: Final = 1.0
"""The longest."""
QUIT: Final = ("q", "Q", "\x03", "\x04")
SCROLLS: Final = {
    "\x1b[A": -1, "\x1bOA": -1, "k": -1, "\x1b[B": 1, "\x1bOB": 1, "j": 1,
    "\x1b[5~": -10, "\x1b[6~": 10, " ": 10, "\x1b[H": -1_000_000, "g": -1_000_000,
}  # fmt: skip
MOST_BYTES: Final = 64
"""Of keys that are read at once."""


class PressedKeys:
    """What the user chose so far. `pressed` is told what came from the terminal."""

    def __init__(self) -> None:
        self.view = "map"
        self.offset = 0
        self.quit = False
        self.came = asyncio.Event()

    def pressed(self, text: str) -> None:
        """One key, or the escape sequence of one."""
        if text in QUIT:
            self.quit = True
        elif text in VIEWS:
            self.view, self.offset = VIEWS[text], 0
        elif text == "\t":
            views = list(VIEWS.values())
            self.view, self.offset = views[(views.index(self.view) + 1) % len(views)], 0
        elif text in SCROLLS:
            self.offset = max(0, self.offset + SCROLLS[text])
        self.came.set()


def keys_in(text: str) -> Iterator[str]:
    """The keys in what a terminal sent at once."""
    at = 0
    while at < len(text):
        sequence = next((one for one in SCROLLS if len(one) > 1 and text.startswith(one, at)), text[at])
        yield sequence
        at += len(sequence)


@contextmanager
def _own_screen() -> Iterator[None]:
    """The terminal as it was, whatever happens."""
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)
        _write(OPEN)
        yield
    finally:
        _write(CLOSE)
        termios.tcsetattr(number, termios.TCSADRAIN, before)


async def watch(model: ClusterModel, cluster: str) -> None:
    """Until the user quits. Raises ModelEndedError."""
    keys, loop = PressedKeys(), asyncio.get_running_loop()

    def read() -> None:
        text = os.read(sys.stdin.fileno(), MOST_BYTES).decode(errors="replace")
        for key in keys_in(text):
            keys.pressed(key)
        if not text:  # the terminal is gone
            keys.pressed(QUIT[0])

    with _own_screen():
        loop.add_reader(sys.stdin.fileno(), read)
        loop.add_signal_handler(signal.SIGWINCH, keys.came.set)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, keys.pressed, QUIT[0])
        try:
            while not keys.quit:
                if model.ended:
                    raise ModelEndedError(model.ended)
                _draw(model, cluster, keys)
                await _until_news(model, keys)
        finally:
            loop.remove_reader(sys.stdin.fileno())


def _draw(model: ClusterModel, cluster: str, keys: PressedKeys) -> None:
    size = shutil.get_terminal_size()
    screen = Screen(size.columns, size.lines, keys.view, keys.offset, uses_colour())
    lines = frame(model, cluster, screen)
    _write(HOME + f"{END_OF_LINE}\r\n".join(lines) + END_OF_LINE + END_OF_SCREEN)


async def _until_news(model: ClusterModel, keys: PressedKeys) -> None:
    """A key is answered at once; changes of the cluster wait for each other."""
    tick = model.tick
    keys.came.clear()
    try:
        async with asyncio.timeout(BETWEEN_S):
            await keys.came.wait()
    except TimeoutError:
        news = asyncio.ensure_future(model.after(tick, CLOCK_S))
        came = asyncio.ensure_future(keys.came.wait())
        await asyncio.wait([news, came], return_when=asyncio.FIRST_COMPLETED)
        for task in (news, came):
            task.cancel()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
