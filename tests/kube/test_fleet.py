"""A place in a fleet: taken, renewed, seen by others, taken back by name, and left."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from builders import pod
from kube.fake_server import FakeServer, Object
from situate.core.changes import Change, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Effect, Report, SetCondition
from situate.core.engine.engine import Engine
from situate.core.model.refs import PodRef
from situate.kube.client import Client
from situate.kube.fleet import GUARDED, FilteringPerformer, Fleet, FleetRules, TakenNameError, fresh_member
from situate.loop.drive import Drive
from situate.wire.errors import InputError

LEASES = "/apis/coordination.k8s.io/v1/leases"


class Recording(Drive):
    """Keeps what it is told, and decides nothing."""

    def __init__(self) -> None:
        super().__init__(Engine(default_configuration()))
        self.heard: list[Change] = []

    def tell(self, changes: Sequence[Change]) -> None:
        self.heard.extend(changes)

    @property
    def pods(self) -> set[str]:
        return {change.pod.metadata.name for change in self.heard if isinstance(change, PodSeen)}


class World:
    def __init__(self, server: FakeServer, client: Client) -> None:
        self.server, self.client = server, client
        self.now = 1_000.0
        self._tasks: list[asyncio.Task[None]] = []

    def member(self, name: str, **rules: Any) -> tuple[Fleet, Recording]:
        wanted = FleetRules("race", name, **{"lease_s": 5.0, "renew_s": 0.01, **rules})
        fleet = Fleet(self.client, wanted, ["default-scheduler"], clock=lambda: self.now)
        return fleet, Recording()

    async def joined(self, name: str, **rules: Any) -> tuple[Fleet, Recording, Callable[[Sequence[Change]], None]]:
        fleet, drive = self.member(name, **rules)
        tell = fleet.attach(drive)
        await fleet.join()
        self.go_on(fleet)
        return fleet, drive, tell

    def go_on(self, fleet: Fleet) -> asyncio.Task[None]:
        self._tasks.append(asyncio.create_task(fleet.run()))
        return self._tasks[-1]

    def lease(self, name: str) -> Object | None:
        return self.server.get(LEASES, f"situate-fleet-race-{name}", "kube-system")

    async def until(self, check: Callable[[], object]) -> None:
        while not check():
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def play(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with FakeServer() as server, Client(server.access(), qps=-1) as client, asyncio.timeout(20):
            server.put("/apis/situate.dev/v1alpha1/nodesnapshots", {"metadata": {"name": "n1"}})
            server.fault("GET", GUARDED, status=200, times=100)
            world = World(server, client)
            try:
                await scenario(world)
            finally:
                await world.close()

    asyncio.run(run())


def waiting(count: int) -> list[Change]:
    return [PodSeen(pod(f"p{number}", uid=f"u{number}", scheduler_name="default-scheduler")) for number in range(count)]


def test_members_see_each_other_and_divide_the_pods() -> None:
    async def scenario(world: World) -> None:
        one, two = await world.joined("one"), await world.joined("two")
        await world.until(lambda: one[0].members == two[0].members == ("one", "two"))
        for _, _, tell in (one, two):
            tell(waiting(40))
        await world.until(lambda: one[1].pods | two[1].pods == {f"p{number}" for number in range(40)})
        assert not one[1].pods & two[1].pods

    play(scenario)


def test_a_lease_is_renewed_and_says_whose_pods_are_decided_on() -> None:
    async def scenario(world: World) -> None:
        await world.joined("one")
        lease = world.lease("one")
        assert lease is not None
        assert lease["metadata"]["labels"] == {"situate.dev/fleet": "race", "situate.dev/member": "one"}
        assert lease["metadata"]["annotations"] == {"situate.dev/schedulers": "default-scheduler"}
        assert lease["spec"]["leaseDurationSeconds"] == 5
        before = lease["spec"]["renewTime"]

        def renewed() -> bool:
            found = world.lease("one")
            return found is not None and found["spec"]["renewTime"] != before

        await world.until(renewed)

    play(scenario)


def test_the_share_of_one_that_is_not_heard_of_is_taken_over_when_its_lease_is_over() -> None:
    async def scenario(world: World) -> None:
        one = await world.joined("one")
        dead, _ = world.member("two")
        await dead.join()  # and never renews
        await world.until(lambda: one[0].members == ("one", "two"))
        one[2](waiting(40))
        assert len(one[1].pods) < 40
        world.now += 5.1
        one[0]._settle()  # the clock of this test does not wake anybody
        assert len(one[1].pods) == 40

    play(scenario)


def test_who_leaves_in_good_order_is_gone_at_once() -> None:
    async def scenario(world: World) -> None:
        one = await world.joined("one")
        other, _ = world.member("two")
        await other.join()
        await world.until(lambda: one[0].members == ("one", "two"))
        await other.leave()
        await world.until(lambda: one[0].members == ("one",))
        assert world.lease("two") is None

    play(scenario)


def test_who_may_not_delete_its_lease_leaves_it_empty() -> None:
    async def scenario(world: World) -> None:
        one = await world.joined("one")
        other, _ = world.member("two")
        await other.join()
        await world.until(lambda: one[0].members == ("one", "two"))
        world.server.fault("DELETE", "situate-fleet-race-two", status=403, reason="Forbidden")
        await other.leave()
        await world.until(lambda: one[0].members == ("one",))

    play(scenario)


def test_of_two_processes_under_one_name_the_later_one_has_it() -> None:
    async def scenario(world: World) -> None:
        first, _ = world.member("one")
        await first.join()
        later, _ = world.member("one")
        await later.join()
        with pytest.raises(BaseExceptionGroup) as caught:
            await world.go_on(first)
        assert caught.group_contains(TakenNameError, match="another process has taken the name one")
        lease = world.lease("one")
        assert lease is not None
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == (later.identity, 2)

    play(scenario)


def test_a_member_goes_on_when_its_lease_cannot_be_renewed_for_a_while() -> None:
    async def scenario(world: World) -> None:
        one = await world.joined("one")
        world.server.fault("PUT", "situate-fleet-race-one", status=500, times=3)
        lease = world.lease("one")
        assert lease is not None
        world.server.remove(LEASES, "situate-fleet-race-one", "kube-system")
        await world.until(lambda: world.lease("one") is not None)
        assert one[0].members == ("one",)

    play(scenario)


def test_a_server_that_checks_no_binds_is_refused() -> None:
    async def run() -> None:
        async with FakeServer() as server, Client(server.access(), qps=-1) as client, asyncio.timeout(10):
            server.absent.add("/apis/situate.dev/v1alpha1")
            with pytest.raises(InputError, match="this API server is not situate's"):
                await Fleet(client, FleetRules("race", "one"), []).join()

    asyncio.run(run())


def test_what_another_member_is_to_say_is_left_unsaid() -> None:
    async def scenario(world: World) -> None:
        one = await world.joined("one", pool_label="pool")
        await world.joined("two", pool_label="pool")
        await world.until(lambda: one[0].members == ("one", "two"))
        one[0]._settle()
        one[2](waiting(20))
        ours = {change.pod.metadata.name for change in one[1].heard if isinstance(change, PodSeen)}
        refs = [PodRef("default", f"p{number}", f"u{number}") for number in range(20)]
        said: list[Effect] = []

        class Carrier:
            binds_waiting = 7

            def perform(self, effects: Sequence[Effect]) -> None:
                said.extend(effects)

            async def drain(self, timeout_s: float) -> bool:
                return True

        carrier = FilteringPerformer(one[0], Carrier())
        carrier.perform([SetCondition(ref, "PodScheduled", "False", "Unschedulable", "full") for ref in refs])
        assert {effect.pod.name for effect in said if isinstance(effect, SetCondition)} == ours
        assert 0 < len(ours) < 20
        said.clear()
        carrier.perform([Report(ref, "Normal", "Scheduled", "Binding", "it is") for ref in refs])
        assert len(said) == 20, "that a pod was bound is said by whoever bound it"
        assert carrier.binds_waiting == 7

    play(scenario)


def test_a_member_without_a_name_has_a_fresh_one() -> None:
    assert fresh_member() != fresh_member()


def test_a_configuration_with_other_profiles_has_the_member_decide_on_other_pods() -> None:
    async def scenario(world: World) -> None:
        fleet, drive, tell = await world.joined("one")
        tell([PodSeen(pod("p1", uid="u1", scheduler_name="batch"))])
        assert drive.pods == set(), "nobody decides on it here"
        fleet.decide_on(["batch", "default-scheduler"])
        await world.until(lambda: drive.pods == {"p1"})

        def says_so() -> bool:
            lease = world.lease("one")
            said = {} if lease is None else lease["metadata"]["annotations"]
            return said == {"situate.dev/schedulers": "batch,default-scheduler"}

        await world.until(says_so)

    play(scenario)
