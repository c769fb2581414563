"""How the time that parts of a decision take becomes known outside, without a clock in here.

Somebody outside hands in a stopwatch that has one. No method of it answers: what it measures cannot come back, so no
decision can follow from it.
"""

from __future__ import annotations

from typing import Final, Protocol

FILTER: Final = "Filter"
SCORE: Final = "Score"
POST_FILTER: Final = "PostFilter"
RESERVE: Final = "Reserve"


class Stopwatch(Protocol):
    """Told where a decision is."""

    def begin(self, profile: str, pods: int = 1) -> None:
        """A pod of this profile is decided from now on, or a whole gang."""

    def lap(self, point: str, success: bool = True) -> None:
        """The time since the last call was spent at this extension point; a decision may come to one again."""


class NoStopwatch:
    """For those who do not want to know."""

    __slots__ = ()

    def begin(self, profile: str, pods: int = 1) -> None:
        pass

    def lap(self, point: str, success: bool = True) -> None:
        pass


NO_STOPWATCH: Final[Stopwatch] = NoStopwatch()
