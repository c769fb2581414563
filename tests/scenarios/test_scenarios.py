"""Each file here is a story that a scheduler lives through; what it answers is what the file expects.

After a change that is meant, `python tests/scenarios/test_scenarios.py --rewrite` writes what is answered now into the
files: read the difference before you keep it.
"""

import sys
from pathlib import Path

import pytest

from situate.sim.scenario import ScenarioError, parse, play, render

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.replace("_", " "))
def test_the_story_goes_as_it_is_written(path: Path) -> None:
    written = parse(path.read_text())
    assert render(play(written)) == render(written)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.replace("_", " "))
def test_the_file_begins_by_saying_what_it_is_about(path: Path) -> None:
    assert path.read_text().startswith("# ")


def test_there_are_stories() -> None:
    assert len(FILES) >= 10


def test_an_unknown_command_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="no such command: dance"):
        play(parse("dance\n----\n"))


def test_commands_without_an_answer_are_an_error() -> None:
    with pytest.raises(ScenarioError, match="commands without ----"):
        parse("step\n")


def rewrite() -> None:
    for path in FILES:
        path.write_text(render(play(parse(path.read_text()))))


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/scenarios/test_scenarios.py --rewrite")
    rewrite()
