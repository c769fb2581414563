"""The users of a cluster, and their credentials: client certificates and bearer tokens.

Works on the directory of a cluster, whether its server runs or not. A running server notices every change at its next
request. `users.json` has what was issued, and no secret: a certificate's serial number, never its key.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from cryptography import x509

from situate.server.identity.file_names import AUTHORITY
from situate.server.identity.pki.authority import open_authority
from situate.server.identity.pki.certificates import Credential
from situate.server.identity.pki.revocation import REVOKED, RevocationList, read_revoked, revoke
from situate.server.identity.secret_files import PRIVATE, IdentityError, SecretFile, write_private
from situate.server.identity.setup import USER_TOKENS
from situate.server.identity.tokens.token_files import UserToken, UserTokens, hash_of

ISSUED: Final = "users.json"
LOCK: Final = "users.lock"
RESERVED: Final = "system:"
MAX_NAME: Final = 64
"""The longest common name in a certificate."""
MAX_ISSUED: Final = 10_000
TOKEN_BYTES: Final = 32
ID_BYTES: Final = 5
NO_CLUSTER: Final = "there is no cluster in {}; `situate up` starts one"


class IssuedCertificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    user: str
    groups: tuple[str, ...]
    serial: str
    created: datetime
    expires: datetime


class UserCredential(NamedTuple):
    """One line of `situate user list`."""

    user: str
    groups: tuple[str, ...]
    kind: Literal["certificate", "token"]
    id: str
    """The serial number or the id of the token."""
    expires: datetime | None
    revoked: bool


class UserDirectory:
    def __init__(self, folder: Path) -> None:
        """Raises IdentityError if there is no cluster."""
        if not (folder / AUTHORITY).is_dir():
            raise IdentityError(NO_CLUSTER.format(folder))
        self._folder = folder
        self._issued = folder / ISSUED
        self._revoked = folder / AUTHORITY / REVOKED
        self._tokens = UserTokens(folder / USER_TOKENS)

    def authority_bundle(self, now: datetime) -> bytes:
        return open_authority(self._folder / AUTHORITY, now).bundle

    def add_certificate(self, user: str, groups: Sequence[str], life: timedelta, now: datetime) -> Credential:
        _check(user, groups)
        with self.locked():
            issued = [one for one in self._certificates() if one.expires > now]
            if len(issued) >= MAX_ISSUED:
                raise IdentityError(f"{self._issued} has {MAX_ISSUED} certificates already; remove some users")
            made = open_authority(self._folder / AUTHORITY, now).client(user, groups, now, life)
            certificate = x509.load_pem_x509_certificate(made.certificate)
            end = certificate.not_valid_after_utc
            issued.append(IssuedCertificate(user, tuple(groups), f"{certificate.serial_number:x}", now, end))
            write_private(self._issued, msgspec.json.format(msgspec.json.encode(issued)) + b"\n")
        return made

    def add_token(self, user: str, groups: Sequence[str], life: timedelta, now: datetime) -> str:
        """Create a token and return it; only its hash is stored."""
        _check(user, groups)
        token, token_id = secrets.token_urlsafe(TOKEN_BYTES), secrets.token_hex(ID_BYTES)
        with self.locked():
            kept = [one for one in self._tokens.entries() if one.is_good(now)]
            if len(kept) >= MAX_ISSUED:
                raise IdentityError(f"there are {MAX_ISSUED} tokens already; revoke some")
            expires = (now + life).replace(microsecond=0)
            self._tokens.write([*kept, UserToken(hash_of(token), user, tuple(groups), "", token_id, expires)])
        return token

    def credentials(self) -> list[UserCredential]:
        revoked = read_revoked(self._revoked)
        found = [
            UserCredential(
                one.user,
                one.groups,
                "certificate",
                one.serial,
                one.expires,
                revoked.has(int(one.serial, 16), one.user, one.created),
            )
            for one in self._certificates()
        ]
        found += [
            UserCredential(one.user, one.groups, "token", one.id or one.sha256[:10], one.expires, False)
            for one in self._tokens.entries()
        ]
        return sorted(found, key=lambda one: (one.user, one.kind, one.expires or datetime.max.replace(tzinfo=UTC)))

    def remove(self, user: str, now: datetime) -> int:
        """Revoke all credentials of a user, from the next request on. Returns how many were valid until now."""
        with self.locked():
            revoked = read_revoked(self._revoked)
            good = {
                int(one.serial, 16): one.expires
                for one in self._certificates()
                if one.user == user and one.expires > now and int(one.serial, 16) not in revoked.serials
            }
            tokens = self._tokens.entries()
            kept = [one for one in tokens if one.user != user]
            ended = sum(1 for one in tokens if one.user == user and one.is_good(now))
            if good:
                revoke(self._revoked, RevocationList(good), now)
            if len(kept) != len(tokens):
                self._tokens.write(kept)
        return len(good) + ended

    def revoke_all_before(self, user: str, now: datetime) -> None:
        """Revoke every certificate that this user was ever given, also those that are in no list, such as a node's."""
        with self.locked():
            revoke(self._revoked, RevocationList({}, {user: now}), now)

    def revoke_token(self, token_id: str) -> str:
        """The user whose token it was. Raises IdentityError if there is none."""
        with self.locked():
            tokens = self._tokens.entries()
            found = [one for one in tokens if token_id in (one.id, one.sha256[:10])]
            if not found:
                raise IdentityError(f"there is no token {token_id}; `situate token list` shows all")
            self._tokens.write([one for one in tokens if one not in found])
        return found[0].user

    def _certificates(self) -> list[IssuedCertificate]:
        try:
            return msgspec.json.decode(SecretFile(self._issued).text() or "[]", type=list[IssuedCertificate])
        except msgspec.DecodeError as error:
            raise IdentityError(f"{self._issued} is damaged: {error}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One command changes the files at a time."""
        descriptor = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _check(user: str, groups: Sequence[str]) -> None:
    for what, name in (("user", user), *(("group", group) for group in groups)):
        if not name or len(name) > MAX_NAME or not name.isprintable() or name != name.strip():
            raise IdentityError(
                f"{name[:MAX_NAME]!r} is not the name of a {what}: 1 to {MAX_NAME} printable characters"
            )
    if user.startswith(RESERVED):
        raise IdentityError(f"{user!r} cannot be a user: names that begin with {RESERVED} are the cluster's own")
