"""Bearer tokens of users, in a file that has only their SHA-256 hashes.

A token is 256 random bits, so nobody can guess it from a plain hash. It expires.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from situate.server.identity.secret_files import IdentityError, SecretFile, write_private
from situate.server.requests import Caller

AUTHENTICATED: Final = "system:authenticated"


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def find_hash(hashed: str, candidates: Sequence[str]) -> int:
    """The index of a hash; -1 if it is not there. Compares all candidates, so its time tells nothing."""
    found = -1
    for index, candidate in enumerate(candidates):
        if hmac.compare_digest(hashed, candidate):
            found = index
    return found


class UserToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    sha256: str
    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    id: str = ""
    """Names the token in commands; tokens that others wrote into the file may have none."""
    expires: datetime | None = None
    """None: never expires; only in files that others wrote."""

    def is_good(self, now: datetime) -> bool:
        return self.expires is None or now < self.expires


@dataclass(frozen=True, slots=True)
class _Users:
    hashes: tuple[str, ...]
    callers: tuple[Caller, ...]
    entries: tuple[UserToken, ...]


class UserTokens:
    """Tokens of users, in a file: `[{"sha256": …, "user": …, "groups": […]}]`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = SecretFile(path)
        self._known = _Users((), (), ())

    def find(self, token: str, now: datetime) -> Caller | None:
        if self._file.changed():
            # If the file cannot be read, no token is valid.
            self._known = _Users((), (), ())
            entries = self._read()
            callers = tuple(Caller(one.user, (*one.groups, AUTHENTICATED), one.uid) for one in entries)
            self._known = _Users(tuple(one.sha256 for one in entries), callers, tuple(entries))
        index = find_hash(hash_of(token), self._known.hashes)
        return self._known.callers[index] if index >= 0 and self._known.entries[index].is_good(now) else None

    def entries(self) -> list[UserToken]:
        """What the file has now. Raises IdentityError."""
        return self._read()

    def write(self, entries: Sequence[UserToken]) -> None:
        """The caller holds the lock of the directory; see users.py."""
        write_private(self._path, msgspec.json.format(msgspec.json.encode(entries)) + b"\n")

    def _read(self) -> list[UserToken]:
        try:
            return msgspec.json.decode(self._file.text() or "[]", type=list[UserToken])
        except msgspec.DecodeError as error:
            raise IdentityError(f"{self._path} is damaged: {error}") from error
