"""The performer before an API server that fails. What holds in every world is in tests/loop/scheduling."""

import random
from typing import Any

import pytest

from builders import node, pod
from kube.performing import PODS, World, play
from situate.core.changes import (
    BindDone,
    BindFailed,
    NodeSeen,
    ObjectSeen,
    PodRef,
    PodSeen,
)
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect, SetCondition
from situate.core.engine.engine import Engine
from situate.core.model.group import PodGroup
from situate.core.model.meta import ObjectMeta
from situate.loop.scheduling.view import EngineView
from storage_builders import claim, volume


def test_many_notes_do_not_hold_up_a_bind() -> None:
    async def scenario(world: World) -> None:
        waiting = [world.add_pod(f"w{at}") for at in range(50)]
        ref = world.add_pod("bound")
        world.server.fault("PATCH", "/status", hang=True, times=50)
        world.performer.perform([SetCondition(one, "PodScheduled", "False", "Unschedulable", "x") for one in waiting])
        world.performer.perform([Bind(ref, "n1", 1)])
        await world.until(lambda: world.told)
        assert world.told == [BindDone(ref, 1)]
        world.server.release()
        await world.quiet()

    play(scenario)


# -- the end -----------------------------------------------------------------------------------------------------------


def test_draining_does_not_wait_for_ever() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.fault("POST", "/binding", hang=True)
        world.performer.perform([Bind(ref, "n1", 1)])
        await world.until(lambda: world.server.asked("POST"))
        assert not await world.performer.drain(0.01)

    play(scenario)


# -- all at once -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_server_does_no_pod_is_bound_twice_and_every_bind_is_answered_once(seed: int) -> None:
    """As the engine would: a failure that is not final is asked for again, and a final one decided anew elsewhere."""
    dice = random.Random(seed)
    ways: list[dict[str, Any]] = [
        {"status": 409, "reason": "Conflict"},
        {"status": 409, "reason": "Conflict", "done": True},
        {"status": 500},
        {"status": 500, "done": True},
        {"status": 429, "reason": "TooManyRequests"},
        {"drop": "before"},
        {"drop": "after"},
    ]

    async def scenario(world: World) -> None:
        for _ in range(25):
            world.server.fault("POST", "/binding", **dice.choice(ways))
            world.server.fault("GET", "/pods/", **dice.choice(ways[2:]))
            world.server.fault("PATCH", "/status", **dice.choice(ways))
        bound_at: dict[str, list[str]] = {}
        refs = [world.add_pod(f"p{at}") for at in range(30)]
        wanted = dict.fromkeys(refs, (1, "n1"))
        world.performer.perform([SetCondition(ref, "PodScheduled", "False", "Unschedulable", "x") for ref in refs])
        world.performer.perform([Bind(ref, node, attempt) for ref, (attempt, node) in wanted.items()])
        done, heard = 0, 0
        while done < len(refs):
            await world.answers(heard + 1)
            answers, heard = world.told[heard:], len(world.told)
            again: list[Effect] = []
            for answer in answers:
                assert isinstance(answer, BindDone | BindFailed)
                attempt, where = wanted[answer.pod]
                assert answer.attempt == attempt, "an answer to something else"
                if isinstance(answer, BindDone):
                    done += 1
                    bound_at.setdefault(answer.pod.name, []).append(where)
                    continue
                if answer.final:
                    attempt, where = attempt + 1, f"n{attempt + 1}"
                wanted[answer.pod] = (attempt, where)
                world.see_pod(answer.pod.name)
                again.append(Bind(answer.pod, where, attempt))
            world.performer.perform(again)
        assert len(bound_at) == len(refs)
        for ref in refs:
            assert bound_at[ref.name] == [world.get_pod(ref.name)["spec"]["nodeName"]]
        assert all("nodeName" in one["spec"] for one in world.server.all(PODS))

    play(scenario)


# -- what the engine knows ---------------------------------------------------------------------------------------------


def test_the_engine_shows_what_the_performer_reads() -> None:
    engine = Engine(default_configuration())
    waiting = pod("web", uid="u1", resource_version="7")
    bound = pod("old", uid="u2", node_name="n1", resource_version="8")
    group = PodGroup(metadata=ObjectMeta(name="g", namespace="default"))
    items = [ObjectSeen(claim("c")), ObjectSeen(volume("v")), ObjectSeen(group)]
    engine.step(0, [NodeSeen(node("n1")), PodSeen(bound), *items])
    engine.step(1, [PodSeen(waiting)])
    view = EngineView(engine)
    seen = view.pod(PodRef("default", "web", "u1"))
    assert seen is not None
    assert seen.metadata.resource_version == "7"
    assert view.scheduler_of(PodRef("default", "web", "u1")) == ("default-scheduler", "7")
    assert view.scheduler_of(PodRef("default", "old", "u2")) == ("default-scheduler", "")
    assert view.scheduler_of(PodRef("default", "nobody", "u3")) == ("", "")
    assert view.claim("default", "c") == claim("c")
    assert view.volume("v") == volume("v")
    assert view.csi_node("n1") is None
    assert view.group("default", "g") == group
    assert view.storage_version > 0


def test_a_bound_pod_has_no_version_for_another_of_its_class_may_have_lent_it() -> None:
    engine = Engine(default_configuration())
    pods = [pod(name, uid=name, node_name="n1", resource_version=version) for name, version in (("a", "1"), ("b", "2"))]
    engine.step(0, [NodeSeen(node("n1")), *map(PodSeen, pods)])
    for one in pods:
        seen = EngineView(engine).pod(PodRef("default", one.metadata.name, one.metadata.uid))
        assert seen is not None
        assert seen.metadata.resource_version == ""
