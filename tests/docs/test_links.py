"""A link from one page to another leads somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub names them in links."""
    headings = HEADING.findall(FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def links() -> list[tuple[Path, str]]:
    return [
        (page, target)
        for page in PAGES
        for target in LINK.findall(FENCED.sub("", page.read_text()))
        if not re.match(r"[a-z]+:", target)
    ]


@pytest.mark.parametrize(
    "page, target", [pytest.param(page, to, id=f"{page.relative_to(ROOT)} to {to}") for page, to in links()]
)
def test_a_link_leads_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    assert there.exists()
    if anchor:
        assert anchor in anchors(there)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_reached_from_the_readme_or_from_another_page(page: Path) -> None:
    reached = {(source.parent / target.partition("#")[0]).resolve() for source, target in links() if source != page}
    assert any(there in (page, page.parent) for there in reached)
