"""The pages that the program writes about itself have all of it."""

from situate.cli import SUMMARIES
from situate.server.resources import RESOURCES
from tools import reference


def test_the_page_of_the_api_has_every_resource() -> None:
    page = reference.api_page()
    assert [one.kind for one in RESOURCES if f"| {one.kind} |" not in page] == []
    assert "| `v1` | Pod | `pods` | `po` | yes |" in page


def test_the_page_of_help_has_every_command() -> None:
    page = reference.help_page()
    assert [name for name in SUMMARIES if f"## `situate {name}`" not in page] == []
    assert page.count("```") % 2 == 0
