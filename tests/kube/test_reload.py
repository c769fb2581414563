"""A changed configuration file is noticed, however it was changed."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from situate.core.config.defaults import default_configuration
from situate.kube.reload import needs_restart, whenever_changed
from situate.loop.watched import WatchedFile


def test_somebody_is_called_for_each_change_and_each_request(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("one")
    asked = asyncio.Event()
    called = 0

    async def call() -> None:
        nonlocal called
        called += 1

    async def reached(count: int) -> None:
        while called < count:
            await asyncio.sleep(0.001)

    async def scenario() -> None:
        async with asyncio.timeout(5):
            task = asyncio.create_task(whenever_changed(WatchedFile(path), asked, call, every_s=0.005))
            await asyncio.sleep(0.02)
            assert called == 0
            path.write_text("other")
            await reached(1)
            asked.set()
            await reached(2)
            await asyncio.sleep(0.02)
            assert called == 2
            task.cancel()

    asyncio.run(scenario())


def test_what_holds_only_after_a_restart_is_named() -> None:
    old = default_configuration()
    assert needs_restart(old, replace(old, parallelism=3)) == ()
    new = replace(
        old,
        leader_election=replace(old.leader_election, leader_elect=False),
        client_connection=replace(old.client_connection, qps=1.0),
        delay_cache_until_active=True,
    )
    assert needs_restart(old, new) == ("leaderElection", "clientConnection", "delayCacheUntilActive")
