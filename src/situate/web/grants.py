"""Login links: each names a user, is valid for a while, and works once.

A link holds a random token; a file named by its hash says whom it logs in. Whoever can write into the folder can read
the cluster's keys as well, so `situate up` and `situate web --login` need no other way to talk to the page's process.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from situate.web.limits import GRANT_S, MAX_GRANTS

TOKEN_BYTES: Final = 32
SUFFIX: Final = ".login"
MAX_TOKEN_CHARS: Final = 100


class LoginGrant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom a link logs in."""

    user: str = ""
    """The user to impersonate; empty: whoever the kubeconfig is."""
    groups: tuple[str, ...] = ()
    namespace: str = ""
    """The namespace to show; empty: all, or the kubeconfig's for a user who may not list all."""
    expires: float = 0.0
    """Seconds since the epoch."""


class TooManyGrantsError(Exception):
    """Links that nobody used have to expire first."""


class GrantFolder:
    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def create(self, user: str = "", groups: tuple[str, ...] = (), namespace: str = "") -> str:
        """The token of a new link. Raises TooManyGrantsError or OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._drop_expired()
        if sum(1 for _ in self._folder.glob(f"*{SUFFIX}")) >= MAX_GRANTS:
            raise TooManyGrantsError(f"{MAX_GRANTS} login links are unused; they expire after {GRANT_S / 60:.0f} min")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        made = LoginGrant(user, groups, namespace, self._clock() + GRANT_S)
        with os.fdopen(os.open(self._path(token), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(msgspec.json.encode(made))
        return token

    def redeem(self, token: str) -> LoginGrant | None:
        """Whom the link logs in. None: it was used, has expired, or never was."""
        if not token or len(token) > MAX_TOKEN_CHARS:
            return None
        path = self._path(token)
        try:
            found = msgspec.json.decode(path.read_bytes(), type=LoginGrant)
            path.unlink()  # of two that come at once, the second fails here
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.expires > self._clock() else None

    def _drop_expired(self) -> None:
        for path in self._folder.glob(f"*{SUFFIX}"):
            try:
                if msgspec.json.decode(path.read_bytes(), type=LoginGrant).expires <= self._clock():
                    path.unlink(missing_ok=True)
            except (OSError, msgspec.DecodeError):
                path.unlink(missing_ok=True)

    def _path(self, token: str) -> Path:
        return self._folder / (hashlib.sha256(token.encode()).hexdigest() + SUFFIX)
