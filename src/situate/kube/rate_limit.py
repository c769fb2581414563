"""client-go's rate limiter: a token bucket, first come, first served.

A full bucket holds `burst` tokens; one comes back every 1/qps seconds. A cancelled waiter takes no token.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

DEFAULT_QPS: Final = 5.0
"""client-go's, for 0."""
DEFAULT_BURST: Final = 10
WAITERS: Final = 1_000_000
"""How many may wait; beyond that there is a bug."""
ROUNDING: Final = 1e-9
"""How much of a token may be missing when its timer fires."""


class TokenBucket:
    """`if not bucket.take(): await bucket.wait()`. Belongs to one event loop; `qps` is above 0."""

    __slots__ = ("_at", "_burst", "_clock", "_qps", "_timer", "_tokens", "_waiters")

    def __init__(self, qps: float, burst: int, clock: Callable[[], float]) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps must be above 0 and burst at least 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._at = clock()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    def take(self) -> bool:
        """Take a token if there is one and nobody waits."""
        if self._waiters:
            return False
        self._fill()
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    async def wait(self) -> None:
        """Wait for a token, in order of arrival."""
        if len(self._waiters) >= WAITERS:
            raise RuntimeError(f"more than {WAITERS} requests wait for the rate limit")
        turn = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        self._arm()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # give the token back
                self._tokens += 1.0
            self._serve()  # skips us
            raise

    def _fill(self) -> None:
        now = self._clock()
        if now > self._at:
            self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._qps)
        self._at = now

    def _serve(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._fill()
        while self._waiters and (self._waiters[0].done() or self._tokens >= 1.0 - ROUNDING):
            turn = self._waiters.popleft()
            if not turn.done():
                self._tokens -= 1.0
                turn.set_result(None)
        self._arm()

    def _arm(self) -> None:
        if self._waiters and self._timer is None:
            self._fill()
            delay = max(0.0, (1.0 - self._tokens) / self._qps)
            self._timer = asyncio.get_running_loop().call_later(delay, self._due)

    def _due(self) -> None:
        self._timer = None
        self._serve()


def bucket(qps: float, burst: int, clock: Callable[[], float]) -> TokenBucket | None:
    """As in client-go: no limit below 0, its defaults for 0."""
    if qps < 0:
        return None
    return TokenBucket(qps or DEFAULT_QPS, burst or DEFAULT_BURST, clock)
