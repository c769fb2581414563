"""Leader election over an API server: its faults, its watches, its events. What holds anywhere: loop/test_election."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kube.fake_server import FakeServer, Object
from situate.kube.client import Client
from situate.kube.lease_store import ApiLeaseStore
from situate.loop.election import ElectionRules, Elector

LEASES = "/apis/coordination.k8s.io/v1/leases"
RULES = ElectionRules(lease_s=15, renew_deadline_s=10, retry_s=0.01)


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Candidates:
    """A server, a clock that all share, and candidates."""

    def __init__(self, server: FakeServer, client: Client) -> None:
        self.server, self.client, self.clock = server, client, Clock()
        self.candidates: list[Elector] = []

    def candidate(self, name: str = "me", rules: ElectionRules = RULES) -> Elector:
        store = ApiLeaseStore(self.client, rules.namespace, rules.name)
        self.candidates.append(Elector(store, rules, name, clock=self.clock, dice=lambda: 0.0))
        return self.candidates[-1]

    def put(self, holder: str, seconds: int = 15, renewed: str = "2020-01-01T00:00:00.000000Z", **spec: Any) -> Object:
        record = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed, **spec}
        lease = {"metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": record}
        return self.server.put(LEASES, lease)

    @property
    def spec(self) -> dict[str, Any]:
        found = self.server.get(LEASES, "kube-scheduler", "kube-system")
        assert found is not None
        spec: dict[str, Any] = found["spec"]
        return spec


def play(scenario: Callable[[Candidates], Awaitable[None]]) -> None:
    async def run() -> None:
        async with FakeServer() as server, Client(server.access(), qps=-1) as client, asyncio.timeout(10):
            world = Candidates(server, client)
            await scenario(world)
            for one in world.candidates:
                await one.close()

    asyncio.run(run())


async def settled(check: Callable[[], object]) -> None:
    """Wait for what happens by itself."""
    while not check():
        await asyncio.sleep(0.002)


def test_a_lease_that_nobody_has_made_is_made() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        assert not lease.may_write()
        await lease.acquire()
        assert lease.may_write()
        assert {key: world.spec[key] for key in ("holderIdentity", "leaseDurationSeconds", "leaseTransitions")} == {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
        }
        assert world.spec["acquireTime"] == world.spec["renewTime"]

    play(scenario)


def test_a_lease_of_somebody_else_is_theirs_until_it_ran_out_by_our_clock_whatever_its_times_say() -> None:
    async def scenario(world: Candidates) -> None:
        world.put("other", renewed="1999-01-01T00:00:00.000000Z", leaseTransitions=4)
        lease = world.candidate()
        trying = asyncio.create_task(lease.acquire())
        await settled(lambda: lease.leader == "other")
        world.clock.now += 14.9
        await asyncio.sleep(0.05)
        assert not trying.done()
        assert lease.term() is None
        world.clock.now += 0.2
        await trying
        assert (world.spec["holderIdentity"], world.spec["leaseTransitions"]) == ("me", 5)
        assert lease.term() == 5

    play(scenario)


def test_each_renewal_that_is_seen_starts_the_time_anew() -> None:
    async def scenario(world: Candidates) -> None:
        world.put("other")
        lease = world.candidate(rules=ElectionRules(retry_s=3))
        trying = asyncio.create_task(lease.acquire())
        await settled(lambda: lease.leader == "other")
        await world.server.watching(LEASES)
        world.clock.now += 10
        version = world.put("other", renewed="2020-01-01T00:00:10.000000Z")["metadata"]["resourceVersion"]
        await settled(lambda: lease._record.lease and lease._record.lease["metadata"]["resourceVersion"] == version)
        world.clock.now += 10
        await asyncio.sleep(0.02)
        assert not trying.done()
        assert world.spec["holderIdentity"] == "other"
        trying.cancel()

    play(scenario)


def test_a_lease_that_is_released_is_taken_at_once_without_waiting_for_the_next_attempt() -> None:
    async def scenario(world: Candidates) -> None:
        world.put("other")
        lease = world.candidate(rules=ElectionRules(retry_s=3))
        trying = asyncio.create_task(lease.acquire())
        await settled(lambda: lease.leader == "other")
        await world.server.watching(LEASES)
        world.put("", seconds=1)
        async with asyncio.timeout(1):
            await trying
        assert world.spec["holderIdentity"] == "me"

    play(scenario)


def test_without_permission_to_watch_it_is_asked_for_now_and_then() -> None:
    async def scenario(world: Candidates) -> None:
        world.server.fault("GET", "watch=", status=403, reason="Forbidden", times=1_000)
        world.put("other")
        lease = world.candidate()
        trying = asyncio.create_task(lease.acquire())
        await settled(lambda: lease.leader == "other")
        world.put("", seconds=1)
        world.clock.now += 1
        await trying
        assert len([one for one in world.server.asked("GET") if "watch" in one.query]) == 1

    play(scenario)


def test_of_two_candidates_one_leads() -> None:
    async def scenario(world: Candidates) -> None:
        one, two = world.candidate("one"), world.candidate("two")
        world.put("", seconds=1)
        tasks = [asyncio.create_task(one.acquire()), asyncio.create_task(two.acquire())]
        await settled(lambda: one.may_write() or two.may_write())
        await asyncio.sleep(0.05)
        assert one.may_write() is not two.may_write()
        assert world.spec["holderIdentity"] == ("one" if one.may_write() else "two")
        for task in tasks:
            task.cancel()

    play(scenario)


def test_the_right_to_write_ends_with_the_renew_deadline_even_if_nobody_was_there_to_notice() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        world.clock.now += 9.99
        assert lease.may_write()
        world.clock.now += 0.01
        assert not lease.may_write()

    play(scenario)


def test_a_process_that_was_stopped_too_long_loses_the_lease_without_asking() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        world.clock.now += 11
        await lease.hold()
        assert not lease.may_write()
        assert not world.server.asked("PUT")

    play(scenario)


def test_holding_renews() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        acquired = world.spec["acquireTime"]
        holding = asyncio.create_task(lease.hold())
        for _ in range(4):
            world.clock.now += 6
            renewed = world.spec["renewTime"]
            await settled(lambda: world.spec["renewTime"] != renewed)  # noqa: B023
            await settled(lease.may_write)
        assert not holding.done()
        assert (world.spec["acquireTime"], world.spec["leaseTransitions"]) == (acquired, 0)
        holding.cancel()

    play(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 409, "reason": "Conflict"}, id="a conflict"),
        pytest.param({"drop": "before"}, id="a request that is lost"),
        pytest.param({"drop": "after"}, id="an answer that is lost"),
        pytest.param({"status": 500, "done": True}, id="an error after it was done"),
    ],
)
def test_after_a_renewal_went_wrong_the_lease_is_read_and_renewed(fault: dict[str, Any]) -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        world.server.fault("PUT", "/leases/", **fault)
        holding = asyncio.create_task(lease.hold())
        await settled(lambda: len(world.server.asked("PUT")) >= 2)
        world.clock.now += 5
        await asyncio.sleep(0.03)
        assert not holding.done()
        assert lease.may_write()
        assert world.spec["holderIdentity"] == "me"
        holding.cancel()

    play(scenario)


def test_a_lease_that_cannot_be_renewed_is_lost_at_the_deadline_and_not_before() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        world.server.fault("PUT", "/leases/", status=403, reason="Forbidden", times=1_000)
        holding = asyncio.create_task(lease.hold())
        world.clock.now += 9.9
        await settled(lambda: len(world.server.asked("PUT")) >= 2)
        assert lease.may_write()
        assert not holding.done()
        world.clock.now += 0.2
        assert not lease.may_write()
        await holding

    play(scenario)


def test_a_lease_that_somebody_else_took_is_lost_at_once() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        world.put("other")
        await lease.hold()
        assert not lease.may_write()
        assert world.spec["holderIdentity"] == "other"

    play(scenario)


def test_a_clean_stop_leaves_the_lease_free_and_short() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        await lease.release()
        assert not lease.may_write()
        assert (world.spec["holderIdentity"], world.spec["leaseDurationSeconds"]) == ("", 1)

    play(scenario)


def test_a_renewal_that_comes_between_does_not_keep_a_lease_from_being_released() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        world.server.fault("PUT", "/leases/", status=409, reason="Conflict")
        await lease.release()
        assert world.spec["holderIdentity"] == ""

    play(scenario)


def test_a_lease_that_is_not_ours_any_more_is_not_released() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        world.put("other")
        await lease.release()
        assert world.spec["holderIdentity"] == "other"
        assert not lease.may_write()

    play(scenario)


def test_what_else_the_record_holds_is_kept() -> None:
    async def scenario(world: Candidates) -> None:
        world.put("", seconds=1, strategy="OldestEmulationVersion")
        await world.candidate().acquire()
        assert world.spec["strategy"] == "OldestEmulationVersion"

    play(scenario)


def test_who_became_leader_is_an_event_of_the_lease() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        await lease.acquire()
        await settled(lambda: world.server.all("/apis/events.k8s.io/v1/events"))
        [event] = world.server.all("/apis/events.k8s.io/v1/events")
        assert (event["reason"], event["note"], event["regarding"]["kind"]) == (
            "LeaderElection",
            "me became leader",
            "Lease",
        )

    play(scenario)


def test_a_leader_that_outlives_its_lease_is_not_well() -> None:
    async def scenario(world: Candidates) -> None:
        lease = world.candidate()
        assert lease.health() == ""
        await lease.acquire()
        world.clock.now += 34
        assert lease.health() == ""
        world.clock.now += 2
        assert lease.health() == "failed election to renew leadership on lease kube-scheduler"

    play(scenario)


@pytest.mark.parametrize(
    "rules, problem",
    [
        (ElectionRules(), ""),
        (ElectionRules(lease_s=10), "leaseDuration must be greater than renewDeadline"),
        (ElectionRules(retry_s=9), "renewDeadline must be greater than retryPeriod*JitterFactor"),
        (ElectionRules(retry_s=0), "retryPeriod must be greater than zero"),
    ],
)
def test_times_that_do_not_go_together_are_refused(rules: ElectionRules, problem: str) -> None:
    assert rules.problem() == problem
