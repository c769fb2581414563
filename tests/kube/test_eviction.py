"""Victims are told why, and deleted; each answer is right, and comes once."""

from typing import Any

import pytest

from kube.performing import PODS, World, play
from situate.core.changes import EvictDone, EvictFailed, PodRef
from situate.core.effects import Evict
from situate.loop.scheduling.port import NOT_LEADER

MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"


def evict(victim: PodRef) -> Evict:
    return Evict(victim, "n1", PodRef("default", "important", "uid-i"), MESSAGE)


def test_a_victim_is_told_why_and_deleted_with_its_own_grace() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.graceful.add(PODS)
        world.performer.perform([evict(ref)])
        assert await world.answers() == [EvictDone(ref)]
        pod = world.get_pod()
        assert pod["metadata"]["deletionTimestamp"]
        assert pod["status"]["conditions"] == [
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": MESSAGE,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
        [patched], [deleted] = world.server.asked("PATCH"), world.server.asked("DELETE")
        assert patched.path.endswith("/pods/web/status")
        assert patched.headers["Content-Type"] == "application/strategic-merge-patch+json"
        assert deleted.body == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": ref.uid}}

    play(scenario)


@pytest.mark.parametrize("method", [pytest.param("PATCH", id="patch"), pytest.param("DELETE", id="delete")])
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 500}, id="500"),
        pytest.param({"status": 403, "reason": "Forbidden"}, id="403"),
        pytest.param({"status": 422, "reason": "Invalid"}, id="422"),
        pytest.param({"status": 429, "reason": "TooManyRequests"}, id="429"),
        pytest.param({"status": 409, "reason": "Conflict"}, id="409 though it is the same pod"),
        pytest.param({"drop": "before"}, id="the connection breaks"),
    ],
)
def test_an_eviction_that_was_not_carried_out_failed(method: str, fault: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.fault(method, "/pods/web", **fault)
        world.performer.perform([evict(ref)])
        [answer] = await world.answers()
        assert isinstance(answer, EvictFailed)
        assert world.get_pod()["metadata"].get("deletionTimestamp") is None
        world.performer.perform([evict(ref)])
        assert (await world.answers(2))[1:] == [EvictDone(ref)]

    play(scenario)


@pytest.mark.parametrize("graceful", [pytest.param(True, id="it is going"), pytest.param(False, id="it is gone")])
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"drop": "after"}, id="the connection breaks"),
        pytest.param({"status": 500, "done": True}, id="500"),
        pytest.param({"status": 404, "reason": "NotFound", "done": True}, id="404"),
    ],
)
def test_a_deletion_whose_answer_is_lost_is_done_if_the_pod_says_so(graceful: bool, fault: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        if graceful:
            world.server.graceful.add(PODS)
        world.server.fault("DELETE", "/pods/web", **fault)
        world.performer.perform([evict(ref)])
        assert await world.answers() == [EvictDone(ref)]

    play(scenario)


@pytest.mark.parametrize(
    "code", [pytest.param(0, id="as the fake says it"), pytest.param(422, id="as Kubernetes does")]
)
def test_another_pod_of_the_same_name_is_neither_marked_nor_deleted(code: int) -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.remove(PODS, "web", "default")
        world.add_pod()
        world.server.fault("PATCH", "/status", status=code, reason="Invalid")
        world.performer.perform([evict(ref)])
        assert await world.answers() == [EvictDone(ref)]
        assert "status" not in world.get_pod()

    play(scenario)


def test_who_does_not_lead_evicts_nobody() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.leads = False
        world.performer.perform([evict(ref)])
        assert await world.answers() == [EvictFailed(ref, NOT_LEADER)]
        assert not world.server.requests

    play(scenario)


def test_who_stops_leading_between_the_mark_and_the_deletion_does_not_delete() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.fault("PATCH", "/status", hang=True)
        world.performer.perform([evict(ref)])
        await world.until(lambda: world.server.asked("PATCH"))
        world.leads = False
        world.server.release()
        assert await world.answers() == [EvictFailed(ref, NOT_LEADER)]
        assert not world.server.asked("DELETE")

    play(scenario)
