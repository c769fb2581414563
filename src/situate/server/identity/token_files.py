"""Bearer tokens on disk: those of users, and those with which a new node joins. Only hashes of them are kept.

A token is 256 random bits, so a plain SHA-256 of it can stand on disk: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from situate.server.identity.secret_files import IdentityError, WatchedFile, write_private
from situate.server.requests import Caller

__all__ = ["JOIN_LIFE", "JOIN_PATTERN", "JoinTokens", "UserTokens", "find_hash"]

JOIN_PATTERN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
JOIN_LIFE: Final = timedelta(hours=24)
JOIN_USER: Final = "system:bootstrap:"
JOIN_GROUP: Final = "system:bootstrappers"
AUTHENTICATED: Final = "system:authenticated"
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def find_hash(hashed: str, candidates: Sequence[str]) -> int:
    """Which of the candidates it is; -1 for none. Takes as long whichever it is: all are compared, each in full."""
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


class _JoinToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    sha256: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class _Users:
    hashes: tuple[str, ...]
    callers: tuple[Caller, ...]


class UserTokens:
    """Tokens of users, in a file: `[{"sha256": …, "user": …, "groups": […]}]`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = WatchedFile(path)
        self._known = _Users((), ())

    def find(self, token: str) -> Caller | None:
        if self._file.changed():
            # If it cannot be read, nobody is known: that is said once, and to the others they are nobody.
            self._known = _Users((), ())
            entries = self._read()
            callers = tuple(Caller(one.user, (*one.groups, AUTHENTICATED), one.uid) for one in entries)
            self._known = _Users(tuple(one.sha256 for one in entries), callers)
        index = find_hash(_hash(token), self._known.hashes)
        return self._known.callers[index] if index >= 0 else None

    def add(self, user: str, groups: Iterable[str] = (), uid: str = "") -> str:
        """A new token for a user: told once, and never again."""
        token = secrets.token_urlsafe(32)
        self._write([*self._read(), _UserToken(_hash(token), user, tuple(groups), uid)])
        return token

    def remove(self, user: str) -> int:
        """No token of this user is good any more; says how many there were."""
        entries = self._read()
        kept = [one for one in entries if one.user != user]
        if len(kept) != len(entries):
            self._write(kept)
        return len(entries) - len(kept)

    def _read(self) -> list[_UserToken]:
        try:
            return msgspec.json.decode(self._file.text() or "[]", type=list[_UserToken])
        except msgspec.DecodeError as error:
            raise IdentityError(f"{self._path} is damaged: {error}") from error

    def _write(self, entries: list[_UserToken]) -> None:
        write_private(self._path, msgspec.json.format(msgspec.json.encode(entries)) + b"\n")


class JoinTokens:
    """Tokens with which a node joins: `abcdef.0123456789abcdef`, good once and for a day."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = WatchedFile(path)
        self._known: list[_JoinToken] = []

    def add(self, now: datetime, life: timedelta = JOIN_LIFE) -> str:
        name = "".join(secrets.choice(_ALPHABET) for _ in range(6))
        token = f"{name}.{''.join(secrets.choice(_ALPHABET) for _ in range(16))}"
        kept = [one for one in self._read() if one.expires > now]
        self._write([*kept, _JoinToken(name, _hash(token), (now + life).astimezone(UTC))])
        return token

    def find(self, token: str, now: datetime) -> Caller | None:
        """Whoever shows it: somebody who may ask for the certificate of a node, and do nothing else."""
        match = JOIN_PATTERN.fullmatch(token)
        if match is None:
            return None
        if self._file.changed():
            self._known = []
            self._known = self._read()
        index = find_hash(_hash(token), [one.sha256 for one in self._known])
        if index < 0 or self._known[index].expires <= now:
            return None
        return Caller(f"{JOIN_USER}{match[1]}", (JOIN_GROUP, AUTHENTICATED))

    def check(self) -> None:
        """Raises if the file cannot be read."""
        self._read()

    def spend(self, caller: Caller, now: datetime) -> bool:
        """Use up the token by which this caller was known; False if it is used up already."""
        name = caller.name.removeprefix(JOIN_USER)
        entries = self._read()
        kept = [one for one in entries if one.id != name and one.expires > now]
        if not any(one.id == name and one.expires > now for one in entries):
            return False
        self._write(kept)
        return True

    def _read(self) -> list[_JoinToken]:
        try:
            return msgspec.json.decode(self._file.text() or "[]", type=list[_JoinToken])
        except msgspec.DecodeError as error:
            raise IdentityError(f"{self._path} is damaged: {error}") from error

    def _write(self, entries: list[_JoinToken]) -> None:
        write_private(self._path, msgspec.json.format(msgspec.json.encode(entries)) + b"\n")
        self._known = entries
