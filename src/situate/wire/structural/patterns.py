"""Compares the texts of an object with the patterns of its schema, within a bound for all of them together."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from situate.core.cel.regex import CompiledRegex

MAX_WORK: Final = 10_000_000
"""Characters times the states of their pattern, of the texts of one object that need more than Python's own regular
expressions: long ones, and those of patterns with repetitions in repetitions. About two seconds."""


class PatternWorkError(ValueError):
    """The texts of an object are too long for the patterns of its schema."""

    def __init__(self) -> None:
        super().__init__(f"the object has too much text for the patterns of its schema: limit is {MAX_WORK}")


_left: Final = ContextVar("left", default=MAX_WORK)
"""Of the object that is checked now."""


def begin() -> None:
    """The next texts are those of another object."""
    _left.set(MAX_WORK)


def matches(pattern: CompiledRegex, text: str) -> bool:
    """Raises PatternWorkError before it takes too long."""
    if work := pattern.work(text):
        _left.set(_left.get() - work)
        if _left.get() < 0:
            raise PatternWorkError
    return pattern.matches(text)
