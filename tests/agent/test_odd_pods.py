"""Odd pods: the status of each says what is wrong with it, and the agent goes on with the others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.world import FakePlane, agent_of, pod, running, shell, story, until
from situate.agent.admission import MOST_CONTAINERS
from situate.agent.pod_manager import PodManager
from situate.agent.probes import probe_of
from situate.agent.worker import PodWorker

NUL = "a\0b"


def odd(name: str = "odd", **changes: Any) -> dict[str, Any]:
    spec = changes.pop("spec", {})
    return pod(shell("exit 0", **changes), name=name, restartPolicy="Never", **spec)


def mounted(**mount: Any) -> dict[str, Any]:
    return odd(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}], spec={"volumes": [{"name": "v"}]})


def told_of(given: dict[str, Any], tmp_path: Path, plane: FakePlane | None = None) -> tuple[str, str]:
    """The reason and message with which the odd pod waits, while another one runs."""
    plane = plane or FakePlane()

    def waiting() -> dict[str, Any]:
        found: dict[str, Any] = plane.state("odd")["state"]["waiting"]
        return found

    async def told() -> None:
        plane.put(given)
        plane.put(pod(shell("exit 0"), name="other", restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path, ends_pods=True)):
            await until(lambda: waiting()["reason"] not in ("ContainerCreating", "PodInitializing"))
            await until(lambda: plane.phase("other") == "Succeeded")

    story(told)
    return waiting()["reason"], waiting()["message"]


@pytest.mark.parametrize(
    "given, reason, words",
    [
        pytest.param(odd(args=[NUL]), "CreateContainerConfigError", "the command contains a NUL", id="in an argument"),
        pytest.param(odd(workingDir=f"/{NUL}"), "CreateContainerConfigError", "workingDir contains", id="workingDir"),
        pytest.param(odd(env=[{"name": "A", "value": NUL}]), "CreateContainerConfigError", "'A' contains", id="in env"),
        pytest.param(
            odd(spec={"volumes": [{"name": "v", "hostPath": {"path": f"/{NUL}", "type": "DirectoryOrCreate"}}]}),
            "FailedMount", "volume v: its hostPath contains a NUL", id="in hostPath",
        ),
        pytest.param(mounted(mountPath=f"/{NUL}"), "FailedMount", "mountPath contains a NUL", id="in mountPath"),
        pytest.param(mounted(subPath=NUL), "FailedMount", "subPath contains a NUL", id="in subPath"),
    ],
)  # fmt: skip
def test_a_nul_in_a_path_is_reported_in_the_status(
    given: dict[str, Any], reason: str, words: str, tmp_path: Path
) -> None:
    found = told_of(given, tmp_path)
    assert found[0] == reason
    assert words in found[1]


def test_a_secret_that_is_not_base64_is_reported_in_the_status(tmp_path: Path) -> None:
    plane = FakePlane()
    plane.objects["Secret", "s"] = {"data": {"k": "not base64"}}
    found = told_of(odd(envFrom=[{"secretRef": {"name": "s"}}]), tmp_path, plane)
    assert found == ("CreateContainerConfigError", 'secret "s" has data that is not base64')


def test_a_volume_that_the_agent_cannot_make_is_reported_in_the_status(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = {"path": str(tmp_path / "file" / "below"), "type": "DirectoryOrCreate"}
    reason, message = told_of(odd(spec={"volumes": [{"name": "v", "hostPath": below}]}), tmp_path / "node")
    assert reason == "FailedMount"
    assert message.startswith("volume v: ")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(pod(*[shell("exit 0", f"c{one}") for one in range(10_000)], name="odd"), id="10,000 containers"),
        pytest.param(odd(resources={"requests": {"cpu": "much"}}), id="a quantity that is none"),
    ],
)
def test_a_pod_that_cannot_be_judged_is_rejected(given: dict[str, Any], tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(given)
        plane.put(pod(shell("exit 0"), name="other", restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase("odd") == "Failed")
            await until(lambda: plane.phase("other") == "Succeeded")

    story(told)
    assert plane.status("odd")["reason"] == "UnexpectedAdmissionError"
    assert "Pod was rejected: " in plane.status("odd")["message"]
    assert MOST_CONTAINERS == 100


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(odd(env=[{"name": "BIG", "value": "x" * 3_000_000}]), id="a variable of 3 MB"),
        pytest.param(odd(resources={"limits": {"memory": "9999999999999999999999999999E"}}), id="endless memory"),
        pytest.param(odd(env=[{"name": "A=B", "value": ""}]), id="a variable with an odd name"),
        pytest.param(odd(command=["/"]), id="a directory as the command"),
    ],
)
def test_what_no_process_can_be_given_ends_or_runs_and_the_agent_goes_on(given: dict[str, Any], tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(given)
        plane.put(pod(shell("exit 0"), name="other", restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase("odd") in ("Succeeded", "Failed"))
            await until(lambda: plane.phase("other") == "Succeeded")

    story(told)
    if plane.phase("odd") == "Failed":
        assert plane.state("odd")["state"]["terminated"]["reason"] == "StartError"
        assert plane.state("odd")["state"]["terminated"]["message"]


def test_an_endless_grace_period_and_an_odd_deletion_time_do_not_keep_a_pod(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell("sleep 100"), name="odd", terminationGracePeriodSeconds=2**63 - 1))
        async with running(agent_of(plane, tmp_path, ends_pods=True)):
            await until(lambda: plane.is_ready("odd"))
            body = plane.pods_held["odd"]
            meta = {"deletionTimestamp": "0000-00-00T00:00:00Z", "deletionGracePeriodSeconds": 2**63 - 1}
            plane.put({**body, "metadata": {**body["metadata"], **meta}})
            await until(lambda: not plane.pods_held)

    story(told)


def test_a_probe_with_odd_times_uses_the_defaults() -> None:
    probe = probe_of({"periodSeconds": -5, "timeoutSeconds": 0, "failureThreshold": -1, "initialDelaySeconds": -2})
    assert (probe.delay_s, probe.period_s, probe.timeout_s, probe.failures) == (0, 10, 1, 3)


def test_an_unexpected_error_in_a_sync_is_reported_and_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.agent.worker.RETRY_S", 0.05)
    real, broken = PodWorker._assign_ports, [True]

    def breaks(worker: PodWorker) -> None:
        if broken[0] and worker.uid == "uid-odd":
            raise ArithmeticError("nobody thought of this")
        real(worker)

    monkeypatch.setattr(PodWorker, "_assign_ports", breaks)
    plane = FakePlane()

    async def told() -> None:
        plane.put(odd())
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: "nobody thought" in plane.state("odd")["state"]["waiting"]["message"])
            await until(lambda: plane.said("FailedSync"))
            broken[0] = False
            await until(lambda: plane.phase("odd") == "Succeeded")

    story(told)


def test_a_worker_that_fails_all_the_same_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.agent.pod_manager.RETRY_S", 0.05)
    real, broken = PodWorker.run, [True]

    async def breaks(worker: PodWorker) -> None:
        if broken.pop() if broken else False:
            raise ArithmeticError("nobody thought of this")
        await real(worker)

    monkeypatch.setattr(PodWorker, "run", breaks)
    plane = FakePlane()

    async def told() -> None:
        plane.put(odd())
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase("odd") == "Succeeded")

    story(told)


def test_an_unexpected_error_about_one_pod_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PodManager._add_worker

    def breaks(self: PodManager, body: dict[str, Any], *more: Any) -> None:
        if body["metadata"]["name"] == "odd":
            raise ArithmeticError("nobody thought of this")
        real(self, body, *more)

    monkeypatch.setattr(PodManager, "_add_worker", breaks)
    plane = FakePlane()

    async def told() -> None:
        plane.put(odd())
        async with running(agent_of(plane, tmp_path)):
            await asyncio.sleep(0)
            plane.put(pod(shell("exit 0"), name="other", restartPolicy="Never"))
            await until(lambda: plane.phase("other") == "Succeeded")

    story(told)


def test_a_command_that_is_no_text_is_reported_in_the_status_and_the_events(tmp_path: Path) -> None:
    plane = FakePlane()
    plane.objects["Secret", "s"] = {"data": {"k": "/w=="}}
    env = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    told_of_end(odd(command=["/$(K)"], env=env), tmp_path, plane)
    assert plane.state("odd")["state"]["terminated"]["reason"] == "StartError"
    assert plane.said("Failed") == ['Error: exec: "/?": no such file or directory']


def told_of_end(given: dict[str, Any], tmp_path: Path, plane: FakePlane) -> None:
    async def told() -> None:
        plane.put(given)
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase("odd") in ("Succeeded", "Failed"))
            await until(lambda: plane.events)

    story(told)


def test_an_event_or_a_report_that_fails_unexpectedly_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situate.agent.worker.REPORT_RETRY_S", (0.02, 0.02))
    plane, failures = FakePlane(), {"record_event": 1, "report_status": 1}

    def fails_once(name: str) -> Any:
        real = getattr(plane, name)

        async def call(*args: Any) -> None:
            if failures[name]:
                failures[name] -= 1
                raise ArithmeticError("nobody thought of this")
            await real(*args)

        return call

    for name in failures:
        monkeypatch.setattr(plane, name, fails_once(name))

    async def told() -> None:
        plane.put(odd(command=["no-such-program"]))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase("odd") == "Failed" and not any(failures.values()))
            plane.put(odd("later", command=["no-such-program"]))
            await until(lambda: plane.phase("later") == "Failed" and plane.said("Failed"))

    story(told)
