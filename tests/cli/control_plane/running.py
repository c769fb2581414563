"""A control plane in this process, with a client that speaks to it as its administrator."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from server.faults.process import Plane
from situate.cli.control_plane import process
from situate.cli.control_plane.settings import ControlPlaneSettings
from situate.cli.control_plane.state import STATE

WITHIN_S = 20.0


class Client:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def text(self, path: str) -> tuple[int, str]:
        async with self._session.get(path) as response:
            return response.status, await response.text()

    async def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        async with self._session.request(method, path, json=body, headers=headers) as response:
            return response.status, await response.json()

    async def items(self, path: str) -> list[dict[str, Any]]:
        code, found = await self.send("GET", path)
        assert code == 200, found
        items: list[dict[str, Any]] = found["items"]
        return items


async def until(holds: Callable[[], Awaitable[object]], within_s: float = WITHIN_S) -> None:
    async with asyncio.timeout(within_s):
        while not await holds():
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(settings: ControlPlaneSettings) -> AsyncIterator[Client]:
    """At the end SIGTERM stops it, and it has to end well."""
    task = asyncio.create_task(process._run(settings))
    directory: Path = settings.directory
    async with asyncio.timeout(WITHIN_S):
        while not (directory / STATE).exists():
            assert not task.done(), task.result()
            await asyncio.sleep(0.01)
    plane = Plane(directory)
    try:
        async with aiohttp.ClientSession(
            plane.url, connector=aiohttp.TCPConnector(ssl=plane.admin()), headers={"Accept": "application/json"}
        ) as session:
            yield Client(session)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(WITHIN_S):
            assert await task == 0
