"""TLS to the API server: authorities and client certificates, reloaded when their files change.

One context lives as long as the process; new connections use the certificates that were loaded last. A certificate is
checked before it replaces another, so a half-written file changes nothing.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

REREAD_S: Final = 60.0
PEM_BYTES: Final = 1 << 20


class BadPemError(ValueError):
    """A certificate or key that cannot be used."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A client certificate with its chain, and its key; both PEM."""

    certificate: bytes
    key: bytes


class Named(ssl.SSLContext):
    """A context that expects one name, whatever the address is (`tls-server-name`), through proxies too."""

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
    """For connections to one server. Without an authority, trust the system's."""
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
    """Trust these, too. Raises BadPemError."""
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise BadPemError("no PEM certificates") from None


def show(context: ssl.SSLContext, pair: Pair) -> None:
    """Use this certificate from now on; a bad one changes nothing. Raises BadPemError."""
    with pem_files(pair.certificate, pair.key) as (certificate, key):
        try:
            for one in (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), context):
                one.load_cert_chain(certificate, key, _no_password)
        except (ssl.SSLError, OSError) as error:
            raise BadPemError(_words(error)) from None


@contextmanager
def pem_files(*parts: bytes) -> Iterator[list[str]]:
    """Temporary files that only we can read: OpenSSL reads certificates from files only.

    They are in memory where possible, as a root filesystem may be read-only.
    """
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - files of ours, made safely
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.NamedTemporaryFile(dir=folder)) for _ in parts]
        for file, data in zip(files, parts, strict=True):
            file.write(data)
            file.flush()
        yield [file.name for file in files]


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
    """Raises OSError, and BadPemError if the file is too long."""
    with Path(path).open("rb") as file:
        data = file.read(PEM_BYTES + 1)
    if len(data) > PEM_BYTES:
        raise BadPemError(f"longer than {PEM_BYTES} bytes")
    return data


class TlsFiles:
    """Keeps a context up to date with its files. `refresh` looks at them once a minute."""

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
        """Look at the files if it is time, or `now`; whether new ones are in use."""
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
            return False  # the old ones may still do; look again later
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
