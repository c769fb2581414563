"""The server's own elections: one holder, terms that only grow, and binds of an older term refused."""

import asyncio

from server.placing.test_binding import refusal
from server.placing.world import World, pod_object
from server.scheduling.stories import scheduling, tell, until
from server.scheduling.test_scheduler import node_of
from situate.server.placing.bind_transaction import LEASE, LEASES, PODS
from situate.server.requests import SYSTEM, DeleteOptions, Target
from situate.server.scheduling.lease_store import fence, server_elector
from situate.server.scheduling.scheduler import SchedulerSettings
from situate.store.entries import Revision
from situate.store.transactions import At, Guard, Put


def lease(world: World) -> tuple[str, int]:
    found = world.registry.cache.get(LEASES, *LEASE)
    assert found is not None
    spec = found.object(LEASES)["spec"]
    return spec.get("holderIdentity", ""), spec["leaseTransitions"]


def test_the_first_who_asks_holds_it_and_renews_it_in_the_same_term() -> None:
    async def story(world: World) -> None:
        one = server_elector(world.registry, "one", SYSTEM, world.wall_ns)
        assert one.term() is None
        assert await one.attempt()
        assert (one.term(), one.may_write(), lease(world)) == (1, True, ("one", 1))
        world.now_ns += 1_000_000_000
        assert await one.attempt()
        assert lease(world) == ("one", 1)

    tell(story)


def test_another_waits_until_it_is_let_go_and_begins_a_new_term() -> None:
    async def story(world: World) -> None:
        one, two = (server_elector(world.registry, name, SYSTEM, world.wall_ns) for name in ("one", "two"))
        assert await one.attempt()
        assert not await two.attempt()
        await one.release()
        assert await two.attempt()
        assert (two.term(), lease(world)) == (2, ("two", 2))
        assert not await one.attempt()

    tell(story)


def test_a_lease_that_is_not_renewed_is_taken_and_what_its_holder_binds_then_is_refused() -> None:
    async def story(world: World) -> None:
        now = [0.0]
        one, two = (
            server_elector(world.registry, name, SYSTEM, world.wall_ns, clock=lambda: now[0]) for name in ("one", "two")
        )
        await one.attempt()
        assert not await two.attempt()
        now[0] += 14.9
        assert one.may_write()
        assert not await two.attempt()
        now[0] += 0.2
        assert not one.may_write(), "it knows itself that it has not renewed it"
        assert await two.attempt()
        await world.node()
        await world.pod()
        no = await refusal(world.binder.bind("default", "p", "n1", term=one.term()))
        assert "term 1 is stale: the scheduler's lease is in term 2" in no.message
        await world.binder.bind("default", "p", "n1", term=two.term())

    tell(story)


def test_a_holder_of_the_same_name_that_begins_anew_has_a_new_term() -> None:
    async def story(world: World) -> None:
        await server_elector(world.registry, "one", SYSTEM, world.wall_ns).attempt()
        again = server_elector(world.registry, "one", SYSTEM, world.wall_ns)
        assert await again.attempt()
        assert again.term() == 2

    tell(story)


def test_of_two_schedulers_that_elect_one_binds() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="64", allocatable={"pods": "100", "memory": "200Gi"})
        async with (
            scheduling(world, SchedulerSettings(identity="one")) as one,
            scheduling(world, SchedulerSettings(identity="two")) as two,
        ):
            await asyncio.gather(*[world.pod(f"p{at}", cpu="100m") for at in range(20)])
            await until(lambda: all(node_of(world, f"p{at}") for at in range(20)))
            assert sorted(each.elector is not None and each.elector.may_write() for each in (one, two)) == [False, True]

    tell(story)


def test_what_a_leader_writes_after_another_took_its_lease_is_refused_by_the_store() -> None:
    async def story(world: World) -> None:
        now = [0.0]
        place = ("kube-system", "controllers")
        one, two = (
            server_elector(world.registry, name, SYSTEM, world.wall_ns, lease=place, clock=lambda: now[0])
            for name in ("one", "two")
        )
        first, second = (world.registry.fenced(fence(world.registry, each)) for each in (one, two))
        pods = Target(PODS, "default")
        assert "is not held" in (await refusal(first.create(pods, pod_object("early"), SYSTEM))).message
        assert await one.attempt()
        assert not await two.attempt()
        await first.create(pods, pod_object("a"), SYSTEM)
        now[0] += 15.1
        assert "is not held" in (await refusal(first.create(pods, pod_object("late"), SYSTEM))).message
        assert await two.attempt()
        now[0] -= 15.1  # a clock that lies: the store refuses all the same
        assert one.may_write()
        for write in (
            first.create(pods, pod_object("b"), SYSTEM),
            first.delete(Target(PODS, "default", "a"), SYSTEM),
            first.patch(Target(PODS, "default", "a"), "merge", {"metadata": {"labels": {"x": "y"}}}, SYSTEM),
        ):
            assert "kube-system/controllers is not held" in (await refusal(write)).message
        now[0] += 15.1
        await second.delete(Target(PODS, "default", "a"), SYSTEM, DeleteOptions(grace_s=0))

    tell(story)


def test_a_leader_whose_lease_was_taken_does_not_delete_what_cannot_be_read_either() -> None:
    async def story(world: World) -> None:
        now = [0.0]
        one, two = (
            server_elector(
                world.registry, name, SYSTEM, world.wall_ns, lease=("kube-system", "x"), clock=lambda: now[0]
            )
            for name in ("one", "two")
        )
        first = world.registry.fenced(fence(world.registry, one))
        await world.store.commit([], [Put("/objects/core/pods/default/bad", b"not json")])
        await world.registry.cache.wait_until_fresh()
        assert await one.attempt()
        assert not await two.attempt()
        now[0] += 15.1
        assert await two.attempt()
        bad = Target(PODS, "default", "bad")
        assert "kube-system/x is not held" in (await refusal(first.delete(bad, SYSTEM))).message
        assert world.registry.cache.unreadable_at(PODS, "default", "bad") is not None
        await world.registry.delete(bad, SYSTEM)

    tell(story)


def test_a_renewal_between_decision_and_commit_costs_a_leader_nothing_but_another_attempt() -> None:
    async def story(world: World) -> None:
        one = server_elector(world.registry, "one", SYSTEM, world.wall_ns, lease=("kube-system", "controllers"))
        guard = fence(world.registry, one)
        assert await one.attempt()
        asked = 0

        def renewed_meanwhile() -> Guard:
            nonlocal asked
            asked += 1
            return At("/objects/coordination.k8s.io/leases/kube-system/gone", Revision(7)) if asked == 1 else guard()

        await world.registry.fenced(renewed_meanwhile).create(Target(PODS, "default"), pod_object("a"), SYSTEM)
        assert asked == 2

    tell(story)
