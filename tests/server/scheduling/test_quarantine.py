"""An engine that fails on an object: the next one begins without that object, and with everything else."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from builders import node, pod
from server.placing.world import World
from server.scheduling.stories import tell, until
from situate.core.changes import Change, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.loop.drive import EngineError
from situate.loop.supervisor import Part, RestartPolicy, Supervisor
from situate.server.resources import BY_KIND
from situate.server.scheduling import quarantine as module
from situate.server.scheduling import scheduler
from situate.server.scheduling.feed import EngineFeed
from situate.server.scheduling.quarantine import Quarantine, find_guilty, identity

EVENTS = BY_KIND["v1", "Event"]
QUICK = RestartPolicy(first_s=0.001, last_s=0.002, steady_s=0.01)


class FailingEngine(Engine):
    """Fails on a pod with "poison" in its name."""

    def step(self, now: int, changes: Sequence[Change]) -> list[Effect]:
        if any("poison" in (identity(one) or ("", "", ""))[2] for one in changes):
            raise OverflowError("int too big to convert")
        return super().step(now, changes)


def trial() -> Engine:
    return FailingEngine(default_configuration())


def seen(*names: str) -> list[Change]:
    return [PodSeen(pod(name)) for name in names]


def guilty(objects: Sequence[Change], suspects: Sequence[Change]) -> list[str]:
    accused = {one: None for change in suspects if (one := identity(change)) is not None}
    return [name for (_, _, name), _ in find_guilty(trial, objects, accused, 1)]


def test_of_all_suspects_those_are_found_on_which_an_engine_fails() -> None:
    names = [f"good-{number}" for number in range(20)]
    suspects = seen(*names[:7], "poison-1", *names[7:15], "poison-2", *names[15:])
    assert guilty([NodeSeen(node("n")), *seen("other"), *suspects], suspects) == ["poison-1", "poison-2"]


def test_if_an_engine_fails_without_the_suspects_everything_is_suspect() -> None:
    assert guilty([*seen("a", "poison", "b"), *seen("c")], seen("c")) == ["poison"]


def test_if_no_engine_fails_nothing_is_withheld() -> None:
    assert guilty(seen("a", "b"), seen("b")) == []


def test_the_search_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TRIALS", 5)
    many = seen(*(f"poison-{number}" for number in range(100)))
    assert guilty(many, many) == []


def test_an_object_is_withheld_for_longer_each_time() -> None:
    now = 0.0
    held = Quarantine(lambda: now)
    [change] = seen("poison")

    async def fail() -> None:
        held.blame(EngineError("it failed", [change]))
        await held.settle(trial, lambda: [change], 1)

    asyncio.run(fail())
    assert held.withholds(change)
    assert held.withholds(PodGone(PodRef("default", "poison", "u")))
    assert not held.withholds(seen("other")[0])
    assert held.released() == []
    now = module.HELD_FIRST_S + 1
    assert not held.withholds(change), "it is tried again"
    assert (held.released(), held.released()) == ([("Pod", "default", "poison")], []), "once"
    asyncio.run(fail())
    now += module.HELD_FIRST_S + 1
    assert held.withholds(change)


def test_a_search_that_is_cancelled_makes_no_more_engines() -> None:
    """Else a server that is told to stop would wait for its thread."""
    made = 0

    def make() -> Engine:
        nonlocal made
        made += 1
        time.sleep(0.02)
        return trial()

    many = seen(*(f"poison-{number}" for number in range(40)))
    held = Quarantine()
    held.blame(EngineError("it failed", many))

    async def story() -> None:
        search = asyncio.create_task(held.settle(make, lambda: many, 1))
        while made < 3:
            await asyncio.sleep(0.001)
        search.cancel()
        await asyncio.wait([search])

    asyncio.run(story())
    assert made < 10


def test_nothing_is_tried_unless_an_engine_has_failed() -> None:
    def make() -> Engine:
        raise AssertionError("no engine failed")

    assert asyncio.run(Quarantine().settle(make, lambda: seen("a"), 1)) == []


def test_a_pod_on_which_the_engine_fails_stays_pending_and_the_others_are_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler, "Engine", FailingEngine)

    async def story(world: World) -> None:
        settings = scheduler.SchedulerSettings(quarantine=Quarantine())

        def run() -> Any:
            return scheduler.run_scheduler(world.store, world.registry, world.binder, settings)

        supervising = asyncio.create_task(Supervisor([Part("scheduler", run)], QUICK).run())
        await world.node("n1")
        await world.pod("before")
        await until(lambda: world.on() == ["before"])
        await world.pod("poison")
        await world.pod("after")
        begun = time.monotonic()
        await until(lambda: world.on() == ["before", "after"])
        assert time.monotonic() - begun < 5
        await world.pod("more")
        await until(lambda: world.on() == ["before", "after", "more"])
        said = [held.object(EVENTS) for held in world.registry.cache.all(EVENTS)]
        texts = [one["message"] for one in said if one["involvedObject"]["name"] == "poison"]
        assert texts[0].startswith("the scheduler fails on this pod: OverflowError: int too big to convert")
        supervising.cancel()
        await asyncio.gather(supervising, return_exceptions=True)

    tell(story)


def test_a_pod_on_which_the_engine_failed_is_tried_again_though_nobody_changes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ill, now = True, 1.0

    class IllEngine(FailingEngine):
        def step(self, now: int, changes: Sequence[Change]) -> list[Effect]:
            return super().step(now, changes) if ill else Engine.step(self, now, changes)

    monkeypatch.setattr(scheduler, "Engine", IllEngine)
    monkeypatch.setattr(EngineFeed.release, "__defaults__", (0.01,))

    async def story(world: World) -> None:
        nonlocal ill, now
        held = Quarantine(lambda: now)
        settings = scheduler.SchedulerSettings(quarantine=held)

        def run() -> Any:
            return scheduler.run_scheduler(world.store, world.registry, world.binder, settings)

        supervising = asyncio.create_task(Supervisor([Part("scheduler", run)], QUICK).run())
        await world.node("n1")
        await world.pod("poison")
        await until(lambda: len(held) == 1)
        await world.pod("after")
        await until(lambda: world.on() == ["after"])
        ill = False
        now += module.HELD_FIRST_S + 1
        await until(lambda: world.on() == ["after", "poison"])
        supervising.cancel()
        await asyncio.gather(supervising, return_exceptions=True)

    tell(story)
