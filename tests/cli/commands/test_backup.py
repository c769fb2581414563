"""Backup and restore of a cluster: whole or not at all, never back in time unnoticed, and never over newer data."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from server.faults.process import Plane
from server.faults.wire import Wire
from situate.cli import main
from situate.cli.control_plane.backups import finish_restore, restore_directory
from situate.store.backup import BackupEntry, BackupHeader, verify_backup, write_backup
from situate.store.errors import BackupError
from situate.store.format import FORMAT
from situate.store.sqlite.file import lock
from situate.store.sqlite.snapshot import BUMP, snapshot_of

MAPS = "/api/v1/namespaces/default/configmaps"
DIED = -signal.SIGKILL
DIES = """
import os, signal, sys
from importlib import import_module
from pkgutil import resolve_name
from situate.cli import main
name, method, count = sys.argv[1:4]
owner = resolve_name(name)
real, left = getattr(owner, method), [int(count)]
def die(*arguments, **more):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **more)
setattr(owner, method, die)
sys.argv[:] = ["situate", *sys.argv[4:]]
main()
"""
"""The command, killed when it calls a function for the n-th time."""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="situate")


def says(*words: str | Path) -> str:
    done = run(*words)
    assert done.exit_code == 0, done.output
    return done.output


def refuses(*words: str | Path) -> str:
    done = run(*words)
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def killed(function: str, count: int, *words: str | Path) -> int:
    module, _, method = function.rpartition(".")
    argv = [sys.executable, "-c", DIES, module, method, str(count), *map(str, words)]
    return subprocess.run(argv, capture_output=True, check=False, timeout=60).returncode


def config_map(name: str, value: str = "") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}}


def create(plane: Plane, *names: str) -> None:
    with Wire(plane.port, plane.admin()) as wire:
        for name in names:
            assert wire.send("POST", MAPS, config_map(name)).code == 201


def listed(plane: Plane) -> tuple[dict[str, int], int]:
    with Wire(plane.port, plane.admin()) as wire:
        body = json.loads(wire.ask("GET", MAPS).body)
    found = {one["metadata"]["name"]: int(one["metadata"]["resourceVersion"]) for one in body["items"]}
    return {name: at for name, at in found.items() if name[0] == "m"}, int(body["metadata"]["resourceVersion"])


@pytest.fixture
def plane(tmp_path: Path) -> Plane:
    """A directory with a cluster, which is not running."""
    plane = Plane(tmp_path / "plane")
    with plane:
        create(plane, "m1", "m2")
        plane.stop()
    return plane


def test_a_cluster_is_backed_up_while_it_is_written_to_and_comes_back_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    stop = threading.Event()
    with Plane(tmp_path / "plane") as plane:
        create(plane, "m1", "m2")

        def write() -> None:
            with Wire(plane.port, plane.admin()) as wire:
                number = 0
                while not stop.is_set():
                    number += 1
                    wire.send("POST", MAPS, config_map(f"n{number}a"))
                    wire.send("POST", MAPS, config_map(f"n{number}b"))

        writing = threading.Thread(target=write)
        writing.start()
        try:
            said = says("backup", file, "--dir", plane.directory)
        finally:
            stop.set()
            writing.join()
        before, revision = listed(plane)
        admin = plane.admin()
    header, end = verify_backup(file)
    assert f"{end.entries} objects at revision {header.revision}" in said
    assert "it is verified" in said
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
    # Somewhere else, with the same keys: the old kubeconfig's certificate is still good there.
    says("restore", file, "--dir", tmp_path / "other")
    with Plane(tmp_path / "other") as other, Wire(other.port, admin) as wire:
        after, now = listed(other)
        assert set(after) == set(before)
        body = json.loads(wire.ask("GET", MAPS).body)
        ours = [one["metadata"]["name"] for one in body["items"] if one["metadata"]["name"][0] == "n"]
        # One revision: what was written one after the other is there up to a point.
        numbers = sorted(ours, key=lambda name: (int(name[1:-1]), name[-1]))
        assert numbers == [f"n{at // 2 + 1}{'ab'[at % 2]}" for at in range(len(numbers))]
        # Nobody's old version is mistaken for a current one: versions go on far beyond all that anybody has seen.
        assert now > revision + 1_000_000
        assert min(after.values()) > revision
        watch = wire.ask("GET", f"{MAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=1")
        assert b'"code":410' in watch.body
        stale = config_map("m1", "x")
        stale["metadata"]["resourceVersion"] = str(before["m1"])
        assert wire.send("PUT", f"{MAPS}/m1", stale).code == 409


def test_newer_data_another_cluster_and_a_running_one_are_not_replaced_by_accident(
    plane: Plane, tmp_path: Path
) -> None:
    file, early = tmp_path / "backup", tmp_path / "early"
    says("backup", early, "--dir", plane.directory)
    with plane:
        create(plane, "m3")
        assert "is in use by another server" in refuses("restore", early, "--dir", plane.directory, "--force")
        plane.stop()
    assert "has the same cluster at revision" in refuses("restore", early, "--dir", plane.directory)
    says("backup", file, "--dir", plane.directory)
    with Plane(tmp_path / "another") as another:
        create(another, "m9")
        another.stop()
    assert "has another cluster than" in refuses("restore", file, "--dir", another.directory)
    with plane:
        assert set(listed(plane)[0]) == {"m1", "m2", "m3"}
        plane.stop()
    with another:
        assert set(listed(another)[0]) == {"m9"}
        another.stop()
    says("restore", early, "--dir", plane.directory, "--force")
    (kept,) = plane.directory.glob("replaced-*")
    assert (kept / "store.db").exists()
    with plane:
        assert set(listed(plane)[0]) == {"m1", "m2"}
    says("restore", file, "--dir", another.directory, "--force")
    with another:
        assert set(listed(another)[0]) == {"m1", "m2", "m3"}


def test_a_damaged_backup_is_refused_and_nothing_is_restored(plane: Plane, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    says("backup", file, "--dir", plane.directory)
    whole, dice = file.read_bytes(), random.Random(1)
    verify_backup(file)
    damaged = [whole[: dice.randrange(len(whole))] for _ in range(15)]
    for _ in range(25):
        flipped = bytearray(whole)
        flipped[dice.randrange(10, len(whole))] ^= 1 << dice.randrange(8)
        damaged.append(bytes(flipped))
    for content in (*damaged, b"", b"not a backup"):
        file.write_bytes(content)
        with pytest.raises(BackupError):
            verify_backup(file)
    assert "is damaged, or not a backup" in refuses("restore", file, "--dir", tmp_path / "new")
    assert not (tmp_path / "new").exists()


# ── kill -9 ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backup, and a directory in which a server was killed after it had written more."""
    folder = tmp_path_factory.mktemp("recorded")
    with Plane(folder / "plane") as plane:
        create(plane, "m1", "m2")
        says("backup", folder / "backup", "--dir", plane.directory)
        create(plane, "m3")
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded, tmp_path / "folder")
    return tmp_path / "folder"


def stored(directory: Path) -> set[str]:
    """What a server that starts there finds."""
    finish_restore(directory)
    with snapshot_of(directory / "store.db") as (_, _, entries):
        names = {entry.key.rpartition("/")[2] for entry in entries if "/configmaps/default/" in entry.key}
    return {name for name in names if name[0] == "m"}


@pytest.mark.parametrize("count", [1, 4])
def test_kill_9_in_a_backup_leaves_the_last_one_whole(folder: Path, count: int) -> None:
    file = folder / "backup"
    before = file.read_bytes()
    assert killed("situate.store.backup._encode", count, "backup", file, "--dir", folder / "plane") == DIED
    assert file.read_bytes() == before
    assert stored(folder / "plane") == {"m1", "m2", "m3"}
    says("backup", file, "--dir", folder / "plane")
    verify_backup(file)


OLD = [
    ("situate.store.sqlite.snapshot.checksum", 3),
    ("situate.cli.control_plane.backups._stage_files", 1),
    ("situate.cli.control_plane.backups._commit", 1),
]
NEW = [
    ("situate.cli.control_plane.backups._finish", 2),
    ("pathlib.Path.rename", 1),
    ("pathlib.Path.rename", 2),
    ("pathlib.Path.rename", 3),
    ("shutil.rmtree", 1),
]


@pytest.mark.parametrize("function, count", [*OLD, *NEW], ids=[f"{name} {count}" for name, count in (*OLD, *NEW)])
def test_kill_9_in_a_restore_leaves_the_old_state_or_the_new_one_whole(folder: Path, function: str, count: int) -> None:
    said = killed(function, count, "restore", folder / "backup", "--dir", folder / "plane", "--force")
    assert said == DIED
    assert stored(folder / "plane") == ({"m1", "m2"} if (function, count) in NEW else {"m1", "m2", "m3"})
    # And again, to the end.
    says("restore", folder / "backup", "--dir", folder / "plane", "--force")
    assert stored(folder / "plane") == {"m1", "m2"}
    assert not list((folder / "plane").glob(".restore-*"))


def test_a_backup_is_not_written_into_a_file_that_somebody_has_put_in_its_place(tmp_path: Path) -> None:
    waiting = tmp_path / f".saved.{os.getpid()}.new"
    waiting.touch(mode=0o666)
    header = BackupHeader(format=1, release="1", identity="", revision=1, created="")
    with waiting.open("rb") as spy:
        write_backup(tmp_path / "saved", header, (), ())
        assert spy.read() == b""
    assert verify_backup(tmp_path / "saved")[0] == header


def test_nobody_finishes_a_restore_beside_the_process_that_does(folder: Path) -> None:
    """Of two, the slower one would move the restored store away, over the old one, and a server would begin anew."""
    plane = folder / "plane"
    words = ("restore", folder / "backup", "--dir", plane, "--force")
    assert killed("pathlib.Path.rename", 2, *words) == DIED
    assert (plane / "restore.json").exists()
    before = sorted(str(one) for one in plane.rglob("*"))
    held = lock(plane / "store.db")
    assert "is in use" in refuses("backup", folder / "other", "--dir", plane)
    assert "is in use" in refuses("server", "--dir", plane, "--port", "0")
    assert sorted(str(one) for one in plane.rglob("*")) == before
    held.release()
    assert stored(plane) == {"m1", "m2"}


def test_a_second_restore_of_a_backup_is_beyond_what_the_first_can_have_written(tmp_path: Path) -> None:
    entries = [BackupEntry("/a", b"1", 5)]
    revisions = []
    for hours in (0, 1):
        made = datetime.now(UTC) - timedelta(hours=hours)
        header = BackupHeader(format=FORMAT, release="1", identity="x", revision=7, created=made.isoformat())
        write_backup(tmp_path / "backup", header, entries, [])
        revisions.append(restore_directory(tmp_path / str(hours), tmp_path / "backup", force=False)[2])
    assert revisions[0] >= 7 + BUMP
    assert revisions[1] - revisions[0] > 3_500 * 5_000, "an hour of 5,000 writes a second"
