"""Every test that docs/internals/requirements.md names exists, and the page has every requirement of the design."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "internals" / "requirements.md").read_text()
NAMED = re.findall(r"`([a-z_0-9/]+\.py)(?:::(\w+))?`", PAGE)
ROW = re.compile(r"^\| (R?\d+b?) \|.*$", re.MULTILINE)


@cache
def names_in(path: str) -> set[str]:
    """Test functions, and what Hypothesis' state machines call their test case."""
    tree = ast.parse((ROOT / "tests" / path).read_text())
    functions = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    assigned = {
        to.id for one in tree.body if isinstance(one, ast.Assign) for to in one.targets if isinstance(to, ast.Name)
    }
    return {name for name in functions | assigned if name.startswith(("test_", "Test"))}


@pytest.mark.parametrize("path, name", [(path, name) for path, name in NAMED if not path.startswith("tests/")])
def test_a_named_test_exists(path: str, name: str) -> None:
    assert name in names_in(path) if name else names_in(path)


def test_every_requirement_has_a_row_that_names_a_test_or_says_that_none_shows_it() -> None:
    rows = {one.group(1): one.group(0) for one in ROW.finditer(PAGE)}
    wanted = [*map(str, range(1, 11)), *(f"R{number}" for number in range(1, 25)), "R7b"]
    assert sorted(rows) == sorted(wanted)
    assert [key for key, row in rows.items() if ".py" not in row and "Not shown" not in row] == []


def test_every_row_of_every_table_names_a_test_or_says_that_none_shows_it() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "shown by" not in line]
    assert len(rows) > 50
    assert [row for row in rows if ".py" not in row and "Not shown" not in row] == []
