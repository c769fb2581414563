"""A clock that was set is noticed, and one that is only kept right is not."""

import asyncio
import time

import pytest

from situate.loop.clock_jumps import ClockJumps, watch_clock


def test_a_clock_that_was_set_back_an_hour_is_noticed_once() -> None:
    wall, monotonic = 1_000_000.0, 50.0
    jumps = ClockJumps(lambda: wall, lambda: monotonic)
    wall, monotonic = wall + 5.0, monotonic + 5.0
    assert jumps.since_last() == 0.0
    wall, monotonic = wall - 3_595.0, monotonic + 5.0
    assert jumps.since_last() == -3_600.0
    wall, monotonic = wall + 5.0, monotonic + 5.0
    assert jumps.since_last() == 0.0
    wall, monotonic = wall + 605.0, monotonic + 5.0
    assert jumps.since_last() == 600.0


def test_it_is_one_line_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    back, real = [0.0], time.time
    monkeypatch.setattr(time, "time", lambda: real() - back[0])

    async def story() -> None:
        watching = asyncio.create_task(watch_clock(look_s=0.01))
        await asyncio.sleep(0.03)
        back[0] = 3_600.0
        async with asyncio.timeout(10):
            while not caplog.messages:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.03)
        watching.cancel()

    asyncio.run(story())
    assert [message.partition(";")[0] for message in caplog.messages] == ["The clock was set back"]
