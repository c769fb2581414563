"""The certificate authority of the server, in a folder that only its owner can read. Created at first start.

    ca.crt  ca.key           the authority, for ten years
    service-accounts.key     signs the tokens of service accounts; see account_keys.py
    server.pem               the server's certificate and key, for a year; renewed when a third of that is left
    revoked                  what was revoked; see revocation.py

The folder is created atomically. A file that cannot be read, or belongs to somebody else, is an error of one line, and
is left as it is.
"""

from __future__ import annotations

import ipaddress
import shutil
import socket
import ssl
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from situate.server.identity import certificates
from situate.server.identity.account_keys import KEY as ACCOUNTS_KEY
from situate.server.identity.account_keys import open_account_keys
from situate.server.identity.certificates import Credential
from situate.server.identity.secret_files import (
    PRIVATE_FOLDER,
    IdentityError,
    read_private,
    sync_folder,
    write_private,
)

CERTIFICATE: Final = "ca.crt"
KEY: Final = "ca.key"
SERVER: Final = "server.pem"
READABLE: Final = 0o644

NAMES: Final = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
)
"""Names of the server, beside the machine's and the configured ones."""


@dataclass(frozen=True, slots=True)
class Authority:
    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        """The certificate of the authority, for those who trust it."""
        return certificates.pem(self.certificate)

    @property
    def bundle(self) -> bytes:
        """The certificates of all authorities that clients of this server trust."""
        return self.pem

    def client(
        self, user: str, groups: Iterable[str], now: datetime, life: timedelta = certificates.LEAF_LIFE
    ) -> Credential:
        """A certificate for a client of this server, and its key, which is stored nowhere else."""
        key = certificates.new_key()
        made = self.sign(user, groups, key.public_key(), now, life)
        return Credential(certificates.pem(made), certificates.key_pem(key))

    def sign(
        self,
        user: str,
        groups: Iterable[str],
        key: ec.EllipticCurvePublicKey,
        now: datetime,
        life: timedelta = certificates.LEAF_LIFE,
    ) -> x509.Certificate:
        """A certificate for a client that has this key."""
        name = certificates.subject(user, groups)
        return certificates.client_certificate(self.certificate, self.key, name, key, now, life)

    def server_certificate(self, names: Sequence[str], now: datetime) -> Path:
        """The file with the server's certificate and key; renewed if it is due, or lacks one of the names."""
        path = self.folder / SERVER
        host = socket.gethostname()
        wanted = [*dict.fromkeys(map(_plain, (*NAMES, *([host] if host.isascii() and host else []), *names)))]
        if path.exists():
            current = self._own_server(path)
            if not certificates.due(current, now) and set(wanted) <= _names(current):
                return path
            wanted = [*dict.fromkeys((*wanted, *sorted(_names(current))))]
        made, key = certificates.server_certificate(self.certificate, self.key, wanted, now)
        write_private(path, certificates.pem(made) + certificates.key_pem(key))
        return path

    def tls(self, names: Sequence[str], now: datetime) -> ssl.SSLContext:
        """TLS 1.2 or newer. A client certificate is optional; if there is one, it must be valid and ours.

        To renew a running server, call `server_certificate` and give the file to the context's `load_cert_chain`.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Clients stay connected: nobody resumes a session, so there are no tickets.
        context.num_tickets = 0
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.pem.decode())
        context.load_cert_chain(self.server_certificate(names, now))
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _own_server(self, path: Path) -> x509.Certificate:
        text = read_private(path).encode()
        current = _certificate(path, text)
        key = certificates.read_key(path, text)
        if current.public_key() != key.public_key():
            raise IdentityError(f"{path} is damaged: its certificate and its key do not match")
        try:
            current.verify_directly_issued_by(self.certificate)
        except (ValueError, TypeError, InvalidSignature) as error:
            raise IdentityError(f"{path} was not signed by {self.folder / CERTIFICATE}; move it away") from error
        return current


def open_authority(folder: Path, now: datetime) -> Authority:
    """The authority in this folder; a new one if the folder does not exist."""
    if not folder.exists():
        _make(folder, now)
    for name in (CERTIFICATE, KEY, ACCOUNTS_KEY):
        if not (folder / name).exists():
            raise IdentityError(f"{folder / name} is missing; restore it, or move {folder} away to start over")
    try:
        text = (folder / CERTIFICATE).read_bytes()
    except OSError as error:
        raise IdentityError(f"{folder / CERTIFICATE} cannot be read: {error.strerror}") from error
    certificate = _certificate(folder / CERTIFICATE, text)
    key = certificates.read_key(folder / KEY, read_private(folder / KEY).encode())
    if certificate.public_key() != key.public_key():
        raise IdentityError(f"{folder / CERTIFICATE} and {folder / KEY} do not match")
    if now > certificate.not_valid_after_utc:
        raise IdentityError(f"{folder / CERTIFICATE} expired on {certificate.not_valid_after_utc:%Y-%m-%d}")
    open_account_keys(folder)  # raises if it is damaged
    return Authority(folder, certificate, key)


def _make(folder: Path, now: datetime) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        new.chmod(PRIVATE_FOLDER)
        key = certificates.new_key()
        write_private(new / KEY, certificates.key_pem(key))
        write_private(new / ACCOUNTS_KEY, certificates.key_pem(certificates.new_key()))
        write_private(new / CERTIFICATE, certificates.pem(certificates.authority_certificate(key, now)), READABLE)
        new.rename(folder)
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)
        # Another process has created it at the same time: use that one.
        if not (isinstance(error, OSError) and folder.exists()):
            raise
    sync_folder(folder.parent)


def _certificate(path: Path, text: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(text)
    except ValueError as error:
        raise IdentityError(f"{path} is damaged: it has no certificate") from error


def _plain(name: str) -> str:
    """The canonical form of an IP address, as in certificates; a name as it is."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def _names(certificate: x509.Certificate) -> set[str]:
    try:
        current = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*current.get_values_for_type(x509.DNSName), *map(str, current.get_values_for_type(x509.IPAddress))}
