"""The file of a backup: there is a whole one under its name or none, and nothing of a damaged one is believed."""

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from situate.store.backup import (
    VERSION,
    BackupEntry,
    BackupFile,
    BackupHeader,
    open_backup,
    verify_backup,
    write_backup,
)
from situate.store.errors import BackupError
from store.files import file_of, names_in, open_handles

HEADER = BackupHeader(format=2, release="9", identity="x", revision=7, created="today")
ENTRIES = (BackupEntry("/a", b"1", 5), BackupEntry("/b", bytes(range(256)), 6, 3, 60))
FILES = (BackupFile("tokens.csv", 0o600, b"secret"), BackupFile("empty", 0o644, b""), BackupFile("pki/ca", 0o600, b"c"))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    write_backup(tmp_path / "saved", HEADER, ENTRIES, FILES)
    return tmp_path / "saved"


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def test_what_is_written_is_read_in_order_and_counted(saved: Path) -> None:
    with open_backup(saved) as (header, rest):
        *parts, end = rest
    assert header == HEADER
    assert parts == [*ENTRIES, *FILES]
    assert verify_backup(saved) == (header, end)
    assert b'"entries":2,"files":3' in lines_of(saved)[-1]
    assert saved.stat().st_mode & 0o777 == 0o600
    assert names_in(saved.parent) == ["saved"]


def test_the_same_content_has_the_same_bytes_whenever_it_is_written(saved: Path) -> None:
    """The time of a gzip file is its bytes 4 to 7; 0: none is given."""
    assert saved.read_bytes()[4:8] == bytes(4)


def test_its_content_is_durable_before_it_has_its_name_and_then_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "saved", []
    real, handles = os.fsync, open_handles()

    def sync(handle: int) -> None:
        about = file_of(handle)
        synced.append((about == tmp_path, path.exists(), os.fstat(handle).st_size))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    write_backup(path, HEADER, ENTRIES, FILES)
    content, name = synced
    assert content == (False, False, path.stat().st_size)
    assert name[:2] == (True, True)
    assert open_handles() == handles


def test_a_backup_that_fails_leaves_the_last_one_and_nothing_beside_it(saved: Path) -> None:
    def failing() -> Iterator[BackupEntry]:
        yield ENTRIES[0]
        raise KeyboardInterrupt

    before = saved.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_backup(saved, HEADER, failing(), ())
    assert saved.read_bytes() == before
    assert names_in(saved.parent) == ["saved"]


def test_what_a_killed_process_left_is_not_in_the_way(tmp_path: Path) -> None:
    left = tmp_path / f".saved.{os.getpid()}.new"
    left.write_bytes(b"half")
    with left.open("rb") as before:
        write_backup(tmp_path / "saved", HEADER, ENTRIES, ())
        assert before.read() == b"half"
    assert names_in(tmp_path) == ["saved"]


def test_a_disk_that_returns_something_else_is_noticed(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it is a whole backup."""
    other = saved.read_bytes()

    def swap(handle: int) -> None:
        os.ftruncate(handle, 0)
        os.pwrite(handle, other, 0)

    monkeypatch.setattr(os, "fsync", swap)
    with pytest.raises(BackupError, match="does not read back as it was written"):
        write_backup(saved.with_name("other"), HEADER, ENTRIES[:1], FILES)
    assert names_in(saved.parent) == ["saved"]


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"none/saved cannot be written: No such file or directory$"):
        write_backup(tmp_path / "none" / "saved", HEADER, (), ())


def _without(number: int) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: lines[:number] + lines[number + 1 :]


@pytest.mark.parametrize(
    "change, why",
    [
        pytest.param(lambda _: [], "is not a backup of situate", id="empty"),
        pytest.param(_without(0), "is not a backup of situate", id="no header"),
        pytest.param(_without(1), "its checksum does not match", id="an entry less"),
        pytest.param(_without(3), "its checksum does not match", id="a file less"),
        pytest.param(lambda lines: [*lines, b"\n"], "its checksum does not match", id="more after its end"),
        pytest.param(lambda lines: lines[:-1], "it has no end", id="no end"),
        pytest.param(lambda lines: [lines[0], b"{}\n", *lines[1:]], "is damaged, or not", id="a line with nothing"),
        pytest.param(lambda lines: [lines[0], *lines], "is damaged, or not", id="a second header"),
        pytest.param(lambda lines: [lines[0], b"text\n"], "is damaged, or not", id="a line that is no JSON"),
        pytest.param(
            lambda lines: [line.replace(b'"entries":2', b'"entries":3') for line in lines],
            "its checksum does not match",
            id="a wrong number of entries",
        ),
        pytest.param(
            lambda lines: [line.replace(b"tokens.csv", b"tokens.cfg") for line in lines],
            "its checksum does not match",
            id="a changed name",
        ),
        pytest.param(
            lambda lines: [line.replace(b'"version":%d' % VERSION, b'"version":%d' % (VERSION + 1)) for line in lines],
            "was made by situate 9, which is newer; use that release",
            id="a newer layout",
        ),
    ],
)
def test_a_backup_that_somebody_has_changed_is_refused(
    saved: Path, change: Callable[[list[bytes]], list[bytes]], why: str
) -> None:
    saved.write_bytes(gzip.compress(b"".join(change(lines_of(saved)))))
    with pytest.raises(BackupError, match=why):
        verify_backup(saved)


@pytest.mark.parametrize(
    "change, why",
    [
        pytest.param(lambda raw: raw[:-20], "is damaged, or not", id="cut off"),
        pytest.param(lambda raw: raw[:40] + bytes(20) + raw[60:], "is damaged, or not", id="overwritten"),
        pytest.param(lambda _: b"not a backup", "is damaged, or not", id="no gzip"),
    ],
)
def test_a_damaged_file_is_refused(saved: Path, change: Callable[[bytes], bytes], why: str) -> None:
    saved.write_bytes(change(saved.read_bytes()))
    with pytest.raises(BackupError, match=why):
        verify_backup(saved)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"none cannot be read: No such file or directory$"):
        verify_backup(tmp_path / "none")
