"""A control plane whose part fails: the rest goes on, the part comes back, and SIGTERM stops everything."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cli.control_plane.running import running, until
from situate.cli.control_plane import process
from situate.cli.control_plane.settings import ControlPlaneSettings


def test_a_part_that_fails_is_named_and_started_again_while_the_api_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_run = 0, asyncio.Event()

    async def controllers(*_: Any, **__: Any) -> None:
        nonlocal begun
        begun += 1
        if not may_run.is_set():
            raise ExceptionGroup("unhandled errors in a TaskGroup", [OverflowError("too large for a date")])
        await asyncio.Event().wait()

    monkeypatch.setattr(process, "run_controllers", controllers)

    async def scenario() -> None:
        async with running(ControlPlaneSettings(directory=tmp_path, store="memory", nodes=1)) as client:

            async def failed_often() -> bool:
                return begun >= 3

            async def ready() -> bool:
                return await client.text("/readyz") == (200, "ok")

            await until(failed_often)
            code, text = await client.text("/readyz/controllers")
            assert code == 500
            assert text.startswith("internal server error: OverflowError: too large for a date")
            assert "[-]controllers failed" in (await client.text("/readyz"))[1]
            assert await client.text("/readyz/scheduler") == (200, "ok")
            assert await client.text("/livez") == (200, "ok")
            may_run.set()
            await until(ready)
            assert 'situate_part_restarts_total{part="scheduler"} 0.0' in (await client.text("/metrics"))[1]

    asyncio.run(scenario())
