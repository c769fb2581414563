"""Turns: one after another for each node, and nobody is forgotten."""

import asyncio

import pytest

from situate.server.errors import StatusError
from situate.server.placing.node_locks import NodeLocks


def test_who_asks_for_the_same_node_waits_and_who_asks_for_another_does_not() -> None:
    async def story() -> None:
        turns, told = NodeLocks(), list[str]()

        async def take(node: str, name: str) -> None:
            async with turns.of(node):
                told.append(f"{name} in")
                await asyncio.sleep(0)
                told.append(f"{name} out")

        await asyncio.gather(take("n1", "a"), take("n1", "b"), take("n2", "c"))
        assert told == ["a in", "c in", "a out", "c out", "b in", "b out"]

    asyncio.run(story())


def test_one_who_gives_up_waiting_holds_nobody_up() -> None:
    async def story() -> None:
        turns, got = NodeLocks(), list[str]()
        free = asyncio.Event()

        async def first() -> None:
            async with turns.of("n"):
                await free.wait()

        async def take(name: str) -> None:
            async with turns.of("n"):
                got.append(name)

        holder = asyncio.create_task(first())
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(take(name)) for name in ("a", "b", "c")]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        free.set()
        await asyncio.sleep(0)
        waiting[1].cancel()  # its turn may have come just now
        await asyncio.gather(holder, *waiting, return_exceptions=True)
        assert got[-1] == "c"
        async with asyncio.timeout(1), turns.of("n"):
            pass

    asyncio.run(story())


def test_when_too_many_wait_the_next_is_sent_away() -> None:
    async def story() -> None:
        turns = NodeLocks(most_waiting=1)

        async def wait() -> None:
            async with turns.of("n"):
                pass

        async with turns.of("n"):
            waiting = asyncio.create_task(wait())
            await asyncio.sleep(0)
            with pytest.raises(StatusError) as caught:
                await wait()
            assert caught.value.code == 429
        await waiting

    asyncio.run(story())


def test_a_waiter_that_is_cancelled_at_the_moment_of_release_just_ends() -> None:
    async def story() -> None:
        locks = NodeLocks()
        await locks.acquire("n")
        waiters = [asyncio.create_task(locks.acquire("n")) for _ in range(3)]
        await asyncio.sleep(0)
        for waiter in waiters[:2]:
            waiter.cancel()
        locks.release("n")  # passes over those that were cancelled, before they have run again
        ended = await asyncio.gather(*waiters, return_exceptions=True)
        assert [type(each) for each in ended] == [asyncio.CancelledError, asyncio.CancelledError, type(None)]
        locks.release("n")

    asyncio.run(story())
