"""`situate version`, `completion` and `man`: what a packager and a shell ask for."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from situate import __version__
from situate.cli import SUMMARIES, main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def test_the_client_has_a_version_where_no_server_answers() -> None:
    shown = CliRunner().invoke(main, ["version"])
    assert (shown.exit_code, shown.stdout) == (
        0,
        f"Client: situate {__version__}, with the rules of Kubernetes 1.36 and 1.37\n",
    )
    assert shown.stderr.startswith("note: no server version: no cluster found")
    assert CliRunner().invoke(main, ["version", "--client"]).stderr == ""


def test_the_version_for_programs() -> None:
    shown = CliRunner().invoke(main, ["version", "--client", "-o", "json"])
    assert json.loads(shown.stdout)["clientVersion"]["version"] == __version__


def test_a_kubeconfig_that_is_named_must_be_there() -> None:
    assert CliRunner().invoke(main, ["version", "--kubeconfig", "/no/such"]).exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0
    assert "_SITUATE_COMPLETE" in script.stdout
    program = shutil.which(shell)
    if program is not None:
        done = subprocess.run([program, "-n"], input=script.stdout, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_every_command_has_a_manual_page(tmp_path: Path) -> None:
    said = CliRunner().invoke(main, ["man", str(tmp_path / "man")])
    assert said.exit_code == 0, said.output
    pages = {path.name for path in (tmp_path / "man").iterdir()}
    assert {f"situate-{name}.1" for name in SUMMARIES} | {"situate.1", "situate-plan-fit.1"} <= pages
    page = (tmp_path / "man" / "situate-why.1").read_text()
    assert page.startswith('.TH "SITUATE\\-WHY" "1"')
    assert "\\fB\\-A, \\-\\-all\\-namespaces\\fR" in page
