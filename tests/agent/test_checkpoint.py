"""What an agent last knew, on disk."""

import os
from pathlib import Path

import msgspec
import pytest

from situate.agent.checkpoint import Checkpoint, CheckpointError, load, save

HELD = Checkpoint("n", [{"metadata": {"name": "p", "uid": "u"}}], {"u": 3})


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    save(tmp_path / "f", HELD)
    assert load(tmp_path / "f", "n") == HELD
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


def test_there_may_be_none(tmp_path: Path) -> None:
    assert load(tmp_path / "f", "n") is None


def test_one_that_is_torn_anywhere_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "f", HELD)
    whole = (tmp_path / "f").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "f").write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match="wrong checksum"):
            load(tmp_path / "f", "n")


def test_one_with_any_bit_altered_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "f", HELD)
    whole = (tmp_path / "f").read_bytes()
    for at in range(len(whole)):
        (tmp_path / "f").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CheckpointError):
            load(tmp_path / "f", "n")


def test_one_of_another_node_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "f", HELD)
    with pytest.raises(CheckpointError, match="of another node"):
        load(tmp_path / "f", "m")


def test_one_of_another_format_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "f", msgspec.structs.replace(HELD, format=2))
    with pytest.raises(CheckpointError, match=r"another node or format \(n, 2\)"):
        load(tmp_path / "f", "n")


def test_one_that_cannot_be_read_is_said_to(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="Is a directory"):
        load(tmp_path, "n")


def test_the_new_one_is_on_disk_before_it_replaces_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "f", HELD)
    old, newer = (tmp_path / "f").read_bytes(), msgspec.structs.replace(HELD, versions={"u": 4})
    synced: list[tuple[bytes, bytes]] = []

    def sync(_file: int) -> None:
        synced.append(((tmp_path / "f").read_bytes(), (tmp_path / "f.new").read_bytes()))

    monkeypatch.setattr(os, "fsync", sync)
    save(tmp_path / "f", newer)
    assert synced == [(old, (tmp_path / "f").read_bytes())]
    assert load(tmp_path / "f", "n") == newer
