"""A release is the same bytes for the same commit, holds what `situate up` needs, and does not contradict itself."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from situate import __version__
from tools import release, sbom

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"
CHART = "version: 1.2.0\nappVersion: 1.2.0\n"
CHANGELOG = "# Changelog\n\n## 1.2.0 (2026-01-31)\n\n- New.\n\n## 1.1.0 (2026-01-01)\n\n- Old.\n"
TAKEN = ("src", "examples", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")


def copied(to: Path) -> Path:
    to.mkdir()
    for name in TAKEN:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, to / name)
    return to


def test_two_builds_are_the_same_bytes_and_hold_what_up_needs(tmp_path: Path) -> None:
    built = [release.build(copied(tmp_path / name), tmp_path / f"of-{name}", EPOCH) for name in ("here", "there")]
    assert [path.name for path in built[0]] == [
        f"situate-{__version__}-py3-none-any.whl",
        f"situate-{__version__}.tar.gz",
    ]
    first, second = ([hashlib.sha256(path.read_bytes()).hexdigest() for path in of] for of in built)
    assert first == second
    names = set(zipfile.ZipFile(built[0][0]).namelist())
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    examples = {f"situate/{path.relative_to(ROOT)}" for path in (ROOT / "examples").rglob("*") if path.is_file()}
    assert source | {name for name in examples if "__pycache__" not in name} <= names
    assert [name for name in names if name.startswith(("tests", "tools"))] == []


@pytest.mark.parametrize(
    "version, changelog, chart, state, problem",
    [
        pytest.param("1.2.0", CHANGELOG, CHART, (False, False), "", id="all is well"),
        pytest.param(
            "1.3.0", CHANGELOG, CHART.replace("1.2", "1.3"), (False, False), "begins with 1.2.0", id="no notes"
        ),
        pytest.param(
            "1.2.0",
            CHANGELOG.replace("2026-01-31", "not released"),
            CHART,
            (False, False),
            "write the date",
            id="no date",
        ),
        pytest.param(
            "1.2.0", CHANGELOG.replace("- New.", ""), CHART, (False, False), "nothing about", id="empty notes"
        ),
        pytest.param("1.2.0", CHANGELOG, CHART.replace("1.2", "1.1"), (False, False), "Chart.yaml", id="an old chart"),
        pytest.param("1.2.0", CHANGELOG, CHART, (True, False), "not committed", id="uncommitted changes"),
        pytest.param(
            "1.2.0", CHANGELOG, CHART, (False, True), "the tag v1.2.0 exists", id="a version that was released"
        ),
    ],
)
def test_what_keeps_a_release_back(
    version: str, changelog: str, chart: str, state: tuple[bool, bool], problem: str
) -> None:
    found = release.problems(version, changelog, chart, dirty=state[0], tagged=state[1])
    assert problem in " ".join(found)
    assert bool(found) == bool(problem)


def test_the_notes_of_a_release_are_its_section() -> None:
    assert release.sections(CHANGELOG)["1.2.0"] == ("2026-01-31", "- New.")


def test_this_version_has_a_section_and_a_chart() -> None:
    chart = (ROOT / "deploy" / "helm" / "situate" / "Chart.yaml").read_text()
    found = release.problems(__version__, (ROOT / "CHANGELOG.md").read_text(), chart, dirty=False, tagged=False)
    assert [problem for problem in found if "write the date" not in problem] == []


def test_the_bill_of_materials_has_every_package_that_is_needed_and_no_tool() -> None:
    bill = sbom.bill(int(EPOCH))
    names = {component["name"] for component in bill["components"]}
    assert {"numpy", "msgspec", "aiohttp", "multidict", "click"} <= names
    assert not names & {"pytest", "ruff", "mypy", "mkdocs"}
    assert bill["metadata"]["component"]["version"] == __version__
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    refs = {component["bom-ref"] for component in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {each for one in bill["dependencies"] for each in (one["ref"], *one["dependsOn"])} == refs
    assert json.dumps(bill) == json.dumps(sbom.bill(int(EPOCH)))
