"""Collects what a request is told beside its answer: warnings, which HTTP sends as Warning headers, and annotations of
its event in the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from typing import Final

MOST_ANNOTATED: Final = 64 << 10
"""Characters of all annotations of a request: a webhook may send as many as it likes."""
_COLLECTED: Final[ContextVar[list[str] | None]] = ContextVar("warnings", default=None)
_ANNOTATIONS: Final[ContextVar[dict[str, str] | None]] = ContextVar("annotations", default=None)


def warn(texts: Iterable[str]) -> None:
    """Add warnings to the current request, if it collects them. Each text once."""
    collected = _COLLECTED.get()
    if collected is not None:
        known = set(collected)
        collected.extend(text for text in dict.fromkeys(texts) if text not in known)


def annotate(annotations: Mapping[str, str]) -> None:
    """Add annotations to the current request's event in the audit log, if it has one, as far as there is room."""
    collected = _ANNOTATIONS.get()
    if collected is None:
        return
    room = MOST_ANNOTATED - sum(len(key) + len(value) for key, value in collected.items())
    for key, value in annotations.items():
        room -= len(key) + len(value)
        if room >= 0:
            collected[key] = value


def collect_annotations(into: dict[str, str]) -> None:
    """Collect those of the current request, until its task serves another one."""
    _ANNOTATIONS.set(into)


class collecting:  # noqa: N801 - used as a function; every request enters it, so it is not a generator
    """Collects the warnings of the requests inside of the block."""

    __slots__ = ("_token",)

    def __enter__(self) -> list[str]:
        collected: list[str] = []
        self._token: Token[list[str] | None] = _COLLECTED.set(collected)
        return collected

    def __exit__(self, *_: object) -> None:
        _COLLECTED.reset(self._token)
