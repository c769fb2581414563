"""The site has every page, in one place of its nav. `make site` builds it, and fails at a link that leads nowhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
FROM_ELSEWHERE = {"changelog.md", "internals/contributing.md", "reference/api-resources.md", "reference/help.md"}
"""Pages that tools/site.py adds: from the root of the repository, or written by tools/reference.py."""


def in_nav(nav: list[Any]) -> Iterator[str]:
    for item in nav:
        for part in item.values() if isinstance(item, dict) else [item]:
            if isinstance(part, list):
                yield from in_nav(part)
            elif "*" in part:
                yield from sorted(str(path.relative_to(DOCS)) for path in DOCS.glob(part))
            else:
                yield part


def test_every_page_is_in_the_nav_of_mkdocs_yml_once() -> None:
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    named = list(in_nav(CONFIG["nav"]))
    assert sorted(set(named)) == sorted(pages | FROM_ELSEWHERE)
    assert [page for page in named if named.count(page) > 1] == []


def test_a_page_has_a_readable_address() -> None:
    odd = [path.name for path in DOCS.rglob("*.md") if path.name != path.name.lower() or "_" in path.name]
    assert odd == []


def test_the_site_loads_nothing_from_another_host_and_is_built_strictly() -> None:
    assert CONFIG["strict"] is True
    assert CONFIG["theme"]["font"] is False
    assert "repo_url" not in CONFIG
    assert "analytics" not in CONFIG.get("extra", {})
