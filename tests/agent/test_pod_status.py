"""What is said of a pod."""

from typing import Any

import pytest

from situate.agent.pod_lifecycle import ContainerState, RestartBackoff
from situate.agent.pod_status import TerminationReason, merge_status, rejected_status, status_of
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


def sidecar(*runs: Run, **more: Any) -> ContainerState:
    return ContainerState({"name": "s"}, "sidecar", runs, **more)


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
        pytest.param([sidecar(FAILED), main()], "Never", "Pending", id="a sidecar that failed is begun again"),
        pytest.param([init(FAILED), sidecar(RUNNING), main()], "Never", "Pending", id="something still runs"),
        pytest.param([init(RUNNING), main()], "Never", "Pending", id="init containers run, and may fail"),
        pytest.param([init(DONE), main(DONE)], "Never", "Succeeded", id="all is done"),
        pytest.param([main(RUNNING), main()], "Always", "Pending", id="one runs and another has not begun"),
        pytest.param([main(RUNNING), main(Run(0, 0, "starting"))], "Always", "Pending", id="or is about to"),
        pytest.param([main(DONE), main(FAILED)], "Never", "Failed", id="one is done and another failed"),
        pytest.param([main(DONE), main(FAILED)], "OnFailure", "Running", id="which will run again"),
        pytest.param([main(DONE), main(RUNNING)], "Never", "Running", id="one is done and another runs"),
    ],
)
def test_phases(containers: list[ContainerState], policy: str, phase: str) -> None:
    assert said(*containers, policy=policy)["phase"] == phase


def test_a_pod_that_is_ended_has_failed_or_succeeded_once_nothing_runs() -> None:
    assert said(main(RUNNING), ending=True)["phase"] == "Running"
    assert said(main(DONE), ending=True)["phase"] == "Succeeded"
    assert said(main(FAILED), ending=True)["phase"] == "Failed"
    assert said(main(), ending=True)["phase"] == "Failed"
    assert said(main(DONE), main(), ending=True)["phase"] == "Failed", "one never ran"
    assert said(main(DONE), main(FAILED), ending=True)["phase"] == "Failed"
    assert said(main(DONE), sidecar(RUNNING), ending=True)["phase"] == "Running", "its sidecar still runs"
    why = TerminationReason("DeadlineExceeded", "too long")
    assert said(main(RUNNING), terminated=why)["phase"] == "Running", "it is about to end"
    assert said(main(DONE), terminated=why)["phase"] == "Failed"


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


def test_a_status_without_conditions_gets_none() -> None:
    assert merge_status({"phase": "Pending"}, {"phase": "Running"}) == {"phase": "Running"}
    theirs = [{"type": "PodScheduled", "status": "True"}]
    assert merge_status({"conditions": theirs}, {})["conditions"] == theirs
    own = [{"type": "Ready", "status": "True"}]
    assert merge_status({"conditions": [{"type": "Ready", "status": "False"}]}, {"conditions": own}) == {
        "conditions": own
    }
    assert merge_status({}, {"conditions": [*own, *theirs]})["conditions"] == own, "the agent speaks for itself only"


def why(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {one["type"]: (one["status"], one.get("reason", ""), one.get("message", "")) for one in status["conditions"]}


def test_the_conditions_of_a_pod_that_is_being_initialized_say_what_is_missing() -> None:
    unready = ("False", "ContainersNotReady", "containers with unready status: [s c]")
    assert why(said(init(DONE), init(RUNNING), sidecar(), main())) == {
        "PodReadyToStartContainers": ("True", "", ""),
        "Initialized": ("False", "ContainersNotInitialized", "containers with incomplete status: [i s]"),
        "ContainersReady": unready,
        "Ready": unready,
    }
    assert why(said(main()))["PodReadyToStartContainers"] == ("False", "", ""), "nothing has begun"


def test_the_conditions_of_a_ready_pod_need_no_reason() -> None:
    ready = {"ready": True, "started": True}
    found = why(said(init(DONE), sidecar(RUNNING, **ready), main(RUNNING, **ready)))
    assert set(found.values()) == {("True", "", "")}


def test_a_sidecar_that_is_not_ready_keeps_the_pod_from_being_ready() -> None:
    found = why(said(sidecar(RUNNING, started=True), main(RUNNING, ready=True)))
    assert found["Ready"] == ("False", "ContainersNotReady", "containers with unready status: [s]")
    assert found["Initialized"] == ("True", "", "")


def test_a_container_that_was_ready_and_ended_is_not() -> None:
    assert why(said(main(FAILED, ready=True)))["ContainersReady"][0] == "False"


@pytest.mark.parametrize("run, reason", [(DONE, "PodCompleted"), (FAILED, "PodFailed")])
def test_the_conditions_of_a_finished_pod_say_how_it_ended(run: Run, reason: str) -> None:
    found = why(said(main(run), policy="Never"))
    assert found["PodReadyToStartContainers"] == ("False", "", "")
    assert found["Ready"] == found["ContainersReady"] == ("False", reason, "")
    assert found["Initialized"] == ("True", reason if run is DONE else "", "")


def test_a_closed_readiness_gate_is_named() -> None:
    gated = pod(readinessGates=[{"conditionType": "a"}, {"conditionType": "b"}, {"conditionType": "c"}])
    gated["status"] = {"conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}]}
    found = why(said(main(RUNNING, ready=True), pod=gated))
    texts = [f'corresponding condition of pod readiness gate "{one}" does not exist.' for one in ("b", "c")]
    assert found["Ready"] == ("False", "ReadinessGatesNotReady", ", ".join(texts))
    assert found["ContainersReady"] == ("True", "", "")
    assert why(said(main(RUNNING), pod=gated))["Ready"][1] == "ContainersNotReady"


def test_the_whole_status_of_a_pod_that_runs() -> None:
    given = pod(restartPolicy="Always")
    given["metadata"]["generation"] = 3
    status = said(init(DONE), main(RUNNING, ready=True, started=True), pod=given)
    del status["conditions"]
    assert status == {
        "phase": "Running",
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "startTime": "2023-11-14T22:13:20Z",
        "observedGeneration": 3,
        "containerStatuses": [
            {
                "name": "c",
                "state": {"running": {"startedAt": "2023-11-14T22:13:20Z"}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "i",
                "imageID": "",
                "containerID": "process://u/c/0",
                "started": True,
            }
        ],
        "initContainerStatuses": [
            {
                "name": "i",
                "state": {
                    "terminated": {
                        "exitCode": 0,
                        "reason": "Completed",
                        "startedAt": "2023-11-14T22:13:20Z",
                        "finishedAt": "2023-11-14T22:13:20Z",
                        "containerID": "",
                    }
                },
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "",
                "imageID": "",
                "containerID": "",
                "started": False,
            }
        ],
    }
    assert said(main(RUNNING), before={"startTime": "then"})["startTime"] == "then"


def state_of(*containers: ContainerState, number: int = -1, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = said(*containers, **more)["containerStatuses"][number]["state"]
    return found


def test_the_states_of_a_container_that_does_not_run() -> None:
    assert state_of(main()) == {"waiting": {"reason": "ContainerCreating"}}
    assert state_of(init(RUNNING), main()) == {"waiting": {"reason": "PodInitializing"}}
    assert state_of(main(Run(3, 0, "starting"))) == {"waiting": {"reason": "ContainerCreating"}}
    (first,) = said(init(), main())["initContainerStatuses"]
    assert first["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert (first["ready"], first["started"], "containerID" in first) == (False, False, False)
    assert first["restartCount"] == 0
    assert "terminated" in state_of(main(FAILED), ending=True), "it does not run again"
    blocked = main(FAILED, blocked=("CreateContainerError", "no room"))
    assert state_of(blocked) == {"waiting": {"reason": "CreateContainerError", "message": "no room"}}


def test_an_exited_container_is_neither_ready_nor_started() -> None:
    (status,) = said(main(FAILED, ready=True, started=True))["containerStatuses"]
    assert (status["ready"], status["started"]) == (False, False)
    (first,) = said(init(FAILED), main(), policy="Never")["initContainerStatuses"]
    assert not first["ready"]


@pytest.mark.parametrize("waited_s, text", [(10, "20s"), (29, "58s"), (30, "1m0s"), (40, "1m20s"), (1_000, "5m0s")])
def test_the_back_off_in_words(waited_s: int, text: str) -> None:
    failed = Run(2, waited_s * 1_000, "exited", started_ns=NOW, finished_ns=NOW, code=1, reason="Error")
    message = state_of(main(failed))["waiting"]["message"]
    assert message == f"back-off {text} restarting failed container=c pod=p_ns(u)"


def test_a_container_whose_back_off_is_over_is_shown_as_terminated() -> None:
    ended = NOW - 10 * SECOND
    failed = Run(1, 0, "exited", started_ns=ended, finished_ns=ended, code=1, message="why")
    assert state_of(main(failed))["terminated"]["message"] == "why"
    sooner = Run(1, 0, "exited", started_ns=ended, finished_ns=ended + 1, code=1)
    assert "waiting" in state_of(main(sooner))


def test_the_status_of_a_rejected_pod() -> None:
    refused = TerminationReason("OutOfcpu", "no room")
    status = {"phase": "Failed", "reason": "OutOfcpu", "message": "no room", "startTime": "2023-11-14T22:13:20Z"}
    assert rejected_status(pod(), refused, NOW) == status
    known = {**pod(), "status": {"startTime": "then"}}
    assert rejected_status(known, refused, NOW)["startTime"] == "then"
