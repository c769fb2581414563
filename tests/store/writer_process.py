"""A process that writes to an SQLite store as fast as it can, and says what was acknowledged, until it is killed."""

import asyncio
import itertools
import os
import sys
from pathlib import Path

from situate.store.entries import NO_LEASE
from situate.store.sqlite.store import SqliteStore
from situate.store.transactions import Committed, Put

WRITERS = 16


async def write(store: SqliteStore, who: str, life: str) -> None:
    for number in itertools.count():
        value = f"{life}/{number}"
        answer = await store.commit([], [Put(f"/{who}", value.encode(), NO_LEASE), Put(f"/{who}/twin", value.encode())])
        if isinstance(answer, Committed):
            os.write(1, f"{who} {value} {answer.revision}\n".encode())


async def main(path: Path, life: str) -> None:
    store = await SqliteStore.open(path)
    compacting = asyncio.create_task(compact(store))
    await asyncio.gather(*(write(store, f"w{who}", life) for who in range(WRITERS)), compacting)


async def compact(store: SqliteStore) -> None:
    while True:
        await store.compact(await store.revision())
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
