"""What is noted on waiting pods: once, in one patch, in order, and never on a pod that waits no longer."""

from typing import Any

import pytest

from kube.performing import World, play
from situate.core.changes import BindDone, PodRef
from situate.core.effects import Bind, Nominate, SetCondition, SetGroupCondition
from situate.core.model.group import PodGroup
from situate.core.model.meta import ObjectMeta
from situate.kube.conditions import GroupApi

NOW = "2026-01-01T00:00:00Z"


def waits(ref: PodRef, message: str = "0/1 nodes are available: 1 Too many pods.") -> SetCondition:
    return SetCondition(ref, "PodScheduled", "False", "Unschedulable", message)


def test_a_condition_is_written_as_kubernetes_writes_it() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        version = world.get_pod()["metadata"]["resourceVersion"]
        world.performer.perform([waits(ref, 'a "quoted" text')])
        await world.quiet()
        [asked] = world.server.asked("PATCH")
        assert asked.path == "/api/v1/namespaces/default/pods/web/status"
        assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
        assert asked.body == {
            "metadata": {"uid": ref.uid, "resourceVersion": version},
            "status": {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": 'a "quoted" text',
                        "observedGeneration": 3,
                        "lastTransitionTime": NOW,
                    }
                ]
            },
        }
        assert not world.told

    play(scenario)


def test_what_is_so_already_is_not_written_again() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.performer.perform([waits(ref), Nominate(ref, "")])
        await world.quiet()
        world.performer.perform([waits(ref)])
        await world.quiet()
        world.see_pod()
        world.performer.perform([waits(ref), Nominate(ref, "")])
        await world.quiet()
        assert len(world.server.asked("PATCH")) == 1

    play(scenario)


def test_who_takes_over_does_not_say_again_what_the_pod_says_already() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.performer.perform([waits(ref)])
        await world.quiet()
        world.see_pod()
        world.performer = world.new_performer()
        world.performer.perform([waits(ref)])
        await world.quiet()
        assert len(world.server.asked("PATCH")) == 1
        world.performer.perform([waits(ref, "in other words")])
        await world.quiet()
        assert len(world.server.asked("PATCH")) == 2

    play(scenario)


def test_another_message_keeps_the_time_since_when_the_pod_waits() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.performer.perform([waits(ref, "first")])
        await world.quiet()
        world.see_pod()
        world.now_ns += 60_000_000_000
        world.performer.perform([waits(ref, "second")])
        await world.quiet()
        [condition] = world.get_pod()["status"]["conditions"]
        assert condition["message"] == "second"
        assert condition["lastTransitionTime"] == NOW

    play(scenario)


def test_a_nomination_is_taken_back() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.performer.perform([Nominate(ref, "n1")])
        await world.quiet()
        world.performer.perform([Nominate(ref, "")])
        await world.quiet()
        assert "nominatedNodeName" not in world.get_pod()["status"]
        assert not world.server.asked("GET"), "the second patch knows the version that the first made"

    play(scenario)


def test_only_the_latest_is_written_where_a_pod_is_behind() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.fault("PATCH", "/status", hang=True)
        world.performer.perform([waits(ref, "1")])
        await world.until(lambda: world.server.asked("PATCH"))
        for text in "23456789":
            world.performer.perform([waits(ref, text)])
        world.server.release()
        await world.quiet()
        said = [asked.body["status"]["conditions"][0]["message"] for asked in world.server.asked("PATCH")]
        assert said == ["1", "9"]

    play(scenario)


def test_notes_on_different_pods_do_not_wait_for_each_other() -> None:
    async def scenario(world: World) -> None:
        slow, quick = world.add_pod("slow"), world.add_pod("quick")
        world.server.fault("PATCH", "/pods/slow/", hang=True)
        world.performer.perform([waits(slow), waits(quick)])
        await world.until(lambda: "status" in world.get_pod("quick"))
        assert "status" not in world.get_pod("slow")
        world.server.release()
        await world.quiet()

    play(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 500}, id="500"),
        pytest.param({"status": 429, "reason": "TooManyRequests"}, id="429"),
        pytest.param({"drop": "before"}, id="the connection breaks before"),
        pytest.param({"drop": "after"}, id="the connection breaks after"),
        pytest.param({"status": 409, "reason": "Conflict"}, id="409"),
    ],
)
def test_a_patch_that_failed_is_tried_again(fault: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.fault("PATCH", "/status", **fault)
        world.performer.perform([waits(ref)])
        await world.quiet()
        assert len(world.get_pod()["status"]["conditions"]) == 1
        assert not world.counted.failures

    play(scenario)


def test_a_patch_that_keeps_failing_is_given_up_and_counted() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.fault("PATCH", "/status", status=503, times=99)
        world.performer.perform([waits(ref)])
        await world.quiet()
        assert world.counted.failures == ["status"]
        assert len(world.server.asked("PATCH")) == 4

    play(scenario)


@pytest.mark.parametrize(
    "code, tries",
    [
        pytest.param(403, 1, id="403"),
        pytest.param(422, 2, id="422, which may mean that another pod has the name by now"),
    ],
)
def test_a_patch_that_is_refused_is_not_tried_for_long(code: int, tries: int) -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.fault("PATCH", "/status", status=code, times=99)
        world.performer.perform([waits(ref)])
        await world.quiet()
        assert world.counted.failures == ["status"]
        assert len(world.server.asked("PATCH")) == tries

    play(scenario)


def test_a_pod_that_was_bound_meanwhile_is_not_said_to_wait() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.bind_pod("n2")
        world.performer.perform([waits(ref), Nominate(ref, "n1")])
        await world.quiet()
        assert "status" not in world.get_pod()
        assert not world.counted.failures

    play(scenario)


def test_another_pod_of_the_same_name_gets_no_note() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.replace_pod()
        world.performer.perform([waits(ref)])
        await world.quiet()
        assert "status" not in world.get_pod()

    play(scenario)


def test_a_patch_that_is_refused_because_another_pod_has_the_name_is_no_failure() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.replace_pod()
        world.server.fault("PATCH", "/status", status=422, reason="Invalid")
        world.performer.perform([waits(ref)])
        await world.quiet()
        assert not world.counted.failures
        assert len(world.server.asked("PATCH")) == 1

    play(scenario)


def test_a_note_on_a_pod_that_somebody_else_changed_is_written_on_what_it_is_now() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.change_pod(labels={"app": "changed"})
        world.performer.perform([waits(ref)])
        await world.quiet()
        pod = world.get_pod()
        assert pod["status"]["conditions"][0]["reason"] == "Unschedulable"
        assert pod["metadata"]["labels"] == {"app": "changed"}
        world.performer.perform([Bind(ref, "n1", 1)])
        [answer] = await world.answers()
        assert not isinstance(answer, BindDone), "the version that was written is not the one that was decided on"

    play(scenario)


@pytest.mark.parametrize(
    "version, condition", [("v1alpha2", "PodGroupScheduled"), ("v1beta1", "PodGroupInitiallyScheduled")]
)
def test_a_group_is_told_whether_it_was_scheduled_as_its_api_has_it(version: str, condition: str) -> None:
    async def scenario(world: World) -> None:
        world.performer = world.new_performer(groups=lambda: GroupApi.of(version))
        groups = f"/apis/scheduling.k8s.io/{version}/podgroups"
        made = world.server.put(groups, {"metadata": {"name": "g", "namespace": "default"}})
        meta = ObjectMeta(name="g", namespace="default", uid=made["metadata"]["uid"], generation=2)
        world.seen.groups["default", "g"] = PodGroup(metadata=meta)
        world.server.fault("PATCH", "/podgroups/g/status", status=500)
        world.performer.perform([SetGroupCondition("default", "g", "False", "Unschedulable", "waits")])
        await world.quiet()
        group = world.server.get(groups, "g", "default")
        assert group is not None
        assert group["status"]["conditions"] == [
            {
                "type": condition,
                "status": "False",
                "reason": "Unschedulable",
                "message": "waits",
                "observedGeneration": 2,
                "lastTransitionTime": NOW,
            }
        ]

    play(scenario)
