"""The scheduler in the server's process, from a pod that is created to one that is bound, or told why not."""

import asyncio
from typing import Any

import msgspec
import pytest

from server.placing.witness import witnessed
from server.placing.world import World, pod_object
from server.scheduling.stories import performer_of, scheduling, tell, until
from situate.core.changes import BindDone, BindFailed, Change, PodRef
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind
from situate.core.engine.engine import Engine
from situate.loop.metrics import Metrics
from situate.loop.scheduling.performer import Performer
from situate.loop.scheduling.view import EngineView
from situate.server.placing.bind_transaction import PODS
from situate.server.placing.decisions import PLACEMENT_DECISIONS
from situate.server.registry.keys import key_of
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object
from situate.server.resources import BY_KIND
from situate.server.scheduling.events import EVENTS
from situate.server.scheduling.port import RegistrySchedulingPort
from situate.server.scheduling.publishing import publish
from situate.server.scheduling.scheduler import SchedulerSettings, open_scheduler
from situate.store.transactions import Put
from situate.wire.config import load_config

GROUPS = BY_KIND["scheduling.k8s.io/v1beta1", "PodGroup"]


def node_of(world: World, name: str) -> str:
    found = world.registry.cache.get(PODS, "default", name)
    return "" if found is None else found.object(PODS)["spec"].get("nodeName", "")


def events(world: World) -> list[Object]:
    return [held.object(EVENTS) for held in world.registry.cache.all(EVENTS)]


def test_a_pod_is_bound_and_its_decision_says_why() -> None:
    async def story(world: World) -> None:
        await world.node("n1", cpu="4")
        await world.node("n2", cpu="8")
        await world.node("n3", cpu="8", unschedulable=True)
        async with scheduling(world):
            await world.pod()
            await until(lambda: node_of(world, "p") == "n2")
        decision = world.decision("p")
        assert decision is not None
        assert (decision.spec.node, decision.spec.binding_version) == ("n2", 1)
        assert (decision.spec.scheduler, decision.phase) == ("default-scheduler", "bound")
        status = decision.status
        assert (status.nodes, status.feasible, status.attempts) == (3, 2, 1)
        scores = [msgspec.json.decode(one) for one in status.scores]
        assert [one["node"] for one in scores] == ["n2", "n1"]
        assert all(sum(one["plugins"].values()) == one["total"] for one in scores)
        assert status.score == scores[0]["total"] > scores[1]["total"]
        assert status.alternatives == ("n1",)
        assert [(one.reason, one.plugin, one.nodes) for one in status.refusals] == [
            ("node(s) were unschedulable", "NodeUnschedulable", 1)
        ]

    tell(story)


def test_the_event_of_a_bind_is_written_with_it() -> None:
    async def story(world: World) -> None:
        await world.node()
        async with scheduling(world):
            await world.pod()
            await until(lambda: node_of(world, "p") == "n1")
        held = next(world.registry.cache.all(EVENTS))
        assert held.revision == world.held("p").revision
        event = held.object(EVENTS)
        assert (event["reason"], event["type"], event["action"]) == ("Scheduled", "Normal", "Binding")
        assert event["message"] == "Successfully assigned default/p to n1"
        assert event["involvedObject"]["uid"] == world.held("p").uid
        assert len(events(world)) == 1, "and said once"

    tell(story)


def test_a_pod_that_fits_nowhere_is_told_why_and_what_it_waits_for_and_is_bound_when_that_comes() -> None:
    async def story(world: World) -> None:
        await world.node("n1", cpu="1")
        async with scheduling(world):
            await world.pod(cpu="2")
            await until(lambda: world.decision("p") is not None)
            condition = world.read("p")["status"]["conditions"][0]
            assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
            assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
            decision = world.decision("p")
            assert decision is not None
            assert (decision.phase, decision.spec.node, decision.spec.binding_version) == ("pending", "", 0)
            assert (decision.status.reason, decision.status.message) == ("Unschedulable", condition["message"])
            assert [(one.reason, one.nodes) for one in decision.status.refusals] == [("Insufficient cpu", 1)]
            assert {"NODE_ADDED", "NODE_ALLOCATABLE", "POD_DELETED"} <= set(decision.status.wakes_on)
            await until(lambda: any(one["reason"] == "FailedScheduling" for one in events(world)))
            await world.node("n2", cpu="4")
            await until(lambda: node_of(world, "p") == "n2")
        decision = world.decision("p")
        assert decision is not None
        assert [one.phase for one in decision.status.phases] == ["pending", "bound"]
        assert (decision.status.message, decision.status.reason) == ("", "")

    tell(story)


def test_a_pod_makes_room_for_itself_by_preemption() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="2")
        async with scheduling(world):
            await world.pod("low", cpu="2", priority=1, terminationGracePeriodSeconds=0)
            await until(lambda: node_of(world, "low") == "n1")
            await world.pod("high", cpu="2", priority=100)
            await until(lambda: world.registry.cache.get(PODS, "default", "low") is None)
            await until(lambda: node_of(world, "high") == "n1")
        decision = world.decision("high")
        assert decision is not None
        assert "reserved" in [one.phase for one in decision.status.phases]
        assert {one["reason"] for one in events(world)} >= {"Preempted", "Scheduled", "FailedScheduling"}
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_a_victim_that_takes_its_time_is_marked_and_its_room_is_not_given_away() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="2")
        async with scheduling(world):
            await world.pod("low", cpu="2", priority=1)
            await until(lambda: node_of(world, "low") == "n1")
            await world.report("low", "Running")
            await world.pod("high", cpu="2", priority=100)
            await until(lambda: "deletionTimestamp" in world.read("low")["metadata"])
            said = {one["type"]: one for one in world.read("low")["status"]["conditions"]}["DisruptionTarget"]
            assert said["reason"] == "PreemptionByScheduler"
            await until(lambda: world.read("high")["status"].get("nominatedNodeName") == "n1")
            low = world.decision("low")
            assert low is not None
            assert low.phase == "evicted"
            assert node_of(world, "high") == ""
            await world.delete_pod("low")
            await until(lambda: node_of(world, "high") == "n1")
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_a_gang_is_bound_whole() -> None:
    async def story(world: World) -> None:
        await world.node("n1", cpu="2")
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        meta = {"name": "g", "namespace": "default"}
        await world.create({"apiVersion": GROUPS.api_version, "kind": "PodGroup", "metadata": meta, "spec": spec})
        async with scheduling(world):
            for name in ("a", "b", "c"):
                await world.create(pod_object(name, schedulingGroup={"podGroupName": "g"}))
            await until(lambda: any(one["reason"] == "FailedScheduling" for one in events(world)))
            assert [node_of(world, name) for name in "abc"] == ["", "", ""]
            await world.node("n2", cpu="2")
            await until(lambda: all(node_of(world, name) for name in "abc"))

            def conditions() -> list[Any]:
                found = world.registry.cache.get(GROUPS, "default", "g")
                assert found is not None
                said: list[Any] = found.object(GROUPS).get("status", {}).get("conditions", [])
                return said

            await until(lambda: [one["status"] for one in conditions()] == ["True"])
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_only_pods_that_ask_for_this_scheduler_are_bound() -> None:
    async def story(world: World) -> None:
        await world.node()
        async with scheduling(world):
            await world.pod("other", schedulerName="someone-else")
            await world.pod("ours")
            await until(lambda: node_of(world, "ours") == "n1")
            assert node_of(world, "other") == ""

    tell(story)


def test_what_was_there_before_is_seen_first() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="3")
        await world.pod("there", cpu="2", nodeName="n1")
        await asyncio.gather(*[world.pod(f"p{at}") for at in range(3)])
        async with scheduling(world):
            await until(lambda: sum(bool(node_of(world, f"p{at}")) for at in range(3)) == 1)
            await until(lambda: sum(world.decision(f"p{at}") is not None for at in range(3)) == 3)
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_a_pod_that_somebody_else_binds_meanwhile_is_left_alone() -> None:
    async def story(world: World) -> None:
        await world.node("n1", cpu="4")
        await world.node("n2", cpu="2")
        async with scheduling(world) as scheduler:
            scheduler.drive.stop_deciding()
            await world.pod()
            await world.binder.bind("default", "p", "n2")
            await until(lambda: scheduler.feed.revision >= world.held("p").revision)
        assert node_of(world, "p") == "n2"

    tell(story)


def test_a_bind_to_a_node_that_filled_up_meanwhile_is_refused_and_the_pod_goes_elsewhere() -> None:
    """The scheduler is slow to hear: what it knows is old, and the store is not."""

    async def story(world: World) -> None:
        await world.node("n1", cpu="8")
        await world.node("n2", cpu="2")
        async with scheduling(world) as scheduler:
            await until(lambda: scheduler.feed.revision > 0)
            told = scheduler.feed._tell
            scheduler.feed._tell = lambda changes: None
            await world.pod("thief", cpu="8", nodeName="n1")
            await until(lambda: scheduler.feed.revision >= world.held("thief").revision)
            scheduler.feed._tell = told
            await world.pod("p")
            await until(lambda: node_of(world, "p") == "n2")
        assert any("has no room" in one["message"] for one in events(world))
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_without_explanations_decisions_say_where_and_no_more() -> None:
    async def story(world: World) -> None:
        await world.node()
        async with scheduling(world, SchedulerSettings(default_configuration(), elects=False, explain=False)):
            await world.pod()
            await until(lambda: node_of(world, "p") == "n1")
        decision = world.decision("p")
        assert decision is not None
        assert (decision.spec.node, decision.status.scores) == ("n1", ())

    tell(story)


def test_a_scheduler_that_stops_answers_what_it_has_begun() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="64", allocatable={"pods": "100", "memory": "200Gi"})
        await asyncio.gather(*[world.pod(f"p{at}", cpu="100m") for at in range(50)])
        async with scheduling(world) as scheduler:
            await until(lambda: bool(world.on()))
            assert await scheduler.drain(10.0)
            assert performer_of(scheduler).binds_waiting == 0
            assert not performer_of(scheduler).busy
        assert (await witnessed(world.store)).problems == []

    tell(story)


def test_an_event_that_is_said_again_is_counted() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="1")
        async with scheduling(world) as scheduler:
            await world.pod(cpu="2")

            def failed() -> list[Object]:
                return [one for one in events(world) if one["reason"] == "FailedScheduling"]

            await until(lambda: len(failed()) == 1)
            await until(lambda: not performer_of(scheduler)._events.busy)
            one = next(iter(performer_of(scheduler)._events._known.values()))
            performer_of(scheduler)._events.record(one.report, one.controller)
            await until(lambda: failed()[0].get("series", {}).get("count") == 2)
            assert len(failed()) == 1

    tell(story)


def test_the_metrics_of_a_scheduler_count_what_it_does() -> None:
    async def story(world: World) -> None:
        await world.node()
        metrics = Metrics()
        async with open_scheduler(
            world.store, world.registry, world.binder, SchedulerSettings(elects=False), metrics=metrics
        ) as scheduler:
            running = asyncio.create_task(scheduler.run())
            await world.pod()
            await until(lambda: b'result="scheduled"} 1.0' in metrics.render())
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    tell(story)


def test_the_metrics_of_a_scheduler_count_work_in_flight_and_failures() -> None:
    async def story(world: World) -> None:
        await world.node(cpu="1")
        metrics, seen = Metrics(), []
        async with open_scheduler(
            world.store, world.registry, world.binder, SchedulerSettings(elects=False), metrics=metrics
        ) as scheduler:
            note = world.registry.modify

            async def slow(*args: Any, **options: Any) -> Any:
                seen.append(b'scheduler_goroutines{operation="status"} 1.0' in metrics.render())
                return await note(*args, **options)

            world.registry.modify = slow  # type: ignore[method-assign]
            world.binder.bind_one = broken  # type: ignore[method-assign]
            running = asyncio.create_task(scheduler.run())
            await world.pod("large", cpu="2")
            await until(lambda: bool(seen))
            assert seen[0]
            await world.pod()
            await until(lambda: b'situate_failures_total{operation="binding"}' in metrics.render())
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    tell(story)


async def broken(*_: object, **__: object) -> StoredObject:
    raise RuntimeError("a fault")


def test_a_bind_whose_answer_was_lost_is_answered_when_it_is_asked_for_again() -> None:
    async def story(world: World) -> None:
        await world.node("n1")
        await world.node("n2")
        uid = (await world.pod()).uid
        told: list[Change] = []
        engine = Engine(default_configuration())
        view = EngineView(engine)
        port = RegistrySchedulingPort(world.registry, world.binder, view, world.wall_ns, component="default-scheduler")
        performer = Performer(port, view, told.extend, component="default-scheduler", now_ns=world.wall_ns)
        ref = PodRef("default", "p", uid)
        performer.perform([Bind(ref, "n1", 1)])
        await until(lambda: len(told) == 1)
        revision = world.held("p").revision
        performer.perform([Bind(ref, "n1", 2)])
        await until(lambda: len(told) == 2)
        assert told == [BindDone(ref, 1), BindDone(ref, 2)]
        assert world.held("p").revision == revision
        performer.perform([Bind(ref, "n2", 3)])
        await until(lambda: len(told) == 3)
        refused = told[-1]
        assert isinstance(refused, BindFailed)
        assert refused.final
        assert 'is already assigned to node "n1"' in refused.problem
        world.binder.bind_one = broken  # type: ignore[method-assign]
        performer.perform([Bind(ref, "n1", 4)])
        await until(lambda: len(told) == 4)
        assert isinstance(told[-1], BindFailed)
        assert not told[-1].final, "whatever it is, it may be over soon"
        await performer.drain(1.0)
        performer.perform([Bind(ref, "n2", 5)])
        assert isinstance(told[-1], BindFailed)
        assert told[-1].problem == "the scheduler is shutting down"

    tell(story)


def test_a_pod_is_bound_at_once_although_the_last_decision_about_its_name_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(world: World) -> None:
        key = key_of(PLACEMENT_DECISIONS, "default", "p")
        odd = b'{"metadata":{"name":"p","namespace":"default","uid":"u"},"spec":{"bindingVersion":"x"}}'
        await world.store.commit([], [Put(key, odd)])
        await world.node()
        async with scheduling(world):
            await world.pod("p")
            await until(lambda: node_of(world, "p") == "n1")

    tell(story)
    assert "A bind failed" not in caplog.text


HEAD = b"apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}"


def published(world: World) -> list[str]:
    """The scheduler names of the profiles that the scheduler has published."""
    held = world.registry.cache.get(BY_KIND["v1", "ConfigMap"], "kube-system", "situate-schedulers")
    if held is None:
        return []
    data = msgspec.json.decode(held.value)["data"]
    return [one["schedulerName"] for text in data.values() for one in msgspec.json.decode(text)["profiles"]]


def test_the_leader_publishes_its_configuration_and_the_next_one_replaces_it() -> None:
    async def story(world: World) -> None:
        first = load_config(b"{profiles: [{schedulerName: first}, {schedulerName: more}], " + HEAD, "test.yaml")
        second = load_config(b"{profiles: [{schedulerName: second}], " + HEAD, "test.yaml")
        async with scheduling(world, SchedulerSettings(first, publishes=True)):
            await until(lambda: published(world) == ["first", "more"])
        async with scheduling(world, SchedulerSettings(second, publishes=True)):
            await until(lambda: published(world) == ["second"])

    tell(story)


def scheduled_reason(world: World, name: str) -> str:
    found = world.registry.cache.get(PODS, "default", name)
    conditions = [] if found is None else found.object(PODS).get("status", {}).get("conditions", [])
    return next((one.get("reason", "") for one in conditions if one["type"] == "PodScheduled"), "")


def test_a_pod_that_no_scheduler_serves_says_so_until_one_binds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.server.scheduling.unserved.UnservedPods.run.__defaults__", (0.01,))

    async def story(world: World) -> None:
        await world.node()
        other = load_config(b"{profiles: [{schedulerName: served}], " + HEAD, "test.yaml")
        await publish(world.registry, "default.other.json", other)
        async with scheduling(world):
            await world.pod("theirs", schedulerName="served")
            await world.pod("lost", schedulerName="nobody")
            await until(lambda: scheduled_reason(world, "lost") == "UnknownScheduler")
            decision = world.decision("lost")
            assert decision is not None
            assert decision.status.message == 'no known scheduler serves the schedulerName "nobody"'
            assert (decision.phase, decision.status.reason) == ("pending", "UnknownScheduler")
            assert (scheduled_reason(world, "theirs"), world.decision("theirs")) == ("", None)
            await world.binder.bind("default", "lost", "n1")
            bound = world.decision("lost")
            assert bound is not None
            assert (bound.spec.node, bound.status.reason, bound.status.message) == ("n1", "", "")

    tell(story)
