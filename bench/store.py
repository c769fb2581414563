"""How fast each store is: `make bench-store`. Everything durable, one process, values of 2 KB.

Prints the table of docs/guides/store.md. etcd is left out where there is none (`make kubernetes` builds it).
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path

from situate.store.contract import Store
from situate.store.entries import ABSENT, Revision
from situate.store.etcd.settings import EtcdSettings
from situate.store.open import open_store
from situate.store.sqlite.file import open_writer
from situate.store.sqlite.log import TransactionLog
from situate.store.transactions import At, Committed, Guard, Present, Put, Transaction

# In the place of this folder, as in it this file would be `store`.
sys.path[0] = str(Path(__file__).resolve().parent.parent / "tests")

from store.etcd_server import Etcd, missing  # noqa: E402 -- the tests' etcd is what is measured on

VALUE = bytes(range(256)) * 8
OBJECTS = 50_000
COMMITS = 20_000
SECONDS = 4.0
WATCHES = 1_000

Row = list[tuple[str, str]]


async def rate(callers: int, one: Callable[[int], Awaitable[None]], most: int = COMMITS) -> float:
    """Calls a second, by this many callers at once, for a few seconds."""
    numbers: Iterator[int] = iter(range(most))
    done = 0
    start = time.perf_counter()

    async def call() -> None:
        nonlocal done
        for number in numbers:
            await one(number)
            done += 1
            if time.perf_counter() - start > SECONDS:
                return

    await asyncio.gather(*(call() for _ in range(callers)))
    return done / (time.perf_counter() - start)


async def commits(store: Store) -> Row:
    def creating(callers: int) -> Callable[[int], Awaitable[None]]:
        async def create(number: int) -> None:
            key = f"/pods/{callers}/{number:06}"
            answer = await store.commit([At(key, ABSENT)], [Put(key, VALUE)])
            if not isinstance(answer, Committed):
                raise RuntimeError(f"not committed: {answer}")

        return create

    return [
        (f"creates/s, {callers} at once", f"{await rate(callers, creating(callers)):,.0f}") for callers in (1, 64, 256)
    ]


async def binds(store: Store) -> Row:
    """As a guarded bind: three guards, three writes. Each caller has its own node."""
    revisions: dict[str, Revision] = {}

    async def bind(number: int) -> None:
        node = f"/nodes/{number % 64}"
        guards: list[Guard] = [
            At(f"/bind/{number}", ABSENT),
            At(node, revisions.get(node, ABSENT)),
            Present("/workload"),
        ]
        answer = await store.commit(guards, [Put(f"/bind/{number}", VALUE), Put(node, VALUE), Put("/last", b"")])
        if isinstance(answer, Committed):
            revisions[node] = answer.revision
        elif answer.found[1] is not None:
            revisions[node] = answer.found[1].modified

    await store.commit([], [Put("/workload", VALUE)])
    return [("guarded binds/s, 64 at once", f"{await rate(64, bind):,.0f}")]


async def scans(store: Store) -> Row:
    for start in range(0, OBJECTS, 100):
        await store.commit([], [Put(f"/many/{number:06}", VALUE) for number in range(start, start + 100)])
    begun = time.perf_counter()
    page = await store.scan("/many/")
    whole = time.perf_counter() - begun
    begun = time.perf_counter()
    for number in range(500):
        await store.read([f"/many/{number * 7:06}"])
    read = (time.perf_counter() - begun) / 500
    begun = time.perf_counter()
    await store.scan("/many/", limit=500)
    part = time.perf_counter() - begun
    return [
        (f"scan of {len(page.entries):,}, ms", f"{1e3 * whole:,.0f}"),
        ("scan of the first 500, ms", f"{1e3 * part:,.1f}"),
        ("read of one key, ms", f"{1e3 * read:,.2f}"),
    ]


async def watches(store: Store) -> Row:
    """From a commit to the last of all watches that hear of it."""
    start = await store.revision()
    heard = 0
    all_heard = asyncio.Event()

    async def listen() -> None:
        nonlocal heard
        async with aclosing(store.watch("/watched/", start)) as watch:
            async for batch in watch:
                heard += len(batch.events)
                if heard % WATCHES == 0 and batch.events:
                    all_heard.set()

    listeners = [asyncio.create_task(listen()) for _ in range(WATCHES)]
    took: list[float] = []
    for number in range(10):
        all_heard.clear()
        begun = time.perf_counter()
        await store.commit([], [Put(f"/watched/{number}", VALUE)])
        await all_heard.wait()
        took.append(time.perf_counter() - begun)
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)
    return [(f"one event to {WATCHES:,} watches, ms", f"{1e3 * sorted(took)[len(took) // 2]:,.1f}")]


async def compaction(store: Store) -> Row:
    begun = time.perf_counter()
    await store.compact(await store.revision())
    return [("compaction of all that, ms", f"{1e3 * (time.perf_counter() - begun):,.0f}")]


async def measured(where: str) -> Row:
    store = await open_store(where, EtcdSettings(endpoints=(), give_up_s=60.0))
    try:
        row: Row = []
        for measure in (commits, binds, scans, watches, compaction):
            row += await measure(store)
    finally:
        await store.aclose()
    if not where.startswith(("etcd", "memory")):
        begun = time.perf_counter()
        store = await open_store(where)
        row.append(("opening it again, ms", f"{1e3 * (time.perf_counter() - begun):,.0f}"))
        await store.aclose()
    return row


def log_alone(path: Path) -> Row:
    """What the disk and SQLite allow: no event loop, 64 transactions a commit."""
    log = TransactionLog(open_writer(path))
    done = 0
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        keys = [f"/pods/{done + number:07}" for number in range(64)]
        log.commit([Transaction((At(key, ABSENT),), (Put(key, VALUE),)) for key in keys])
        log.checkpoint()
        done += 64
    took = time.perf_counter() - start
    log.close(in_order=True)
    return [("creates/s of the log alone, 64 a commit", f"{done / took:,.0f}")]


def main() -> None:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kinds = {"memory": "memory", "SQLite": str(home / "store.db")}
        absent = missing()
        if absent:
            print(absent, file=sys.stderr)
        else:
            server = stack.enter_context(Etcd(home, quick=False, flags=["--quota-backend-bytes=8000000000"]))
            kinds["etcd"] = f"etcd://{server.endpoints[0]}"
        rows = {kind: dict(asyncio.run(measured(where))) for kind, where in kinds.items()}
        rows["SQLite"] |= dict(log_alone(home / "alone.db"))
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    print(f"| | {' | '.join(rows)} |\n|---|{'---:|' * len(rows)}")
    for name in names:
        print(f"| {name} | {' | '.join(row.get(name, '') for row in rows.values())} |")


if __name__ == "__main__":
    main()
