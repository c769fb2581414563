"""The worker of a pod, to the second: what it starts, stops, retries and reports, in virtual time."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.timed import TimedAgent, scripted
from agent.world import pod
from situate.agent.control_plane import ControlPlaneError, StaleError
from situate.agent.runtime import ExecResult, RunError
from situate.agent.worker import AWAY_S, RETRY_S

STAY = scripted("stay")


@pytest.fixture
def here(tmp_path: Path) -> Iterator[TimedAgent]:
    made = TimedAgent(tmp_path)
    yield made
    made.loop.close()


def put(here: TimedAgent, *containers: dict[str, Any], **spec: Any) -> Callable[[], None]:
    return lambda: here.plane.put(pod(*containers, **spec))


def near(*times: float) -> list[Any]:
    return [pytest.approx(at, abs=0.21) for at in times]


# -- starting --------------------------------------------------------------------------------------------------------


def test_what_a_container_needs_is_looked_for_again_and_the_reason_is_told_once(here: TimedAgent) -> None:
    given = scripted("stay", envFrom=[{"configMapRef": {"name": "conf"}}])

    def arrives() -> None:
        here.plane.objects["ConfigMap", "conf"] = {"data": {}}

    here.play(35, (1, put(here, given)), (25, arrives))
    assert here.plane.times("get", "conf") == near(1, 1 + RETRY_S, 1 + 2 * RETRY_S, 1 + 3 * RETRY_S)
    assert here.runtime.times("start") == near(1 + 3 * RETRY_S)
    assert here.plane.said("Failed") == ['Error: configmap "conf" not found']
    assert here.plane.phase() == "Running"


def test_a_control_plane_that_is_away_is_asked_again_soon_and_that_is_no_event(here: TimedAgent) -> None:
    given = scripted("stay", envFrom=[{"configMapRef": {"name": "conf"}}])
    here.plane.objects["ConfigMap", "conf"] = {"data": {}}
    here.plane.refused["get"] = ControlPlaneError("away")
    here.play(10, (1, put(here, given)), (3.5, here.plane.refused.clear))
    assert here.plane.times("get", "conf") == near(*(1 + AWAY_S * number for number in range(4)))
    assert here.plane.said("Failed") == []
    assert here.runtime.times("start") == near(4)


@pytest.mark.parametrize("problem", [RunError("no room"), OSError(28, "no room"), ValueError("no room")])
def test_a_container_that_cannot_start_is_tried_again(problem: Exception, here: TimedAgent) -> None:
    here.runtime.problem = problem

    def clear() -> None:
        here.runtime.problem = None

    states: list[dict[str, Any]] = []
    here.play(15, (1, put(here, STAY)), (5, lambda: states.append(here.plane.state()["state"])), (6, clear))
    assert states[0]["waiting"]["reason"] == "CreateContainerError"
    assert "no room" in states[0]["waiting"]["message"]
    assert here.runtime.times("start") == near(1, 1 + RETRY_S)
    assert here.plane.phase() == "Running"
    assert "running" in here.plane.state()["state"]


def test_a_volume_that_cannot_be_mounted_has_an_event_of_its_own(here: TimedAgent) -> None:
    volume = {"name": "v", "nfs": {}}
    given = scripted("stay", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    here.play(5, (1, put(here, given, volumes=[volume])))
    text = "Error: the process runtime does not support volumes of type nfs (volume v)"
    assert (here.plane.said("Failed"), here.plane.said("FailedMount")) == ([], [text])
    assert here.runtime.times("start") == []


def test_a_container_that_fails_waits_longer_each_time_and_that_is_told(here: TimedAgent) -> None:
    here.play(60, (1, put(here, scripted("exit", "1", "1"))))
    # Each run takes a second, and starting it a moment: at once, after 10 seconds, after 20.
    assert here.runtime.times("start") == near(1, 2, 13.1, 34.2)
    assert [(one.attempt, one.backoff_ms) for one in here.runtime.orders] == [(0, 0), (1, 0), (2, 10_000), (3, 20_000)]
    assert here.plane.said("BackOff") == ["Back-off restarting failed container c in pod p_default(uid-p)"] * 2


def test_how_a_run_ended_is_told_once(here: TimedAgent) -> None:
    here.play(9, (1, put(here, scripted("exit", "3", "1", "it", "broke"), restartPolicy="Never")))
    assert here.plane.said("Failed") == ["Error: it broke"]
    assert here.plane.phase() == "Failed"
    assert here.plane.state()["state"]["terminated"]["exitCode"] == 3


def test_a_port_that_is_replaced_is_told_and_the_next_agent_knows_it(here: TimedAgent, tmp_path: Path) -> None:
    ports = [{"containerPort": 9_999, "hostPort": 9_998}]
    here.play(3, (1, put(here, scripted("stay", ports=ports))))
    told = here.plane.said("PortsAssigned")
    assert told == ["c: 9999 is 9998"]
    first = here.runtime.orders[0].env["SITUATE_PORT_9999"]
    here.play(3, (1, lambda: here.runtime.end("uid-p", "c", 1)))
    assert here.runtime.orders[1].env["SITUATE_PORT_9999"] == first == "9998"
    assert len(here.plane.said("PortsAssigned")) == 1


def test_an_unexpected_error_is_reported_and_the_pod_tried_again(
    here: TimedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = here.runtime.start
    fails = [True]

    def broken(order: Any) -> None:
        if fails:
            here.runtime.note("start", "c")
            raise LookupError("x" * 2_000)
        start(order)

    monkeypatch.setattr(here.runtime, "start", broken)
    here.play(15, (1, put(here, STAY)), (8, fails.clear))
    assert here.runtime.times("start") == near(1, 1 + RETRY_S)
    (text,) = here.plane.said("FailedSync")
    assert text.startswith("error syncing pod: LookupError: xxx")
    assert len(text) < 1_100
    assert here.plane.phase() == "Running"


# -- deadlines and deletion ------------------------------------------------------------------------------------------


def test_a_pod_is_failed_when_its_deadline_is_over_and_not_sooner(here: TimedAgent) -> None:
    here.play(20, (1, put(here, STAY, activeDeadlineSeconds=5)))
    (stopped,) = here.runtime.times("terminate")
    assert 5 <= stopped <= 6.2, "times of pods have whole seconds"
    assert (here.plane.phase(), here.plane.status()["reason"]) == ("Failed", "DeadlineExceeded")
    assert here.runtime.times("start") == near(1)


def test_a_pod_that_is_deleted_is_asked_to_stop_and_killed_when_its_time_is_over(here: TimedAgent) -> None:
    here.play(20, (1, put(here, scripted("hang"))), (5, lambda: here.plane.ask_to_go("p", 4)))
    assert here.runtime.times("terminate") == near(5)
    assert here.runtime.times("kill") == near(9)
    assert here.plane.pods_held == {}
    assert here.plane.said("Killing") == ["Stopping container c"]
    assert here.runtime.times("forget", "uid-p") == near(9)


def test_whoever_shortens_the_grace_period_is_obeyed(here: TimedAgent) -> None:
    first, second = lambda: here.plane.ask_to_go("p", 60), lambda: here.plane.ask_to_go("p", 2)
    here.play(20, (1, put(here, scripted("hang"))), (5, first), (8, second))
    assert here.runtime.times("terminate") == near(5)
    (killed,) = here.runtime.times("kill")
    assert 8 <= killed <= 11.1


def test_without_a_grace_period_nobody_is_asked(here: TimedAgent) -> None:
    here.play(9, (1, put(here, STAY)), (5, lambda: here.plane.ask_to_go("p", 0)))
    assert here.runtime.times("terminate") == []
    assert here.runtime.times("kill") == near(5)


def test_a_pod_is_deleted_after_its_last_status_was_reported_and_again_if_that_failed(here: TimedAgent) -> None:
    def go() -> None:
        here.plane.refused["delete"] = ControlPlaneError("busy")
        here.plane.ask_to_go("p", 4)

    here.play(12, (1, put(here, STAY)), (5, go), (7.5, here.plane.refused.clear))
    assert here.plane.times("delete") == near(5, 6, 7, 8)
    assert here.plane.times("report")[-1] <= here.plane.times("delete")[0]
    last = [status for name, status, _ in here.plane.reports if name == "p"][-1]
    assert "terminated" in last["containerStatuses"][0]["state"]


def test_a_pod_that_somebody_else_deleted_is_not_deleted_again(here: TimedAgent) -> None:
    def go() -> None:
        here.plane.refused["delete"] = StaleError("another pod")
        here.plane.ask_to_go("p", 4)

    here.play(12, (1, put(here, STAY)), (5, go))
    assert here.plane.times("delete") == near(5)


def test_a_pod_that_vanished_is_stopped_and_forgotten_and_not_deleted(here: TimedAgent) -> None:
    here.play(12, (1, put(here, STAY)), (5, lambda: here.plane.drop("p")))
    assert here.runtime.times("terminate") == near(5)
    assert here.plane.times("delete") == []
    assert here.runtime.times("forget", "uid-p") == near(5)


def test_a_pre_stop_hook_runs_first_and_a_failure_is_told(here: TimedAgent) -> None:
    hook = {"preStop": {"exec": {"command": ["leave"]}}}
    here.runtime.answers["leave"] = ExecResult(1, "busy")
    here.play(12, (1, put(here, scripted("stay", lifecycle=hook))), (5, lambda: here.plane.ask_to_go("p", 4)))
    assert here.runtime.times("execute", "leave") == near(5)
    assert here.runtime.times("terminate") == near(5)
    assert here.plane.said("FailedPreStopHook") == ["PreStopHook failed: exit code 1: busy"]


def test_a_pre_stop_hook_that_sleeps_uses_up_the_grace_period(here: TimedAgent) -> None:
    hook = {"preStop": {"sleep": {"seconds": 3}}}
    given = scripted("hang", lifecycle=hook)
    here.play(30, (1, put(here, given)), (5, lambda: here.plane.ask_to_go("p", 10)))
    assert here.runtime.times("terminate") == near(8)
    assert here.runtime.times("kill") == near(15)


# -- probes and hooks ------------------------------------------------------------------------------------------------


def test_a_container_whose_liveness_probe_fails_is_restarted_in_the_kubelet_s_words(here: TimedAgent) -> None:
    probe = {"exec": {"command": ["alive"]}, "periodSeconds": 2, "failureThreshold": 2}
    here.runtime.answers["alive"] = ExecResult(1, "no pulse")
    here.play(8, (1, put(here, scripted("stay", livenessProbe=probe))), (4, here.runtime.answers.clear))
    assert here.runtime.times("terminate") == near(3)
    assert here.plane.said("Killing") == ["Container c failed liveness probe, will be restarted"]
    assert here.plane.said("Unhealthy") == ["Liveness probe failed: no pulse"] * 3, "once of the next run"
    assert here.runtime.times("start") == near(1, 3)
    assert here.plane.state()["restartCount"] == 1
    assert here.plane.said("Started") == ["Container c started"] * 2


def test_a_startup_probe_decides_when_a_container_has_started_and_then_it_is_ready(here: TimedAgent) -> None:
    probe = {"exec": {"command": ["up"]}, "periodSeconds": 3, "failureThreshold": 3, "initialDelaySeconds": 1}
    here.runtime.answers["up"] = ExecResult(1, "")
    states: list[tuple[bool, bool]] = []

    def look() -> None:
        states.append((here.plane.state()["started"], here.plane.is_ready()))

    here.play(
        12,
        (1, put(here, scripted("stay", startupProbe=probe))),
        (4, here.runtime.answers.clear),
        (4.5, look),
        (9, look),
    )
    assert here.runtime.times("execute", "up") == near(2, 5)
    assert states == [(False, False), (True, True)]
    assert here.runtime.times("terminate") == []


def test_a_startup_probe_that_fails_too_often_restarts_the_container(here: TimedAgent) -> None:
    probe = {"exec": {"command": ["up"]}, "periodSeconds": 2, "failureThreshold": 2}
    here.runtime.answers["up"] = ExecResult(1, "")
    here.play(4, (1, put(here, scripted("stay", startupProbe=probe))))
    assert here.runtime.times("terminate") == near(3)
    assert here.plane.said("Killing") == ["Container c failed startup probe, will be restarted"]
    assert here.plane.said("Unhealthy") == ["Startup probe failed: exit code 1"] * 3, "once of the next run"


def test_a_readiness_probe_takes_a_pod_out_and_in_again(here: TimedAgent) -> None:
    probe = {"exec": {"command": ["fit"]}, "periodSeconds": 2, "failureThreshold": 2, "successThreshold": 2}
    ready: list[bool] = []

    def look() -> None:
        ready.append(here.plane.is_ready())

    def ill() -> None:
        here.runtime.answers["fit"] = ExecResult(1, "")

    looks = [(at, look) for at in (2, 3.5, 5.5, 7.5, 9.5, 11.5)]
    here.play(
        13, (1, put(here, scripted("stay", readinessProbe=probe))), (4, ill), (8, here.runtime.answers.clear), *looks
    )
    # It answers at 1, 3, 5, 7, 9 and 11: yes, yes, no, no, yes, yes.
    assert ready == [False, True, True, False, False, True]
    assert here.runtime.times("terminate") == []


def test_a_post_start_hook_that_fails_restarts_the_container_and_one_that_succeeds_runs_once(here: TimedAgent) -> None:
    hook = {"postStart": {"exec": {"command": ["greet"]}}}
    here.runtime.answers["greet"] = ExecResult(1, "rude")
    here.play(4, (1, put(here, scripted("stay", lifecycle=hook))), (1.1, here.runtime.answers.clear))
    assert here.plane.said("FailedPostStartHook") == ["PostStartHook failed: exit code 1: rude"]
    assert here.plane.said("Killing") == ["FailedPostStartHook: container c will be restarted"]
    assert len(here.runtime.times("execute", "greet")) == 2
    assert here.plane.is_ready()
    here.play(4)
    assert len(here.runtime.times("execute", "greet")) == 2, "not again by the next agent"


# -- reports ---------------------------------------------------------------------------------------------------------


def test_a_status_that_cannot_be_reported_is_tried_again_ever_later(here: TimedAgent) -> None:
    here.plane.refused["report"] = ControlPlaneError("busy")
    here.play(60, (1, put(here, STAY)), (50, here.plane.refused.clear))
    times = here.plane.times("report")
    # The second report is due while the first one waits.
    assert times == near(1, 1.5, 2.5, 4.5, 8.5, 16.5, 26.5, 36.5, 46.5, 56.5)
    assert here.plane.phase() == "Running"


def test_after_a_report_that_succeeds_the_next_one_is_tried_again_soon(here: TimedAgent) -> None:
    busy = ControlPlaneError("busy")
    here.plane.refused["report"] = busy

    def fail_again() -> None:
        here.plane.refused["report"] = busy
        here.runtime.end("uid-p", "c", 1)

    here.play(45, (1, put(here, STAY)), (20, here.plane.refused.clear), (40, fail_again))
    assert [at for at in here.plane.times("report") if at >= 40][:3] == near(40, 40.5, 41.5)


def test_a_status_that_could_not_be_reported_is_reported_when_the_pod_is_seen_again(here: TimedAgent) -> None:
    here.plane.refused["report"] = ControlPlaneError("busy")

    def come_back() -> None:
        here.plane.refused.clear()
        here.plane.put(here.plane.pods_held["p"])

    here.play(45, (1, put(here, STAY)), (40, come_back))
    assert here.plane.times("report")[-1] == pytest.approx(40, abs=0.1)
    assert here.plane.phase() == "Running"


def test_a_status_that_came_too_late_is_not_repeated(here: TimedAgent) -> None:
    here.plane.refused["report"] = StaleError("another pod")
    here.play(30, (1, put(here, STAY)))
    assert len(here.plane.times("report")) <= 3, "one for each change"


def test_a_status_that_does_not_change_is_not_reported(here: TimedAgent) -> None:
    here.play(10, (1, put(here, STAY)))
    before = len(here.plane.times("report"))
    here.play(300)
    assert before <= len(here.plane.times("report")) <= before + 1


def test_a_finished_pod_is_neither_run_nor_reported_again(here: TimedAgent) -> None:
    finished = pod(STAY, restartPolicy="Never")
    finished["status"] = {"phase": "Succeeded"}
    here.play(30, (1, lambda: here.plane.put(finished)))
    assert here.runtime.times("start") == []
    assert here.plane.times("report") == []


def test_a_log_that_was_cut_is_told_once_for_each_run(here: TimedAgent) -> None:
    here.runtime.cut_bytes = 30 << 20
    text = "The log of container c exceeds 30 MiB: its beginning was removed"
    here.play(35, (1, put(here, STAY)))
    assert here.plane.said("LogCut") == [text]
    here.play(25, (1, lambda: here.runtime.end("uid-p", "c", 1)))
    assert here.plane.said("LogCut") == [text] * 3, "the next agent does not know of the first"
