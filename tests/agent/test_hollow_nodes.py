"""Hollow nodes: many in one process."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agent.world import FakePlane, pod
from situate.agent.hollow_nodes import REPORTS_AT_ONCE, HollowNodes
from situate.agent.node_objects import NodeShape, hollow_shapes


def story(plane: FakePlane, holds: Callable[[], object], nodes: int = 2) -> None:
    async def run() -> None:
        running = asyncio.create_task(HollowNodes(plane, hollow_shapes(nodes, 1, NodeShape())).run())
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
    assert sorted(plane.nodes_held) == ["node-1", "node-2"]


def test_a_node_that_was_held_to_be_lost_says_at_once_that_it_is_not() -> None:
    plane = FakePlane()
    lost: list[bool] = []

    def comes_back() -> bool:
        if not lost and len(plane.nodes_held) == 2:
            plane.think("Unknown", "node-1")
            lost.append(True)
            return False
        conditions = plane.nodes_held["node-1"]["status"]["conditions"] if lost else [{}]
        return bool(lost) and {"type": "Ready", "status": "True"}.items() <= conditions[-1].items()

    story(plane, comes_back)


def test_a_node_acknowledges_a_snapshot_when_it_knows_all_pods_in_it() -> None:
    plane = FakePlane()
    bound = pod()
    bound["spec"]["nodeName"] = "node-2"
    plane.put(bound)
    story(plane, lambda: any(one.acknowledged >= plane.version for one in plane.renewals))


def test_reports_name_the_binding_and_grow() -> None:
    plane = FakePlane()
    bound = pod(restartPolicy="Never")
    bound["spec"]["nodeName"] = "node-1"
    bound["metadata"]["annotations"] = {"hollow.situate.dev/run-for": "10ms"}
    plane.put(bound)
    story(plane, lambda: plane.phase() == "Succeeded")
    reports = [about.report for _, _, about in plane.reports if about.report]
    assert [about.version for _, _, about in plane.reports] == [1, 1]
    assert reports == sorted(set(reports))


def test_a_pod_that_its_snapshot_does_not_have_yet_waits() -> None:
    plane = FakePlane()
    bound = pod()
    bound["spec"]["nodeName"] = "node-1"
    plane.unlisted.append("p")
    plane.put(bound)
    waited: list[int] = []

    def runs() -> bool:
        waited.append(len(plane.reports))
        if len(waited) == 40:
            plane.unlisted.clear()
            plane.tell_snapshot()
        return plane.phase() == "Running"

    story(plane, runs)
    assert not any(waited[:40])


def test_a_node_that_another_agent_has_taken_is_let_go() -> None:
    plane = FakePlane()
    taken: list[bool] = []

    def is_left() -> bool:
        if not taken and len(plane.nodes_held) == 2:
            plane.terms["node-1"] = 7
            plane.tell_snapshot()
            taken.append(True)
        return bool(taken) and any(one.term == 1 and one.acknowledged for one in plane.renewals)

    story(plane, is_left)
    assert all(one.term == 1 for one in plane.renewals)


def test_a_node_with_many_pods_does_not_delay_another(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = FakePlane()
    order: list[str] = []
    report = plane.report_status

    async def slow(body: dict[str, Any], *more: Any) -> None:
        order.append(body["spec"]["nodeName"])
        await asyncio.sleep(0.002)
        await report(body, *more)

    monkeypatch.setattr(plane, "report_status", slow)
    for number in range(300):
        bound = pod(name=f"many-{number}")
        bound["spec"]["nodeName"] = "node-1"
        plane.put(bound)
    bound = pod(name="late")
    bound["spec"]["nodeName"] = "node-2"
    plane.put(bound)
    story(plane, lambda: "node-2" in order)
    assert len(order) < 2 * REPORTS_AT_ONCE + 2
