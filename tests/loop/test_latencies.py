"""A latency table in a file holds as it is now: pods wake, the journal has it, and a wrong one changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from builders import node, pod
from situate.cli.input.profiles import read_config
from situate.core.changes import Change, NodeSeen, ObjectSeen, PodSeen
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Bind, Effect
from situate.core.engine.engine import Engine
from situate.core.model.latency import LatencyTable
from situate.core.plugins.latency import ZONE
from situate.loop.history import History
from situate.loop.journal import Journal
from situate.loop.latencies import LatencyFiles
from situate.loop.replay import Replay
from situate.loop.run import turn

NEAR = "places: {eu: {zones: {a: 5}}}"
FAR = "places: {eu: {zones: {a: 50}}}"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Latency}]}}
  pluginConfig:
  - name: Latency
    args: {tableFile: table.yaml}
"""
WEB = pod("web", uid="1", annotations={"situate.dev/latency-to": "eu", "situate.dev/latency-limit-ms": "20"})


def written(folder: Path, table: str) -> None:
    (folder / "table.yaml").write_text(table)


def configured(folder: Path, table: str) -> KubeSchedulerConfiguration:
    written(folder, table)
    (folder / "config.yaml").write_text(CONFIG)
    return read_config(folder / "config.yaml")


class Nobody:
    def perform(self, effects: Sequence[Effect]) -> None:
        pass


def until(
    config: KubeSchedulerConfiguration, enough: Callable[[list[Change]], bool], then: Callable[[], None]
) -> list[Change]:
    """What is told, from the first look on, until it is enough; `then` happens once the file has been looked at."""
    told: list[Change] = []

    async def scenario() -> None:
        files = LatencyFiles(config, told.extend, every_s=0.002)
        assert files
        running = asyncio.create_task(files.run())
        async with asyncio.timeout(10):
            while not files.looks:
                await asyncio.sleep(0.001)
            then()
            while not enough(told):
                await asyncio.sleep(0.001)
        running.cancel()

    asyncio.run(scenario())
    return told


def test_a_configuration_comes_with_the_table_of_its_file(tmp_path: Path) -> None:
    config = configured(tmp_path, NEAR)
    engine = Engine(config)
    effects = engine.step(0, [NodeSeen(node("n1", labels={ZONE: "a"}, cpu="4", pods="10")), PodSeen(WEB)])
    assert [effect.node for effect in effects if isinstance(effect, Bind)] == ["n1"]


def test_a_table_that_changes_is_told_and_one_that_does_not_is_not(tmp_path: Path) -> None:
    config = configured(tmp_path, FAR)
    told = until(config, bool, lambda: written(tmp_path, NEAR))
    (change,) = told
    assert isinstance(change, ObjectSeen)
    assert isinstance(change.item, LatencyTable)
    assert change.item.metadata.name == str(tmp_path / "table.yaml")
    assert change.item.places["eu"].zones == {"a": 5.0}


def test_a_table_that_changed_before_it_was_first_looked_at_is_told(tmp_path: Path) -> None:
    config = configured(tmp_path, FAR)
    (tmp_path / "table.yaml").write_text(NEAR)
    assert len(until(config, bool, lambda: None)) == 1


def test_a_wrong_table_is_one_line_and_the_one_before_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = configured(tmp_path, FAR)
    assert until(config, lambda _: bool(caplog.records), lambda: written(tmp_path, "places: [")) == []
    assert [record.getMessage() for record in caplog.records] == [
        "The new latency table cannot be used, the old one stays"
    ]


def test_a_pod_that_was_too_far_wakes_when_the_table_changes_and_a_replay_is_exact(tmp_path: Path) -> None:
    config = configured(tmp_path, FAR)
    engine = Engine(config)
    with Journal(tmp_path / "journal", config) as journal:
        seen: list[Change] = [NodeSeen(node("n1", labels={ZONE: "a"}, cpu="4", pods="10")), PodSeen(WEB)]
        effects = turn(engine, 0, seen, Nobody(), journal)
        assert not any(isinstance(effect, Bind) for effect in effects)
        assert engine.next_due_ms(1_000) not in (None, 1_000), "it is parked, not resting"
        assert not any(isinstance(one, Bind) for one in turn(engine, 20_000, [], Nobody(), journal))
        told = until(config, bool, lambda: written(tmp_path, NEAR))
        effects = turn(engine, 21_000, told, Nobody(), journal)
        assert [effect.node for effect in effects if isinstance(effect, Bind)] == ["n1"]
    (tmp_path / "table.yaml").unlink()  # a replay needs no file but the journal
    history = History(tmp_path / "journal")
    replayed = Replay(history, Engine(history.header.config))
    assert list(replayed) == []
    assert replayed.steps == 3
