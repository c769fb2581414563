"""The size limits of src/, and one meaning for each public class name. Run it as a script to list every offence."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "situate"
MAX_METHODS = 40
MAX_FILE_LINES = 500
MAX_CORE_FILE_LINES = 450


def long_files(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        limit = MAX_CORE_FILE_LINES if path.relative_to(root).parts[0] == "core" else MAX_FILE_LINES
        lines = len(path.read_text().splitlines())
        if lines > limit:
            yield f"{path.relative_to(root)} has {lines} lines, more than {limit}"


def large_classes(root: Path) -> Iterator[str]:
    for path, tree in _modules(root):
        for found in ast.walk(tree):
            if not isinstance(found, ast.ClassDef):
                continue
            methods = sum(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in found.body)
            if methods > MAX_METHODS:
                yield f"{path}: {found.name} has {methods} methods, more than {MAX_METHODS}"


def ambiguous_class_names(root: Path) -> Iterator[str]:
    """Public classes at the top of a module whose name another module uses for something else."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in _modules(root):
        for found in tree.body:
            if isinstance(found, ast.ClassDef) and not found.name.startswith("_"):
                homes[found.name].append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield f"{name} means different things in {', '.join(paths)}"


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(root.rglob("*.py")):
        yield str(path.relative_to(root)), ast.parse(path.read_text())


def test_no_file_is_too_long() -> None:
    assert list(long_files(SRC)) == []


def test_no_class_has_too_many_methods() -> None:
    assert list(large_classes(SRC)) == []


def test_a_public_class_name_means_one_thing() -> None:
    assert list(ambiguous_class_names(SRC)) == []


@pytest.fixture
def offending(tmp_path: Path) -> Path:
    (tmp_path / "core").mkdir()
    methods = "".join(f"    def m{number}(self): ...\n" for number in range(MAX_METHODS + 1))
    (tmp_path / "core" / "one.py").write_text(f"class Twice:\n{methods}" + "\n" * MAX_CORE_FILE_LINES)
    (tmp_path / "two.py").write_text("class Twice: ...\nclass _Private: ...\n" + "\n" * MAX_CORE_FILE_LINES)
    (tmp_path / "three.py").write_text("class _Private: ...\n")
    return tmp_path


def test_offences_are_found(offending: Path) -> None:
    assert [line.split()[0] for line in long_files(offending)] == ["core/one.py"]
    assert list(large_classes(offending)) == ["core/one.py: Twice has 41 methods, more than 40"]
    assert list(ambiguous_class_names(offending)) == ["Twice means different things in core/one.py, two.py"]


if __name__ == "__main__":
    offences = [*long_files(SRC), *large_classes(SRC), *ambiguous_class_names(SRC)]
    print("\n".join(offences))
    sys.exit(bool(offences))
