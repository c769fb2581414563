"""What an agent last knew, on disk."""

from pathlib import Path

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
