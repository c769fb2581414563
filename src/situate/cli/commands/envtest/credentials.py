"""Keys and tokens in the files that kube-apiserver is given, as files of our own."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from situate.cli import BadInput
from situate.server.identity.file_names import AUTHORITY
from situate.server.identity.pki.account_keys import KEY, PREVIOUS, PreviousKey, key_id
from situate.server.identity.pki.authority import open_authority
from situate.server.identity.pki.certificates import key_pem, read_key
from situate.server.identity.secret_files import IdentityError, write_private
from situate.server.identity.setup import USER_TOKENS
from situate.server.identity.tokens.token_files import UserToken, UserTokens, hash_of

FOREVER: Final = datetime(9999, 1, 1, tzinfo=UTC)
COLUMNS: Final = 3
"""Of a line with a token: token, user, uid; then perhaps the groups."""


def write_account_keys(directory: Path, signing: Path | None, verifying: Sequence[Path]) -> None:
    """Raises BadInput."""
    folder = directory / AUTHORITY
    try:
        open_authority(folder, datetime.now(UTC))
        if signing is not None:
            write_private(folder / KEY, key_pem(read_key(signing, signing.read_bytes())))
        own = key_id(read_key(folder / KEY, (folder / KEY).read_bytes()).public_key())
        others = [key for path in verifying for key in _public_keys(path) if key_id(key) != own]
    except IdentityError as error:
        raise BadInput(str(error)) from None
    encoding, layout = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    previous = [PreviousKey(key.public_bytes(encoding, layout).decode(), FOREVER) for key in others]
    write_private(folder / PREVIOUS, msgspec.json.encode(previous))


def _public_keys(path: Path) -> Iterator[ec.EllipticCurvePublicKey]:
    """Those of certificates, of public keys and of private keys. Raises IdentityError."""
    text = path.read_bytes()
    try:
        if b"BEGIN CERTIFICATE" in text:
            keys = [one.public_key() for one in x509.load_pem_x509_certificates(text)]
        elif b"PRIVATE KEY" in text:
            keys = [read_key(path, text).public_key()]
        else:
            keys = [serialization.load_pem_public_key(text)]  # type: ignore[list-item]
    except ValueError as error:
        raise IdentityError(f"{path} has no public key: {error}") from None
    for key in keys:
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise IdentityError(f"{path} has a key of another type; it must be ECDSA")
        yield key


def write_tokens(directory: Path, path: Path | None) -> None:
    """Raises BadInput."""
    if path is None:
        return
    entries = []
    with path.open(newline="") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            if not row:
                continue
            if len(row) < COLUMNS or not row[0]:
                raise BadInput(f"{path} line {number}: a token, a user and a uid are needed")
            groups = tuple(group.strip() for group in row[COLUMNS].split(",")) if len(row) > COLUMNS else ()
            entries.append(
                UserToken(sha256=hash_of(row[0]), user=row[1], uid=row[2], groups=tuple(filter(None, groups)))
            )
    UserTokens(directory / USER_TOKENS).write(entries)
