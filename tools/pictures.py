"""Draws docs/pictures/why.svg: a terminal with what `situate why` prints. `python -m tools.pictures`.

The picture needs no font of another host: it names the reader's own monospace fonts.
"""

import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "why.svg"
COMMAND = ("why", "notebook-0", "-f", "examples/cluster.yaml", "-f", "examples/workload.yaml")
WIDTH = 104
LEAST_HEIGHT = 24
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"


def printed() -> str:
    """What the command prints on a terminal, with its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LEAST_HEIGHT, WIDTH, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "situate", *COMMAND],
        cwd=ROOT,
        env=env | {"TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    ):
        os.close(theirs)
        parts = []
        while part := _read(ours):
            parts.append(part)
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the other side has closed
        return b""


def drawn(text: str) -> str:
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), highlight=False, markup=False)  # noqa: SIM115, PTH123
    console.print(Text("$ situate " + " ".join(COMMAND[:2]), style="bold"))
    console.print(Text.from_ansi(text), end="")
    svg = console.export_svg(title="why is it pending?", theme=MONOKAI, unique_id="why")
    svg = FONT_FACE.sub("", svg)
    svg = svg.replace("font-family: Fira Code, monospace", f"font-family: {FONTS}")
    return re.sub(r"font-family: arial", "font-family: system-ui, sans-serif", svg)


def words(svg: str) -> list[str]:
    """The words of the picture, in order, whatever their colours and places."""
    lines = re.findall(r"<text class=\"why-(?!title)[^>]*>(.*?)</text>", svg)
    return html.unescape(" ".join(lines)).replace("\xa0", " ").split()


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn(printed()))
    print(f"drew {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
