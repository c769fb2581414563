"""The contract of an election, over each store of leases: one leader, by its own clock, in terms that only grow."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from kube.fake_server import FakeServer
from server.placing.world import opened
from situate.kube.client import Client
from situate.kube.lease_store import ApiLeaseStore
from situate.loop.election import ElectionRules, Elector, lead
from situate.loop.leases import LeaseError, LeaseObject, LeaseRecord, LeaseStore
from situate.server.scheduling.lease_store import RegistryLeaseStore
from situate.store.memory import MemoryStore

RULES = ElectionRules(lease_s=15, renew_deadline_s=10, retry_s=0.01)
PLACE = (RULES.namespace, RULES.name)


class World:
    """A store, a clock that all candidates share, and the candidates."""

    def __init__(self, store: LeaseStore) -> None:
        self.store = store
        self.now = 1_000.0
        self._candidates: list[Elector] = []

    def candidate(self, name: str, rules: ElectionRules = RULES) -> Elector:
        made = Elector(self.store, rules, name, clock=lambda: self.now, dice=lambda: 0.0)
        self._candidates.append(made)
        return made

    async def put(self, holder: str, **spec: object) -> None:
        """Somebody else writes the Lease, between two renewals of its holder."""
        while True:
            found = await self.store.read()
            assert found is not None
            try:
                await self.store.update({**found, "spec": {**found["spec"], "holderIdentity": holder, **spec}})
                return
            except LeaseError as error:
                if not error.conflict:
                    raise

    async def spec(self) -> LeaseObject:
        found = await self.store.read()
        assert found is not None
        spec: LeaseObject = found["spec"]
        return spec

    async def close(self) -> None:
        for one in self._candidates:
            await one.close()


@asynccontextmanager
async def over_an_api_server() -> AsyncIterator[LeaseStore]:
    async with FakeServer() as server, Client(server.access(), qps=-1) as client:
        yield ApiLeaseStore(client, *PLACE)


@asynccontextmanager
async def over_the_registry() -> AsyncIterator[LeaseStore]:
    async with opened(MemoryStore()) as world:
        yield RegistryLeaseStore(world.registry, *PLACE)


Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture(params=[over_an_api_server, over_the_registry], ids=["API server", "registry"])
def play(request: pytest.FixtureRequest) -> Play:
    def run(scenario: Callable[[World], Awaitable[None]]) -> None:
        async def played() -> None:
            async with request.param() as store, asyncio.timeout(10):
                world = World(store)
                await scenario(world)
                await world.close()

        asyncio.run(played())

    return run


async def settled(check: Callable[[], object]) -> None:
    while not check():
        await asyncio.sleep(0.002)


def test_a_store_reads_what_was_written_and_refuses_an_old_version(play: Play) -> None:
    async def scenario(world: World) -> None:
        assert await world.store.read() is None
        record = LeaseRecord("me", 15)
        metadata = {"namespace": world.store.namespace, "name": world.store.name}
        first = await world.store.create(record.claim(1_700_000_000_000_000_000, metadata))
        assert await world.store.read() == first
        with pytest.raises(LeaseError) as caught:
            await world.store.create(record.claim(1_700_000_000_000_000_000, metadata))
        assert caught.value.conflict
        second = await world.store.update({**first, "spec": {**first["spec"], "holderIdentity": "you"}})
        assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        with pytest.raises(LeaseError) as caught:
            await world.store.update({**first, "spec": {**first["spec"], "holderIdentity": "she"}})
        assert caught.value.conflict
        assert (await world.spec())["holderIdentity"] == "you"

    play(scenario)


def test_the_first_candidate_creates_the_lease_and_renews_it_in_the_same_term(play: Play) -> None:
    async def scenario(world: World) -> None:
        one = world.candidate("one", replace(RULES, first_term=1))
        assert (one.may_write(), one.term()) == (False, None)
        await one.acquire()
        assert (one.may_write(), one.term()) == (True, 1)
        first = await world.spec()
        assert first["acquireTime"] == first["renewTime"]
        assert await one.attempt()
        second = await world.spec()
        assert {**second, "renewTime": ""} == {**first, "renewTime": ""}

    play(scenario)


def test_of_two_candidates_one_leads(play: Play) -> None:
    async def scenario(world: World) -> None:
        one, two = world.candidate("one"), world.candidate("two")
        tasks = [asyncio.create_task(one.acquire()), asyncio.create_task(two.acquire())]
        await settled(lambda: one.may_write() or two.may_write())
        await asyncio.sleep(0.05)
        assert one.may_write() is not two.may_write()
        assert (await world.spec())["holderIdentity"] == ("one" if one.may_write() else "two")
        for task in tasks:
            task.cancel()

    play(scenario)


def test_a_standby_takes_a_released_lease_at_once_and_begins_a_new_term(play: Play) -> None:
    async def scenario(world: World) -> None:
        one, two = world.candidate("one"), world.candidate("two", replace(RULES, retry_s=3))
        await one.acquire()
        trying = asyncio.create_task(two.acquire())
        await settled(lambda: two.leader == "one")
        await asyncio.sleep(0.05)  # the watch is open
        await one.release()
        assert not one.may_write()
        async with asyncio.timeout(1):
            await trying
        spec = await world.spec()
        assert (two.term(), spec["holderIdentity"], spec["leaseTransitions"]) == (1, "two", 1)
        assert not await one.attempt()
        assert one.term() is None

    play(scenario)


def test_a_lease_is_its_holders_until_it_expires_by_the_clock_of_whoever_looks(play: Play) -> None:
    async def scenario(world: World) -> None:
        one, two = world.candidate("one"), world.candidate("two")
        assert await one.attempt()
        assert not await two.attempt()
        world.now += 14.9
        assert not await two.attempt()
        world.now += 0.2
        assert not one.may_write()
        assert await two.attempt()
        assert (one.term(), two.term()) == (0, 1)
        assert not await one.attempt()
        assert one.term() is None

    play(scenario)


def test_the_right_to_write_ends_with_the_renew_deadline(play: Play) -> None:
    async def scenario(world: World) -> None:
        one = world.candidate("one")
        assert await one.attempt()
        world.now += 9.99
        assert one.may_write()
        world.now += 0.01
        assert not one.may_write()
        await one.hold()
        assert (await world.spec())["holderIdentity"] == "one", "and whoever is too late does not ask"

    play(scenario)


def test_a_late_holder_whose_writes_are_fenced_renews_in_the_same_term(play: Play) -> None:
    async def scenario(world: World) -> None:
        one = world.candidate("one", replace(RULES, fenced=True))
        assert await one.attempt()
        world.now += 60
        holding = asyncio.create_task(one.hold())
        await settled(one.may_write)
        assert one.term() == 0
        await world.put("other")
        await holding
        assert (one.may_write(), one.term()) == (False, None)

    play(scenario)


def test_a_candidate_restarted_under_the_same_name_need_not_wait_and_begins_a_new_term(play: Play) -> None:
    async def scenario(world: World) -> None:
        assert await world.candidate("one").attempt()
        again = world.candidate("one")
        assert await again.attempt()
        assert again.term() == 1

    play(scenario)


def test_a_lease_that_another_took_is_lost_at_once_and_not_released(play: Play) -> None:
    async def scenario(world: World) -> None:
        one = world.candidate("one")
        await one.acquire()
        await world.put("other")
        await one.hold()
        assert not one.may_write()
        await one.release()
        assert (await world.spec())["holderIdentity"] == "other"

    play(scenario)


def test_run_leads_again_after_it_lost_the_lease(play: Play) -> None:
    async def scenario(world: World) -> None:
        one, heard = world.candidate("one"), list[str]()
        running = asyncio.create_task(one.run(lambda: heard.append("leads"), lambda: heard.append("lost")))
        await settled(lambda: heard == ["leads"])
        await world.put("other", leaseDurationSeconds=1)
        await settled(lambda: heard == ["leads", "lost"])
        world.now += 1.1
        await settled(lambda: heard == ["leads", "lost", "leads"])
        running.cancel()

    play(scenario)


def test_a_lease_that_another_held_meanwhile_is_lost_although_it_is_free_again(play: Play) -> None:
    """The holder was asleep: it finds the lease free and could renew, but another has led since."""

    async def scenario(world: World) -> None:
        one = world.candidate("one", replace(RULES, fenced=True))
        await one.acquire()
        await world.put("other", leaseTransitions=1)
        await world.put("", leaseTransitions=1)
        async with asyncio.timeout(2):
            await one.hold()
        assert not one.may_write(), "until it has stopped what it ran in the old term, and begins anew"
        await one.acquire()
        assert (one.may_write(), one.term()) == (True, 2)

    play(scenario)


def test_the_work_of_a_leader_that_lost_its_lease_has_ended_before_it_begins_again(play: Play) -> None:
    async def scenario(world: World) -> None:
        one, heard = world.candidate("one"), list[str]()

        async def work() -> None:
            heard.append("begins")
            try:
                await asyncio.Future()
            finally:
                await asyncio.sleep(0.05)  # it takes a moment to stop
                heard.append(f"ended, may write: {one.may_write()}")

        leading = asyncio.create_task(lead(one, work))
        await settled(lambda: heard == ["begins"])
        await world.put("other", leaseDurationSeconds=1)
        await settled(lambda: len(heard) == 2)
        world.now += 1.1
        await settled(lambda: len(heard) == 3)
        assert heard == ["begins", "ended, may write: False", "begins"]
        assert not leading.done()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        assert (await world.spec())["holderIdentity"] == "", "released when the work had ended"

    play(scenario)


def test_a_leader_whose_work_fails_releases_the_lease_and_says_why(play: Play) -> None:
    async def scenario(world: World) -> None:
        async def work() -> None:
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await lead(world.candidate("one"), work)
        assert (await world.spec())["holderIdentity"] == ""

    play(scenario)


def test_a_claim_whose_answer_was_lost_is_recognised_and_not_a_second_term() -> None:
    record = LeaseRecord("me", 15)
    record.see({"metadata": {}, "spec": {"holderIdentity": "", "leaseTransitions": 4}}, 0.0)
    claimed = record.claim(1_700_000_000_000_000_000, {})
    before = record.term
    record.see(claimed, 1.0)
    assert (before, record.term) == (None, 5)
    assert record.claim(1_700_000_001_000_000_000, {})["spec"]["leaseTransitions"] == 5


def test_a_leader_writes_nothing_while_it_creates_a_lease_that_was_deleted(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no term then, so no server could tell its writes from those of a leader that lost the race."""

    async def scenario(world: World) -> None:
        leader = world.candidate("one")
        assert await leader.attempt()
        assert leader.may_write()
        seen: list[tuple[bool, int | None]] = []

        async def missing(*_: object) -> None:
            return None

        async def gone(lease: LeaseObject) -> LeaseObject:
            raise LeaseError("NotFound", "gone")

        async def slow(lease: LeaseObject) -> LeaseObject:
            seen.append((leader.may_write(), leader.term()))
            raise LeaseError("Timeout", "no answer")

        with monkeypatch.context() as patch:
            patch.setattr(world.store, "read", missing)
            patch.setattr(world.store, "update", gone)
            patch.setattr(world.store, "create", slow)
            assert not await leader.attempt()
        assert seen == [(False, None)]
        assert await leader.attempt()
        assert leader.may_write()

    play(scenario)


def test_a_candidate_that_is_cancelled_while_its_watch_closes_does_not_lead(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        watching, closing, worked = asyncio.Event(), asyncio.Event(), False
        create = world.store.create

        async def slow_to_close() -> AsyncIterator[LeaseObject]:
            watching.set()
            try:
                await asyncio.Event().wait()
                yield {}
            finally:
                closing.set()
                await asyncio.sleep(0.2)

        async def create_later(lease: LeaseObject) -> LeaseObject:
            await watching.wait()
            return await create(lease)

        async def work() -> None:
            nonlocal worked
            worked = True

        monkeypatch.setattr(world.store, "watch", slow_to_close)
        monkeypatch.setattr(world.store, "create", create_later)
        leading = asyncio.create_task(lead(world.candidate("one"), work))
        await closing.wait()
        leading.cancel()
        await asyncio.wait([leading])
        assert leading.cancelled()
        assert not worked
        assert (await world.spec())["holderIdentity"] == ""

    play(scenario)
