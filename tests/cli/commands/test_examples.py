"""`situate examples`: what the pages use, in a directory of the reader's."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from situate.cli import main

ROOT = Path(__file__).parents[3]


def test_the_copies_are_the_files_that_the_pages_use(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["examples", str(tmp_path / "here")])
    assert done.exit_code == 0, done.output
    for path in (ROOT / "examples").rglob("*.yaml"):
        assert (tmp_path / "here" / path.relative_to(ROOT / "examples")).read_bytes() == path.read_bytes()


def test_a_directory_that_exists_is_left_alone(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["examples", str(tmp_path)])
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert done.stderr == f"error: {tmp_path} exists: name another directory\n"


@pytest.mark.parametrize("missing", ["apsw", "jwt"])
def test_a_command_whose_library_is_missing_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr("situate.cli.importlib.import_module", fails)
    done = CliRunner().invoke(main, ["up"])
    assert done.exit_code == 2
    assert done.stderr == f"error: this needs the library {missing}, which is not installed: pip install situate\n"


def test_the_scheduler_and_why_need_none_of_the_control_planes_libraries() -> None:
    """So that somebody who packages the scheduler alone can leave them out."""
    files = [str(ROOT / "examples" / name) for name in ("cluster.yaml", "workload.yaml")]
    why = ["why", "notebook-0", "-f", files[0], "-f", files[1]]
    code = (
        "import sys; sys.modules |= dict.fromkeys(('apsw', 'google', 'jwt', 'jsonpatch'))\n"
        "import situate.kube.scheduler\n"
        f"from situate.cli import main; main({why!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
