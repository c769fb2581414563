"""kill -9 of the server while clients write and watch: what was acknowledged stays, and resumed watches miss nothing.

`KILLS=100` makes it a hundred times. Then the figures are worth reading: pytest -s shows them.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from server.faults.history import Watched, problems
from server.faults.load import Clients, is_even
from server.faults.process import Plane

KILLS = int(os.environ.get("KILLS", "10"))
WRITERS = 8
WATCHES = 4
LEAST_WRITES_PER_S = 200
WITHIN_S = 15.0


async def until(check: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        await asyncio.sleep(0.002)


class Drill:
    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.url = plane.url
        self.tls = plane.admin()
        self.ready_s: list[float] = []
        self.loaded = 0
        self.loaded_s = 0.0

    async def run(self, kills: int) -> Clients:
        dice = random.Random(kills)
        async with Clients(lambda: self.url, self.tls) as clients:
            since = await clients.read()
            clients.reads.clear()
            works = [clients.write_for_ever(number) for number in range(WRITERS)]
            for number in range(WATCHES):
                some = number == WATCHES - 1
                watched = Watched(is_even if some else lambda key: True)
                clients.watches.append(watched)
                query = "&labelSelector=even%3Dtrue" if some else "&allowWatchBookmarks=true"
                works.append(clients.watch_for_ever(watched, query, since))
            works.append(clients.read_for_ever())
            tasks = [asyncio.create_task(work) for work in works]
            await self.disturb(clients, kills, dice)
            await self.load(clients, 50)
            # The writers stop, whatever was under way comes to its end, and the watches hear the last of it.
            for task in tasks[:WRITERS]:
                task.cancel()
            await asyncio.gather(*tasks[:WRITERS], return_exceptions=True)
            last = await self.settled(clients)
            watching = tasks[WRITERS:]
            await until(
                lambda: all(self.saw(one, last) for one in clients.watches) or any(one.done() for one in watching),
                "the watches to hear everything",
            )
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            clients.odd += [repr(one) for one in ended if not isinstance(one, asyncio.CancelledError)]
            return clients

    async def disturb(self, clients: Clients, kills: int, dice: random.Random) -> None:
        for _ in range(kills):
            await self.load_and_kill(clients, dice.randint(50, 250))

    async def load(self, clients: Clients, writes: int) -> None:
        """From the first one on, for the rate: clients take a moment to come back."""
        first = clients.acknowledged + 1
        await until(lambda: clients.acknowledged >= first, "a write to be acknowledged")
        begun, began = clients.acknowledged, time.monotonic()
        await until(lambda: clients.acknowledged >= begun + writes, f"{writes} writes to be acknowledged")
        self.loaded_s += time.monotonic() - began
        self.loaded += clients.acknowledged - begun

    async def load_and_kill(self, clients: Clients, writes: int) -> None:
        await self.load(clients, writes)
        self.plane.kill()
        clients.up.clear()
        began = time.monotonic()
        await asyncio.to_thread(self.plane.start)
        self.url = self.plane.url
        await clients.read()
        self.ready_s.append(time.monotonic() - began)
        clients.up.set()

    async def settled(self, clients: Clients) -> int:
        """A last write, by which to know that everything before it was heard."""
        body = {"metadata": {"name": "last-0", "labels": {"even": "true"}}, "data": {"token": "last"}}
        code, made = await clients.ask("POST", "/api/v1/namespaces/default/configmaps", body)
        assert code == 201, made
        await clients.read()
        return int(made["metadata"]["resourceVersion"])

    @staticmethod
    def saw(watched: Watched, revision: int) -> bool:
        return bool(watched.events) and watched.events[-1].revision >= revision


@pytest.mark.parametrize("kills", [pytest.param(KILLS, id=f"{KILLS} kills")])
def test_nothing_that_was_acknowledged_is_lost_and_resumed_watches_have_no_gaps(kills: int, tmp_path: Path) -> None:
    with Plane(tmp_path / "plane") as plane:
        drill = Drill(plane)
        clients = asyncio.run(drill.run(kills))
        assert not clients.odd
        assert problems(clients.watches, clients.writes, clients.reads) == []
        assert all(watch.resumed >= kills for watch in clients.watches)
        assert "Traceback" not in plane.said()
    rate = drill.loaded / drill.loaded_s
    ready = sorted(drill.ready_s)
    unknown = sum(write.outcome == "unknown" for write in clients.writes)
    print(
        f"\n{kills} kills: {clients.acknowledged} writes acknowledged, {rate:.0f}/s; {unknown} cut off; "
        f"{sum(len(one.events) for one in clients.watches)} events in {len(clients.watches)} watches, "
        f"resumed {sum(one.resumed for one in clients.watches)} times, 410 0 times; {len(clients.reads)} lists; "
        f"answers again after {ready[len(ready) // 2]:.2f} s (median), {ready[-1]:.2f} s (most)"
    )
    # Beside other tests, on a busy machine, the clients themselves may be slower than that.
    assert rate >= LEAST_WRITES_PER_S or "KILLS" not in os.environ
