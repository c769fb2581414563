"""Who reads works in slices, and rests when others need the loop."""

import asyncio

from situate.server.views.pace import REST, SLICE_S, Pace


class Loop:
    """A clock that goes on by what is done, and others who take their turn."""

    def __init__(self, others_s: float) -> None:
        self.now = 0.0
        self.others_s = others_s
        self.rests: list[float] = []

    def clock(self) -> float:
        return self.now

    async def rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds + self.others_s


def worked(others_s: float, pieces: int, each_s: float) -> list[float]:
    loop = Loop(others_s)

    async def work() -> None:
        pace = Pace(loop.clock, loop.rest)
        for _ in range(pieces):
            loop.now += each_s
            await pace.pause()

    asyncio.run(work())
    return loop.rests


def test_less_than_a_slice_is_done_at_one_go() -> None:
    assert worked(others_s=1.0, pieces=5, each_s=SLICE_S / 10) == []


def test_on_an_idle_loop_it_only_goes_round() -> None:
    assert worked(others_s=0.0, pieces=3, each_s=SLICE_S) == [0, 0, 0]


def test_when_others_have_work_it_rests_many_times_as_long_as_it_worked() -> None:
    (turn, rest) = worked(others_s=SLICE_S, pieces=1, each_s=2 * SLICE_S)
    assert turn == 0
    assert abs(rest - 2 * SLICE_S * REST) < 1e-9
