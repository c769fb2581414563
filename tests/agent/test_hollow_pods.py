"""What becomes of a pod that runs nothing."""

from typing import Any

import pytest

from situate.agent.hollow_pods import EXIT_CODE, RUN_FOR, START_MS, PodTransition, next_transition, status_after

NOW_NS = 1_700_000_000 * 10**9


def pod(
    phase: str = "Pending", *, restart: str = "Always", going: bool = False, annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "p", "namespace": "default", "uid": "u-1", "annotations": annotations or {}}
    if going:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"nodeName": "n", "restartPolicy": restart, "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    "given, expected",
    [
        pytest.param(pod(), "running", id="a pod that was bound runs"),
        pytest.param(pod("Running"), None, id="one that restarts always goes on for ever"),
        pytest.param(pod("Running", restart="Never"), "finished", id="one that does not, ends"),
        pytest.param(pod("Succeeded", restart="Never"), None, id="what has ended stays as it is"),
        pytest.param(pod("Running", going=True), "deleted", id="what is being deleted goes"),
        pytest.param(pod("Succeeded", restart="Never", going=True), "deleted", id="ended or not"),
    ],
)
def test_what_is_next(given: dict[str, Any], expected: str | None) -> None:
    step = next_transition(given)
    assert (step.to if step else None) == expected


def test_a_running_pod_whose_spec_changed_says_so_and_has_its_new_images() -> None:
    waiting = pod()
    waiting["metadata"]["generation"] = 1
    running = {**waiting, "status": status_after(PodTransition("running", 0), waiting, NOW_NS, "10.0.0.1")}
    assert running["status"]["observedGeneration"] == 1
    assert next_transition(running) is None
    changed = {**running, "metadata": {**running["metadata"], "generation": 3}}
    changed["spec"] = {**running["spec"], "containers": [{"name": "c", "image": "j"}]}
    step = next_transition(changed)
    assert step == PodTransition("changed", 0)
    changed["status"] = status_after(step, changed, NOW_NS, "10.0.0.1")
    assert changed["status"]["observedGeneration"] == 3
    assert [one["image"] for one in changed["status"]["containerStatuses"]] == ["j"]
    assert next_transition(changed) is None


def test_a_pod_that_ran_before_hollow_nodes_spoke_of_generations_is_left_alone() -> None:
    old = pod("Running")
    old["metadata"]["generation"] = 1
    assert next_transition(old) is None


@pytest.mark.parametrize(
    "said, expected_ms",
    [
        ("90s", 90_000),
        ("500ms", 500),
        ("2m", 120_000),
        ("", 2_000),
        ("soon", 2_000),
        ("-1s", 2_000),
        ("999999999h", 604_800_000),
    ],
)
def test_a_pod_runs_for_as_long_as_it_says(said: str, expected_ms: int) -> None:
    step = next_transition(pod("Running", restart="Never", annotations={RUN_FOR: said}))
    assert step == PodTransition("finished", expected_ms)


@pytest.mark.parametrize(
    "containers, expected_ms",
    [
        ([{"command": ["sleep", "300"]}], 300_000),
        ([{"command": ["sleep"], "args": ["2m"]}], 120_000),
        ([{"command": ["/bin/sleep", "0.5"]}], 500),
        ([{"command": ["sh", "-c", "sleep 5m"]}], 300_000),
        ([{"command": ["/bin/sh", "-c", "exec sleep 1h"]}], 3_600_000),
        ([{"command": ["sleep", "infinity"]}], 604_800_000),
        ([{"command": ["sleep", "999999999d"]}], 604_800_000),
        ([{"command": ["sleep", "1"]}, {"command": ["sleep", "7"]}], 7_000),
        ([{"command": ["sleep", "1"]}, {"command": ["work"]}], 2_000),
        ([{"command": ["sh", "-c", "sleep 300 && work"]}], 2_000),
        ([{"command": ["sleep", "soon"]}], 2_000),
        ([{"args": ["sleep", "300"]}], 300_000),
        ([{"command": None, "args": None}], 2_000),
    ],
)
def test_a_pod_that_sleeps_runs_until_its_containers_have_slept(
    containers: list[dict[str, Any]], expected_ms: int
) -> None:
    given = pod("Running", restart="Never")
    given["spec"]["containers"] = containers
    assert next_transition(given) == PodTransition("finished", expected_ms)
    said = pod("Running", restart="Never", annotations={RUN_FOR: "10s"})
    said["spec"]["containers"] = containers
    assert next_transition(said) == PodTransition("finished", 10_000)


def test_a_pod_that_runs_is_ready_and_keeps_what_others_wrote() -> None:
    waiting = pod()
    scheduled = {"type": "PodScheduled", "status": "True"}
    waiting["status"]["conditions"] = [scheduled]
    status = status_after(PodTransition("running", 0), waiting, NOW_NS, "10.0.0.1")
    assert status["phase"] == "Running"
    assert scheduled in status["conditions"]
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "True"
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": "2023-11-14T22:13:20Z"}}


def test_a_pod_whose_gates_are_closed_runs_and_is_not_ready() -> None:
    gated = pod()
    gated["spec"]["readinessGates"] = [{"conditionType": "example.com/open"}]
    status = status_after(PodTransition("running", 0), gated, NOW_NS, "10.0.0.1")
    ready = {one["type"]: one["status"] for one in status["conditions"]}
    assert (ready["Ready"], ready["ContainersReady"]) == ("False", "True")
    reasons = {one["type"]: one.get("reason") for one in status["conditions"]}
    assert reasons == {**dict.fromkeys(ready), "Ready": "ReadinessGatesNotReady"}
    gated["status"]["conditions"] = [{"type": "example.com/open", "status": "True"}]
    opened = status_after(PodTransition("running", 0), gated, NOW_NS, "10.0.0.1")
    assert {one["type"]: one["status"] for one in opened["conditions"]}["Ready"] == "True"


@pytest.mark.parametrize(
    "code, phase, reason", [("0", "Succeeded", "Completed"), ("3", "Failed", "Error"), ("x", "Succeeded", "Completed")]
)
def test_a_pod_ends_as_its_annotation_says(code: str, phase: str, reason: str) -> None:
    running = pod("Running", restart="Never", annotations={EXIT_CODE: code})
    status = status_after(PodTransition("finished", 0), running, NOW_NS, "10.0.0.1")
    assert status["phase"] == phase
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == reason
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "False"


def test_the_same_pod_has_the_same_address_and_another_has_another() -> None:
    one, same, other = pod(), pod(), pod()
    other["metadata"]["uid"] = "u-2"
    first, second, third = (
        status_after(PodTransition("running", 0), each, NOW_NS, "10.0.0.1")["podIP"] for each in (one, same, other)
    )
    assert first == second != third


NOW = "2023-11-14T22:13:20Z"


def with_init() -> dict[str, Any]:
    given = pod(restart="Never")
    given["spec"]["initContainers"] = [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]
    return given


def shown(one: dict[str, Any]) -> tuple[Any, ...]:
    (state,) = one["state"]
    return one["name"], state, one["ready"], one["started"], one["restartCount"]


def test_the_containers_of_a_pod_that_runs_and_of_one_that_has_finished() -> None:
    running = status_after(PodTransition("running", 0), with_init(), NOW_NS, "10.0.0.1")
    assert [shown(one) for one in running["containerStatuses"]] == [("c", "running", True, True, 0)]
    inits = [("i", "terminated", True, False, 0), ("s", "running", True, True, 0)]
    assert [shown(one) for one in running["initContainerStatuses"]] == inits
    done = {"exitCode": 0, "reason": "Completed", "startedAt": NOW, "finishedAt": NOW}
    assert running["initContainerStatuses"][0]["state"]["terminated"] == done
    assert "initContainerStatuses" not in status_after(PodTransition("running", 0), pod(), NOW_NS, "10.0.0.1")

    finished = status_after(PodTransition("finished", 0), {**with_init(), "status": running}, NOW_NS, "10.0.0.1")
    assert [shown(one) for one in finished["containerStatuses"]] == [("c", "terminated", False, False, 0)]
    inits = [("i", "terminated", True, False, 0), ("s", "terminated", False, False, 0)]
    assert [shown(one) for one in finished["initContainerStatuses"]] == inits


def test_the_conditions_of_a_pod_that_runs_and_of_one_that_has_finished() -> None:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    running = status_after(PodTransition("running", 0), pod(), NOW_NS, "10.0.0.1")
    assert running["conditions"] == [{"type": kind, "status": "True", "lastTransitionTime": NOW} for kind in kinds]
    later = status_after(PodTransition("finished", 0), {**pod(), "status": running}, NOW_NS + 60 * 10**9, "10.0.0.1")
    changed = {"status": "False", "lastTransitionTime": "2023-11-14T22:14:20Z"}
    assert later["conditions"] == [
        {"type": "PodReadyToStartContainers", **changed},
        {"type": "Initialized", "status": "True", "lastTransitionTime": NOW},
        {"type": "Ready", **changed, "reason": "PodCompleted"},
        {"type": "ContainersReady", **changed, "reason": "PodCompleted"},
    ]


@pytest.mark.parametrize("said, code", [("255", 255), ("256", 255), ("999", 255), ("1000", 0), ("7", 7)])
def test_an_exit_code_has_eight_bits(said: str, code: int) -> None:
    given = pod("Running", restart="Never", annotations={EXIT_CODE: said})
    status = status_after(PodTransition("finished", 0), given, NOW_NS, "10.0.0.1")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code


def test_a_pod_on_the_host_s_network_has_its_address_and_another_has_one_of_its_own_range() -> None:
    given = pod()
    found = status_after(PodTransition("running", 0), given, NOW_NS, "10.0.0.1")["podIP"]
    first, second, *_ = (int(part) for part in found.split("."))
    assert first == 10
    assert 64 <= second < 128
    given["spec"]["hostNetwork"] = True
    on_host = status_after(PodTransition("running", 0), given, NOW_NS, "10.0.0.1")
    assert (on_host["podIP"], on_host["podIPs"]) == ("10.0.0.1", [{"ip": "10.0.0.1"}])


def test_what_is_deleted_goes_at_once_and_what_was_bound_runs_a_moment_later() -> None:
    assert next_transition(pod(going=True)) == PodTransition("deleted", 0)
    assert next_transition(pod()) == PodTransition("running", START_MS)
