"""A control plane whose part fails: the rest goes on, the part comes back, and SIGTERM stops everything."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from server.faults.process import Plane
from situate.cli.control_plane import process
from situate.cli.control_plane.settings import ControlPlaneSettings
from situate.cli.control_plane.state import STATE
from situate.loop.logs import Logging

WITHIN_S = 20.0


@contextlib.asynccontextmanager
async def _running(directory: Path) -> AsyncIterator[tuple[aiohttp.ClientSession, asyncio.Task[int]]]:
    settings = ControlPlaneSettings(directory=directory, store="memory", nodes=1, logging=Logging())
    task = asyncio.create_task(process._run(settings))
    async with asyncio.timeout(WITHIN_S):
        while not (directory / STATE).exists():
            assert not task.done(), task.result()
            await asyncio.sleep(0.01)
    plane = Plane(directory)
    async with aiohttp.ClientSession(plane.url, connector=aiohttp.TCPConnector(ssl=plane.admin())) as client:
        yield client, task


async def _read(client: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with client.get(path) as response:
        return response.status, await response.text()


def test_a_part_that_fails_is_named_and_started_again_while_the_api_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_run = 0, asyncio.Event()

    async def controllers(*_: Any) -> None:
        nonlocal begun
        begun += 1
        if not may_run.is_set():
            raise ExceptionGroup("unhandled errors in a TaskGroup", [OverflowError("too large for a date")])
        await asyncio.Event().wait()

    monkeypatch.setattr(process, "run_controllers", controllers)

    async def scenario() -> int:
        async with _running(tmp_path) as (client, task):
            async with asyncio.timeout(WITHIN_S):
                while begun < 3:
                    await asyncio.sleep(0.01)
            code, text = await _read(client, "/readyz/controllers")
            assert code == 500
            assert text.startswith("internal server error: OverflowError: too large for a date")
            assert "[-]controllers failed" in (await _read(client, "/readyz"))[1]
            assert await _read(client, "/readyz/scheduler") == (200, "ok")
            assert await _read(client, "/livez") == (200, "ok")
            may_run.set()
            async with asyncio.timeout(WITHIN_S):
                while await _read(client, "/readyz") != (200, "ok"):
                    await asyncio.sleep(0.05)
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(WITHIN_S):
                return await task

    assert asyncio.run(scenario()) == 0
