"""TLS to the API server: whom we trust, whom we show ourselves as, and both again when their files change.

One context lives as long as the process; new certificates are put into it, and are used by connections made from then
on. Certificates are checked before they replace others, so a file half written changes nothing.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

REREAD_S: Final = 60.0
"""How often files are looked at for a change."""
PEM_BYTES: Final = 1 << 20
"""How long a file of certificates may be."""


class BadPemError(ValueError):
    """What is wrong with a certificate or key, for a person."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A client certificate, with those that vouch for it, and its key; both PEM."""

    certificate: bytes
    key: bytes


class Named(ssl.SSLContext):
    """A context that asks for one name, whatever the address is (`tls-server-name`), through proxies too."""

    server_name = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return super().wrap_bio(incoming, outgoing, server_side, self.server_name or server_hostname, session)


def client_context(authority: bytes, *, verify: bool = True, server_name: str = "") -> ssl.SSLContext:
    """For connections to one server. Without an authority of its own, the system's are trusted."""
    context = Named(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = server_name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        trust(context, authority)
    else:
        context.load_default_certs()
    return context


def trust(context: ssl.SSLContext, authority: bytes) -> None:
    """Trust these as well. Raises BadPemError."""
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise BadPemError("no PEM certificates") from None


def show(context: ssl.SSLContext, pair: Pair) -> None:
    """Show this certificate from now on; nothing is changed by one that is bad. Raises BadPemError.

    OpenSSL reads certificates from files only, so these are files for a moment, which nobody else may read.
    """
    with tempfile.NamedTemporaryFile() as certificate, tempfile.NamedTemporaryFile() as key:
        for file, data in ((certificate, pair.certificate), (key, pair.key)):
            file.write(data)
            file.flush()
        try:
            for one in (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), context):
                one.load_cert_chain(certificate.name, key.name, password=_no_password)
        except (ssl.SSLError, OSError) as error:
            raise BadPemError(_words(error)) from None


def _no_password() -> str:
    raise BadPemError("the key is encrypted, and there is nobody to ask for its password")


def _words(error: OSError) -> str:
    match getattr(error, "reason", None):
        case "KEY_VALUES_MISMATCH":
            return "the key does not belong to the certificate"
        case "NO_START_LINE" | "PEM_LIB" | None:
            return "no PEM certificate and key"
        case reason:
            return f"no usable certificate and key ({str(reason).lower().replace('_', ' ')})"


def read_pem(path: str) -> bytes:
    """Raises OSError, and BadPemError for what is no regular small file."""
    with Path(path).open("rb") as file:
        data = file.read(PEM_BYTES + 1)
    if len(data) > PEM_BYTES:
        raise BadPemError(f"longer than {PEM_BYTES} bytes")
    return data


class TlsFiles:
    """Keeps a context up to date with the files it was made from; looks at them once a minute, when asked."""

    def __init__(
        self,
        context: ssl.SSLContext,
        clock: Callable[[], float],
        *,
        certificate: str = "",
        key: str = "",
        authority: str = "",
        key_data: bytes = b"",
        certificate_data: bytes = b"",
    ) -> None:
        self._context = context
        self._clock = clock
        self._certificate, self._key, self._authority = certificate, key, authority
        self._data = Pair(certificate_data, key_data)
        self._seen = self._look()
        self._next = clock() + REREAD_S
        self.version = 0

    def refresh(self, *, now: bool = False) -> bool:
        """Look at the files if it is time, or `now`; whether they had changed and could be used."""
        at = self._clock()
        if at < self._next and not now:
            return False
        self._next = at + REREAD_S
        seen = self._look()
        if seen == self._seen:
            return False
        try:
            if self._authority:
                trust(self._context, read_pem(self._authority))
            if self._certificate or self._key:
                show(self._context, self._pair())
        except (OSError, BadPemError):
            return False  # the old ones may still do; the change is looked at again
        self._seen = seen
        self.version += 1
        return True

    def _pair(self) -> Pair:
        return Pair(self._data.certificate or read_pem(self._certificate), self._data.key or read_pem(self._key))

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_mark(path) for path in (self._certificate, self._key, self._authority) if path]


def _mark(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - follows the links that Kubernetes swaps under a mounted volume
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
