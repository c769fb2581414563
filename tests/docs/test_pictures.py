"""The pictures of the pages show what the program prints, and load nothing. `python -m tools.pictures` draws them."""

import re
from pathlib import Path

import pytest

from tools import pictures

ROOT = Path(__file__).parent.parent.parent
DRAWN = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def test_the_picture_of_why_has_the_words_of_the_command() -> None:
    said = re.sub(r"\x1b\[[0-9;]*m", "", pictures.printed()).split()
    assert pictures.words(pictures.PICTURE.read_text()) == ["$", "situate", *pictures.COMMAND[:2], *said]


@pytest.mark.parametrize("picture", DRAWN, ids=lambda picture: picture.name)
def test_a_picture_loads_nothing(picture: Path) -> None:
    assert re.findall(r"(?:url\(|href=|src=)[\"']?(?!#)[^)\"']+", picture.read_text()) == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").iterdir()), ids=lambda picture: picture.name)
def test_a_picture_is_on_a_page(picture: Path) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"pictures/{picture.name}" in page.read_text() for page in pages)
