"""What becomes of a pod that runs nothing."""

from typing import Any

import pytest

from situate.agent.hollow_pods import EXIT_CODE, RUN_FOR, PodTransition, next_transition, status_after

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
