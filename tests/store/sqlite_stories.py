"""How a test of the store in a file is told: opened, asked, and closed in order."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from situate.store.sqlite.store import SqliteStore


def tell(path: Path, story: Callable[[SqliteStore], Awaitable[None]], limit_bytes: int = 0) -> None:
    async def told() -> None:
        async with asyncio.timeout(20):
            store = await SqliteStore.open(path, limit_bytes)
            try:
                await story(store)
            finally:
                await store.aclose()

    asyncio.run(told())
