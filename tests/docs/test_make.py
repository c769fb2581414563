"""What the Makefile can make is in CONTRIBUTING.md, all of it; and no page names a target that there is not."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "tests").rglob("README.md")),
]
TARGETS = set(re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
TYPED = re.compile(r"^\$ (make [^\n#]*)|`(make [^`\n]*)`", re.MULTILINE)


def named_in(page: Path) -> set[str]:
    """What `make` is followed by, on a line that is typed or as code in a sentence; variables are none of it."""
    lines = (shown or said for shown, said in TYPED.findall(page.read_text()))
    return {word for line in lines for word in line.split()[1:] if re.fullmatch(r"[a-z][a-z-]*", word)}


def test_there_are_targets() -> None:
    assert {"demo", "test", "check", "kubernetes", "basic-integration-test"} <= TARGETS


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_target_is_explained(target: str) -> None:
    assert target in named_in(ROOT / "CONTRIBUTING.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_targets_that_there_are(page: Path) -> None:
    assert named_in(page) - TARGETS == set()
