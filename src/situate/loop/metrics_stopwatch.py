"""The engine's stopwatch with a clock in it: looks at the time in some decisions, and counts all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from situate.loop.metrics_series import HistogramSeries

GAPS: Final = (9, 7, 14, 9, 12, 5, 13, 8, 15, 6, 11)
"""How many decisions it is from one that is timed to the next: about ten, as with kube-scheduler. Their sum is a prime,
or of pods that come at a beat, some would never be timed. The first decision of every step is timed, too."""
SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"


class SampledStopwatch:
    """Puts what the decisions that it times took into a histogram by extension point, status and profile."""

    __slots__ = ("_at", "_clock", "_first_at", "_histogram", "_laps", "_left", "_profile", "_timed", "begun")

    def __init__(self, clock: Callable[[], float], spread: HistogramSeries) -> None:
        self._clock = clock
        self._histogram = spread
        self._profile = ""
        """Of the decision that is timed; empty while none is."""
        self._laps: dict[str, tuple[float, bool]] = {}
        """What it took so far, by extension point, and whether that succeeded."""
        self._timed = 0
        self._left = 0
        """How many decisions it is to the next that is timed."""
        self._at = 0.0
        self._first_at: float | None = None
        self.begun: dict[str, int] = {}
        """The decisions of this step, by profile."""

    def begin(self, profile: str, pods: int = 1) -> None:
        self.begun[profile] = self.begun.get(profile, 0) + pods
        if self._profile:
            self._write_down()
        self._left -= pods
        if self._left > 0:
            return
        self._timed += 1
        self._left = GAPS[self._timed % len(GAPS)]
        # A gang is decided in ways of its own, of which no laps are told.
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
        """The decisions of the step that ends, by profile, and how long it took from the first of them."""
        if self._profile:
            self._write_down()
        begun, self.begun = self.begun, {}
        seconds = 0.0 if self._first_at is None else ended_at - self._first_at
        self._first_at, self._left = None, 0
        return begun, seconds

    def _write_down(self) -> None:
        for point, (seconds, success) in self._laps.items():
            self._histogram.add((point, SUCCESS if success else UNSCHEDULABLE, self._profile), seconds)
        self._laps.clear()
        self._profile = ""
