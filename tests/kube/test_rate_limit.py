"""The rate limit, on a clock that moves only when everybody waits."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.kube.rate_limit import DEFAULT_BURST, DEFAULT_QPS, TokenBucket, bucket


class _Skipping(selectors.SelectSelector):
    """Never waits: where it should, time jumps."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            self.now += timeout
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.skipping = _Skipping()
        super().__init__(self.skipping)

    def time(self) -> float:
        return self.skipping.now


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=_Loop) as runner:
        runner.run(work())


def clock() -> float:
    return asyncio.get_running_loop().time()


def made(qps: float, burst: int) -> TokenBucket:
    return TokenBucket(qps, burst, asyncio.get_running_loop().time)


async def taken(tokens: TokenBucket) -> float:
    """When it was our turn."""
    if not tokens.take():
        await tokens.wait()
    return clock()


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    async def work() -> None:
        tokens = made(10, 3)
        times = await asyncio.gather(*(taken(tokens) for _ in range(6)))
        assert times == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])

    run(work)


def test_the_bucket_fills_while_nobody_asks_but_never_beyond_the_burst() -> None:
    async def work() -> None:
        tokens = made(10, 3)
        await asyncio.gather(*(taken(tokens) for _ in range(3)))
        await asyncio.sleep(60)
        times = await asyncio.gather(*(taken(tokens) for _ in range(5)))
        assert times == pytest.approx([60, 60, 60, 60.1, 60.2])

    run(work)


def test_who_comes_later_does_not_overtake() -> None:
    async def work() -> None:
        tokens = made(10, 1)
        order: list[int] = []

        async def one(number: int) -> None:
            await asyncio.sleep(number * 0.03)
            await taken(tokens)
            order.append(number)

        await asyncio.gather(*(one(number) for number in range(8)))
        assert order == list(range(8))

    run(work)


def test_one_who_gives_up_takes_nothing_and_those_behind_move_up() -> None:
    async def work() -> None:
        tokens = made(10, 1)
        await taken(tokens)
        first, second, third = (asyncio.create_task(taken(tokens)) for _ in range(3))
        await asyncio.sleep(0.05)
        first.cancel()
        assert await second == pytest.approx(0.1)
        assert await third == pytest.approx(0.2)
        assert first.cancelled()
        assert tokens.waiting == 0

    run(work)


def test_when_all_give_up_nobody_is_left_in_the_line() -> None:
    async def work() -> None:
        tokens = made(10, 1)
        await taken(tokens)
        turns = [asyncio.create_task(taken(tokens)) for _ in range(100)]
        await asyncio.sleep(0.01)
        for turn in reversed(turns):
            turn.cancel()
        await asyncio.wait(turns)
        assert tokens.waiting == 0
        await asyncio.sleep(0.1)
        assert tokens.take()

    run(work)


def test_a_token_given_to_one_who_is_cancelled_at_that_moment_goes_to_the_next() -> None:
    async def work() -> None:
        tokens = made(10, 1)
        await taken(tokens)
        first, second = (asyncio.create_task(taken(tokens)) for _ in range(2))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_at(0.1, first.cancel)  # after the bucket's own timer, before the task runs
        assert await second == pytest.approx(0.1)
        assert first.cancelled()

    run(work)


@settings(max_examples=50)
@given(
    qps=st.sampled_from([1.0, 7.0, 50.0]),
    burst=st.integers(1, 5),
    gaps=st.lists(st.sampled_from([0.0, 0.01, 0.3, 2.0]), min_size=1, max_size=30),
)
def test_never_more_than_the_burst_and_the_rate_allow_and_never_idle_for_nothing(
    qps: float, burst: int, gaps: list[float]
) -> None:
    async def work() -> None:
        tokens = made(qps, burst)
        asked: list[float] = []
        turns: list[asyncio.Task[float]] = []
        for gap in gaps:
            await asyncio.sleep(gap)
            asked.append(clock())
            turns.append(asyncio.create_task(taken(tokens)))
        got = [await turn for turn in turns]
        assert got == pytest.approx(_expected(qps, burst, asked))

    run(work)


def _expected(qps: float, burst: int, asked: list[float]) -> list[float]:
    """golang.org/x/time/rate, in a few lines: tokens may be owed, and are waited for."""
    tokens, last, got = float(burst), 0.0, []
    for at in asked:
        tokens = min(float(burst), tokens + (at - last) * qps) - 1
        last = at
        got.append(at if tokens >= 0 else at - tokens / qps)
    return got


def test_below_zero_is_no_limit_and_zero_is_what_client_go_takes_for_it() -> None:
    assert bucket(-1, 0, lambda: 0.0) is None
    limited = bucket(0, 0, lambda: 0.0)
    assert limited is not None
    assert sum(limited.take() for _ in range(50)) == DEFAULT_BURST
    assert DEFAULT_QPS == 5.0


@pytest.mark.parametrize("qps, burst", [(0, 1), (-1, 1), (1, 0), (1, -5)])
def test_a_bucket_that_would_never_give_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="qps must be above 0"):
        TokenBucket(qps, burst, lambda: 0.0)
