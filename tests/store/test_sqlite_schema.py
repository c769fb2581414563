"""What is checked of a file before it is served, and of each row when it is read."""

import asyncio
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from situate.store.backup import BackupEntry
from situate.store.entries import Revision
from situate.store.errors import CorruptError, InvalidRequestError, StoreError
from situate.store.sqlite import queries, schema
from situate.store.sqlite.file import Lock, lock, open_reader, open_writer
from situate.store.sqlite.migrations import load_marker
from situate.store.sqlite.rows import PLACES, number, one
from situate.store.sqlite.snapshot import make_store
from situate.store.sqlite.store import SqliteStore
from situate.store.transactions import Put
from store.files import open_handles
from store.sqlite_stories import tell

ENTRIES = [BackupEntry("/a", b"1", 1), BackupEntry("/b", b"2", 1, 77, 60), BackupEntry("/c", b"3", 1)]
AFTER = 5


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "store.db"
    make_store(made, "", AFTER, ENTRIES)
    return made


def change(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def counter(name: str, value: int) -> str:
    return f"REPLACE INTO counter VALUES ('{name}', {value}, {zlib.crc32(f'{name} {value}'.encode())})"


def opened(path: Path) -> str:
    """The error of opening the file; empty: there was none. Either way somebody else may open it afterwards."""
    handles = open_handles()

    async def story() -> str:
        try:
            store = await SqliteStore.open(path)
        except CorruptError as error:
            return str(error)
        await store.aclose()
        return ""

    said = asyncio.run(story())
    assert open_handles() == handles
    lock(path).release()
    return said


@pytest.mark.parametrize(
    "statement, why",
    [
        pytest.param(
            "UPDATE counter SET value = value + 1", "the counter '.*' is not as it was written", id="a number"
        ),
        pytest.param("UPDATE counter SET value = 'x'", "the counter '.*' is not as it was written", id="no number"),
        pytest.param(
            "DELETE FROM counter WHERE name = 'swept'", r"there are \['compacted', 'revision'\]", id="missing"
        ),
        pytest.param(counter("more", 1), "counters are missing: there are", id="one too many"),
        pytest.param(counter("revision", 5), "the counters do not match the log", id="the log is beyond the counter"),
        pytest.param(counter("compacted", 1 << 40), "the counters do not match the log", id="compacted in the future"),
        pytest.param("UPDATE live SET id = id + 1 WHERE key = '/a'", "1 keys refer to rows of other", id="another row"),
        pytest.param("UPDATE live SET lease = 0 WHERE key = '/b'", "1 keys refer to rows of other", id="another lease"),
        pytest.param(
            "UPDATE log SET value = NULL WHERE key = '/a'", "1 keys refer to rows of other", id="its deletion"
        ),
        pytest.param(
            "DELETE FROM log WHERE key = '/a'", "1 keys refer to rows of other keys, 0 to leases", id="no row"
        ),
        pytest.param("DELETE FROM lease", "0 keys refer to rows of other keys, 1 to leases", id="no lease"),
        pytest.param("DELETE FROM about WHERE name = 'identity'", "about is incomplete: it has ..release", id="nobody"),
    ],
)
def test_a_file_that_contradicts_itself_is_not_opened(path: Path, statement: str, why: str) -> None:
    assert opened(path) == ""
    change(path, statement)
    assert re.match(f"{path}: .*{why}", opened(path))


def test_the_counter_may_be_beyond_the_log_and_just_compacted(path: Path) -> None:
    """Compaction takes the newest rows of the log, if they are deletions."""
    revision = AFTER + 2_000_000_000
    change(path, counter("revision", revision), counter("compacted", revision))
    assert opened(path) == ""


def test_without_a_write_ahead_log_there_is_no_store() -> None:
    """A database in memory has none, as on some network file systems."""
    connection = apsw.Connection(":memory:")
    with pytest.raises(StoreError, match="does not support SQLite's write-ahead log"):
        schema.prepare(connection)


def test_a_marker_needs_a_release_and_an_identity(path: Path) -> None:
    connection = open_reader(path)
    assert load_marker(connection).identity
    connection.close()
    change(path, "DELETE FROM about WHERE name = 'release'")
    connection = open_reader(path)
    with pytest.raises(CorruptError, match=r"it has \['identity'\]"):
        load_marker(connection)
    connection.close()


def test_a_release_writes_its_name_when_it_opens_the_file_of_another(path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        assert store.marker.release != "0.0.1"

    change(path, "UPDATE about SET value = '0.0.1' WHERE name = 'release'")
    tell(path, story)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "statement, why",
    [
        pytest.param("UPDATE live SET key = '/aa' WHERE key = '/a'", "'/aa' refers to a row of another key", id="key"),
        pytest.param("UPDATE live SET id = 9 WHERE key = '/a'", "row 9 of the log is missing, and 0 more", id="no row"),
        pytest.param("UPDATE live SET key = CAST(x'2fff' AS TEXT) WHERE key = '/a'", "can't decode byte", id="no text"),
    ],
)
def test_damage_after_the_start_is_not_served(path: Path, statement: str, why: str) -> None:
    async def story(store: SqliteStore) -> None:
        assert len((await store.scan("")).entries) == 3
        change(path, statement)
        with pytest.raises(CorruptError, match=why):
            await store.scan("")

    tell(path, story)


def test_a_key_that_refers_to_its_own_deletion_is_not_served(path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        await store.commit([], [Put("/d", b"")])
        (row,) = one(reader, "SELECT id FROM live WHERE key = '/d'")
        crc = checksum_of_deletion(row + PLACES, "/d", row)
        change(
            path,
            f"INSERT INTO log VALUES ({row + PLACES}, '/d', NULL, 0, {row}, 0, {crc})",
            f"UPDATE live SET id = {row + PLACES} WHERE key = '/d'",
        )
        with pytest.raises(CorruptError, match="'/d' refers to"):
            await store.read(["/d"])

    reader = open_reader(path)
    tell(path, story)
    reader.close()


def checksum_of_deletion(row: int, key: str, before: int) -> int:
    return zlib.crc32(f"{row} 0 {before} 0 -1 {key}".encode())


def test_a_file_that_can_no_longer_be_read_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise apsw.IOError("disk I/O error")

    async def story(store: SqliteStore) -> None:
        monkeypatch.setattr(queries, "read", fail)
        for _ in range(5):  # a failed query gives its connection back
            with pytest.raises(CorruptError, match=r"store.db cannot be read: disk I/O error$"):
                await store.read(["/a"])
        monkeypatch.undo()
        assert (await store.read(["/a"])).entries[0]

    tell(path, story)


def test_a_query_that_returns_nothing_is_damage(path: Path) -> None:
    connection = open_reader(path)
    with pytest.raises(CorruptError, match="a query that always has a row returned none: SELECT 1 WHERE 0"):
        one(connection, "SELECT 1 WHERE 0")
    connection.close()


@pytest.mark.parametrize("rows", [queries.HISTORY_ROWS - 1, queries.HISTORY_ROWS, queries.HISTORY_ROWS + 1])
def test_a_revision_is_told_whole_however_many_rows_it_has(path: Path, rows: int) -> None:
    connection = open_writer(path)
    revision = AFTER + 2_000_000_000
    with connection:
        for place in range(rows):
            row, key = number(revision, place), f"/many/{place:05}"
            crc = zlib.crc32(b"v", zlib.crc32(f"{row} {revision} 0 0 1 {key}".encode()))
            connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, 0, 0, ?)", (row, key, b"v", revision, crc))
        connection.execute(counter("revision", revision + 1))
    (batch,), complete = queries.history(connection, "/many/", Revision(revision - 1), Revision(revision + 1))
    assert (batch.revision, len(batch.events)) == (revision, rows)
    assert complete in (revision, revision + 1)
    connection.close()


def test_a_lease_of_less_than_a_second_is_refused() -> None:
    schema.check_ttl(1)
    with pytest.raises(InvalidRequestError):
        schema.check_ttl(0)


# ── the file ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lock_that_cannot_be_had_leaves_no_handle(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other name.db"
    os.link(path, other)
    (tmp_path / "folder.db").mkdir()
    held = lock(path)
    handles = open_handles()
    with pytest.raises(StoreError, match=f"in use by another server, process {os.getpid()}$"):
        lock(path)
    with pytest.raises(StoreError, match="in use by another server, under another name of the same file"):
        lock(other)
    with pytest.raises(IsADirectoryError):
        lock(tmp_path / "folder.db")
    assert open_handles() == handles
    held.release()
    assert open_handles() == handles - 2
    lock(other).release()


def _remove(path: Path) -> None:
    path.unlink()


def _replace(path: Path) -> None:
    path.unlink()
    path.touch()


def _lose_the_folder(path: Path) -> None:
    path.unlink()
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.touch()


@pytest.mark.parametrize("lose", [_remove, _replace, _lose_the_folder])
def test_a_lock_knows_whether_its_file_is_still_there(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "store.db"
    held = lock(path)
    assert held.holds(path)
    lose(path)
    assert not held.holds(path)
    held.release()


def test_a_file_that_nobody_can_look_at_is_not_taken_for_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: Path) -> os.stat_result:
        raise PermissionError

    held: Lock = lock(path)
    monkeypatch.setattr(Path, "stat", fail)
    assert held.holds(path)
    monkeypatch.undo()
    held.release()


def test_a_file_that_cannot_be_opened_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"store.db cannot be opened: Not a directory$"):
        asyncio.run(SqliteStore.open(tmp_path / "file" / "store.db"))
    with pytest.raises(StoreError, match=r"none.db cannot be opened: "):
        open_reader(tmp_path / "none.db")
