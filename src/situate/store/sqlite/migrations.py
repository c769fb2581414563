"""Brings a file of an older release up to date: one step for each format, each in one transaction.

A process that is killed in the middle leaves the file at the step before, which the next start continues from.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Final

import apsw

from situate import __version__
from situate.store.errors import CorruptError
from situate.store.format import FORMAT, StoreMarker, checked

RELEASE: Final = "release"
IDENTITY: Final = "identity"
IDENTITY_BYTES: Final = 16
ABOUT: Final = "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"


def _with_identity(connection: apsw.Connection) -> None:
    connection.execute(ABOUT)
    introduce(connection)


STEPS: Final[Mapping[int, Callable[[apsw.Connection], None]]] = {2: _with_identity}
"""The migrations, by the format that they produce from the one before."""


def introduce(connection: apsw.Connection) -> None:
    """The metadata of a new file."""
    made = {RELEASE: __version__, IDENTITY: secrets.token_hex(IDENTITY_BYTES)}
    connection.executemany("INSERT INTO about VALUES (?, ?)", made.items())


def migrate(connection: apsw.Connection, found: int) -> None:
    """From the format that was found to our own. FormatError if the file is newer."""
    checked(StoreMarker(found, read_about(connection).get(RELEASE, "") if found > 1 else "", ""))
    for step in range(found + 1, FORMAT + 1):
        with connection:
            STEPS[step](connection)
            connection.execute(f"PRAGMA user_version = {step}")
    if read_about(connection).get(RELEASE) != __version__:
        connection.execute("REPLACE INTO about VALUES (?, ?)", (RELEASE, __version__))


def load_marker(connection: apsw.Connection) -> StoreMarker:
    about = read_about(connection)
    if RELEASE not in about or IDENTITY not in about:
        raise CorruptError(f"the table about is incomplete: it has {sorted(about)}")
    return StoreMarker(FORMAT, about[RELEASE], about[IDENTITY])


def read_about(connection: apsw.Connection) -> dict[str, str]:
    """Of a newer format, too, which may have changed everything else."""
    try:
        return {str(name): str(value) for name, value in connection.execute("SELECT name, value FROM about")}
    except apsw.SQLError:
        return {}
