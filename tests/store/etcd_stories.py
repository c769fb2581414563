"""How a test of the store on etcd is told: under a prefix of its own."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore

WITHIN_S = 60.0


def settings(*endpoints: str, prefix: str = "", **other: Any) -> EtcdSettings:
    chosen = {"request_s": 3.0, "give_up_s": 20.0} | other
    return EtcdSettings(endpoints=endpoints, prefix=prefix or f"/{secrets.token_hex(6)}", **chosen)


@asynccontextmanager
async def opened(chosen: EtcdSettings) -> AsyncIterator[EtcdStore]:
    store = await EtcdStore.open(chosen)
    try:
        yield store
    finally:
        await store.aclose()


def count_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the event loop's clock is a millisecond later, however busy the machine is."""
    looks = itertools.count()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: next(looks) / 1_000)


def tell(story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(WITHIN_S):
            await story()

    asyncio.run(told())
