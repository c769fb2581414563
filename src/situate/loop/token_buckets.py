"""Token buckets by key, for a limited number of keys: the rate limits of callers and of events."""

from __future__ import annotations

from collections.abc import Hashable


class TokenBuckets:
    """Each key has `burst` tokens and gets `rate` new ones in each unit of time. When there are too many keys, the one
    that was used least recently is forgotten, and with it what it has spent."""

    __slots__ = ("_burst", "_left", "_most", "_rate")

    def __init__(self, rate: float, burst: float, most: int) -> None:
        self._rate = rate
        self._burst = burst
        self._most = most
        self._left: dict[Hashable, tuple[float, float]] = {}
        """Tokens, and when they were counted. In the order of use."""

    def __len__(self) -> int:
        return len(self._left)

    def take(self, key: Hashable, now: float) -> bool:
        """Take a token, if there is one."""
        found = self._left.pop(key, None)
        left = self._burst if found is None else min(self._burst, found[0] + (now - found[1]) * self._rate)
        if found is None and len(self._left) >= self._most:
            del self._left[next(iter(self._left))]
        taken = left >= 1.0
        self._left[key] = (left - 1.0 if taken else left, now)
        return taken
