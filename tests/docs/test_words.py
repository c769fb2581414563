"""The pages and the source speak of the program, in its own words, and are finished."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = sorted(
    path
    for folder in ("src", "tests", "docs", "examples", "bench", "deploy", "tools", ".ci")
    for path in (ROOT / folder).rglob("*")
    if (path.suffix in {".py", ".md", ".yaml", ".go", ".sh", ".tpl", ".txt"} or path.parent.name == ".ci")
    and path.is_file()
    and path != Path(__file__)
)
AT_THE_TOP = [*sorted(ROOT.glob("*.md")), *(ROOT / name for name in ("Makefile", "Dockerfile", "pyproject.toml"))]

# Somebody's own machine, and notes of work not done.
NOWHERE = re.compile(r"(?<![\w.}>-])/(?:work|root|home)/\w|\b(?:TODO|FIXME|XXX|TBD)\b")
# Names of nothing in particular, and pages that are not finished.
NOT_IN_PAGES = re.compile(r"\b(?:helpers?|utils|lorem ipsum|coming soon)\b", re.IGNORECASE)
# Private words that the field's words replaced: docs/internals/glossary.md has those that are left.
RETIRED = re.compile(r"\b(?:moulds?|companions|crews?|happenings|how-manieth|last_breath|shelf|sway)\b", re.IGNORECASE)
# How the design says it: docs/internals/architecture.md names these folders to say that there are none.
SAYS_THERE_ARE_NONE = "There is no"


@pytest.mark.parametrize("path", [*TEXTS, *AT_THE_TOP], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_names_no_private_path_and_leaves_no_note_of_work_to_do(path: Path) -> None:
    assert NOWHERE.findall(path.read_text()) == []


@pytest.mark.parametrize(
    "path", [path for path in TEXTS if ROOT / "tests" not in path.parents], ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_file_uses_the_fields_words(path: Path) -> None:
    assert RETIRED.findall(path.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_speaks_of_the_program(page: Path) -> None:
    lines = [line for line in page.read_text().splitlines() if SAYS_THERE_ARE_NONE not in line]
    assert [line for line in lines if NOT_IN_PAGES.search(line)] == []
