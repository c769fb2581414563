"""A changed configuration file is noticed, however it was changed."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from situate.core.config.defaults import default_configuration
from situate.kube.reload import ConfigFile, needs_restart, whenever_changed


def test_a_file_that_is_written_again_has_changed_once(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("one")
    file = ConfigFile(path)
    assert not file.changed()
    path.write_text("other")
    assert file.changed()
    assert not file.changed()


def test_a_file_that_is_replaced_by_the_same_bytes_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("one")
    file = ConfigFile(path)
    (tmp_path / "new").write_text("one")
    (tmp_path / "new").replace(path)
    assert not file.changed()


def test_the_swapped_links_of_a_config_map_are_a_change(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(name)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    file = ConfigFile(tmp_path / "config.yaml")
    (tmp_path / "..data_tmp").symlink_to("two")
    (tmp_path / "..data_tmp").replace(tmp_path / "..data")
    assert file.changed()


def test_a_file_that_is_away_for_a_moment_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("one")
    file = ConfigFile(path)
    path.unlink()
    assert not file.changed()
    path.write_text("one")
    assert not file.changed()


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
            task = asyncio.create_task(whenever_changed(ConfigFile(path), asked, call, every_s=0.005))
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
