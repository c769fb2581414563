"""The tables, and the checks when a file is opened.

`log` has every write; `live` says which row each key stands at; `lease` which leases there are; `counter` how far it
all is; `about` who wrote it. Counters are kept apart, as compaction may take the newest rows of the log.
"""

from __future__ import annotations

import zlib
from typing import Final, TypeAlias

import apsw

from situate.store.entries import LeaseId
from situate.store.errors import CorruptError, InvalidRequestError, StoreError
from situate.store.format import FORMAT
from situate.store.sqlite.migrations import ABOUT, introduce, migrate
from situate.store.sqlite.rows import PLACE_BITS, one

APPLICATION: Final = 0x53495455  # "SITU"
OLDEST_SQLITE: Final = (3, 51, 3)
BUSY_MS: Final = 5_000
CACHE_KIB: Final = 4 << 10
"""The writer's page cache."""

REVISION: Final = "revision"
COMPACTED: Final = "compacted"
SWEPT: Final = "swept"
_SETTINGS: Final = (
    "synchronous = FULL",  # a commit returns after fsync
    "fullfsync = ON",
    "mmap_size = 0",
    "wal_autocheckpoint = 0",  # we call it ourselves, to see its errors
    "temp_store = MEMORY",  # else every statement with many rows creates a file for its rollback
    f"cache_size = -{CACHE_KIB}",
)
_AT_FIRST: Final = {REVISION: 1, COMPACTED: 1, SWEPT: 0}

_TABLES: Final = """
CREATE TABLE log (id INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB, created INTEGER NOT NULL,
                  before INTEGER NOT NULL, lease INTEGER NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE live (key TEXT PRIMARY KEY, id INTEGER NOT NULL, lease INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX live_by_lease ON live (lease) WHERE lease <> 0;
CREATE TABLE lease (id INTEGER PRIMARY KEY, ttl_s INTEGER NOT NULL);
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
"""
_INTAKE: Final = """
CREATE TEMP VIEW intake AS SELECT * FROM log;
CREATE TEMP TRIGGER take_first INSTEAD OF INSERT ON intake WHEN NEW.before = 0 AND NEW.value IS NOT NULL BEGIN
    INSERT INTO log VALUES (NEW.id, NEW.key, NEW.value, NEW.created, NEW.before, NEW.lease, NEW.crc);
    INSERT INTO live VALUES (NEW.key, NEW.id, NEW.lease);
END;
CREATE TEMP TRIGGER take_next INSTEAD OF INSERT ON intake WHEN NEW.before <> 0 AND NEW.value IS NOT NULL BEGIN
    INSERT INTO log VALUES (NEW.id, NEW.key, NEW.value, NEW.created, NEW.before, NEW.lease, NEW.crc);
    UPDATE live SET id = NEW.id, lease = NEW.lease WHERE key = NEW.key;
END;
CREATE TEMP TRIGGER take_last INSTEAD OF INSERT ON intake WHEN NEW.id IS NOT NULL AND NEW.value IS NULL BEGIN
    INSERT INTO log VALUES (NEW.id, NEW.key, NEW.value, NEW.created, NEW.before, NEW.lease, NEW.crc);
    DELETE FROM live WHERE key = NEW.key;
END;
CREATE TEMP TRIGGER take_count INSTEAD OF INSERT ON intake WHEN NEW.id IS NULL AND NEW.key IS NOT NULL BEGIN
    REPLACE INTO counter VALUES (NEW.key, NEW.created, NEW.crc);
END;
"""
"""What the writer writes to, so that a whole commit is one statement: a row of the log goes to `log` and moves `live`,
a row without a number is a counter, and one without anything is nothing. A row that says it is the first of its key,
and is not, cannot stand in `live` and undoes the statement. The file knows nothing of it."""
TAKE: Final = "INSERT INTO intake VALUES "
COLUMNS: Final = 7
Cell: TypeAlias = int | str | bytes | None


def check_sqlite(version: str) -> None:
    """Before 3.51.3, a checkpoint beside a writer could corrupt the file."""
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_SQLITE:
        needed = ".".join(str(part) for part in OLDEST_SQLITE)
        raise StoreError(f"SQLite {version} can corrupt a database at a checkpoint; {needed} or newer is required")


def settle(connection: apsw.Connection) -> None:
    """For readers and the writer. Closing must not write: after a failure, the state of the log is unknown."""
    connection.set_busy_timeout(BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def prepare(connection: apsw.Connection) -> None:
    """Apply settings, check integrity, create tables. Then the connection may write."""
    settle(connection)
    try:
        if one(connection, "PRAGMA journal_mode = WAL") != ("wal",):
            raise StoreError(
                "this file system does not support SQLite's write-ahead log; put the store on a local disk"
            )
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        _check_pages(connection)
        _make_or_migrate(connection)
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise CorruptError(f"the file is damaged, or not a database: {error}") from None
    _check_counters(connection)
    _check_live(connection)
    connection.execute(_INTAKE)


def _check_pages(connection: apsw.Connection) -> None:
    (found,) = one(connection, "PRAGMA quick_check(1)")
    if found != "ok":
        raise CorruptError(f"the file is damaged: {' '.join(str(found).split())}")


def _make_or_migrate(connection: apsw.Connection) -> None:
    (version,) = one(connection, "PRAGMA user_version")
    (application,) = one(connection, "PRAGMA application_id")
    (tables,) = one(connection, "SELECT count(*) FROM sqlite_schema")
    if version == 0 and tables == 0:
        with connection:
            connection.execute(_TABLES)
            for name, value in _AT_FIRST.items():
                save_counter(connection, name, value)
            connection.execute(ABOUT)
            introduce(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
    elif application != APPLICATION:
        raise StoreError("the file is another program's database")
    else:
        migrate(connection, version)


def _check_counters(connection: apsw.Connection) -> None:
    counters = load_counters(connection)
    (newest,) = one(connection, "SELECT coalesce(max(id), 0) FROM log")
    if newest >> PLACE_BITS > counters[REVISION] or counters[COMPACTED] > counters[REVISION]:
        raise CorruptError(f"the counters do not match the log: {counters}, and its last row is {newest}")


def _check_live(connection: apsw.Connection) -> None:
    """Each key stands at a row of its own, and each row that stands has its key."""
    (astray,) = one(
        connection,
        "SELECT count(*) FROM live LEFT JOIN log USING (id)"
        " WHERE live.key IS NOT log.key OR live.lease IS NOT log.lease OR log.value IS NULL",
    )
    (unheld,) = one(connection, "SELECT count(*) FROM live WHERE lease <> 0 AND lease NOT IN (SELECT id FROM lease)")
    if astray or unheld:
        raise CorruptError(f"{astray} keys refer to rows of other keys, {unheld} to leases that do not exist")


def load_counters(connection: apsw.Connection) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value, crc in connection.execute("SELECT name, value, crc FROM counter"):
        if not isinstance(value, int) or _counter_crc(str(name), value) != crc:
            raise CorruptError(f"the counter {name!r} is not as it was written")
        found[str(name)] = value
    if found.keys() != _AT_FIRST.keys():
        raise CorruptError(f"counters are missing: there are {sorted(found)}")
    return found


def counted(name: str, value: int) -> tuple[Cell, ...]:
    """A counter, among the rows that are taken in."""
    return (None, name, None, value, None, None, _counter_crc(name, value))


def save_counter(connection: apsw.Connection, name: str, value: int) -> None:
    connection.execute("REPLACE INTO counter VALUES (?, ?, ?)", (name, value, _counter_crc(name, value)))


def _counter_crc(name: str, value: int) -> int:
    return zlib.crc32(f"{name} {value}".encode())


def load_leases(connection: apsw.Connection) -> dict[LeaseId, int]:
    return {LeaseId(lease): ttl_s for lease, ttl_s in connection.execute("SELECT id, ttl_s FROM lease")}


def check_ttl(ttl_s: int) -> None:
    if ttl_s < 1:
        raise InvalidRequestError("a lease lasts at least a second")
