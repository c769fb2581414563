"""The engine's stopwatch: times some decisions, and counts all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from situate.loop.metrics_series import HistogramSeries

GAPS: Final = (9, 7, 14, 9, 12, 5, 13, 8, 15, 6, 11)
"""How many decisions lie between two that are timed: about ten, as with kube-scheduler. The sum is a prime, or some of
the pods that arrive at a regular beat would never be timed. The first decision of every step is timed, too."""
SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"


class SampledStopwatch:
    """Adds the times of decisions to a histogram, by extension point, status and profile."""

    __slots__ = ("_at", "_clock", "_first_at", "_histogram", "_laps", "_left", "_profile", "_timed", "begun")

    def __init__(self, clock: Callable[[], float], histogram: HistogramSeries) -> None:
        self._clock = clock
        self._histogram = histogram
        self._profile = ""
        """Of the decision that is being timed; empty: none is."""
        self._laps: dict[str, tuple[float, bool]] = {}
        """By extension point: the seconds so far, and whether it succeeded."""
        self._timed = 0
        self._left = 0
        """How many decisions are left until the next that is timed."""
        self._at = 0.0
        self._first_at: float | None = None
        self.begun: dict[str, int] = {}
        """The decisions of this step, by profile."""

    def begin(self, profile: str, pods: int = 1) -> None:
        self.begun[profile] = self.begun.get(profile, 0) + pods
        if self._profile:
            self._record()
        self._left -= pods
        if self._left > 0:
            return
        self._timed += 1
        self._left = GAPS[self._timed % len(GAPS)]
        # A gang is decided as a whole, without laps.
        self._profile = profile if pods == 1 else ""
        self._at = self._clock()
        if self._first_at is None:
            self._first_at = self._at

    def lap(self, point: str, success: bool = True) -> None:
        if self._profile:
            before, self._at = self._at, self._clock()
            so_far, _ = self._laps.get(point, (0.0, True))
            self._laps[point] = so_far + self._at - before, success

    def end_step(self, ended_at: float) -> tuple[dict[str, int], float]:
        """The decisions of the step that ends, by profile, and the seconds since the first of them."""
        if self._profile:
            self._record()
        begun, self.begun = self.begun, {}
        seconds = 0.0 if self._first_at is None else ended_at - self._first_at
        self._first_at, self._left = None, 0
        return begun, seconds

    def _record(self) -> None:
        for point, (seconds, success) in self._laps.items():
            self._histogram.add((point, SUCCESS if success else UNSCHEDULABLE, self._profile), seconds)
        self._laps.clear()
        self._profile = ""
