"""A directory that is in use, or in which something is torn: one clear line, or it is put right."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from server.faults.process import Plane
from server.faults.wire import Wire

WITHIN_S = 30.0


def refusal(plane: Plane) -> str:
    """The one line that a server which does not start ends with."""
    done = subprocess.run(plane.command, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert done.returncode not in (0, 70), said
    errors = [line for line in said.splitlines() if not line.startswith(("I", "W"))]
    assert len(errors) == 1, said
    assert errors[0].startswith("error: "), said
    return errors[0].removeprefix("error: ")


def answers(plane: Plane) -> bool:
    with Wire(plane.port, plane.admin()) as wire:
        return wire.ask("GET", "/api/v1/namespaces/default").code == 200


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a server ran, and was killed."""
    plane = Plane(tmp_path_factory.mktemp("killed") / "plane")
    plane.start()
    plane.kill()
    return plane.directory


@pytest.fixture
def used(killed: Path, tmp_path: Path) -> Plane:
    shutil.copytree(killed, tmp_path / "plane")
    return Plane(tmp_path / "plane")


def test_a_second_server_in_the_same_directory_is_refused_in_one_line(tmp_path: Path) -> None:
    with Plane(tmp_path / "plane") as first:
        before = first.state()
        said = refusal(first)
        assert "in use" in said or "already" in said
        assert str(tmp_path / "plane") in said
        assert first.state() == before
        assert answers(first)


TORN: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda whole: whole[: len(whole) // 2],
    "noise": lambda whole: bytes([255, 0]) * 100,
}
HEALED = ("server.json",)
NAMED = ("kubeconfig", "pki/server.pem", "pki/ca.crt", "pki/ca.key", "pki/service-accounts.key")


@pytest.mark.parametrize("how", TORN)
@pytest.mark.parametrize("name", HEALED)
def test_what_can_be_made_anew_is_made_anew(name: str, how: str, used: Plane) -> None:
    file = used.directory / name
    file.write_bytes(TORN[how](file.read_bytes()))
    with used:
        assert answers(used)


@pytest.mark.parametrize("how", TORN)
@pytest.mark.parametrize("name", NAMED)
def test_what_others_rely_on_is_not_replaced_behind_their_backs_but_named(name: str, how: str, used: Plane) -> None:
    file = used.directory / name
    torn = TORN[how](file.read_bytes())
    file.write_bytes(torn)
    assert str(file) in refusal(used)
    assert file.read_bytes() == torn


def test_a_store_that_is_no_store_is_named_in_one_line(used: Plane) -> None:
    for name in ("store.db-wal", "store.db-shm"):
        (used.directory / name).unlink(missing_ok=True)
    (used.directory / "store.db").write_bytes(b"not a database" * 1000)
    assert "store.db" in refusal(used)


def test_a_directory_that_is_a_file_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "plane").write_text("")
    plane = Plane(tmp_path / "plane")
    done = subprocess.run(plane.command, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "plane" in done.stderr.splitlines()[-1]


def test_a_server_whose_directory_is_removed_logs_it_fails_readyz_and_creates_no_store(tmp_path: Path) -> None:
    with Plane(tmp_path / "plane") as plane, Wire(plane.port, plane.admin()) as wire:
        assert wire.ask("GET", "/readyz").code == 200
        shutil.rmtree(plane.directory)
        deadline = time.monotonic() + WITHIN_S
        while (answer := wire.ask("GET", "/readyz")).code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert b"[-]store failed" in answer.body
        name = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lost"}}
        assert wire.send("POST", "/api/v1/namespaces", name).code == 500
        said = [line for line in plane.said().splitlines() if "was removed or replaced" in line and line[0] == "E"]
        assert len(said) == 1, plane.said()
        assert not (plane.directory / "store.db").exists()
