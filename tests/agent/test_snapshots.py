"""How an agent follows its snapshot: in versions that never go back, kept on disk, acknowledged when they are."""

import asyncio
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from agent.world import NODE, FakePlane, agent_of, container, pod, processes_with, running, shell, story, until
from situate.agent.agent import AgentError
from situate.agent.checkpoint import load
from situate.agent.control_plane import ControlPlaneError, NotServedError, SnapshotUpdate
from situate.agent.desired_state import NodeConfiguration

QUICK = NodeConfiguration(3, 1)


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid.uuid4().hex}"


def sleeper(mark: str) -> dict[str, Any]:
    return container("c", sys.executable, "-c", "import time; time.sleep(100)", mark)


def known(tmp_path: Path) -> int:
    """The version that is on disk; 0: none yet."""
    held = load(tmp_path / "pods.last", NODE)
    return 0 if held is None or held.snapshot is None else held.snapshot.version


def test_a_report_says_which_binding_it_is_about_and_which_report_it_is(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell("exit 0"), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase() == "Succeeded")

    story(told)
    assert {about.version for _, _, about in plane.reports} == {1}
    reports = [about.report for _, _, about in plane.reports]
    assert reports == sorted(set(reports), key=lambda one: one or (0, 0))


def test_a_version_is_acknowledged_once_its_pods_are_known_and_it_is_on_disk(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell("sleep 100")))
        async with running(agent_of(plane, tmp_path, ends_pods=True)):
            await until(lambda: plane.renewals and plane.renewals[-1].acknowledged == plane.version)
            assert known(tmp_path) == plane.version

    story(told)


def test_a_pod_begins_when_its_snapshot_has_it(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.unlisted.append("p")
        plane.put(pod(shell("sleep 100")))
        plane.put(pod(shell("exit 0"), name="other", restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path, ends_pods=True)):
            await until(lambda: plane.phase("other") == "Succeeded")
            assert plane.phase() == "Pending"
            plane.unlisted.clear()
            plane.tell_snapshot()
            await until(plane.is_ready)

    story(told)


def test_an_older_snapshot_is_refused_also_by_the_next_agent(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.version = 100
        plane.put(pod(shell("sleep 100")))
        async with running(agent_of(plane, tmp_path)) as agent:
            await until(lambda: plane.is_ready() and agent.pods.desired.version == plane.version)
            newest = plane.version
            plane.tell_snapshot(50)
            plane.version = newest
            plane.put(pod(shell("exit 0"), name="later", restartPolicy="Never"))
            await until(lambda: plane.phase("later") == "Succeeded")
            await until(lambda: known(tmp_path) == plane.version)
        newest, plane.version = plane.version, 20  # a control plane that has forgotten
        async with running(agent_of(plane, tmp_path, ends_pods=True)) as agent:
            await until(lambda: len(plane.asked_since) == 2 and agent.ready.is_set())
            plane.tell_snapshot()
            await asyncio.sleep(0.1)
            assert agent.pods.desired.version == newest
        assert plane.asked_since == [
            0,
            0,
        ]  # the first of each life is pulled whole: what is on disk may be older than that

    story(told)


def test_what_is_known_of_another_cluster_does_not_count(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.version = 100
        plane.put(pod(shell("exit 0"), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path, cluster="one")):
            await until(lambda: plane.phase() == "Succeeded" and known(tmp_path) > 100)
        other = FakePlane()
        other.put(pod(shell("exit 0"), name="q", restartPolicy="Never"))
        async with running(agent_of(other, tmp_path, cluster="two")):
            await until(lambda: other.phase("q") == "Succeeded")

    story(told)


def test_on_a_server_without_snapshots_pods_begin_as_they_are_told_of(tmp_path: Path) -> None:
    class Plain(FakePlane):
        async def watch_snapshots(self, node: str = "", since: int = 0) -> Any:
            for read in (NotServedError("no such kind"),):
                raise read
            yield SnapshotUpdate("", 0, None)

    plane = Plain()

    async def told() -> None:
        plane.put(pod(shell("exit 0"), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase() == "Succeeded")

    story(told)
    assert {about.version for _, _, about in plane.reports} == {None}


def test_a_node_that_is_held_to_be_lost_says_at_once_that_it_is_not(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        async with running(agent_of(plane, tmp_path)):
            plane.think("Unknown")
            await until(lambda: plane.nodes_held[NODE]["status"]["conditions"][-1]["status"] == "True")

    story(told)
    assert [(one.term, one.number) for one in plane.node_reports if one] == [(1, 1), (1, 2)]


def test_an_agent_without_its_lease_ends_its_pods_and_begins_them_again_with_it(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark), terminationGracePeriodSeconds=60))
        async with running(agent_of(plane, tmp_path, configuration=QUICK, ends_pods=True)):
            plane.configuration = {"leaseDurationSeconds": 3, "renewIntervalSeconds": 1}
            plane.tell_snapshot()
            await until(plane.is_ready)
            plane.cut()
            await until(lambda: not processes_with(mark))
            plane.away = False
            await until(lambda: plane.state()["restartCount"] >= 1 and plane.is_ready())

    story(told)


def test_containers_whose_agent_was_killed_end_when_its_lease_has_run_out(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()
    plane.configuration = {"leaseDurationSeconds": 4, "renewIntervalSeconds": 1}

    async def told() -> None:
        plane.put(pod(sleeper(mark)))
        agent = agent_of(plane, tmp_path, configuration=NodeConfiguration(4, 1))
        async with running(agent):
            await until(lambda: plane.is_ready() and plane.lease_s == 4)
        assert processes_with(mark)  # the agent is gone, and they are not
        await until(lambda: not processes_with(mark))
        async with running(agent_of(plane, tmp_path, ends_pods=True)):
            await until(lambda: plane.state()["restartCount"] >= 1 and plane.is_ready())
            assert plane.state()["lastState"]["terminated"]["reason"] == "Fenced"

    story(told)


def test_an_agent_whose_node_another_has_taken_ends_its_pods_and_says_so(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark)))
        agent = agent_of(plane, tmp_path)
        working = asyncio.create_task(agent.run())
        await until(plane.is_ready)
        plane.terms[NODE] += 1
        plane.tell_snapshot()
        with pytest.raises(AgentError, match="another agent has taken this node"):
            await working
        assert not processes_with(mark)

    story(told)


def test_a_control_plane_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    class Late(FakePlane):
        refusals = 2

        async def watch_snapshots(self, node: str = "", since: int = 0) -> Any:
            if self.refusals:
                self.refusals -= 1
                raise ControlPlaneError("not now")
            async for read in super().watch_snapshots(node, since):
                yield read

    plane = Late()

    async def told() -> None:
        plane.put(pod(shell("exit 0"), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase() == "Succeeded")

    story(told)


def test_a_pod_is_not_refused_for_what_the_node_was(tmp_path: Path) -> None:
    """Else whoever binds, who knows better, and the agent go on for ever."""
    plane = FakePlane()

    async def told() -> None:
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: NODE in plane.nodes_held)
            plane.put(pod(shell("exit 0"), name="before", restartPolicy="Never"))
            await until(lambda: plane.phase("before") == "Succeeded")
            plane.tell_late(taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}])
            await asyncio.sleep(0)
            plane.put(pod(shell("exit 0"), restartPolicy="Never"))
            await until(lambda: plane.phase() in ("Succeeded", "Failed"))

    story(told)
    assert plane.phase() == "Succeeded"
