"""The tutorials work as they are written: each is followed from top to bottom, in an empty directory, by one shell.

- A `yaml` block that begins with `# name.yaml` is written to that file.
- Every line of a `console` block that begins with `$ ` is run, whatever program it is. It must exit 0, or as `# exit 1`
  after it says. Lines that begin with `> ` continue it.
- Where output is shown it is compared, with `...` for any lines and `…` for any text. What only reads is repeated until
  it prints that: the page says what a reader sees after a moment.
- Blocks of another language (`sh`, `text`) are not run.

`python tests/docs/test_tutorials.py` prints each tutorial with what its commands print now.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

ROOT = Path(__file__).parent.parent.parent
TUTORIALS = sorted(path for path in (ROOT / "docs" / "start").glob("*.md") if path.name != "index.md")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"#\s*exit\s+(\d+)\s*$")
READS = re.compile(r"situate (get|status|why|top|describe)\b|cat |tail |grep ")
PATIENCE_S = 90.0
ENDED = "── ended with"
NAMES_THE_CLUSTER = "note: this changes the cluster"
"""What commands that write say first; the pages leave it out."""
ANY_LINES, ANY_TEXT = "...", "…"


@dataclass(frozen=True, slots=True)
class Step:
    """A file to write, or a command to type."""

    line: str
    output: tuple[str, ...] = ()
    file: str = ""

    @property
    def exit_code(self) -> int:
        found = EXIT.search(self.line)
        return int(found.group(1)) if found else 0


@dataclass(slots=True)
class Shell:
    """One bash, in a directory of its own, in which `situate` is the one of an interpreter: this one's, by default."""

    folder: Path
    python: str = sys.executable
    process: "subprocess.Popen[str]" = field(init=False)

    def __enter__(self) -> Self:
        programs = self.folder / "bin"
        programs.mkdir()
        situate = programs / "situate"
        # Ports of our own: tests run beside each other.
        free = 'case "$1" in up) set -- "$@" --port 0;; scheduler) set -- "$@" --secure-port 0;; esac'
        situate.write_text(f'#!/bin/sh\n{free}\nexec "{self.python}" -m situate "$@"\n')
        situate.chmod(situate.stat().st_mode | stat.S_IXUSR)
        here = self.folder / "here"
        here.mkdir()
        leaks = ("KUBECONFIG", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "FORCE_COLOR", "COLUMNS", "LINES")
        env = {name: value for name, value in os.environ.items() if name not in leaks}
        env |= {"HOME": str(self.folder), "PATH": f"{programs}:{os.environ['PATH']}", "NO_COLOR": "1", "TERM": "dumb"}
        self.process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=here,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.communicate(
            "kill $(jobs -p) 2>/dev/null; [ ! -d .situate ] || situate down --delete\n", timeout=120
        )

    def run(self, line: str) -> tuple[int, list[str]]:
        """Exit code and lines of what a terminal would show."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the shell has no pipes")
        self.process.stdin.write(f'{line}\nprintf "\\n{ENDED} %s\\n" $?\n')
        self.process.stdin.flush()
        lines: list[str] = []
        for printed in self.process.stdout:
            if printed.startswith(ENDED):
                return int(printed.split()[-1]), _trimmed(lines)
            if not printed.startswith(NAMES_THE_CLUSTER):
                lines.append(printed.rstrip())
        raise RuntimeError("the shell ended: " + "\n".join(lines))


def _trimmed(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines.pop()
    return lines


def steps(page: Path) -> list[Step]:
    found = []
    for language, text in BLOCK.findall(page.read_text()):
        if language == "yaml" and text.startswith("# "):
            found.append(Step(text, file=text.split("\n", 1)[0].removeprefix("# ").strip()))
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, *output = part.rstrip("\n").split("\n")
                while output and output[0].startswith("> "):
                    line += "\n" + output.pop(0).removeprefix("> ")
                found.append(Step(line, tuple(output)))
    return found


def matches(expected: tuple[str, ...], got: list[str]) -> bool:
    pattern = "".join(r"(?:.*\n)*?" if line == ANY_LINES else _line_pattern(line.rstrip()) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in got)) is not None


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split(ANY_TEXT))


def take(shell: Shell, step: Step) -> tuple[int, list[str]]:
    """The last try: as soon as it prints what the page shows, or when patience ends."""
    if step.file:
        (shell.folder / "here" / step.file).write_text(step.line)
        return 0, []
    until = time.monotonic() + PATIENCE_S
    while True:
        code, got = shell.run(step.line)
        as_shown = code == step.exit_code and (not step.output or matches(step.output, got))
        if as_shown or not READS.match(step.line) or time.monotonic() > until:
            return code, got


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_works_as_it_is_written(page: Path, tmp_path: Path) -> None:
    with Shell(tmp_path) as shell:
        for step in steps(page):
            code, got = take(shell, step)
            assert code == step.exit_code, f"$ {step.line}\n" + "\n".join(got)
            if step.output:
                assert matches(step.output, got), f"$ {step.line}\n" + "\n".join(got)


def test_there_are_four_tutorials_and_the_page_before_them_names_each() -> None:
    index = (ROOT / "docs" / "start" / "index.md").read_text()
    assert len(TUTORIALS) == 4
    assert [page.name for page in TUTORIALS if f"]({page.name})" not in index] == []


if __name__ == "__main__":
    for name in sys.argv[1:]:
        folder = Path(tempfile.mkdtemp())
        with Shell(folder) as shell:
            for step in steps(Path(name)):
                if not step.file:
                    print(f"$ {step.line}")
                code, got = take(shell, step)
                print("\n".join(got), f"[exit {code}]\n", flush=True)
        shutil.rmtree(folder)
