"""Durations, rates and random draws. A draw depends only on the seed and its purpose.

So a pod runs equally long under every configuration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, unique
from hashlib import blake2b
from math import log
from typing import Final

from situate.core.changes import Millis
from situate.core.model.duration import MILLISECOND, parse_duration

LONGEST_MS: Final = 100 * 366 * 24 * 3_600_000
"""One hundred years."""
FASTEST: Final = 1_000_000.0
"""Pods a second."""
_NUMBER: Final = re.compile(r"[0-9]{1,16}(\.[0-9]{1,9})?|\.[0-9]{1,9}", re.ASCII)
_PER: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DAY_MS: Final = 86_400_000


def draw(seed: int, *what: str | int) -> float:
    """From 0 to less than 1; the same for the same seed and purpose."""
    text = "\0".join(map(str, (seed, *what))).encode()
    return (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 11) * 2.0**-53


def parse_span(text: str) -> Millis:
    """Milliseconds of `90` (seconds), `1.5`, `1h30m`, `250ms` or `2d`. Raises ValueError."""
    said = text.strip()
    if _NUMBER.fullmatch(said):
        ms = round(float(said) * 1_000)
    elif said.endswith("d") and _NUMBER.fullmatch(said[:-1]):
        ms = round(float(said[:-1]) * _DAY_MS)
    else:
        try:
            ms = parse_duration(said) // MILLISECOND
        except ValueError:
            ms = -1
    if not 0 <= ms <= LONGEST_MS:
        raise ValueError(f"{_shown(text)} is not a duration such as 90, 1.5s, 10m or 2d")
    return ms


@unique
class DistributionKind(Enum):
    FIXED = "fixed"
    EXPONENTIAL = "exp"
    UNIFORM = "uniform"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A duration, fixed or drawn. `low` is the fixed value, the mean, or the minimum."""

    kind: DistributionKind
    low: Millis
    high: Millis = 0

    def at(self, lot: float) -> Millis:
        """For a draw from 0 to less than 1; at most one hundred years."""
        if self.kind is DistributionKind.FIXED:
            return self.low
        if self.kind is DistributionKind.UNIFORM:
            return self.low + int(lot * (self.high - self.low + 1))
        return min(round(-log(1.0 - lot) * self.low), LONGEST_MS)


def parse_distribution(text: str) -> Distribution:
    """`10m`, `fixed:10m`, `exp:10m` (mean) or `uniform:5m..15m`. Raises ValueError."""
    kind, colon, rest = text.partition(":")
    if not colon:
        return Distribution(DistributionKind.FIXED, parse_span(text))
    if kind == DistributionKind.UNIFORM.value:
        low, dots, high = rest.partition("..")
        if not dots:
            raise ValueError(f"{_shown(text)}: expected two durations, as in uniform:5m..15m")
        duration = Distribution(DistributionKind.UNIFORM, parse_span(low), parse_span(high))
        if duration.high < duration.low:
            raise ValueError(f"{_shown(text)}: the first duration is longer than the second")
        return duration
    if kind in (DistributionKind.FIXED.value, DistributionKind.EXPONENTIAL.value):
        return Distribution(DistributionKind(kind), parse_span(rest))
    raise ValueError(f"{_shown(text)}: expected fixed:10m, exp:10m or uniform:5m..15m")


@dataclass(frozen=True, slots=True)
class ArrivalRate:
    """`random`: exponential gaps; otherwise constant ones."""

    gap_ms: float
    random: bool

    def after(self, lot: float) -> float:
        return -log(1.0 - lot) * self.gap_ms if self.random else self.gap_ms


def parse_rate(text: str) -> ArrivalRate:
    """`poisson:5` (a second), `poisson:90/m`, or `every:10s`. Raises ValueError."""
    kind, colon, rest = text.partition(":")
    if kind == "every" and colon:
        gap = parse_span(rest)
        if gap == 0:
            raise ValueError(f"{_shown(text)}: the interval must not be 0")
        return ArrivalRate(float(gap), random=False)
    number, slash, unit = rest.partition("/")
    if kind == "poisson" and colon and _NUMBER.fullmatch(number) and (unit in _PER if slash else True):
        rate = float(number) / (_PER[unit] if slash else 1.0)
        if 0.0 < rate <= FASTEST:
            return ArrivalRate(1_000.0 / rate, random=True)
    raise ValueError(
        f"{_shown(text)} does not set how pods arrive: expected poisson:5 (per second), poisson:90/m or every:10s"
    )


def _shown(text: str) -> str:
    return f'"{text if len(text) <= 40 else text[:40] + "…"}"'
