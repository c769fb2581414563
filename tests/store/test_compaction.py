"""History is compacted at an interval, up to where the store was the time before."""

import asyncio

import pytest

from situate.store.compaction import compact_regularly
from situate.store.entries import Revision
from situate.store.errors import ClosedError, StoreFullError, UnavailableError
from situate.store.memory import MemoryStore


class Growing(MemoryStore):
    """At a new revision whenever it is asked. The answers to compactions are given; then it is closed."""

    def __init__(self, *answers: Exception | None) -> None:
        super().__init__()
        self._newest = 0
        self._answers = iter(answers)
        self.compactions: list[Revision] = []

    async def revision(self) -> Revision:
        self._newest += 10
        return Revision(self._newest)

    async def compact(self, revision: Revision) -> None:
        self.compactions.append(revision)
        answer = next(self._answers, ClosedError())
        if answer is not None:
            raise answer


def test_each_round_compacts_to_where_the_store_was_the_round_before() -> None:
    store = Growing(None, None)
    with pytest.raises(ClosedError):
        asyncio.run(compact_regularly(store, 0))
    assert store.compactions == [10, 20, 30]


@pytest.mark.parametrize("error", [StoreFullError("full"), UnavailableError("away")])
def test_a_round_that_failed_is_made_up_for(error: Exception) -> None:
    store = Growing(error, None)
    with pytest.raises(ClosedError):
        asyncio.run(compact_regularly(store, 0))
    assert store.compactions == [10, 10, 30]


def test_nothing_is_compacted_before_the_interval_is_over() -> None:
    async def story() -> None:
        store = Growing()
        running = asyncio.create_task(compact_regularly(store, 3600))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not running.done()
        assert store.compactions == []
        running.cancel()

    asyncio.run(story())
