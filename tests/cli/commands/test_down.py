"""`situate down` stops the server of its directory, and no other process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from situate.cli import main
from situate.cli.control_plane.state import read_state, stranger, write_state

SLEEPS = "import time; time.sleep(600)"


@pytest.fixture
def foreign() -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody, whose command line mentions our name."""
    with subprocess.Popen([sys.executable, "-c", SLEEPS, ".situate/server.log"]) as process:
        yield process
        process.kill()


def down(directory: Path) -> str:
    done = CliRunner().invoke(main, ["down", "--dir", str(directory)])
    assert done.exit_code == 0, done.output
    return done.output


def recorded(directory: Path, pid: int, **more: object) -> None:
    """A state as a server that was killed left it, with a number that has another owner by now."""
    write_state(directory, "https://127.0.0.1:7443")
    state = json.loads((directory / "server.json").read_text())
    (directory / "server.json").write_text(json.dumps({**state, "pid": pid, **more}))


@pytest.mark.parametrize("older", [True, False], ids=["the state of an older release", "a state of this one"])
def test_a_process_that_got_the_number_of_the_server_is_left_alone(
    tmp_path: Path, foreign: subprocess.Popen[bytes], older: bool
) -> None:
    recorded(tmp_path, foreign.pid, **({"process": None} if older else {}))
    assert down(tmp_path) == (
        f"No cluster is up in {tmp_path}: process {foreign.pid}, which its server.json names, is another program;"
        " it was left alone.\n"
    )
    assert foreign.poll() is None
    assert stranger(tmp_path) == foreign.pid


def test_a_process_that_has_exited_is_not_mentioned(tmp_path: Path, foreign: subprocess.Popen[bytes]) -> None:
    foreign.kill()
    foreign.wait()
    recorded(tmp_path, foreign.pid)
    assert down(tmp_path) == f"No cluster is up in {tmp_path}.\n"


def test_the_process_that_wrote_the_state_is_known_again(tmp_path: Path) -> None:
    write_state(tmp_path, "https://127.0.0.1:7443")
    found = read_state(tmp_path)
    assert found is not None
    assert found["url"] == "https://127.0.0.1:7443"
    assert stranger(tmp_path) is None
