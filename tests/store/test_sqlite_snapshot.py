"""A whole file at one revision, and a new file from that: with leases, far beyond all revisions, whole and synced."""

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from situate.store.backup import BackupEntry
from situate.store.entries import Entry, LeaseId, Revision
from situate.store.errors import BackupError, CompactedError, CorruptError, FormatError, StoreError
from situate.store.format import FORMAT
from situate.store.sqlite import snapshot
from situate.store.sqlite.snapshot import BUMP, make_store, snapshot_of
from situate.store.sqlite.store import SqliteStore
from situate.store.transactions import Delete, Put
from store.files import file_of, names_in, open_handles
from store.sqlite_stories import tell
from store.stories import revision_of

ENTRIES = [BackupEntry(f"/{number}", b"%d" % number, 5) for number in range(7)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def read(path: Path) -> list[BackupEntry]:
    with snapshot_of(path) as (_, _, entries):
        return list(entries)


def written(path: Path, **tables: str) -> None:
    """Change a closed file by hand."""
    connection = apsw.Connection(str(path))
    for statement in tables.values():
        connection.execute(statement)
    connection.close()


def test_a_file_is_read_at_one_revision_while_its_server_writes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "CHUNK", 3)

    async def story(store: SqliteStore) -> None:
        lease = await store.grant(60)
        for number in range(9):  # three whole chunks
            await store.commit([], [Put(f"/{number}", b"%d" % number)])
        await store.commit([], [Delete("/3")])
        revision = revision_of(await store.commit([], [Put("/3", b"again", lease)]))
        with snapshot_of(path) as (marker, found, entries):
            first = next(entries)
            await store.commit([], [Put("/8", b"later"), Delete("/4")])
            all_of_them = [first, *entries]
        assert marker == store.marker
        assert marker.format == FORMAT
        assert found == revision
        assert [entry.key for entry in all_of_them] == [f"/{number}" for number in range(9)]
        assert all_of_them[3] == BackupEntry("/3", b"again", revision, lease, 60)
        assert (all_of_them[8].value, all_of_them[8].lease, all_of_them[8].ttl_s) == (b"8", 0, 0)

    tell(path, story)


def test_what_was_read_is_a_file_again_far_beyond_all_that_anybody_has_seen(path: Path) -> None:
    held = [BackupEntry("/a", b"1", 3, 77, 600), BackupEntry("/b", b"2", 5, 77, 600), BackupEntry("/c", b"", 5)]
    revision = make_store(path, "its identity", 41, held)
    assert revision == 41 + BUMP
    assert names_in(path.parent) == ["store.db"], "no log is left that only SQLite could read"

    async def story(store: SqliteStore) -> None:
        assert store.marker.identity == "its identity"
        assert await store.revision() == revision
        now = Revision(revision)
        assert (await store.scan("")).entries == (
            Entry("/a", b"1", now, now, LeaseId(77)),
            Entry("/b", b"2", now, now, LeaseId(77)),
            Entry("/c", b"", now, now),
        )
        with pytest.raises(CompactedError):
            await anext(store.watch("/", Revision(41)))
        assert revision_of(await store.commit([], [Put("/d", b"")])) == revision + 1
        await store.compact(await store.revision())
        await store.revoke(LeaseId(77))
        assert [entry.key for entry in (await store.scan("")).entries] == ["/c", "/d"]

    tell(path, story)


def test_a_store_of_nobody_gets_an_identity(path: Path) -> None:
    make_store(path, "", 1, ENTRIES)
    with snapshot_of(path) as (marker, _, entries):
        assert marker.identity
        assert len(list(entries)) == len(ENTRIES)


def test_many_entries_take_several_revisions_with_a_limit_of_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "ROWS_PER_REVISION", 3)
    assert make_store(path, "", 10, ENTRIES) == 10 + BUMP + 2
    assert [entry.modified - BUMP for entry in read(path)] == [10, 10, 10, 11, 11, 11, 12]


def test_the_file_is_synced_when_nothing_of_it_is_in_a_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[Path, int, list[str]]] = []
    handles = open_handles()

    def sync(handle: int) -> None:
        synced.append((file_of(handle), os.fstat(handle).st_size, names_in(path.parent)))

    monkeypatch.setattr(os, "fsync", sync)
    make_store(path, "", 1, ENTRIES)
    assert synced == [(path, path.stat().st_size, ["store.db"])]
    assert open_handles() == handles


def test_whoever_fails_in_the_middle_leaves_no_handle(path: Path) -> None:
    def failing() -> Iterator[BackupEntry]:
        yield ENTRIES[0]
        raise KeyboardInterrupt

    handles = open_handles()
    with pytest.raises(KeyboardInterrupt):
        make_store(path, "", 1, failing())
    assert open_handles() == handles


def test_a_restored_file_that_is_damaged_is_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_connection: apsw.Connection, query: str) -> tuple[str]:
        return ("row 1 is missing" if "integrity_check" in query else "",)

    monkeypatch.setattr(snapshot, "one", damaged)
    with pytest.raises(BackupError, match="the restored store is damaged: row 1 is missing"):
        make_store(path, "", 1, ENTRIES)


def test_what_is_not_a_store_is_not_backed_up(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"there is no store in {path}"):
        read(path)
    assert not path.exists()
    written(tmp_path / "other.db", table="CREATE TABLE t (x)")
    with pytest.raises(StoreError, match=r"other.db is not a store of situate"):
        read(tmp_path / "other.db")
    (tmp_path / "text").write_text("no database at all" * 100)
    with pytest.raises(CorruptError, match="text cannot be read"):
        read(tmp_path / "text")


def test_a_newer_store_is_not_backed_up(path: Path) -> None:
    make_store(path, "", 1, ENTRIES)
    written(path, version=f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(FormatError, match="which is newer"):
        read(path)


@pytest.mark.parametrize(
    "statement, why",
    [
        pytest.param("UPDATE live SET key = '/x' WHERE key = '/2'", "'/x' refers to a row of another key", id="astray"),
        pytest.param("UPDATE log SET value = NULL WHERE key = '/2'", "does not match its checksum", id="no value"),
        pytest.param("DELETE FROM log WHERE key = '/2'", "of the log is missing, and 0 more", id="missing"),
        pytest.param("DELETE FROM log WHERE key >= '/2'", "of the log is missing, and 4 more", id="several missing"),
        pytest.param("UPDATE log SET key = x'ff' WHERE key = '/2'", "JSON cannot hold BLOB values", id="a blob"),
        pytest.param("UPDATE log SET key = CAST(x'ff' AS TEXT) WHERE key = '/2'", "can't decode byte", id="not UTF-8"),
        pytest.param("UPDATE log SET created = 'x' WHERE key = '/2'", "cannot decode a row of the log", id="no number"),
    ],
)
def test_an_entry_that_is_not_as_it_was_written_is_not_backed_up(path: Path, statement: str, why: str) -> None:
    make_store(path, "", 1, ENTRIES)
    written(path, change=statement)
    with pytest.raises(CorruptError, match=why):
        read(path)


def test_an_index_that_does_not_match_its_table_is_noticed(path: Path) -> None:
    """quick_check, at the start of a server, does not compare them."""
    make_store(path, "", 1, [BackupEntry("/a", b"", 1, 77, 60)])
    connection = apsw.Connection(str(path))
    ((page,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'live_by_lease'")
    (size,) = next(connection.execute("PRAGMA page_size"))
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size + 3)
        file.write(b"\0\0")  # the index has no rows
    with pytest.raises(CorruptError, match=r"store.db is damaged: "):
        read(path)
