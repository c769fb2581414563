"""Hollow nodes: many in one process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from agent.world import FakePlane, pod
from situate.agent.control_plane import (
    NO_ORIGIN,
    AcquiredLease,
    ControlPlaneError,
    LeaseRenewal,
    NotServedError,
    SnapshotUpdate,
    StaleError,
    StatusOrigin,
    StatusReport,
)
from situate.agent.hollow_nodes import (
    ACK_S,
    BATCH,
    BATCHES_AT_ONCE,
    LATE_S,
    REGISTERED_AT_ONCE,
    REPORTS_AT_ONCE,
    RETRY_LAST_MS,
    RETRY_MS,
    TICK_S,
    HollowNodes,
    _address,
)
from situate.agent.hollow_pods import START_MS
from situate.agent.node_objects import NodeShape, hollow_shapes
from situate.core.reconcile.nodes.reports import AgentReport
from situate.sim.nodes.virtual_time import VirtualLoop, interposed

BATCHED = [False]


@pytest.fixture(autouse=True, params=[False, True], ids=["each alone", "in batches"])
def batched(request: pytest.FixtureRequest) -> bool:
    """Whether the control plane takes several writes at once. All that nodes do is the same, to the moment."""
    BATCHED[0] = request.param
    return BATCHED[0]


class Batches:
    """Takes several writes at once, and performs each as the plane does."""

    def __init__(self, plane: FakePlane) -> None:
        self._plane = plane

    async def renew_leases(self, renewals: Sequence[tuple[str, LeaseRenewal]]) -> list[ControlPlaneError | None]:
        return await asyncio.gather(*(_outcome(self._plane.renew_lease, *one) for one in renewals))

    async def report_statuses(self, reports: Sequence[StatusReport]) -> list[ControlPlaneError | None]:
        return await asyncio.gather(*(_outcome(self._plane.report_status, *one) for one in reports))


async def _outcome(call: Callable[..., Awaitable[None]], *arguments: Any) -> ControlPlaneError | None:
    try:
        await call(*arguments)
    except ControlPlaneError as error:
        return error
    return None


def hollow_nodes(plane: FakePlane, nodes: int) -> HollowNodes:
    batching = Batches(plane) if BATCHED[0] else None
    return HollowNodes(plane, hollow_shapes(nodes, 1, NodeShape()), batching=batching)


def story(plane: FakePlane, holds: Callable[[], object], nodes: int = 2) -> None:
    async def run() -> None:
        running = asyncio.create_task(hollow_nodes(plane, nodes).run())
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


def test_a_node_with_many_pods_does_not_delay_another(monkeypatch: pytest.MonkeyPatch, batched: bool) -> None:
    at_once = BATCH * BATCHES_AT_ONCE if batched else REPORTS_AT_ONCE
    plane = FakePlane()
    order: list[str] = []
    report = plane.report_status

    async def slow(body: dict[str, Any], *more: Any) -> None:
        order.append(body["spec"]["nodeName"])
        if len(order) <= at_once:
            await asyncio.sleep(0.5)  # until all pods are known
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
    assert order.index("node-2") <= at_once + 2


# -- to the moment, in virtual time ----------------------------------------------------------------------------------

RETRY_S = RETRY_MS / 1_000
STARTED_S = START_MS / 1_000


class TimedPlane(FakePlane):
    """Notes who called it when, and refuses what `refused` names."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.calls: list[tuple[str, str, float]] = []
        self.refused: dict[tuple[str, str], Exception] = {}
        self.hung: set[tuple[str, str]] = set()
        self.busy = self.busiest = 0
        self.takes_s = 0.0

    async def _called(self, what: str, name: str) -> None:
        self.calls.append((what, name, round(self.loop.now, 2)))
        if self.takes_s:
            self.busy += 1
            self.busiest = max(self.busiest, self.busy)
            await asyncio.sleep(self.takes_s)
            self.busy -= 1
        if (what, name) in self.hung:
            await asyncio.Event().wait()
        if (what, name) in self.refused:
            raise self.refused[what, name]

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0, *, fenced: bool = False) -> AcquiredLease:
        await self._called("acquire", node)
        return await super().acquire_lease(node, lease_s, least, fenced=fenced)

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        await self._called("register", node["metadata"]["name"])
        await super().register_node(node, report)

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        await self._called("renew", node)
        await super().renew_lease(node, renewal)

    async def report_status(self, pod: dict[str, Any], status: dict[str, Any], about: StatusOrigin = NO_ORIGIN) -> None:
        await self._called("report", pod["metadata"]["name"])
        await super().report_status(pod, status, about)

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        await self._called("delete", pod["metadata"]["name"])
        await super().delete_pod(pod)

    def play(self, seconds: float, *then: tuple[float, Callable[[], object]], nodes: int = 2) -> None:
        """Have hollow nodes for some time, in which things happen."""

        async def run() -> None:
            running = asyncio.create_task(hollow_nodes(self, nodes).run())
            for at, happens in then:
                self.loop.call_at(at, happens)
            await asyncio.sleep(seconds)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        try:
            with interposed(self.loop):
                self.loop.run_until_complete(run())
        finally:
            self.loop.close()

    def times(self, what: str, name: str = "node-1") -> list[float]:
        return [at for called, whom, at in self.calls if (called, whom) == (what, name)]

    def bind(self, name: str = "p", node: str = "node-1", **spec: Any) -> None:
        given = pod(name=name, **spec)
        given["spec"]["nodeName"] = node
        self.put(given)

    def bind_deleted(self, name: str) -> None:
        """A pod that is bound, and deleted already."""
        given = pod(name=name)
        given["spec"]["nodeName"] = "node-1"
        given["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
        self.put(given)


def test_every_node_is_renewed_once_in_an_interval_and_not_all_at_once() -> None:
    plane = TimedPlane()
    plane.play(41, nodes=4)
    for number in range(1, 5):
        expected = [2.5 * number + 10 * turn for turn in range(4)]
        found = plane.times("renew", f"node-{number}")
        assert found == [pytest.approx(at, abs=4 * TICK_S) for at in expected if at >= 5], "it was new before"


def test_a_status_that_takes_long_delays_neither_its_nodes_lease_nor_other_pods() -> None:
    plane = TimedPlane()
    plane.hung |= {("report", "slow"), ("report", "slower")}
    slow = [(at, partial(plane.bind, name)) for at, name in ((1.0, "slow"), (1.2, "slower"))]
    plane.play(42, *slow, (2.0, plane.bind), nodes=1)
    assert plane.times("report", "p")[0] == pytest.approx(2 + STARTED_S, abs=0.1)
    assert len(plane.times("renew")) >= 4


def test_deletions_that_take_long_delay_no_status() -> None:
    plane = TimedPlane()
    going = [f"going-{number}" for number in range(4)]
    plane.hung |= {("delete", name) for name in going}
    for at, name in enumerate(going):
        plane.loop.call_at(1 + at / 4, partial(plane.bind_deleted, name))
    plane.play(8, (4.0, plane.bind), nodes=1)
    assert [len(plane.times("delete", name)) for name in going] == [1] * 4
    assert plane.times("report", "p")[0] == pytest.approx(4 + STARTED_S, abs=0.1)


def test_an_acknowledgement_counts_as_a_renewal() -> None:
    plane = TimedPlane()
    plane.play(21, (9, plane.bind), nodes=1)
    first, second = plane.times("renew")
    assert 9 + ACK_S <= first <= 9 + ACK_S + 2 * TICK_S
    assert second == pytest.approx(20, abs=4 * TICK_S), "not at 10"
    assert plane.renewals[0].acknowledged == 2, "the report of the pod that runs made another version meanwhile"


@pytest.mark.parametrize("at, count", [(5.5 - ACK_S, 1), (4.5 - ACK_S, 2)], ids=["young", "old"])
def test_an_acknowledgement_in_the_second_half_of_the_interval_saves_the_renewal(at: float, count: int) -> None:
    plane = TimedPlane()
    plane.unlisted.append("p")  # so that there is one version only
    plane.play(12, (at, plane.tell_snapshot), nodes=1)
    assert len(plane.times("renew")) == count


def test_a_snapshot_is_acknowledged_again_soon_if_that_failed() -> None:
    plane = TimedPlane()
    plane.unlisted.append("p")  # so that there is one version only
    plane.refused["renew", "node-1"] = ControlPlaneError("busy")
    plane.play(4, (1, plane.tell_snapshot), (2, plane.refused.clear), nodes=1)
    first, *_, last = times = plane.times("renew")
    assert first == pytest.approx(1 + ACK_S, abs=2 * TICK_S)
    assert {round(after - before, 1) for before, after in pairwise(times)} <= {0.5, 0.6}
    assert 2 <= last <= 2 + RETRY_S + 2 * TICK_S, "and then no more"
    assert [one.acknowledged for one in plane.renewals] == [1]


def test_a_renewal_that_fails_without_anything_to_acknowledge_waits_for_its_turn() -> None:
    plane = TimedPlane()
    plane.refused["renew", "node-1"] = ControlPlaneError("busy")
    plane.play(25, nodes=1)
    assert plane.times("renew") == [pytest.approx(10, abs=2 * TICK_S), pytest.approx(20, abs=4 * TICK_S)]


def test_the_configuration_of_the_newest_snapshot_counts() -> None:
    plane = TimedPlane()
    plane.configuration = {"leaseDurationSeconds": 20, "renewIntervalSeconds": 4}
    plane.play(13, (1, plane.tell_snapshot), nodes=1)
    assert {one.lease_s for one in plane.renewals} == {20}
    assert plane.times("renew") == [pytest.approx(at, abs=4 * TICK_S) for at in (1 + ACK_S, 4, 8, 12)]


def test_a_node_that_cannot_register_leaves_the_others_alone_and_tries_again_later() -> None:
    plane = TimedPlane()
    plane.refused["register", "node-1"] = ControlPlaneError("not you")
    plane.play(2 * LATE_S + 3, (LATE_S + 2, plane.refused.clear))
    tries = [0, RETRY_S, 2 * RETRY_S + LATE_S, 3 * RETRY_S + LATE_S]
    last = 4 * RETRY_S + 2 * LATE_S
    assert plane.times("register") == [pytest.approx(at, abs=0.05) for at in (*tries, last)]
    assert plane.times("register", "node-2") == [0]
    assert sorted(plane.nodes_held) == ["node-1", "node-2"]
    assert plane.times("renew", "node-2")


def test_a_node_that_is_not_registered_is_not_renewed() -> None:
    plane = TimedPlane()
    plane.refused["register", "node-1"] = ControlPlaneError("not you")
    plane.play(21)
    assert plane.times("renew") == []
    assert plane.times("renew", "node-2")


def test_nothing_begins_before_a_node_is_registered() -> None:
    plane = TimedPlane()
    plane.away = True

    def come_back() -> None:
        plane.away = False

    plane.bind()
    plane.play(5, (2.2, come_back))
    assert plane.times("report", "p")[0] > max(plane.times("register")) > 2.2


def test_only_so_many_nodes_register_at_a_time() -> None:
    plane = TimedPlane()
    plane.takes_s = 0.01
    plane.play(1, nodes=3 * REGISTERED_AT_ONCE)
    assert plane.busiest == REGISTERED_AT_ONCE
    assert len(plane.nodes_held) == 3 * REGISTERED_AT_ONCE


def test_a_node_that_another_has_taken_says_nothing_more() -> None:
    plane = TimedPlane()

    def take() -> None:
        plane.terms["node-1"] = 7

    plane.play(45, (1, take), (15, lambda: plane.think("Unknown", "node-1")), (20, plane.bind))
    assert len(plane.times("renew")) == 1
    assert plane.times("register") == [0]
    assert len(plane.times("renew", "node-2")) >= 4


def test_a_node_that_is_held_to_be_lost_reports_until_it_is_heard() -> None:
    plane = TimedPlane()

    def lose() -> None:
        plane.think("Unknown", "node-1")
        plane.refused["register", "node-1"] = ControlPlaneError("busy")

    plane.play(5, (1, lose), (1.5, plane.refused.clear))
    at_first, *tries = plane.times("register")
    assert at_first == 0
    assert 1 <= tries[0] <= 1 + 2 * TICK_S
    assert 1.5 <= tries[-1] <= 1.5 + 2 * TICK_S
    assert plane.times("register", "node-2") == [0]


def test_a_node_that_is_ready_has_nothing_to_report() -> None:
    plane = TimedPlane()
    plane.play(5, (1, lambda: plane.think("True", "node-1")))
    assert plane.times("register") == [0]


def test_a_report_that_fails_is_tried_again_ever_later_until_it_succeeds() -> None:
    plane = TimedPlane()
    plane.refused["report", "p"] = ControlPlaneError("the store is full")
    plane.play(120, (1, plane.bind), (100, plane.refused.clear), nodes=1)
    gaps = [after - before for before, after in pairwise(plane.times("report", "p"))]
    most_s = RETRY_LAST_MS / 1_000
    assert gaps == [pytest.approx(min(RETRY_S * 2**tried, most_s), abs=0.02) for tried in range(1, len(gaps) + 1)]
    assert 100 <= plane.times("report", "p")[-1] <= 100 + most_s
    assert plane.phase() == "Running"


def test_a_report_that_came_too_late_is_not_repeated() -> None:
    plane = TimedPlane()
    plane.refused["report", "p"] = StaleError("another pod")
    plane.play(60, (1, plane.bind), nodes=1)
    assert plane.times("report", "p") == [pytest.approx(1 + STARTED_S, abs=0.02)]


def test_a_pod_that_is_deleted_goes_at_once_and_is_not_reported() -> None:
    plane = TimedPlane()
    plane.play(10, (1, plane.bind), (5, lambda: plane.ask_to_go("p")), nodes=1)
    assert len(plane.times("report", "p")) == 1
    assert plane.times("delete", "p") == [pytest.approx(5, abs=0.02)]
    assert plane.pods_held == {}


def test_a_pod_that_is_gone_before_it_ran_is_not_reported() -> None:
    plane = TimedPlane()
    plane.play(10, (1, plane.bind), (1.01, lambda: plane.drop("p")), nodes=1)
    assert plane.times("report", "p") == []


def test_another_pod_of_the_same_name_is_another_pod() -> None:
    plane = TimedPlane()

    def replace() -> None:
        given = pod(uid="another")
        given["spec"]["nodeName"] = "node-1"
        plane.put(given)

    plane.play(10, (1, plane.bind), (5, replace), nodes=1)
    assert [round(at) for at in plane.times("report", "p")] == [1, 5]
    assert plane.renewals[-1].acknowledged == plane.version


def test_a_node_does_not_acknowledge_pods_that_it_has_not_seen() -> None:
    plane = TimedPlane()
    given = pod()
    given["spec"]["nodeName"] = "node-1"

    def only_snapshot() -> None:
        plane.pods_held["p"] = given
        plane.tell_snapshot()

    plane.play(8, (1, only_snapshot), (5, lambda: plane._tell(given)), nodes=1)
    assert plane.times("renew")[0] > 5


def test_a_pod_that_was_gone_has_to_be_seen_again() -> None:
    plane = TimedPlane()
    given = pod()
    given["spec"]["nodeName"] = "node-1"
    versions: list[int] = []

    def only_snapshot() -> None:
        plane.pods_held["p"] = given
        plane.tell_snapshot()
        versions.append(plane.version)

    plane.play(9, (1, plane.bind), (3, lambda: plane.drop("p")), (5, only_snapshot), nodes=1)
    assert max(one.acknowledged for one in plane.renewals) == versions[0] - 1


def test_pods_of_other_nodes_are_left_alone() -> None:
    plane = TimedPlane()
    plane.play(5, (1, lambda: plane.bind(node="elsewhere")))
    assert plane.times("report", "p") == []


def test_a_watch_that_ends_begins_again() -> None:
    plane = TimedPlane()

    def come_back() -> None:
        plane.away = False

    plane.play(10, (2, plane.cut), (3.2, come_back), (6, plane.bind), nodes=1)
    assert plane.times("report", "p") == [pytest.approx(6 + STARTED_S, abs=0.02)]


def test_a_watch_that_cannot_begin_is_tried_again_at_even_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = TimedPlane()
    tried: list[float] = []
    watch = plane.watch_nodes

    def noted(node: str = "") -> Any:
        tried.append(plane.loop.now)
        return watch(node)

    monkeypatch.setattr(plane, "watch_nodes", noted)
    plane.play(5, (1, plane.cut), nodes=1)
    assert len(tried) == 8, "the first one, and every half second since"
    assert [after - before for before, after in pairwise(tried[1:])] == [pytest.approx(RETRY_S, abs=1e-4)] * 6


def test_an_odd_object_does_not_end_a_watch() -> None:
    plane = TimedPlane()
    odd = pod(name="odd")
    del odd["spec"]["nodeName"], odd["metadata"]["uid"]
    odd["spec"] = "none"
    plane.play(5, (1, lambda: plane._tell(odd)), (2, plane.bind), nodes=1)
    assert plane.times("report", "p")


def test_without_snapshots_pods_run_as_they_are_seen() -> None:
    class Older(TimedPlane):
        serves_snapshots = False

        async def watch_snapshots(self, node: str = "", since: int = 0) -> AsyncIterator[SnapshotUpdate]:
            if not self.serves_snapshots:
                raise NotServedError("unknown kind")
            yield SnapshotUpdate(node, since, None)

    plane = Older()
    plane.play(5, (1, plane.bind), nodes=1)
    assert plane.times("report", "p") == [pytest.approx(1 + STARTED_S, abs=0.02)]
    assert plane.reports[0][2].version is None


def test_addresses_of_nodes() -> None:
    numbers = (0, 1, 255, 256, 65_535, 65_536, (63 << 16) + 5)
    expected = ["10.0.0.0", "10.0.0.1", "10.0.0.255", "10.0.1.0", "10.0.255.255", "10.1.0.0", "10.63.0.5"]
    assert [_address(number) for number in numbers] == expected
