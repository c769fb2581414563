"""Bearer tokens of users, in a file that has only their SHA-256 hashes.

A token is 256 random bits, so nobody can guess it from a plain hash.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from situate.server.identity.secret_files import IdentityError, SecretFile
from situate.server.requests import Caller

AUTHENTICATED: Final = "system:authenticated"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def find_hash(hashed: str, candidates: Sequence[str]) -> int:
    """The index of a hash; -1 if it is not there. Compares all candidates, so its time tells nothing."""
    found = -1
    for index, candidate in enumerate(candidates):
        if hmac.compare_digest(hashed, candidate):
            found = index
    return found


class _UserToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str
    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""


@dataclass(frozen=True, slots=True)
class _Users:
    hashes: tuple[str, ...]
    callers: tuple[Caller, ...]


class UserTokens:
    """Tokens of users, in a file: `[{"sha256": …, "user": …, "groups": […]}]`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = SecretFile(path)
        self._known = _Users((), ())

    def find(self, token: str) -> Caller | None:
        if self._file.changed():
            # If the file cannot be read, no token is valid.
            self._known = _Users((), ())
            entries = self._read()
            callers = tuple(Caller(one.user, (*one.groups, AUTHENTICATED), one.uid) for one in entries)
            self._known = _Users(tuple(one.sha256 for one in entries), callers)
        index = find_hash(_hash(token), self._known.hashes)
        return self._known.callers[index] if index >= 0 else None

    def _read(self) -> list[_UserToken]:
        try:
            return msgspec.json.decode(self._file.text() or "[]", type=list[_UserToken])
        except msgspec.DecodeError as error:
            raise IdentityError(f"{self._path} is damaged: {error}") from error
