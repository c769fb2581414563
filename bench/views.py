"""Binds a second, while nobody reads views, and while somebody reads all of them without a pause.

    python bench/views.py

One store in a file, with fsync; binds through the guarded bind, 64 at a time, without HTTP; 1,000 nodes. Rounds with
and without a reader take turns, as a machine's pace changes. A view is read by its list, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import uvloop

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT / "tests")  # in place of this folder, whose server.py is not the one meant below

from server.placing.world import World, opened  # noqa: E402 -- the tests' world is what is measured on
from situate.server.requests import ListOptions, Target  # noqa: E402
from situate.server.resources import BY_KIND  # noqa: E402
from situate.server.views.views import Views  # noqa: E402
from situate.store.sqlite.store import SqliteStore  # noqa: E402

NODES = 1_000
AT_ONCE = 64
VIEWS = [BY_KIND["situate.dev/v1alpha1", f"{kind}View"] for kind in ("Workload", "Node", "Namespace")]


class Reader:
    """Reads all views, again and again."""

    def __init__(self, world: World) -> None:
        self._views = Views(world.store, world.registry.cache)
        self.reads = 0

    async def run(self) -> None:
        while True:
            for view in VIEWS:
                await self._views.list(Target(view), ListOptions())
                self.reads += 1
            await asyncio.sleep(0)


async def bound(world: World, names: list[str]) -> float:
    """Binds a second of the loop's own time: what the clock on the wall says depends on who else uses the machine."""
    left = list(enumerate(names))

    async def work() -> None:
        while left:
            number, name = left.pop()
            await world.binder.bind("default", name, f"n{number % NODES}")

    begun = time.thread_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return len(names) / (time.thread_time() - begun)


async def measure(folder: Path, pods: int, rounds: int) -> None:
    async with opened(await SqliteStore.open(folder / "store.db")) as world:
        for number in range(NODES):
            await world.node(f"n{number}", cpu="64", allocatable={"memory": "512Gi", "pods": "200"})
        rates: dict[bool, list[float]] = {False: [], True: []}
        reads = 0
        for number in range(2 * rounds):
            read = bool(number % 2)
            names = [f"p{number}-{at}" for at in range(pods)]
            for name in names:
                await world.pod(name, cpu="1m")
            reader = Reader(world)
            task = asyncio.create_task(reader.run()) if read else None
            if task is not None:
                await asyncio.sleep(1.0)
                reader.reads = 0
            rates[read].append(await bound(world, names))
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                reads += reader.reads
            print(f"round {number // 2 + 1}, {'with a reader' if read else 'nobody reads'}: {rates[read][-1]:,.0f}/s")
        without, with_one = statistics.median(rates[False]), statistics.median(rates[True])
        share = 100 * with_one / without
        print(f"binds a second of the loop's time: {without:,.0f} without, {with_one:,.0f} with ({share:.0f} %)")
        print(f"lists of a view read meanwhile: {reads}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=2_000, help="binds in a round")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(Path(name), asked.pods, asked.rounds))


if __name__ == "__main__":
    main()
