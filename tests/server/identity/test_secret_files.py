"""Files with secrets: who may read them, how soon a change is seen, and how they are written."""

import os
import stat
from pathlib import Path

import pytest

from situate.server.identity import secret_files
from situate.server.identity.secret_files import IdentityError, SecretFile, read_private, write_private


def test_a_file_is_not_looked_at_again_before_its_time_and_then_its_change_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_files, "STAT_INTERVAL_S", 0.5)
    now = [100.0]
    path = tmp_path / "tokens"
    path.write_text("one")
    watched = SecretFile(path, lambda: now[0])
    assert watched.changed()
    path.write_text("another")
    now[0] += 0.4
    assert not watched.changed()
    now[0] += 0.2
    assert watched.changed()
    now[0] += 1.0
    assert not watched.changed()


def test_a_private_file_is_not_written_into_one_that_somebody_has_put_in_its_place(tmp_path: Path) -> None:
    waiting = tmp_path / f".keys.{os.getpid()}.new"
    waiting.touch(mode=0o666)
    with waiting.open("rb") as spy:
        write_private(tmp_path / "keys", b"secret")
        assert spy.read() == b""
    assert (tmp_path / "keys").read_bytes() == b"secret"
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o600


def test_a_file_is_looked_at_when_exactly_the_interval_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_files, "STAT_INTERVAL_S", 0.5)
    now = [0.0]
    watched = SecretFile(tmp_path / "tokens", lambda: now[0])
    assert watched.changed()
    (tmp_path / "tokens").write_text("one")
    assert not watched.changed()
    now[0] = 0.5
    assert watched.changed()


def test_coming_and_going_are_changes(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    watched = SecretFile(path)
    assert [watched.changed(), watched.changed()] == [True, False]
    path.touch(0o600)
    assert [watched.changed(), watched.changed()] == [True, False]
    path.unlink()
    assert [watched.changed(), watched.changed()] == [True, False]
    assert watched.text() == ""


@pytest.mark.parametrize(
    "mode, readable",
    [(0o600, True), (0o400, True), (0o640, False), (0o620, False), (0o610, False), (0o604, False), (0o601, False)],
)
def test_only_a_file_of_its_owner_alone_is_read(tmp_path: Path, mode: int, readable: bool) -> None:
    path = tmp_path / "keys"
    path.write_text("secret")
    path.chmod(mode)
    if readable:
        assert read_private(path) == SecretFile(path).text() == "secret"
        return
    with pytest.raises(IdentityError, match=f"readable by others \\(mode {mode:04o}\\)"):
        read_private(path)


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match=r"keys cannot be read: No such file or directory$"):
        read_private(tmp_path / "keys")
    (tmp_path / "keys").write_bytes(b"\xff")
    with pytest.raises(IdentityError, match=r"keys is damaged: it is not text$"):
        read_private(tmp_path / "keys")


def test_a_file_is_on_disk_before_it_takes_its_name_and_the_name_before_anybody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, steps = tmp_path / "keys", []
    path.write_text("old")
    real = Path.replace

    def replace(new: Path, target: Path) -> Path:
        steps.append("replace")
        return real(new, target)

    monkeypatch.setattr("os.fsync", lambda file: steps.append(f"fsync {os.fstat(file).st_size} {path.read_text()}"))
    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(secret_files, "sync_folder", lambda folder: steps.append(f"folder {folder}"))
    write_private(path, b"secret")
    assert steps == ["fsync 6 old", "replace", f"folder {tmp_path}"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "keys"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="No space"):
            write_private(path, b"secret")
    assert [one.name for one in tmp_path.iterdir()] == ["keys"]
    assert path.read_text() == "old"
    write_private(path, b"secret")
    assert path.read_text() == "secret"


def test_the_mode_is_the_one_asked_for_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_private(tmp_path / "ca.crt", b"public", 0o644)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "ca.crt").stat().st_mode) == 0o644
