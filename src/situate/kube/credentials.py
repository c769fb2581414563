"""Credentials: a token, a token file that is rewritten, a password, a client certificate in files.

No message contains a credential. `exec_credentials` has those that a program makes.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from situate.kube.access import Credentials
from situate.kube.errors import NO_CREDENTIALS, ApiError
from situate.kube.tls import TlsFiles

REREAD_S: Final = 60.0
"""How often to read a token file; the kubelet rewrites it long before the token expires."""
TOKEN_BYTES: Final = 64 << 10
"""The longest token: the API server reads no more in all headers together."""

_NOT_IN_A_HEADER: Final = re.compile(r"[^\x21-\x7e]")


def bearer(token: str) -> str:
    """The header for a token. Raises ValueError if a header cannot hold it."""
    if not token or len(token) > TOKEN_BYTES or _NOT_IN_A_HEADER.search(token):
        raise ValueError("is not a token")
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    """The header for a name and a password."""
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode('ascii')}"


class TokenFile:
    """A token in a file, read again every minute and after a 401.

    While the file cannot be read, the last token counts, or `token` from the kubeconfig.
    """

    certificate = 0

    def __init__(self, path: str, token: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._header = bearer(token) if token else None
        self._next = clock()
        self.version = 0

    async def header(self) -> str | None:
        if self._clock() >= self._next:
            self._read()
        return self._header

    async def renew(self, version: int) -> bool:
        if self.version == version:
            self._read()
        return self.version != version

    def _read(self) -> None:
        self._next = self._clock() + REREAD_S
        try:
            with Path(self._path).open("rb") as file:
                header = bearer(file.read(TOKEN_BYTES + 1).decode("ascii").strip())
        except (OSError, ValueError) as error:
            if self._header is None:
                self._next = self._clock()
                raise ApiError(0, NO_CREDENTIALS, f"token file {self._path}: {_why(error)}", sent=False) from None
            return
        if header != self._header:
            self._header = header
            self.version += 1


class WithFiles:
    """Adds a client certificate or an authority in files to other credentials."""

    def __init__(self, others: Credentials, files: TlsFiles) -> None:
        self._others = others
        self._files = files

    @property
    def version(self) -> int:
        return self._others.version + self._files.version

    @property
    def certificate(self) -> int:
        return self._others.certificate + self._files.version

    async def header(self) -> str | None:
        self._files.refresh()
        return await self._others.header()

    async def renew(self, version: int) -> bool:
        if self.version != version:
            return True
        replaced = self._files.refresh(now=True)
        return await self._others.renew(self._others.version) or replaced


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "holds no token"
