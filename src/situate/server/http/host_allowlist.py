"""Checks the Host header, so that a web page cannot reach the server by DNS rebinding."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from situate.server.errors import StatusError

ALWAYS: Final = ("localhost", "127.0.0.1", "::1")
ANY: Final = "*"
MAX_CACHED_HOSTS: Final = 1_024
MAX_HOST_LENGTH: Final = 300
"""Longer than any DNS name with a port. A longer Host is checked each time."""


class HostAllowlist:
    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name.lower().strip("[]").rstrip(".") for name in (*ALWAYS, *names))
        self._known: dict[str, bool] = {}

    def check(self, header: str) -> None:
        """Raises StatusError (403, or 400 if there is no Host)."""
        known = self._known.get(header)
        if known is None:
            known = self._allowed(header)
            if len(self._known) < MAX_CACHED_HOSTS and len(header) <= MAX_HOST_LENGTH:
                self._known[header] = known
        if not known:
            text = "the Host of the request is not allowed"
            raise StatusError(HTTPStatus.FORBIDDEN, "Forbidden", text)

    def _allowed(self, header: str) -> bool:
        if not header:
            return False
        if header.startswith("["):
            name, _, port = header[1:].partition("]")
            port = port.removeprefix(":")
        else:
            name, _, port = header.partition(":")
        if port and not (port.isascii() and port.isdigit()):
            return False
        return ANY in self._names or name.lower().rstrip(".") in self._names
