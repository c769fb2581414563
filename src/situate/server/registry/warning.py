"""What a caller should know though its request is fine. Kubernetes sends it in Warning headers."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar, Token
from typing import Final

__all__ = ["collecting", "warn"]

_COLLECTED: Final[ContextVar[list[str] | None]] = ContextVar("warnings", default=None)


def warn(texts: Iterable[str]) -> None:
    """Tell whoever made the request, if somebody listens. Each text once."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected.extend(text for text in texts if text not in collected)


class collecting:  # noqa: N801 - used as a function, and entered by every request
    """All warnings of the requests made inside."""

    __slots__ = ("_token",)

    def __enter__(self) -> list[str]:
        collected: list[str] = []
        self._token: Token[list[str] | None] = _COLLECTED.set(collected)
        return collected

    def __exit__(self, *_: object) -> None:
        _COLLECTED.reset(self._token)
