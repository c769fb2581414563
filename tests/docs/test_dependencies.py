"""Decision 0006 names every run-time dependency, and no other."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTE = ROOT / "docs" / "internals" / "decisions" / "0006-few-dependencies.md"
NUMBERS = {"thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17}


def test_the_note_names_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=~;\s]", one, maxsplit=1)[0] for one in project["dependencies"]}
    text = NOTE.read_text()
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| (?:here|\[)", text, re.MULTILINE)
    assert {name.strip() for row in rows for name in row.split(",")} == declared
    count = re.search(r"Today there are (\w+) at run time", text)
    assert count is not None
    assert NUMBERS[count[1]] == len(declared)
