"""docs/guides/troubleshooting.md has every message with which a server may refuse to start, in the source's words."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "situate"
PAGE = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text()
QUOTED = [cell.strip("`") for cell in re.findall(r"^\| (`[^|]*`) \|", PAGE, re.MULTILINE)]
AT_START = (
    "server/identity/pki/authority.py",
    "server/identity/pki/kubeconfig.py",
    "server/identity/secret_files.py",
    "store/format.py",
    "store/open.py",
    "store/sqlite/file.py",
    "store/sqlite/migrations.py",
    "store/sqlite/schema.py",
)
ERRORS = ("CorruptError", "FormatError", "IdentityError", "InUseError", "InvalidRequestError", "StoreError")
LATER = ("a lease lasts at least a second",)
"""Raised in those files, but by a request."""


def shape(node: ast.AST) -> str:
    """A text of the source, with `...` for what differs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\{[^{}]*\}", "...", node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join("..." if isinstance(part, ast.FormattedValue) else shape(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return shape(node.left) + shape(node.right)
    return ""


def texts() -> set[str]:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            text = shape(node)
            if text:
                found.add(text)
    return found


TEXTS = texts()


def raised(path: Path) -> set[str]:
    """The messages of errors in a file: texts in the calls, and of constants that are formatted there."""
    tree = ast.parse(path.read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
            found.add(shape(node.args[0]))
    return found - {""} - set(LATER)


def matches(quoted: str, text: str) -> bool:
    longest = max(quoted.split("..."), key=len)
    if longest not in text:
        return False
    return re.fullmatch(re.escape(quoted).replace(re.escape("..."), ".*"), text, re.DOTALL) is not None


def test_the_page_quotes_messages() -> None:
    assert len(QUOTED) > 30


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_message_of_the_page_is_one_of_the_source(quoted: str) -> None:
    assert [text for text in TEXTS if matches(quoted, text)] != []


@pytest.mark.parametrize("name", AT_START)
def test_a_message_of_the_source_is_on_the_page(name: str) -> None:
    said = raised(SOURCE / name)
    assert [text for text in sorted(said) if text not in QUOTED] == []
