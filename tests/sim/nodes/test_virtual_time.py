"""The event loop in virtual time: what it tells, who runs on it, and what it does not wait for."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from situate.sim.nodes.virtual_time import EPOCH_S, Actor, DriftingClock, StuckError, VirtualLoop, interposed

T = TypeVar("T")


def play(log: Callable[[VirtualLoop], Coroutine[Any, Any, T]], loop: VirtualLoop | None = None) -> T:
    """Run a coroutine function in virtual time."""
    made = loop or VirtualLoop()
    try:
        with interposed(made):
            return made.run_until_complete(log(made))
    finally:
        made.close()


def test_an_hour_takes_no_time() -> None:
    async def log(loop: VirtualLoop) -> float:
        await asyncio.sleep(3_600)
        return loop.now

    began = time.perf_counter()
    assert play(log) == pytest.approx(3_600, abs=0.001)
    assert time.perf_counter() - began < 5


def test_a_clock_that_is_slow_sleeps_longer_and_tells_less() -> None:
    async def nap() -> tuple[float, float]:
        began, wall = time.monotonic(), time.time()
        await asyncio.sleep(8)
        return time.monotonic() - began, time.time() - wall

    async def log(loop: VirtualLoop) -> tuple[tuple[float, float], float]:
        shown = await Actor("slow", DriftingClock(0.8, 100)).begin(nap())
        return shown, loop.now

    shown, real = play(log)
    assert shown == pytest.approx((8, 8), abs=0.001)
    assert real == pytest.approx(10, abs=0.001)


def test_a_clock_may_be_ahead() -> None:
    async def log(loop: VirtualLoop) -> float:
        return Actor("ahead", DriftingClock(1.0, 100)).run(lambda: time.time())  # noqa: PLW0108 - it is another one outside

    assert play(log) == EPOCH_S + 100


def test_who_is_paused_does_nothing_until_it_goes_on() -> None:
    async def count(told: list[float], loop: VirtualLoop) -> None:
        while True:
            await asyncio.sleep(1)
            told.append(round(loop.now, 2))

    async def log(loop: VirtualLoop) -> list[float]:
        told: list[float] = []
        actor = Actor("one", DriftingClock())
        actor.begin(count(told, loop))
        await asyncio.sleep(2.5)
        actor.pause()
        await asyncio.sleep(3)
        actor.go_on()
        await asyncio.sleep(1.2)
        await actor.end()
        return told

    assert play(log) == [1.0, 2.0, 5.5, 6.5]


def test_the_end_of_an_owner_is_the_end_of_all_its_tasks() -> None:
    async def parent() -> None:
        asyncio.create_task(asyncio.sleep(1_000))  # noqa: RUF006 - nobody keeps it, and it ends all the same
        await asyncio.sleep(1_000)

    async def log(loop: VirtualLoop) -> int:
        actor = Actor("one", DriftingClock())
        actor.begin(parent())
        await asyncio.sleep(1)
        before = len(actor.tasks)
        await actor.end()
        await asyncio.sleep(0)
        return before - len(actor.tasks)

    assert play(log) == 2


def test_what_is_handed_to_a_thread_is_done_at_once() -> None:
    async def log(loop: VirtualLoop) -> int:
        return await asyncio.to_thread(lambda: 7)

    assert play(log) == 7


def test_nothing_to_wait_for_is_an_error_and_not_for_ever() -> None:
    async def log(loop: VirtualLoop) -> None:
        await asyncio.Event().wait()

    loop = VirtualLoop()
    with pytest.raises(StuckError, match="no timer"):
        play(log, loop)


def test_whoever_spins_is_found_out() -> None:
    async def log(loop: VirtualLoop) -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(StuckError, match="spins"):
        play(log)


def test_time_is_the_real_one_again_afterwards() -> None:
    async def log(loop: VirtualLoop) -> None:
        await asyncio.sleep(10_000)

    before = time.time()
    play(log)
    assert abs(time.time() - before) < 60
