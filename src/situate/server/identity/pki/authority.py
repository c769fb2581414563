"""The certificate authority of the server, in a folder that only its owner can read. Created at first start.

    ca.crt  ca.key           the authority, for ten years; see authority_files.py for its replacement
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
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from situate.server.identity.file_names import SERVER
from situate.server.identity.pki import certificates
from situate.server.identity.pki.account_keys import KEY as ACCOUNTS_KEY
from situate.server.identity.pki.account_keys import open_account_keys
from situate.server.identity.pki.authority_files import (
    CERTIFICATE,
    KEY,
    PREVIOUS,
    READABLE,
    complete,
    read_certificate,
    read_previous,
)
from situate.server.identity.pki.certificates import Credential
from situate.server.identity.secret_files import IdentityError, read_private, write_private
from situate.store.durable import sync_folder

NEVER: Final = datetime.max.replace(tzinfo=UTC)

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
class GivenCertificates:
    """Files that others made, as kube-apiserver is given them."""

    serving: tuple[Path, Path] | None = None
    """The server's certificate and key; None: the authority makes them."""
    client_authorities: Path | None = None
    """Further authorities whose client certificates are accepted."""

    def read_client_authorities(self) -> list[x509.Certificate]:
        """Raises IdentityError."""
        if self.client_authorities is None:
            return []
        try:
            return x509.load_pem_x509_certificates(self.client_authorities.read_bytes())
        except (OSError, ValueError) as error:
            raise IdentityError(f"{self.client_authorities} cannot be read as certificates: {error}") from None


NOTHING_GIVEN: Final = GivenCertificates()


@dataclass(slots=True)
class Authority:
    """It changes when somebody replaces its files and `reload` notices."""

    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    previous: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None
    """The former authority, trusted until the overlap ends."""
    previous_until: datetime = NEVER
    given: GivenCertificates = NOTHING_GIVEN
    _others: list[x509.Certificate] = field(default_factory=list)
    _issuers: frozenset[bytes] = frozenset()

    def __post_init__(self) -> None:
        self._others = self.given.read_client_authorities()
        self._issuers = self._accepted()

    @property
    def pem(self) -> bytes:
        """The certificate of the authority, for those who trust it."""
        return certificates.pem(self.certificate)

    @property
    def bundle(self) -> bytes:
        """The certificates of all authorities that clients of this server trust."""
        return self.pem + (certificates.pem(self.previous[0]) if self.previous is not None else b"")

    def issuers(self) -> frozenset[bytes]:
        """The identifiers of the keys whose client certificates are accepted."""
        return self._issuers

    def issuer_of(self, certificate: x509.Certificate) -> bytes:
        """Which of them signed it; empty: none."""
        return certificates.issuer_identifier(certificate, [*self._trusted(), *self._others])

    def _accepted(self) -> frozenset[bytes]:
        return frozenset(map(certificates.key_identifier, [*self._trusted(), *self._others]))

    def _trusted(self) -> list[x509.Certificate]:
        return [self.certificate, *([self.previous[0]] if self.previous is not None else [])]

    def reload(self, now: datetime) -> None:
        """Read the files again. Raises IdentityError; then nothing has changed."""
        complete(self.folder, running=True)
        new = open_authority(self.folder, now, self.given)
        self.certificate, self.key = new.certificate, new.key
        self.previous, self.previous_until = new.previous, new.previous_until
        self._others, self._issuers = new._others, new._issuers

    def drop_previous(self, now: datetime) -> None:
        """End the overlap. The server's certificate comes first: without it, the server could not start."""
        self.previous_until = now
        self.server_certificate((), now)
        self.previous, self.previous_until = None, NEVER
        self._issuers = self._accepted()
        write_private(self.folder / CERTIFICATE, self.pem, READABLE)
        (self.folder / PREVIOUS).unlink(missing_ok=True)
        sync_folder(self.folder)

    def for_servers(self, now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """The authority that signs server certificates: during the overlap the former one, which all clients know."""
        if self.previous is not None and now < self.previous_until:
            return self.previous
        return self.certificate, self.key

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
            signed = certificates.is_issued_by(current, self.for_servers(now)[0])
            if signed and not certificates.due(current, now) and set(wanted) <= _names(current):
                return path
        return self.renew_server(wanted, now)

    def renew_server(self, names: Sequence[str], now: datetime) -> Path:
        """A new certificate and key of the server, for these names and those of the current one."""
        path = self.folder / SERVER
        current = sorted(_names(self._own_server(path))) if path.exists() else []
        made, key = certificates.server_certificate(*self.for_servers(now), [*dict.fromkeys((*names, *current))], now)
        write_private(path, certificates.pem(made) + certificates.key_pem(key))
        return path

    def server_client(self, user: str, now: datetime) -> Credential:
        """The certificate with which the server authenticates to agents."""
        key = certificates.new_key()
        made = certificates.client_certificate(
            *self.for_servers(now), certificates.subject(user), key.public_key(), now
        )
        return Credential(certificates.pem(made), certificates.key_pem(key))

    def tls(self, names: Sequence[str], now: datetime) -> ssl.SSLContext:
        """TLS 1.2 or newer. A client certificate is optional; if there is one, it must be valid and ours.

        To renew a running server, give the context to `load` again.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Clients stay connected: nobody resumes a session, so there are no tickets.
        context.num_tickets = 0
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.verify_mode = ssl.CERT_OPTIONAL
        self.load(context, names, now)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def load(self, context: ssl.SSLContext, names: Sequence[str], now: datetime) -> None:
        """Have the server accept these clients, and show its current certificate. Raises IdentityError."""
        trusted = self.bundle + b"".join(map(certificates.pem, self._others))
        context.load_verify_locations(cadata=trusted.decode())
        if self.given.serving is None:
            context.load_cert_chain(self.server_certificate(names, now))
            return
        try:
            context.load_cert_chain(*self.given.serving)
        except OSError as error:  # ssl.SSLError is one
            certificate, key = self.given.serving
            raise IdentityError(f"{certificate} and {key} cannot be used to serve TLS: {error}") from None

    def _own_server(self, path: Path) -> x509.Certificate:
        text = read_private(path).encode()
        current = read_certificate(path, text)
        key = certificates.read_key(path, text)
        if current.public_key() != key.public_key():
            raise IdentityError(f"{path} is damaged: its certificate and its key do not match")
        if not any(certificates.is_issued_by(current, one) for one in self._trusted()):
            raise IdentityError(f"{path} was not signed by {self.folder / CERTIFICATE}; move it away")
        return current


def open_authority(folder: Path, now: datetime, given: GivenCertificates = NOTHING_GIVEN) -> Authority:
    """The authority in this folder; a new one if the folder does not exist."""
    if not folder.exists():
        _make(folder, now)
    complete(folder)
    for name in (CERTIFICATE, KEY, ACCOUNTS_KEY):
        if not (folder / name).exists():
            raise IdentityError(f"{folder / name} is missing; restore it, or move {folder} away to start over")
    try:
        text = (folder / CERTIFICATE).read_bytes()
    except OSError as error:
        raise IdentityError(f"{folder / CERTIFICATE} cannot be read: {error.strerror}") from error
    certificate = read_certificate(folder / CERTIFICATE, text)
    key = certificates.read_key(folder / KEY, read_private(folder / KEY).encode())
    if certificate.public_key() != key.public_key():
        raise IdentityError(f"{folder / CERTIFICATE} and {folder / KEY} do not match")
    if now > certificate.not_valid_after_utc:
        raise IdentityError(f"{folder / CERTIFICATE} expired on {certificate.not_valid_after_utc:%Y-%m-%d}")
    open_account_keys(folder)  # raises if it is damaged
    former = read_previous(folder)
    if former is None:
        return Authority(folder, certificate, key, given=given)
    return Authority(folder, certificate, key, former.read(folder / PREVIOUS), former.until, given)


def _make(folder: Path, now: datetime) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))  # only its owner can read it
    try:
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
