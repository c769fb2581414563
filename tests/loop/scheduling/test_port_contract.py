"""What a performer does in every world: nothing blocks, everything is answered once, and nothing false is written."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from loop.scheduling.worlds import WORLDS, Opener, PortWorld, play
from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    EvictDone,
    EvictFailed,
    ExtenderSaid,
    PodRef,
    VolumesFailed,
)
from situate.core.effects import AskExtender, Bind, BindVolumes, Effect, Evict, Nominate, Report, SetCondition
from situate.core.effects import SetGroupCondition as GroupCondition
from situate.core.model.pod import Pod
from situate.loop.logs import KEYS
from situate.loop.scheduling.port import NOT_LEADER, STOPPING, InFlightLimits, SchedulingPort

MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"
in_both_worlds = pytest.mark.parametrize("opener", WORLDS)


def pending(ref: PodRef, message: str = "0/1 nodes are available: 1 Too many pods.") -> SetCondition:
    return SetCondition(ref, "PodScheduled", "False", "Unschedulable", message)


def evict(victim: PodRef) -> Evict:
    return Evict(victim, "n1", PodRef("default", "important", "uid-i"), MESSAGE)


def conditions(pod: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = pod.get("status", {}).get("conditions", [])
    return [(one["type"], one["status"], one.get("reason", "")) for one in found]


class Gate:
    """Stands before a port's binds: each waits until it is opened. Everything else goes through."""

    def __init__(self, world: PortWorld, binds: int = 1) -> None:
        self._port: SchedulingPort = world.port
        self.opened = asyncio.Event()
        self.running = self.most = 0
        self.limits = InFlightLimits(binds, 1, 1, 1, 1, 1)
        world.port = self
        world.performer = world.new_performer()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def bind(self, bind: Bind, pod: Pod | None) -> BindDone | BindFailed:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.opened.wait()
            return await self._port.bind(bind, pod)
        finally:
            self.running -= 1


# -- binds -------------------------------------------------------------------------------------------------------------


@in_both_worlds
def test_performing_waits_for_nothing(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        refs = [await world.add_pod(f"p{at}") for at in range(10)]
        before = world.writes
        world.performer.perform([Bind(ref, "n1", 1) for ref in refs])
        assert not world.told
        assert world.writes == before
        assert sorted(map(repr, await world.answers(10))) == sorted(repr(BindDone(ref, 1)) for ref in refs)
        assert all(world.pod(ref.name)["spec"]["nodeName"] == "n1" for ref in refs)

    play(opener, scenario)


@in_both_worlds
def test_no_more_binds_run_than_the_limit_allows(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        gate = Gate(world, binds=5)
        refs = [await world.add_pod(f"p{at}") for at in range(12)]
        world.performer.perform([Bind(ref, "n1", 1) for ref in refs])
        await world.until(lambda: gate.running == 5)
        assert world.performer.binds_waiting == 12
        gate.opened.set()
        await world.answers(12)
        assert gate.most == 5
        assert world.performer.binds_waiting == 0

    play(opener, scenario)


@in_both_worlds
def test_the_same_attempt_is_carried_out_and_answered_once(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        world.performer.perform([Bind(ref, "n1", 1), Bind(ref, "n1", 1)])
        assert await world.answers() == [BindDone(ref, 1)]

    play(opener, scenario)


@in_both_worlds
def test_a_bind_whose_answer_was_lost_is_done_when_it_is_asked_for_again(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        world.performer.perform([Bind(ref, "n1", 1)])
        await world.answers()
        version = world.pod()["metadata"]["resourceVersion"]
        world.performer.perform([Bind(ref, "n1", 2)])
        assert await world.answers(2) == [BindDone(ref, 1), BindDone(ref, 2)]
        assert world.pod()["metadata"]["resourceVersion"] == version

    play(opener, scenario)


@in_both_worlds
def test_a_later_decision_replaces_a_bind_and_a_note_that_have_not_begun(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        gate = Gate(world)
        first, ref = await world.add_pod("first"), await world.add_pod()
        world.performer.perform([Bind(first, "n1", 1)])
        await world.until(lambda: gate.running)
        world.performer.perform([pending(ref), Bind(ref, "n1", 1)])
        world.performer.perform([Bind(ref, "n2", 2)])
        gate.opened.set()
        assert await world.answers(2) == [BindDone(first, 1), BindDone(ref, 2)]
        assert world.pod()["spec"]["nodeName"] == "n2"

    play(opener, scenario)


async def _bound(world: PortWorld) -> None:
    await world.change("Pod", "web", lambda pod: pod["spec"].update(nodeName="n2"))


async def _gone(world: PortWorld) -> None:
    await world.remove("Pod", "web")


async def _replaced(world: PortWorld) -> None:
    seen = dict(world.seen.pods)
    await world.remove("Pod", "web")
    await world.add_pod()
    world.seen.pods = seen


@in_both_worlds
@pytest.mark.parametrize(
    "change, problem",
    [
        pytest.param(_bound, 'is already assigned to node "n2"', id="it was bound elsewhere"),
        pytest.param(_gone, 'pods "web" not found', id="it is gone"),
        pytest.param(_replaced, "", id="another pod has its name"),
    ],
)
def test_a_pod_that_is_not_what_it_was_is_not_bound_and_that_is_final(
    opener: Opener, change: Callable[[PortWorld], Any], problem: str
) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        await change(world)
        world.performer.perform([Bind(ref, "n1", 1)])
        [answer] = await world.answers()
        assert isinstance(answer, BindFailed)
        assert answer.final
        assert problem in answer.problem
        assert world.counted.failures == ["binding"]
        assert all(one["spec"].get("nodeName") != "n1" for one in world.all("Pod"))

    play(opener, scenario)


@in_both_worlds
def test_annotations_of_a_bind_are_written_on_the_pod(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        world.performer.perform([Bind(ref, "n1", 1, annotations=(("example.com/x", "0,1"),))])
        assert await world.answers() == [BindDone(ref, 1)]

    play(opener, scenario)


# -- refusals and faults -----------------------------------------------------------------------------------------------


def everything(ref: PodRef) -> list[Effect]:
    return [
        Bind(ref, "n1", 1),
        BindVolumes(ref, "n1", 1, (("data", "pv-1"),), ()),
        evict(ref),
        pending(ref),
        Nominate(ref, "n1"),
        GroupCondition("default", "g", "False", "Unschedulable", "x"),
        Report(ref, "Warning", "FailedScheduling", "Scheduling", "x"),
    ]


@in_both_worlds
@pytest.mark.parametrize("why", [NOT_LEADER, STOPPING])
def test_a_scheduler_that_may_not_write_answers_so_and_writes_nothing(opener: Opener, why: str) -> None:
    async def scenario(world: PortWorld) -> None:
        await world.add_group()
        ref = await world.add_pod()
        before = world.writes
        if why == NOT_LEADER:
            world.leads = False
        else:
            assert await world.performer.drain(1)
        world.performer.perform([*everything(ref), AskExtender(7, 0, "filter", ref, ("n1",))])
        told = await world.answers(4)
        assert [type(one) for one in told] == [BindFailed, VolumesFailed, EvictFailed, ExtenderSaid]
        problems = [one.problem for one in told if isinstance(one, BindFailed | VolumesFailed | EvictFailed)]
        assert all(problem.endswith(why) for problem in problems)
        assert not any(isinstance(one, BindFailed) and one.final for one in told)
        assert world.writes == before

    play(opener, scenario)


@in_both_worlds
def test_a_scheduler_that_stops_leading_before_its_turn_writes_nothing(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        await world.add_group()
        ref, victim = await world.add_pod(), await world.add_pod("victim")
        before = world.writes
        effects = everything(ref)
        world.performer.perform([effects[0], evict(victim), *effects[3:]])
        world.leads = False
        told = await world.answers(2)
        assert {(type(one), getattr(one, "problem", "")) for one in told} == {
            (BindFailed, NOT_LEADER),
            (EvictFailed, NOT_LEADER),
        }
        assert world.writes == before

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize(
    "call, effect, answer",
    [
        pytest.param("bind", lambda ref: Bind(ref, "n1", 1), BindFailed, id="a bind"),
        pytest.param("evict", evict, EvictFailed, id="an eviction"),
        pytest.param(
            "read_claim", lambda ref: BindVolumes(ref, "n1", 1, (), ("data",)), VolumesFailed, id="reading a claim"
        ),
    ],
)
def test_a_fault_of_ours_is_logged_and_answered(
    opener: Opener,
    call: str,
    effect: Callable[[PodRef], Effect],
    answer: type[Change],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(*_: object) -> None:
        raise LookupError("a fault")

    async def scenario(world: PortWorld) -> None:
        await world.add_claim()
        ref = await world.add_pod()
        setattr(world.port, call, broken)
        world.performer.perform([effect(ref)])
        [told] = await world.answers()
        assert isinstance(told, answer)
        assert "a fault" in getattr(told, "problem", "")
        assert not getattr(told, "final", False), "whatever it is, it may be over soon"
        assert any("a fault" in getattr(record, KEYS)["err"] for record in caplog.records)
        assert not world.performer.binds_waiting

    play(opener, scenario)


@in_both_worlds
def test_draining_lets_binds_finish_and_answers_the_others(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        gate = Gate(world, binds=3)
        refs = [await world.add_pod(f"p{at}") for at in range(5)]
        late = await world.add_pod("late")
        world.performer.perform([Bind(ref, "n1", 1) for ref in refs])
        await world.until(lambda: gate.running == 3)
        draining = asyncio.create_task(world.performer.drain(5))
        await asyncio.sleep(0)
        world.performer.perform([Bind(late, "n1", 1), evict(late), Nominate(late, "n1")])
        gate.opened.set()
        assert await draining
        assert sorted(map(repr, world.told)) == sorted(
            map(
                repr,
                [
                    *(BindDone(ref, 1) for ref in refs[:3]),
                    *(BindFailed(ref, 1, STOPPING) for ref in (*refs[3:], late)),
                    EvictFailed(late, STOPPING),
                ],
            )
        )
        assert "nodeName" not in world.pod("late")["spec"]

    play(opener, scenario)


@in_both_worlds
def test_what_is_cut_off_is_answered_too(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        gate = Gate(world)
        await world.add_claim()
        ref = await world.add_pod()
        volumes = BindVolumes(ref, "n1", 1, (), ("data",))
        world.performer.perform([Bind(ref, "n1", 1), volumes])
        await world.until(lambda: gate.running)
        assert not await world.performer.drain(0.01)
        await world.until(lambda: len(world.told) == 2)
        assert {type(one) for one in world.told} == {BindFailed, VolumesFailed}
        assert all(getattr(one, "problem", "").endswith(STOPPING) for one in world.told)

    play(opener, scenario)


# -- notes -------------------------------------------------------------------------------------------------------------


@in_both_worlds
def test_a_condition_and_a_nomination_of_one_step_are_one_write(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        before = world.writes
        world.performer.perform([pending(ref, "old"), pending(ref), Nominate(ref, "n2")])
        await world.quiet()
        assert world.writes == before + 1
        assert world.pod()["status"]["nominatedNodeName"] == "n2"
        assert conditions(world.pod()) == [("PodScheduled", "False", "Unschedulable")]
        assert world.counted.most["status"] == 1
        assert not world.told

    play(opener, scenario)


@in_both_worlds
def test_what_is_written_already_is_not_written_again(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        before = world.writes
        steps: list[tuple[int, Effect]] = [(1, pending(ref)), (1, pending(ref)), (2, Nominate(ref, "n1"))]
        for writes, effect in steps:
            world.performer.perform([effect])
            await world.quiet()
            assert world.writes == before + writes
            world.show()
        world.performer.perform([Nominate(ref, "")])
        await world.quiet()
        assert "nominatedNodeName" not in world.pod()["status"]

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("change", [_bound, _gone, _replaced])
def test_a_pod_that_is_not_pending_any_more_gets_no_note_and_that_is_no_failure(
    opener: Opener, change: Callable[[PortWorld], Any]
) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        await change(world)
        world.performer.perform([pending(ref), Nominate(ref, "n1")])
        await world.quiet()
        for pod in world.all("Pod"):
            assert not conditions(pod)
            assert "nominatedNodeName" not in pod.get("status", {})
        assert not world.counted.failures

    play(opener, scenario)


@in_both_worlds
def test_a_bound_pod_is_said_to_be_scheduled_whatever_was_noted_before(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        world.performer.perform([pending(ref), Nominate(ref, "n1")])
        await world.quiet()
        world.performer.perform([Bind(ref, "n1", 1)])
        assert await world.answers() == [BindDone(ref, 1)], "the version that our note made is known"

    play(opener, scenario)


@in_both_worlds
def test_of_several_conditions_of_a_group_the_last_is_written(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        await world.add_group()
        world.performer.perform([GroupCondition("default", "g", "False", "Unschedulable", f"{at}") for at in range(9)])
        await world.quiet()
        [written] = world.get("PodGroup", "g")["status"]["conditions"]
        assert (written["type"], written["message"]) == ("PodGroupInitiallyScheduled", "8")
        world.show()
        before = world.writes
        world.performer.perform(
            [
                GroupCondition("default", "g", "False", "Unschedulable", "8"),
                GroupCondition("default", "absent", "True", "Scheduled", ""),
            ]
        )
        await world.quiet()
        assert world.writes == before
        assert not world.counted.failures

    play(opener, scenario)


# -- evictions ---------------------------------------------------------------------------------------------------------


@in_both_worlds
def test_a_victim_is_told_why_and_deleted_once(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        world.performer.perform([evict(ref), evict(ref)])
        assert await world.answers() == [EvictDone(ref)]
        assert not [one for one in world.all("Pod") if "deletionTimestamp" not in one["metadata"]]
        assert world.counted.most["preemption"] == 1

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("change", [_gone, _replaced])
def test_a_victim_that_is_gone_needs_no_eviction_and_another_of_its_name_stays(
    opener: Opener, change: Callable[[PortWorld], Any]
) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        await change(world)
        world.performer.perform([evict(ref)])
        assert await world.answers() == [EvictDone(ref)]
        assert not [one for one in world.all("Pod") if conditions(one) or "deletionTimestamp" in one["metadata"]]

    play(opener, scenario)


@in_both_worlds
def test_an_eviction_does_not_wait_for_the_binds_of_other_pods(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        gate = Gate(world)
        victim, ref = await world.add_pod("victim"), await world.add_pod()
        world.performer.perform([Bind(ref, "n2", 1), evict(victim)])
        await world.until(lambda: world.told)
        assert world.told == [EvictDone(victim)]
        gate.opened.set()
        assert (await world.answers(2))[1:] == [BindDone(ref, 1)]

    play(opener, scenario)


# -- extenders ---------------------------------------------------------------------------------------------------------


class Extender:
    """Answers as loop.extenders.Extenders does."""

    async def ask(self, ask: AskExtender) -> ExtenderSaid:
        if ask.verb == "preempt":
            raise LookupError("a fault")
        return ExtenderSaid(ask.ask, nodes=("n1",))

    async def bind(self, bind: Bind) -> BindDone | BindFailed:
        return BindDone(bind.pod, bind.attempt)


@in_both_worlds
def test_an_extender_is_asked_and_binds_what_it_is_to_bind(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        world.performer = world.new_performer(extenders=Extender())
        ref = await world.add_pod()
        before = world.writes
        world.performer.perform([AskExtender(7, 0, "filter", ref, ("n1", "n2")), Bind(ref, "n1", 1, extender=0)])
        world.performer.perform([AskExtender(8, 0, "preempt", ref, ("n1", "n2"))])
        told = await world.answers(3)
        expected = [ExtenderSaid(7, nodes=("n1",)), BindDone(ref, 1), ExtenderSaid(8, problem="LookupError('a fault')")]
        assert sorted(map(repr, told)) == sorted(map(repr, expected))
        assert world.writes == before
        assert world.counted.failures == ["extender"]

    play(opener, scenario)


@in_both_worlds
def test_an_extender_that_hangs_is_answered_for_when_the_performer_stops(opener: Opener) -> None:
    class Hanging(Extender):
        async def ask(self, ask: AskExtender) -> ExtenderSaid:
            await asyncio.Event().wait()
            raise AssertionError

    async def scenario(world: PortWorld) -> None:
        world.performer = world.new_performer(extenders=Hanging())
        ref = await world.add_pod()
        world.performer.perform([AskExtender(7, 0, "filter", ref, ("n1",))])
        await asyncio.sleep(0)
        world.performer.perform([AskExtender(8, 0, "filter", ref, ("n1",))])
        assert await world.performer.drain(1)
        assert world.told == [ExtenderSaid(7, problem=STOPPING), ExtenderSaid(8, problem=STOPPING)]
        assert not world.performer.busy

    play(opener, scenario)


@in_both_worlds
def test_without_extenders_asking_one_is_answered_all_the_same(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        ref = await world.add_pod()
        world.performer.perform([AskExtender(7, 0, "filter", ref, ("n1",)), Bind(ref, "n1", 1, extender=0)])
        told = await world.answers(2)
        assert [type(one) for one in told] == [ExtenderSaid, BindFailed]

    play(opener, scenario)
