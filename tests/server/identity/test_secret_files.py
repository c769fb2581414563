"""Files that are watched: how soon a change is seen."""

import os
import stat
from pathlib import Path

import pytest

from situate.server.identity import secret_files
from situate.server.identity.secret_files import SecretFile, write_private


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
