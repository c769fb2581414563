"""A world with a scheduler in its process, and how to wait for what it does without waiting for time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from server.placing.world import WITHIN_S, World, opened
from situate.loop.scheduling.performer import Performer
from situate.server.scheduling.scheduler import Scheduler, SchedulerSettings, open_scheduler
from situate.store.contract import Store
from situate.store.memory import MemoryStore

Story = Callable[[World], Awaitable[None]]


@asynccontextmanager
async def scheduling(world: World, settings: SchedulerSettings | None = None) -> AsyncIterator[Scheduler]:
    """A scheduler that runs meanwhile."""
    async with open_scheduler(
        world.store, world.registry, world.binder, settings or SchedulerSettings(elects=False), wall_ns=world.wall_ns
    ) as scheduler:
        running = asyncio.create_task(scheduler.run())
        try:
            yield scheduler
            if running.done():
                running.result()
        finally:
            await scheduler.drain(5.0)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def performer_of(scheduler: Scheduler) -> Performer:
    performer = scheduler.session.performer
    assert performer is not None
    return performer


async def until(said: Callable[[], bool]) -> None:
    """Until something is so; the story's own time limit ends it if it never is."""
    while not said():
        await asyncio.sleep(0.001)


def tell(story: Story, store: Callable[[], Store] = MemoryStore) -> None:
    async def told() -> None:
        async with asyncio.timeout(WITHIN_S), opened(store()) as world:
            await story(world)

    asyncio.run(told())
