"""A crew: so many at a time, in order, and whoever rests or leaves is never called in vain."""

import asyncio
from collections.abc import Awaitable, Callable

from situate.server.scheduling.crew import Crew

WITHIN_S = 10.0


class Work:
    """Pieces of work that are under way until they are let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.most = 0
        self._under_way = 0
        self.may_end = asyncio.Event()

    async def do(self, piece: str) -> None:
        self.begun.append(piece)
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        await self.may_end.wait()
        self._under_way -= 1


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(WITHIN_S):
            await story()

    asyncio.run(told())


def test_no_more_are_under_way_than_there_are_hands_and_the_rest_come_in_order() -> None:
    async def story() -> None:
        work = Work()
        crew = Crew(2, work.do)
        for piece in "abcde":
            crew.put(piece)
        await asyncio.sleep(0)
        assert (work.begun, crew.waiting, crew.busy) == (["a", "b"], 3, True)
        work.may_end.set()
        assert await crew.idle(WITHIN_S)
        assert (work.begun, work.most, crew.busy) == (list("abcde"), 2, False)

    run(story)


def test_those_who_rest_are_called_again() -> None:
    async def story() -> None:
        work = Work()
        work.may_end.set()
        crew = Crew(2, work.do)
        for round_of in ("ab", "c", "def"):
            for piece in round_of:
                crew.put(piece)
            assert await crew.idle(WITHIN_S)
        assert work.begun == list("abcdef")

    run(story)


def test_who_was_sent_away_while_resting_is_not_called_and_another_comes() -> None:
    async def story() -> None:
        work = Work()
        work.may_end.set()
        crew = Crew(2, work.do)
        crew.put("a")
        crew.put("b")
        assert await crew.idle(WITHIN_S)
        crew.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        crew.put("c")
        assert await crew.idle(WITHIN_S)
        assert (work.begun, crew.busy) == (["a", "b", "c"], False)

    run(story)
