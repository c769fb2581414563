"""What the pages show being typed works, and prints what they show.

A page shows a command in a fenced `console` block, on a line that begins with `$ `; what it prints follows.

- `$ situate ...` is run, from the root of the repository. It must exit 0, or as `# exit 2` after it says.
- `$ make demo` is run as the commands that make would run. Any other `$ make ...` only has to be something make knows.
- Other programs are not run.
- Where output is shown, it is compared line by line. A line `...` stands for any lines, and `…` in a line for any text.

`python tests/docs/test_console.py` writes into the pages what the commands print now (but not where a page has `...`).
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TUTORIALS = ROOT / "docs" / "start"
"""test_tutorials.py follows these."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent != TUTORIALS),
]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"#\s*exit\s+(\d+)\s*$")
ANY_LINES = "..."
ANY_TEXT = "…"
TIMEOUT_S = 240
"""`make demo` takes ten seconds on an idle machine, and a minute on one that does ten other things."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One command, as a page shows it."""

    page: str
    line: str
    output: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        found = EXIT.search(self.line)
        return int(found.group(1)) if found else 0

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line, comments=True)


def shown_in(page: Path) -> list[Shown]:
    """The commands of one page that are ours to run."""
    found = []
    for block in BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *output = part.rstrip("\n").split("\n")
            if line.split()[0] in ("situate", "make"):
                found.append(Shown(str(page.relative_to(ROOT)), line, tuple(output)))
    return found


def run(words: list[str]) -> tuple[int, list[str]]:
    """Exit code and lines of what a terminal would show."""
    program, *arguments = words
    argv = [sys.executable, "-m", "situate", *arguments] if program == "situate" else [program, *arguments]
    # A make above us must not pass its flags on; a terminal's size and colours must not leak into the pages.
    leaks = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "FORCE_COLOR", "COLUMNS", "LINES")
    env = {name: value for name, value in os.environ.items() if name not in leaks} | {"NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        argv,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout.rstrip("\n").split("\n") if done.stdout else []


def run_shown(shown: Shown) -> tuple[int, list[str]]:
    if shown.words[0] == "situate":
        return run(shown.words)
    code, recipe = run(["make", "--dry-run", *shown.words[1:]])
    if code != 0 or shown.words != ["make", "demo"]:
        return code, recipe
    ours = [line for line in recipe if re.fullmatch(r"sh \S+ \S*/situate", line)]
    if len(ours) != 1:
        raise RuntimeError(f"make demo should run one script with situate: {recipe}")
    _, script, _ = ours[0].split()
    return run(["sh", script, f"{sys.executable} -m situate"])


def is_compared(shown: Shown) -> bool:
    return bool(shown.output) and (shown.words[0] == "situate" or shown.words == ["make", "demo"])


def matches(expected: tuple[str, ...], got: list[str]) -> bool:
    pattern = "".join(r"(?:.*\n)*?" if line == ANY_LINES else _line_pattern(line.rstrip()) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in got)) is not None


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split(ANY_TEXT))


def rewritten(page: Path) -> str:
    """The page, with what its commands print now."""
    text = page.read_text()
    for shown in shown_in(page):
        if is_compared(shown) and ANY_LINES not in shown.output and ANY_TEXT not in "".join(shown.output):
            before = "\n".join((f"$ {shown.line}", *shown.output))
            after = "\n".join((f"$ {shown.line}", *(line.rstrip() for line in run_shown(shown)[1])))
            text = text.replace(before, after)
    return text


ALL_SHOWN = [shown for page in PAGES for shown in shown_in(page)]


@pytest.mark.parametrize("shown", ALL_SHOWN, ids=lambda shown: f"{shown.page} shows `{shown.line}`")
def test_a_command_works_as_its_page_shows(shown: Shown) -> None:
    code, output = run_shown(shown)
    assert code == shown.exit_code, "\n".join(output)
    if is_compared(shown):
        assert matches(shown.output, output), "\n".join(("the command now prints:", *output))


def test_the_readme_shows_the_demo_and_what_it_prints() -> None:
    assert [shown.page for shown in ALL_SHOWN if shown.words == ["make", "demo"] and shown.output] == ["README.md"]


def test_a_newcomer_finds_the_two_commands_in_the_readme() -> None:
    first, second = [shown.words for shown in ALL_SHOWN if shown.page == "README.md"][:2]
    assert (first, second) == (["make", "demo"], ["make", "test"])


@pytest.mark.parametrize(
    "expected, got, answer",
    [
        pytest.param(("a", "b"), ["a", "b"], True, id="the same lines"),
        pytest.param(("a",), ["a  "], True, id="blanks at the end of a line do not count"),
        pytest.param(("a",), ["a", "b"], False, id="a line more"),
        pytest.param(("a", "..."), ["a", "b", "c"], True, id="dots stand for lines"),
        pytest.param(("a", "...", "c"), ["a", "c"], True, id="dots stand for no line"),
        pytest.param(("...", "c"), ["a", "b"], False, id="dots do not stand for the line after them"),
        pytest.param(("a.c",), ["abc"], False, id="a dot in a line is a dot"),
    ],
)
def test_shown_output_is_compared_line_by_line(expected: tuple[str, ...], got: list[str], answer: bool) -> None:
    assert matches(expected, got) is answer


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(rewritten(path))
