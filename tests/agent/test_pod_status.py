"""What is said of a pod."""

from typing import Any

import pytest

from situate.agent.pod_lifecycle import ContainerState, RestartBackoff
from situate.agent.pod_status import TerminationReason, merge_status, status_of
from situate.agent.runtime import Run

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND
RUNNING = Run(0, 0, "running", id="process://u/c/0", started_ns=NOW)
FAILED = Run(1, 0, "exited", started_ns=NOW, finished_ns=NOW, code=1, reason="Error")
DONE = Run(0, 0, "exited", started_ns=NOW, finished_ns=NOW, reason="Completed")


def pod(policy: str = "Always", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"restartPolicy": policy, **spec}}


def main(*runs: Run, **more: Any) -> ContainerState:
    return ContainerState({"name": "c", "image": "i"}, "main", runs, **more)


def init(*runs: Run) -> ContainerState:
    return ContainerState({"name": "i"}, "init", runs)


def said(*containers: ContainerState, policy: str = "Always", **more: Any) -> dict[str, Any]:
    given = more.pop("pod", pod(policy))
    return status_of(
        given, containers, more.pop("before", {}), now_ns=NOW, host_ip="10.0.0.1", backoff=RestartBackoff(), **more
    )


@pytest.mark.parametrize(
    "containers, policy, phase",
    [
        pytest.param([main()], "Always", "Pending", id="nothing has begun"),
        pytest.param([main(Run(0, 0, "starting"))], "Always", "Pending", id="it is about to"),
        pytest.param([init(RUNNING), main()], "Always", "Pending", id="init containers run"),
        pytest.param([main(RUNNING)], "Always", "Running", id="it runs"),
        pytest.param([main(FAILED)], "Always", "Running", id="it waits to run again"),
        pytest.param([main(Run(1, 0, "starting"))], "Always", "Running", id="it is about to run again"),
        pytest.param([main(DONE)], "Never", "Succeeded", id="it is done"),
        pytest.param([main(FAILED)], "Never", "Failed", id="it failed"),
        pytest.param([main(FAILED)], "OnFailure", "Running", id="it failed and will run again"),
        pytest.param([init(FAILED), main()], "Never", "Failed", id="its init container failed"),
        pytest.param([init(FAILED), main()], "Always", "Pending", id="and is tried again"),
        pytest.param(
            [ContainerState({"name": "s"}, "sidecar", (RUNNING,), started=True), main(DONE)],
            "Never",
            "Running",
            id="it is done but its sidecar still runs",
        ),
    ],
)
def test_phases(containers: list[ContainerState], policy: str, phase: str) -> None:
    assert said(*containers, policy=policy)["phase"] == phase


def test_a_pod_that_is_ended_has_failed_or_succeeded_once_nothing_runs() -> None:
    assert said(main(RUNNING), ending=True)["phase"] == "Running"
    assert said(main(DONE), ending=True)["phase"] == "Succeeded"
    assert said(main(FAILED), ending=True)["phase"] == "Failed"
    assert said(main(), ending=True)["phase"] == "Failed"


def test_why_a_pod_was_ended_is_said() -> None:
    status = said(main(DONE), ending=True, terminated=TerminationReason("DeadlineExceeded", "too long"))
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "DeadlineExceeded", "too long")


def test_a_container_that_waits_to_run_again_says_how_it_ended() -> None:
    (status,) = said(main(FAILED))["containerStatuses"]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    text = "back-off 10s restarting failed container=c pod=p_ns(u)"
    assert status["state"]["waiting"]["message"] == text
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert status["restartCount"] == 1


def test_a_container_that_runs_again_still_says_how_it_ended_before() -> None:
    again = Run(2, 0, "running", started_ns=NOW)
    (status,) = said(main(FAILED, again, ready=True, started=True))["containerStatuses"]
    assert "running" in status["state"]
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert (status["restartCount"], status["ready"], status["started"]) == (2, True, True)


def test_a_container_that_cannot_begin_says_why() -> None:
    (status,) = said(main(blocked=("CreateContainerConfigError", "no such key")))["containerStatuses"]
    assert status["state"] == {"waiting": {"reason": "CreateContainerConfigError", "message": "no such key"}}


def conditions(status: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status["conditions"]}


@pytest.mark.parametrize(
    "containers, ready, initialised",
    [
        pytest.param([main()], "False", "True", id="nothing has begun"),
        pytest.param([main(RUNNING)], "False", "True", id="it runs and is not ready"),
        pytest.param([main(RUNNING, ready=True)], "True", "True", id="it is ready"),
        pytest.param([init(RUNNING), main()], "False", "False", id="it is being initialised"),
        pytest.param([main(DONE)], "False", "True", id="it is done"),
    ],
)
def test_conditions(containers: list[ContainerState], ready: str, initialised: str) -> None:
    found = conditions(said(*containers, policy="Never"))
    assert (found["Ready"], found["ContainersReady"], found["Initialized"]) == (ready, ready, initialised)


def test_a_pod_with_readiness_gates_is_ready_when_they_are_open() -> None:
    gated = pod(readinessGates=[{"conditionType": "example.com/gate"}])
    assert conditions(said(main(RUNNING, ready=True), pod=gated))["Ready"] == "False"
    gated["status"] = {"conditions": [{"type": "example.com/gate", "status": "True"}]}
    assert conditions(said(main(RUNNING, ready=True), pod=gated))["Ready"] == "True"


def test_a_condition_that_stays_keeps_its_time() -> None:
    first = said(main(RUNNING, ready=True))
    old = [{**one, "lastTransitionTime": "2020-01-01T00:00:00Z"} for one in first["conditions"]]
    second = said(main(RUNNING), before={**first, "conditions": old})
    times = {one["type"]: one["lastTransitionTime"] for one in second["conditions"]}
    assert times["Initialized"] == "2020-01-01T00:00:00Z"
    assert times["Ready"] != "2020-01-01T00:00:00Z"


def test_conditions_of_others_stay_as_they_are() -> None:
    found = {"qosClass": "Burstable", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    own = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    status = merge_status(found, own)
    assert [one["type"] for one in status["conditions"]] == ["PodScheduled", "Ready"]
    assert status["qosClass"] == "Burstable"
