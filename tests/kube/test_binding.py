"""Every way in which a bind can go, and the one answer that is right."""

from typing import Any

import pytest

from kube.performing import World, play
from situate.core.changes import BindDone, BindFailed
from situate.core.effects import Bind, Nominate, SetCondition
from situate.kube import binding
from situate.loop.scheduling.port import NOT_LEADER, RUNNING


async def bound(world: World, **options: Any) -> BindDone | BindFailed:
    """Bind the pod `web` to n1; the only answer."""
    ref = world.add_pod()
    for name, value in options.items():
        getattr(world, name)(*value)
    world.performer.perform([Bind(ref, "n1", 4)])
    told = await world.answers()
    assert len(told) == 1
    answer = told[0]
    assert isinstance(answer, BindDone | BindFailed)
    assert (answer.pod, answer.attempt) == (ref, 4)
    return answer


def test_a_bind_names_the_node_the_uid_and_the_version_that_was_seen() -> None:
    async def scenario(world: World) -> None:
        version = world.server.revision + 1
        assert isinstance(await bound(world), BindDone)
        assert world.get_pod()["spec"]["nodeName"] == "n1"
        [asked] = world.server.asked("POST")
        assert asked.path == "/api/v1/namespaces/default/pods/web/binding"
        assert asked.body["metadata"] == {
            "name": "web",
            "namespace": "default",
            "uid": world.get_pod()["metadata"]["uid"],
            "resourceVersion": str(version),
        }
        assert asked.body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        assert not world.server.asked("GET")

    play(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"drop": "after"}, id="the connection breaks after it was done"),
        pytest.param({"status": 500, "done": True}, id="it is done and answered with 500"),
        pytest.param({"status": 504, "reason": "Timeout", "done": True}, id="it is done and times out"),
        pytest.param({"status": 409, "reason": "Conflict", "done": True}, id="it is done and answered with 409"),
    ],
)
def test_a_bind_whose_answer_is_lost_is_done_if_the_pod_says_so(fault: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        world.server.fault("POST", "/binding", **fault)
        assert isinstance(await bound(world), BindDone)
        assert len(world.server.asked("POST")) == 1

    play(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"drop": "before"}, id="the connection breaks before"),
        pytest.param({"status": 500}, id="500"),
        pytest.param({"status": 503, "reason": "ServiceUnavailable"}, id="503"),
        pytest.param({"status": 409, "reason": "Conflict"}, id="409 for no reason that the pod shows"),
        pytest.param({"status": 429, "reason": "TooManyRequests"}, id="429"),
        pytest.param({"status": 401, "reason": "Unauthorized"}, id="401"),
    ],
)
def test_a_bind_that_was_not_carried_out_is_worth_another_try(fault: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        world.server.fault("POST", "/binding", **fault)
        answer = await bound(world)
        assert isinstance(answer, BindFailed)
        assert not answer.final
        assert answer.problem.startswith(RUNNING)
        assert "nodeName" not in world.get_pod()["spec"]
        world.performer.perform([Bind(answer.pod, "n1", 4)])
        assert (await world.answers(2))[1:] == [BindDone(answer.pod, 4)]

    play(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 422, "reason": "Invalid"}, id="422"),
        pytest.param({"status": 403, "reason": "Forbidden"}, id="403"),
        pytest.param({"status": 400, "reason": "BadRequest"}, id="400"),
        pytest.param({"status": 404, "reason": "NotFound"}, id="404"),
    ],
)
def test_what_is_refused_is_not_asked_for_again(fault: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        world.server.fault("POST", "/binding", message="no such luck", **fault)
        answer = await bound(world)
        assert isinstance(answer, BindFailed)
        assert answer.final
        assert answer.problem == f"{RUNNING}no such luck"
        assert not world.server.asked("GET")

    play(scenario)


def test_a_pod_that_was_bound_elsewhere_is_left_there() -> None:
    async def scenario(world: World) -> None:
        answer = await bound(world, bind_pod=["n2"])
        assert isinstance(answer, BindFailed)
        assert answer.final
        assert answer.problem.endswith('pod web is already assigned to node "n2"')
        assert world.get_pod()["spec"]["nodeName"] == "n2"

    play(scenario)


def test_a_pod_that_is_bound_to_our_node_already_is_bound() -> None:
    async def scenario(world: World) -> None:
        assert isinstance(await bound(world, bind_pod=["n1"]), BindDone)

    play(scenario)


def test_another_pod_of_the_same_name_is_not_bound() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.remove("/api/v1/pods", "web", "default")
        seen = dict(world.seen.pods)
        world.add_pod()
        world.seen.pods = seen
        world.performer.perform([Bind(ref, "n1", 1)])
        [answer] = await world.answers()
        assert isinstance(answer, BindFailed)
        assert answer.final
        assert "nodeName" not in world.get_pod()["spec"]

    play(scenario)


def test_a_pod_that_is_gone_is_not_bound() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.remove("/api/v1/pods", "web", "default")
        world.performer.perform([Bind(ref, "n1", 1)])
        [answer] = await world.answers()
        assert isinstance(answer, BindFailed)
        assert answer.final

    play(scenario)


def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.change_pod(deletionTimestamp="2026-01-01T00:00:00Z")
        world.performer.perform([Bind(ref, "n1", 1)])
        [answer] = await world.answers()
        assert isinstance(answer, BindFailed)
        assert answer.final
        assert answer.problem.endswith("pod web is being deleted, cannot be assigned to a host")

    play(scenario)


def test_a_pod_that_only_has_another_version_is_bound_in_that_version() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.change_pod(annotations={"seen-by": "somebody"})
        world.performer.perform([Bind(ref, "n1", 1)])
        assert await world.answers() == [BindDone(ref, 1)]
        versions = [asked.body["metadata"]["resourceVersion"] for asked in world.server.asked("POST")]
        assert len(versions) == 2
        assert int(versions[0]) < int(versions[1])

    play(scenario)


def test_a_pod_that_was_changed_since_it_was_decided_on_is_decided_anew() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.change_pod(labels={"app": "other"})
        world.performer.perform([Bind(ref, "n1", 1)])
        [answer] = await world.answers()
        assert isinstance(answer, BindFailed)
        assert answer.final
        assert "was changed" in answer.problem
        assert "nodeName" not in world.get_pod()["spec"]

    play(scenario)


def test_a_version_is_tried_once_more_and_no_oftener() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.change_pod(annotations={"a": "1"})
        world.server.fault("POST", "/binding", status=409, reason="Conflict", times=9)
        world.performer.perform([Bind(ref, "n1", 1)])
        [answer] = await world.answers()
        assert isinstance(answer, BindFailed)
        assert not answer.final
        assert len(world.server.asked("POST")) == 2

    play(scenario)


def test_a_bind_that_cannot_be_looked_into_is_not_guessed_at() -> None:
    async def scenario(world: World) -> None:
        world.server.fault("POST", "/binding", drop="after")
        world.server.fault("GET", "/pods/web", status=500)
        answer = await bound(world)
        assert isinstance(answer, BindFailed)
        assert not answer.final
        assert "cannot be read" in answer.problem
        world.performer.perform([Bind(answer.pod, "n1", 4)])
        assert (await world.answers(2))[1:] == [BindDone(answer.pod, 4)], "the next look says that it was done"

    play(scenario)


def test_a_bind_without_an_answer_is_looked_into_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        world.server.fault("POST", "/binding", hang=True)
        answer = await bound(world)
        assert isinstance(answer, BindFailed)
        assert not answer.final
        assert len(world.server.asked("GET", "/pods/web")) == 1
        world.server.release()

    monkeypatch.setattr(binding, "BIND_S", 0.05)
    play(scenario)


def test_who_does_not_lead_binds_nothing() -> None:
    async def scenario(world: World) -> None:
        world.leads = False
        answer = await bound(world)
        assert answer == BindFailed(answer.pod, 4, NOT_LEADER)
        assert not world.server.requests

    play(scenario)


def test_who_stops_leading_does_not_try_again() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.change_pod(annotations={"a": "1"})
        world.server.fault("GET", "/pods/web", hang=True)
        world.performer.perform([Bind(ref, "n1", 1)])
        await world.until(lambda: world.server.asked("GET"))
        world.leads = False
        world.server.release()
        assert await world.answers() == [BindFailed(ref, 1, NOT_LEADER)]
        assert len(world.server.asked("POST")) == 1

    play(scenario)


def test_a_bind_that_is_asked_for_twice_is_answered_once() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.performer.perform([Bind(ref, "n1", 1), Bind(ref, "n1", 1)])
        assert await world.answers() == [BindDone(ref, 1)]
        assert len(world.server.asked("POST")) == 1

    play(scenario)


def test_a_bind_comes_after_the_note_that_is_being_written_and_in_its_version() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.server.fault("PATCH", "/status", hang=True)
        world.performer.perform([SetCondition(ref, "PodScheduled", "False", "Unschedulable", "no room")])
        await world.until(lambda: world.server.asked("PATCH"))
        world.performer.perform([Nominate(ref, "n9")])
        world.performer.perform([Bind(ref, "n1", 2)])
        assert not world.server.asked("POST")
        world.server.release()
        assert await world.answers() == [BindDone(ref, 2)]
        assert len(world.server.asked("PATCH")) == 1, "the nomination is of no use any more"
        assert not world.server.asked("GET"), "the version that the note made is known"

    play(scenario)


@pytest.mark.parametrize("cause", ["FullNode", "IneligibleNode", "StaleTerm"])
def test_a_node_that_the_server_refuses_is_not_asked_for_again(cause: str) -> None:
    async def scenario(world: World) -> None:
        world.server.fault("POST", "/binding", status=409, reason="Conflict", causes=[cause])
        answer = await bound(world)
        assert isinstance(answer, BindFailed)
        assert answer.final
        assert not world.server.asked("GET")

    play(scenario)


def test_a_bind_says_in_which_term_it_was_decided_if_there_is_one() -> None:
    async def scenario(world: World) -> None:
        world.performer = world.new_performer(term=lambda: 7)
        assert isinstance(await bound(world), BindDone)
        [asked] = world.server.asked("POST")
        assert asked.body["metadata"]["annotations"] == {"situate.dev/term": "7"}

    play(scenario)
