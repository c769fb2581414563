"""Collects the warnings of a request, which HTTP sends as Warning headers."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar, Token
from typing import Final

_COLLECTED: Final[ContextVar[list[str] | None]] = ContextVar("warnings", default=None)


def warn(texts: Iterable[str]) -> None:
    """Add warnings to the current request, if it collects them. Each text once."""
    collected = _COLLECTED.get()
    if collected is not None:
        known = set(collected)
        collected.extend(text for text in dict.fromkeys(texts) if text not in known)


class collecting:  # noqa: N801 - used as a function; every request enters it, so it is not a generator
    """Collects the warnings of the requests inside of the block."""

    __slots__ = ("_token",)

    def __enter__(self) -> list[str]:
        collected: list[str] = []
        self._token: Token[list[str] | None] = _COLLECTED.set(collected)
        return collected

    def __exit__(self, *_: object) -> None:
        _COLLECTED.reset(self._token)
