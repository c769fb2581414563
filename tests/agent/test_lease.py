"""A node's lease: taken in a term of its own, renewed, acknowledged with; and what happens without it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.world import NODE, FakePlane, story, until
from situate.agent.clock import REAL
from situate.agent.control_plane import LeaseLostError
from situate.agent.desired_state import NodeConfiguration
from situate.agent.lease import FENCE, LeaseSettings, NodeLease
from situate.core.reconcile.nodes.reports import AgentReport

QUICK = NodeConfiguration(3, 1)
"""A lease of three seconds closes the fence after 0.4."""


def lease_of(plane: FakePlane, directory: Path, said: list[str] | None = None, **more: Any) -> NodeLease:
    place = LeaseSettings(NODE, directory, more.pop("boot", "boot"), more.pop("fenced", True))
    return NodeLease(plane, place, REAL, more.pop("configuration", QUICK), (said if said is not None else []).append)


def while_kept(lease: NodeLease, told: Callable[[], Awaitable[object]]) -> None:
    async def run() -> None:
        keeping = asyncio.create_task(lease.run())
        try:
            await told()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    story(run)


def test_a_version_is_acknowledged_with_all_that_came_meanwhile_and_never_an_older_one(tmp_path: Path) -> None:
    plane = FakePlane()
    lease = lease_of(plane, tmp_path, configuration=NodeConfiguration(40, 10))

    async def told() -> None:
        await lease.held.wait()
        for version in (5, 7, 6):
            lease.acknowledge(version)
        await until(lambda: plane.renewals)

    while_kept(lease, told)
    assert [(one.term, one.lease_s, one.acknowledged) for one in plane.renewals] == [(1, 40, 7)]


def test_reports_have_the_term_and_grow(tmp_path: Path) -> None:
    lease = lease_of(FakePlane(), tmp_path)
    assert lease.next_report() is None
    while_kept(lease, lease.held.wait)
    assert [lease.next_report() for _ in range(2)] == [AgentReport(1, 1), AgentReport(1, 2)]


def test_another_configuration_is_used_from_the_next_renewal_which_is_now(tmp_path: Path) -> None:
    plane = FakePlane()
    lease = lease_of(plane, tmp_path, configuration=NodeConfiguration(40, 10))

    async def told() -> None:
        await lease.held.wait()
        lease.configure(NodeConfiguration(15, 5))
        await until(lambda: plane.renewals)

    while_kept(lease, told)
    assert plane.renewals[0].lease_s == 15


def test_the_fence_closes_without_renewals_and_opens_with_one(tmp_path: Path) -> None:
    plane, said = FakePlane(), list[str]()
    lease = lease_of(plane, tmp_path, said)

    async def told() -> None:
        await lease.held.wait()
        plane.cut()
        await until(lease.is_closed)
        plane.away = False
        await until(lambda: len(said) == 2)
        assert not lease.is_closed()

    while_kept(lease, told)
    assert said == ["The lease has expired: stopping all pods", "Pods may run here again"]


def test_who_is_not_fenced_goes_on(tmp_path: Path) -> None:
    plane = FakePlane()
    lease = lease_of(plane, tmp_path, fenced=False, configuration=NodeConfiguration(2, 1))

    async def told() -> None:
        await lease.held.wait()
        plane.cut()
        assert not lease.is_closed()

    while_kept(lease, told)
    assert not (tmp_path / FENCE).exists()


def test_a_lease_that_another_has_taken_is_over(tmp_path: Path) -> None:
    plane = FakePlane()
    lease = lease_of(plane, tmp_path, configuration=NodeConfiguration(40, 10))

    async def run() -> None:
        keeping = asyncio.create_task(lease.run())
        await lease.held.wait()
        plane.terms[NODE] += 1
        lease.acknowledge(1)
        with pytest.raises(BaseExceptionGroup) as raised:
            await keeping
        assert raised.group_contains(LeaseLostError)

    story(run)


@pytest.mark.parametrize(
    "change, closed",
    [
        pytest.param({}, False, id="one that begins again at once may go on"),
        pytest.param({"renewed": -100.0}, True, id="one that was away for too long may not"),
        pytest.param({"boot": "another"}, True, id="one after a restart of the machine may not: times say nothing"),
        pytest.param({"renewed": "x"}, True, id="one that cannot read its file may not"),
    ],
)
def test_an_agent_has_no_more_time_than_the_last_one_left_it(change: Any, closed: bool, tmp_path: Path) -> None:
    first = lease_of(FakePlane(), tmp_path)
    while_kept(first, first.held.wait)
    found = json.loads((tmp_path / FENCE).read_text())
    found |= {name: found["renewed"] + value if isinstance(value, float) else value for name, value in change.items()}
    (tmp_path / FENCE).write_text(json.dumps(found))
    again = lease_of(FakePlane(), tmp_path)
    assert again.is_closed() == closed
    assert again.unbroken == (not closed), "pods of a checkpoint begin only if nobody else can have been given them"


def test_an_agent_without_a_file_knows_nothing_of_the_last_one_and_an_unfenced_one_need_not(tmp_path: Path) -> None:
    assert not lease_of(FakePlane(), tmp_path).unbroken
    assert lease_of(FakePlane(), tmp_path, fenced=False).unbroken


def test_the_same_agent_again_need_not_wait_and_another_waits_until_the_first_must_have_stopped(tmp_path: Path) -> None:
    plane = FakePlane()
    for directory, closed in ((tmp_path, False), (tmp_path, False), (tmp_path / "other", True)):
        directory.mkdir(exist_ok=True)
        lease = lease_of(plane, directory)
        while_kept(lease, lease.held.wait)
        assert lease.is_closed() == closed
    assert plane.terms[NODE] == 3


def test_who_waits_for_another_to_stop_is_let_in_afterwards(tmp_path: Path) -> None:
    plane = FakePlane()
    plane.terms[NODE], plane.lease_s = 4, 1
    said = list[str]()
    lease = lease_of(plane, tmp_path, said, configuration=NodeConfiguration(40, 10))

    async def told() -> None:
        await lease.held.wait()
        assert lease.is_closed()
        await until(lambda: said and not lease.is_closed())

    while_kept(lease, told)
    assert lease.term == 5
