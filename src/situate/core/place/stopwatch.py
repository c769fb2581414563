"""How the time that a decision takes is measured from outside, so that the core needs no clock.

The caller passes a stopwatch. Its methods return nothing, so no decision can depend on it.
"""

from __future__ import annotations

from typing import Final, Protocol

FILTER: Final = "Filter"
SCORE: Final = "Score"
POST_FILTER: Final = "PostFilter"
RESERVE: Final = "Reserve"


class Stopwatch(Protocol):
    def begin(self, profile: str, pods: int = 1) -> None:
        """The decision on a pod of this profile begins, or on a whole gang."""

    def lap(self, point: str, success: bool = True) -> None:
        """The time since the last call was spent at this extension point. A decision may come to one several times."""


class NoStopwatch:
    __slots__ = ()

    def begin(self, profile: str, pods: int = 1) -> None:
        pass

    def lap(self, point: str, success: bool = True) -> None:
        pass


NO_STOPWATCH: Final[Stopwatch] = NoStopwatch()
