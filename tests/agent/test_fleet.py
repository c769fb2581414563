"""Hollow nodes: many in one process."""

import asyncio
from collections.abc import Callable

import pytest

from agent.world import FakePlane, pod
from situate.agent import fleet as module
from situate.agent.fleet import Fleet
from situate.agent.machine import Shape, hollow_shapes


def story(plane: FakePlane, holds: Callable[[], object], nodes: int = 2) -> None:
    async def run() -> None:
        running = asyncio.create_task(Fleet(plane, hollow_shapes(nodes, 1, Shape())).run())
        try:
            async with asyncio.timeout(10):
                while not holds():
                    await asyncio.sleep(0.005)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


def test_all_nodes_come_and_pods_that_are_bound_to_them_run() -> None:
    plane = FakePlane()
    bound = pod()
    bound["spec"]["nodeName"] = "node-2"
    plane.put(bound)
    story(plane, lambda: plane.phase() == "Running")
    assert sorted(plane.nodes) == ["node-1", "node-2"]


def test_a_node_that_was_held_to_be_lost_says_that_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.02)
    plane = FakePlane()
    lost: list[bool] = []

    def comes_back() -> bool:
        if not lost and len(plane.nodes) == 2:
            conditions = [{"type": "Ready", "status": "Unknown"}]
            plane.nodes["node-1"] = {**plane.nodes["node-1"], "status": {"conditions": conditions}}
            lost.append(True)
            return False
        return bool(lost) and plane.nodes["node-1"]["status"]["conditions"][-1] == {
            **plane.nodes["node-1"]["status"]["conditions"][-1],
            "type": "Ready",
            "status": "True",
        }

    story(plane, comes_back)
