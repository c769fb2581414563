"""A node's lease: taken in a term of its own, renewed, acknowledged with; and what happens without it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.world import NODE, FakePlane, story, until
from situate.agent.clock import REAL, Clock
from situate.agent.control_plane import LeaseLostError, LeaseRenewal
from situate.agent.desired_state import NodeConfiguration
from situate.agent.lease import ACK_S, FENCE, RETRY_S, LeaseSettings, NodeLease
from situate.core.reconcile.nodes.fencing import STOP_MS, agent_stops_ms, controller_waits_ms
from situate.core.reconcile.nodes.reports import AgentReport
from situate.sim.nodes.virtual_time import VirtualLoop

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
    first.pods_saved()
    found = json.loads((tmp_path / FENCE).read_text())
    found |= {name: found["renewed"] + value if isinstance(value, float) else value for name, value in change.items()}
    (tmp_path / FENCE).write_text(json.dumps(found))
    again = lease_of(FakePlane(), tmp_path)
    assert again.is_closed() == closed
    assert again.unbroken == (not closed), "pods of a checkpoint begin only if nobody else can have been given them"


def test_an_agent_whose_predecessor_had_not_saved_the_pods_that_it_listed_waits_for_the_list(tmp_path: Path) -> None:
    """The predecessor's checkpoint may be older than the fence: others may have the pods in it."""
    first = lease_of(FakePlane(), tmp_path)
    while_kept(first, first.held.wait)
    again = lease_of(FakePlane(), tmp_path)
    assert not again.is_closed()
    assert not again.unbroken


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


# -- to the second, in virtual time ------------------------------------------------------------------------------------

CONFIGURATION = NodeConfiguration(40, 10)
CLOSES_S = agent_stops_ms(40_000) / 1_000
NEARLY = 0.01


class TimedPlane(FakePlane):
    """Notes when it was called."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self.loop = loop
        self.asked: list[tuple[str, float, int]] = []

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0, *, fenced: bool = False) -> Any:
        self.asked.append(("acquire", round(self.loop.now, 2), least))
        return await super().acquire_lease(node, lease_s, least, fenced=fenced)

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        self.asked.append(("renew", round(self.loop.now, 2), renewal.acknowledged))
        await super().renew_lease(node, renewal)


class TimedLease:
    """A lease in virtual time, kept from the beginning."""

    def __init__(self, loop: VirtualLoop, directory: Path, fenced: bool) -> None:
        self.loop = loop
        self.plane = TimedPlane(loop)
        self.said: list[tuple[float, str]] = []
        self.directory = directory
        clock = Clock(monotonic=lambda: 1_000 + loop.now, sleep=asyncio.sleep)
        place = LeaseSettings(NODE, directory, "boot", fenced)
        self.lease = NodeLease(self.plane, place, clock, CONFIGURATION, self._changed)

    def _changed(self, text: str) -> None:
        self.said.append((round(self.loop.now, 2), text))

    def keep(self, seconds: float, *then: tuple[float, Callable[[], object]]) -> list[tuple[str, float, int]]:
        """Keep it for some time, in which things happen; return what the control plane was asked for."""

        async def run() -> None:
            for at, happens in then:
                self.loop.call_at(at, happens)
            keeping = asyncio.create_task(self.lease.run())
            await asyncio.sleep(seconds)
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

        self.loop.run_until_complete(run())
        return self.plane.asked

    def come_back(self) -> None:
        self.plane.away = False


@contextmanager
def timed(directory: Path, *, fenced: bool = True) -> Iterator[TimedLease]:
    loop = VirtualLoop()
    try:
        yield TimedLease(loop, directory, fenced)
    finally:
        loop.close()


def test_it_is_renewed_once_in_each_interval(tmp_path: Path) -> None:
    with timed(tmp_path) as kept:
        assert kept.keep(25) == [("acquire", 0, 1), ("renew", 10, 0), ("renew", 20, 0)]


def test_a_version_is_acknowledged_a_moment_later_and_only_once(tmp_path: Path) -> None:
    with timed(tmp_path) as kept:
        again = lambda: kept.lease.acknowledge(3)  # noqa: E731
        assert kept.keep(9, (2, again), (4, again)) == [("acquire", 0, 1), ("renew", 2 + ACK_S, 3)]


def test_the_same_configuration_again_is_no_reason_to_renew(tmp_path: Path) -> None:
    with timed(tmp_path) as kept:
        kept.keep(9, (2, lambda: kept.lease.configure(NodeConfiguration(40, 10))))
        assert kept.plane.renewals == []


def test_the_interval_of_a_new_configuration_counts_at_once(tmp_path: Path) -> None:
    with timed(tmp_path) as kept:
        asked = kept.keep(9, (2, lambda: kept.lease.configure(NodeConfiguration(15, 5))))
        assert [at for _, at, _ in asked] == [0, 2 + ACK_S, 7 + ACK_S]


def test_a_control_plane_that_is_away_is_asked_again_every_second(tmp_path: Path) -> None:
    with timed(tmp_path) as kept:
        kept.plane.away = True
        assert kept.keep(3.5, (2.5, kept.come_back)) == [("acquire", RETRY_S * number, 1) for number in range(4)]
        assert kept.lease.held.is_set()
    with timed(tmp_path / "none") as kept:
        asked = kept.keep(13.5, (9, kept.plane.cut), (10.5, kept.come_back))
        # A renewal that failed is due at once, and what is due at once waits for what may come meanwhile.
        assert [at for _, at, _ in asked] == [0, 10, 10 + RETRY_S + ACK_S]


def test_the_fence_closes_on_time_and_opens_with_the_next_renewal(tmp_path: Path) -> None:
    closed, opened = "The lease has expired: stopping all pods", "Pods may run here again"
    with timed(tmp_path) as kept:
        kept.keep(60, (11, kept.plane.cut), (50, kept.come_back))
        assert [text for _, text in kept.said] == [closed, opened]
        (closed_at, _), (opened_at, _) = kept.said
        assert closed_at == pytest.approx(10 + CLOSES_S, abs=NEARLY)
        assert 50 <= opened_at <= 50 + RETRY_S + 2 * ACK_S
        assert not kept.lease.is_closed()


def test_a_renewal_of_a_shorter_lease_without_an_answer_shortens_the_time(tmp_path: Path) -> None:
    """The control plane may have accepted it."""
    with timed(tmp_path) as kept:
        kept.keep(30, (1, kept.plane.cut), (2, lambda: kept.lease.configure(NodeConfiguration(15, 5))))
        assert [at for at, _ in kept.said] == [pytest.approx(agent_stops_ms(15_000) / 1_000, abs=NEARLY)]


def test_a_shorter_lease_without_an_answer_is_in_the_file_for_the_shims(tmp_path: Path) -> None:
    with timed(tmp_path) as kept:
        kept.keep(4, (1, kept.plane.cut), (2, lambda: kept.lease.configure(NodeConfiguration(15, 5))))
    written = json.loads((tmp_path / FENCE).read_text())
    assert (written["term"], written["lease_s"]) == (1, 15)
    assert written["dead_by"] == pytest.approx(1_000 + agent_stops_ms(15_000) / 1_000 + STOP_MS / 1_000, abs=NEARLY)


def test_the_file_says_until_when_the_pods_may_run(tmp_path: Path) -> None:
    with timed(tmp_path) as kept:
        kept.keep(15)
    assert json.loads((tmp_path / FENCE).read_text()) == {
        "term": 1,
        "boot": "boot",
        "renewed": pytest.approx(1_010, abs=NEARLY),
        "lease_s": 40,
        "pods_known": False,
        "dead_by": pytest.approx(1_010 + CLOSES_S + STOP_MS / 1_000, abs=NEARLY),
    }


@pytest.mark.parametrize("before", [1, 7], ids=["the first agent of the node", "a later one"])
def test_who_takes_the_lease_from_another_waits_exactly_until_that_one_has_stopped(before: int, tmp_path: Path) -> None:
    waits_s = controller_waits_ms(15_000) / 1_000
    with timed(tmp_path) as kept:
        kept.plane.terms[NODE], kept.plane.lease_s = before, 15
        kept.keep(waits_s - 0.5)
        assert kept.lease.is_closed()
    with timed(tmp_path / "none") as kept:
        kept.plane.terms[NODE], kept.plane.lease_s = before, 15
        kept.keep(waits_s + 0.5)
        assert not kept.lease.is_closed()
        assert [at for at, _ in kept.said] == [0, pytest.approx(waits_s, abs=NEARLY)]


def test_nothing_is_promised_before_another_agent_must_have_stopped(tmp_path: Path) -> None:
    with timed(tmp_path) as kept:
        kept.plane.terms[NODE], kept.plane.lease_s = 7, 15
        kept.keep(25)
        assert [one.fenced for one in kept.plane.renewals] == [False, True]
    with timed(tmp_path / "none", fenced=False) as kept:
        kept.keep(15)
        assert [one.fenced for one in kept.plane.renewals] == [False]


def test_who_is_not_fenced_does_not_wait_for_another(tmp_path: Path) -> None:
    with timed(tmp_path, fenced=False) as kept:
        kept.plane.terms[NODE] = 7
        kept.keep(100, (11, kept.plane.cut))
        assert not kept.lease.is_closed()
        assert kept.said == []


def test_the_next_agent_asks_for_a_later_term_than_the_last_one_had(tmp_path: Path) -> None:
    """Also of a control plane that has forgotten the term."""
    with timed(tmp_path) as kept:
        kept.plane.terms[NODE] = 7
        kept.keep(1)
    with timed(tmp_path) as again:
        assert again.keep(1)[0] == ("acquire", 0, 9)
        assert again.lease.term == 9


@pytest.mark.parametrize(
    "written, closes_s",
    [
        pytest.param({"renewed": 990.0, "lease_s": 40}, CLOSES_S - 10, id="it has what is left of the time"),
        pytest.param({"renewed": 990.0, "lease_s": 20}, 4, id="a shorter lease counts"),
        pytest.param({"renewed": 990.0, "lease_s": 400}, CLOSES_S - 10, id="a longer one does not"),
        pytest.param({"renewed": 2_000.0, "lease_s": 40}, CLOSES_S, id="nor does a time to come"),
    ],
)
def test_the_next_agent_has_the_time_that_is_left(written: dict[str, Any], closes_s: float, tmp_path: Path) -> None:
    (tmp_path / FENCE).write_text(json.dumps({"term": 1, "boot": "boot", **written}))
    with timed(tmp_path) as kept:
        kept.plane.away = True
        kept.keep(closes_s + 1)
        assert [at for at, _ in kept.said] == [pytest.approx(closes_s, abs=NEARLY)]


def test_a_fence_that_closed_while_the_agent_did_not_run_is_noticed_before_it_opens(tmp_path: Path) -> None:
    now, said = 0.0, list[str]()
    clock = Clock(lambda: now, REAL.wall_ns, REAL.sleep)
    place = LeaseSettings(NODE, tmp_path, "boot", True)
    lease = NodeLease(FakePlane(), place, clock, NodeConfiguration(40, 10), said.append)
    now = agent_stops_ms(40_000) / 1_000 + 1
    lease._accepted(now - 5, 40)
    assert said == ["The lease has expired: stopping all pods", "Pods may run here again"]
