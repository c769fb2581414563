"""The files of an authority that is being replaced.

    ca.crt             the authority's certificate; during the overlap, then the former one's
    ca.key             the authority's key
    ca.previous.json   the former authority, with its key, until the overlap ends
    ca.next.json       a rotation that has been decided and is not yet complete

Writing ca.next.json decides a rotation. The steps after it can be repeated: after a kill, the next reader
completes them.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import Struct

from situate.server.identity.pki import certificates
from situate.server.identity.secret_files import IdentityError, SecretFile, write_private
from situate.store.durable import sync_folder

CERTIFICATE: Final = "ca.crt"
KEY: Final = "ca.key"
PREVIOUS: Final = "ca.previous.json"
NEXT: Final = "ca.next.json"
READABLE: Final = 0o644
UNDER_WAY_S: Final = 10.0
"""A rotation that is not complete after this time was killed."""


class PreviousAuthority(Struct, frozen=True, forbid_unknown_fields=True):
    """Its certificate and key are PEM."""

    certificate: str
    key: str
    until: datetime

    def read(self, path: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """Raises IdentityError."""
        return read_certificate(path, self.certificate.encode()), certificates.read_key(path, self.key.encode())


class NextAuthority(Struct, frozen=True, forbid_unknown_fields=True):
    certificate: str
    key: str
    previous: PreviousAuthority


def read_previous(folder: Path) -> PreviousAuthority | None:
    """Raises IdentityError."""
    path = folder / PREVIOUS
    text = SecretFile(path).text()
    try:
        return msgspec.json.decode(text, type=PreviousAuthority) if text else None
    except msgspec.DecodeError as error:
        raise IdentityError(f"{path} is damaged: {error}") from None


def decide(folder: Path, wanted: NextAuthority) -> None:
    """Decide a rotation and complete it. The caller holds the lock of the directory."""
    write_private(folder / NEXT, msgspec.json.encode(wanted))
    complete(folder)


def complete(folder: Path, *, running: bool = False) -> None:
    """Complete a rotation that was decided. `running`: somebody else may be about to, so leave them some time."""
    path = folder / NEXT
    if not path.exists():
        return
    if running and time.time() - path.stat().st_mtime < UNDER_WAY_S:
        raise IdentityError(f"{path}: the authority is being replaced")
    try:
        wanted = msgspec.json.decode(SecretFile(path).text(), type=NextAuthority)
    except msgspec.DecodeError as error:
        raise IdentityError(f"{path} is damaged: {error}") from None
    write_private(folder / PREVIOUS, msgspec.json.encode(wanted.previous))
    write_private(folder / KEY, wanted.key.encode())
    write_private(folder / CERTIFICATE, (wanted.certificate + wanted.previous.certificate).encode(), READABLE)
    path.unlink(missing_ok=True)
    sync_folder(folder)


def read_certificate(path: Path, text: bytes) -> x509.Certificate:
    """The first certificate in a text. Raises IdentityError."""
    try:
        return x509.load_pem_x509_certificate(text)
    except ValueError as error:
        raise IdentityError(f"{path} is damaged: it has no certificate") from error
