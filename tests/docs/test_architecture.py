"""The architecture page and the decision notes: the folders, layers and files that there are, and their form."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "situate"
PAGE = (ROOT / "docs" / "internals" / "architecture.md").read_text()
NOTES = sorted((ROOT / "docs" / "internals" / "decisions").glob("*.md"))


def section(heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(heading)
    return found[1]


def packages(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/__init__.py"))


def test_the_folders_of_the_page_are_those_there_are() -> None:
    drawn = re.search(r"```(.*?)```", section("Folders"), re.DOTALL)
    assert drawn is not None
    at = {indent: re.findall(rf"^ {{{indent}}}(\w+)/", drawn[1], re.MULTILINE) for indent in (2, 4)}
    assert (sorted(at[2]), sorted(at[4])) == (packages(SOURCE), packages(SOURCE / "core"))


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (SOURCE / "kube").glob("*.py") if path.stem != "__init__")
)
def test_a_file_of_kube_has_its_place_on_the_page(name: str) -> None:
    assert f"`{name}`" in section("On a real cluster")


@pytest.mark.parametrize("at, contract", [(0, "layers"), (1, "core-layers")], ids=["the whole", "inside core"])
def test_the_layers_of_the_page_are_those_of_the_contract(at: int, contract: str) -> None:
    rows = re.findall(r"^\|(.*)\|$", section("Layers").replace("\\|", "&"), re.MULTILINE)[2:]
    cells = [cell for row in rows if (cell := row.split("|")[at].strip().replace("&", "|"))]
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in linted if each["id"] == contract]
    assert cells == [re.sub(r"[()]", "", layer) for layer in layers]


# ── decision notes ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_notes_are_numbered_without_gaps() -> None:
    assert [note.name[:4] for note in NOTES] == [f"{number:04}" for number in range(1, len(NOTES) + 1)]


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_a_note_is_half_a_page_in_three_parts(note: Path) -> None:
    text = note.read_text()
    assert re.match(rf"# {note.name[:4]}: \S", text)
    assert re.findall(r"^\*\*(\w+)\.\*\* ", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]
    assert len(text.split()) < 320
