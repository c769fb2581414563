"""Each file here is a story that a scheduler lives through; what it answers is what the file expects.

After a change that is meant, `python tests/scenarios/test_scenarios.py --rewrite` writes what is answered now into the
files: read the difference before you keep it.
"""

import re
import sys
from pathlib import Path

import pytest

from scenarios.scenario import ScenarioError, parse, play, render

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.replace("_", " "))
def test_the_story_goes_as_it_is_written(path: Path) -> None:
    written = parse(path.read_text())
    assert render(play(written)) == render(written)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.replace("_", " "))
def test_the_file_begins_by_saying_what_it_is_about(path: Path) -> None:
    assert path.read_text().startswith("# ")


def classes() -> dict[str, tuple[str, list[str]]]:
    """What the table in README.md says: the threads and the files of each class of trouble."""
    lines = (HERE / "README.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {name: (threads, files.split(", ")) for name, threads, files in rows[1:]}


def test_every_class_of_trouble_has_its_stories_and_every_story_its_class() -> None:
    told = [name for _, names in classes().values() for name in names]
    assert sorted(told) == [path.stem for path in FILES]


@pytest.mark.parametrize("name", [name for name, (threads, _) in classes().items() if threads])
def test_the_first_story_of_a_class_says_which_threads_it_is_about(name: str) -> None:
    threads, files = classes()[name]
    text = (HERE / f"{files[0]}.txt").read_text()
    said = set(re.findall(r"[0-9]{4,}", text[: text.index("node ")]))
    assert said
    assert said <= set(re.findall(r"[0-9]{4,}", threads))


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
