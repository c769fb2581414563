"""The key that signs tokens of service accounts, and former keys, whose tokens stay valid for a while.

    service-accounts.key              signs, and verifies
    service-accounts.previous.json    former public keys, each until a time

A rotation first writes the former key, then replaces the key: killed in between, it has changed nothing that counts. A
running server notices both files by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import Struct

from situate.loop.logs import Log
from situate.server.identity.pki import certificates
from situate.server.identity.secret_files import IdentityError, SecretFile, read_private, write_private

KEY: Final = "service-accounts.key"
PREVIOUS: Final = "service-accounts.previous.json"
MAX_PREVIOUS: Final = 10
"""How many former keys may still verify tokens. A further rotation is refused."""
DEFAULT_OVERLAP: Final = timedelta(days=1)
MAX_OVERLAP: Final = timedelta(days=365)

_log = Log(__name__)


class PreviousKey(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    public_key: str
    """PEM."""
    until: datetime

    def key(self) -> ec.EllipticCurvePublicKey:
        """Raises ValueError."""
        key = serialization.load_pem_public_key(self.public_key.encode())
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise ValueError("a key of another type than ECDSA")
        return key


class AccountKeys:
    def __init__(
        self, key: ec.EllipticCurvePrivateKey, previous: Sequence[PreviousKey] = (), folder: Path | None = None
    ) -> None:
        """With a folder, the keys follow changes of its files."""
        self._folder = folder
        self._files = (SecretFile(folder / KEY), SecretFile(folder / PREVIOUS)) if folder is not None else ()
        for file in self._files:
            file.changed()
        self._use(key, previous)

    def _use(self, key: ec.EllipticCurvePrivateKey, previous: Sequence[PreviousKey]) -> None:
        self.key = key
        self.id = key_id(key.public_key())
        self._public: dict[str, tuple[ec.EllipticCurvePublicKey, datetime | None]] = {}
        for one in previous:
            self._public[key_id(one.key())] = (one.key(), one.until)
        self._public[self.id] = (key.public_key(), None)

    def refresh(self) -> None:
        """Read the files again if they have changed. If they cannot be read, keep the known keys."""
        if self._folder is not None and any(file.changed() for file in self._files):
            try:
                self._use(_read_key(self._folder / KEY), read_previous(self._folder))
            except IdentityError as error:
                _log.error("The keys of service accounts cannot be read; keeping the known ones", err=str(error))

    def public(self, name: str, now: datetime) -> ec.EllipticCurvePublicKey | None:
        """The key with this id, if its tokens are still valid."""
        key, until = self._public.get(name, (None, None))
        return key if until is None or now < until else None


def open_account_keys(folder: Path) -> AccountKeys:
    """Raises IdentityError."""
    return AccountKeys(_read_key(folder / KEY), read_previous(folder), folder)


def rotate_account_key(folder: Path, overlap: timedelta, now: datetime) -> None:
    """A new key signs from now on; tokens of the former stay valid for `overlap`. The caller holds the lock."""
    former = _read_key(folder / KEY).public_key()
    kept = [one for one in read_previous(folder) if one.until > now and key_id(one.key()) != key_id(former)]
    if len(kept) >= MAX_PREVIOUS:
        raise IdentityError(f"{folder / PREVIOUS} has {MAX_PREVIOUS} keys that are still valid; wait until one expires")
    pem = former.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    kept.append(PreviousKey(pem.decode(), (now + overlap).astimezone(UTC).replace(microsecond=0)))
    # In this order, so that tokens signed with the former key can always be verified.
    write_private(folder / PREVIOUS, msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
    write_private(folder / KEY, certificates.key_pem(certificates.new_key()))


def read_previous(folder: Path) -> list[PreviousKey]:
    """Raises IdentityError."""
    path = folder / PREVIOUS
    try:
        found = msgspec.json.decode(SecretFile(path).text() or "[]", type=list[PreviousKey])
        for one in found:
            one.key()
    except (msgspec.DecodeError, ValueError) as error:
        raise IdentityError(f"{path} is damaged: {error}") from None
    return found


def key_id(key: ec.EllipticCurvePublicKey) -> str:
    encoded = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return jwt.utils.base64url_encode(hashlib.sha256(encoded).digest()).decode()


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    return certificates.read_key(path, read_private(path).encode())
