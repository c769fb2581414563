"""Replaces keys and certificates of a cluster, on its directory. A running server notices within a second.

The authority is replaced with an overlap. From the start, the new authority signs the certificates of clients, and the
server trusts both. The server's own certificate stays the former authority's until the overlap ends, because clients
learn of the new authority only meanwhile: nodes by themselves, people with a new kubeconfig.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import yaml
from cryptography import x509

from situate.server.identity.file_names import SERVER
from situate.server.identity.pki import certificates
from situate.server.identity.pki.account_keys import key_id, open_account_keys, read_previous
from situate.server.identity.pki.authority import open_authority
from situate.server.identity.pki.authority_files import NextAuthority, PreviousAuthority, decide
from situate.server.identity.secret_files import IdentityError, read_private

DEFAULT_OVERLAP: Final = timedelta(days=30)
MAX_OVERLAP: Final = timedelta(days=365)


class KeyState(NamedTuple):
    """One line of `situate certificates list`."""

    name: str
    id: str
    expires: datetime | None
    use: str


def rotate_server(folder: Path, now: datetime) -> None:
    """A new key and certificate of the server. The caller holds the lock."""
    authority = open_authority(folder, now)
    if not (folder / SERVER).exists():
        raise IdentityError(f"{folder / SERVER} is missing; the server makes it when it starts")
    authority.renew_server((), now)


def rotate_authority(folder: Path, overlap: timedelta, now: datetime) -> None:
    """A new authority. The caller holds the lock."""
    current = open_authority(folder, now)
    if current.previous is not None:
        until = current.previous_until
        raise IdentityError(
            f"the authority was replaced already, with an overlap until {until:%Y-%m-%d %H:%M}; --finish ends it now"
        )
    key = certificates.new_key()
    made = certificates.authority_certificate(key, now)
    former = PreviousAuthority(
        current.pem.decode(), certificates.key_pem(current.key).decode(), (now + overlap).replace(microsecond=0)
    )
    decide(folder, NextAuthority(certificates.pem(made).decode(), certificates.key_pem(key).decode(), former))


def finish_rotation(folder: Path, now: datetime) -> None:
    """End the overlap: the former authority is no longer trusted. The caller holds the lock."""
    authority = open_authority(folder, now)
    if authority.previous is None:
        raise IdentityError("no rotation of the authority is under way")
    authority.drop_previous(now)


def key_states(folder: Path, kubeconfig: Path, now: datetime) -> list[KeyState]:
    """Raises IdentityError."""
    authority = open_authority(folder, now)
    found = [KeyState("authority", _id(authority.certificate), authority.certificate.not_valid_after_utc, "signs")]
    if authority.previous is not None:
        former, _ = authority.previous
        found.append(KeyState("authority", _id(former), authority.previous_until, "trusted until then"))
    if (folder / SERVER).exists():
        own = x509.load_pem_x509_certificate(read_private(folder / SERVER).encode())
        found.append(KeyState("server", f"{own.serial_number:x}", own.not_valid_after_utc, _renewal(own)))
    if kubeconfig.exists():
        admin = _client(kubeconfig)
        use = f"renewed when the server starts after {_renewal_time(admin):%Y-%m-%d}"
        found.append(KeyState("administrator", f"{admin.serial_number:x}", admin.not_valid_after_utc, use))
    found.append(KeyState("service-accounts", open_account_keys(folder).id, None, "signs"))
    for one in read_previous(folder):
        if one.until > now:
            found.append(KeyState("service-accounts", key_id(one.key()), one.until, "verifies until then"))
    return found


def _id(certificate: x509.Certificate) -> str:
    return certificates.key_hash(certificate).removeprefix("sha256:")


def _renewal(certificate: x509.Certificate) -> str:
    return f"renewed after {_renewal_time(certificate):%Y-%m-%d}"


def _renewal_time(certificate: x509.Certificate) -> datetime:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return (end - (end - start) / 3).astimezone(UTC)


def _client(path: Path) -> x509.Certificate:
    try:
        user = yaml.safe_load(read_private(path))["users"][0]["user"]
        return x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError):
        raise IdentityError(f"{path} is damaged: the server did not write it; move it away") from None
