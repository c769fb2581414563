"""Pods that run as processes of this machine, from what a control plane wants to what it is told."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.world import FakePlane, agent_of, container, pod, processes_with, running, shell, story, until


@pytest.fixture
def mark() -> str:
    """A word that only this test's processes have in their command lines."""
    return f"mark-{uuid.uuid4().hex}"


def sleeper(mark: str) -> dict[str, Any]:
    """A single process that can be found."""
    return container("c", sys.executable, "-c", "import time; time.sleep(100)", mark)


def run_told(given: dict[str, Any], tmp_path: Path, done: Callable[[FakePlane], object], **more: Any) -> FakePlane:
    """Give a pod to an agent, wait for something, end the pod's processes; what the plane knows then."""
    plane = FakePlane()

    async def told() -> None:
        plane.put(given)
        async with running(agent_of(plane, tmp_path, ends_pods=True, **more)):
            await until(lambda: done(plane))

    story(told)
    return plane


def test_a_pod_runs_and_its_status_says_so(tmp_path: Path) -> None:
    plane = run_told(pod(shell("sleep 100")), tmp_path, lambda plane: plane.is_ready())
    ready = next(status for _, status, _ in plane.reports if status["phase"] == "Running")
    assert ready["containerStatuses"][0]["state"].keys() == {"running"}
    assert ready["podIP"] == ready["hostIP"]
    assert ready["containerStatuses"][0]["containerID"] == "process://uid-p/c/0"
    assert "Container c started" in plane.said("Started")
    assert {one["type"] for one in plane.status()["conditions"]} >= {"PodScheduled", "Ready", "Initialized"}


@pytest.mark.parametrize(
    "script, policy, phase, code",
    [
        pytest.param("exit 0", "Never", "Succeeded", 0, id="one that ends well has succeeded"),
        pytest.param("exit 3", "Never", "Failed", 3, id="one that does not has failed"),
        pytest.param("exit 0", "OnFailure", "Succeeded", 0, id="what restarts on failure ends after success"),
        pytest.param("kill -9 $$$$", "Never", "Failed", 137, id="a signal is an exit code above 128"),
    ],
)
def test_how_a_pod_ends(script: str, policy: str, phase: str, code: int, tmp_path: Path) -> None:
    given = pod(shell(script), restartPolicy=policy)
    plane = run_told(given, tmp_path, lambda plane: plane.phase() in ("Succeeded", "Failed"))
    assert plane.phase() == phase
    ended = plane.state()["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, "Error" if code else "Completed")


def test_what_ends_is_begun_again_and_then_waits_longer(tmp_path: Path) -> None:
    def done(plane: FakePlane) -> bool:
        return plane.state()["restartCount"] >= 2 and "waiting" in plane.state()["state"]

    plane = run_told(pod(shell("exit 1")), tmp_path, done)
    assert plane.phase() == "Running"
    assert any(status["phase"] == "Running" for _, status, _ in plane.reports)
    waiting = [
        one
        for _, status, _ in plane.reports
        for one in status["containerStatuses"]
        if one["restartCount"] and "waiting" in one["state"]
    ]
    # The last report may be of an agent that is stopping: that is how the story ends.
    assert "CrashLoopBackOff" in {one["state"]["waiting"]["reason"] for one in waiting}
    assert 1 in {one["lastState"]["terminated"]["exitCode"] for one in waiting}


def test_a_command_that_does_not_exist_is_said_in_the_status_and_events(tmp_path: Path) -> None:
    plane = run_told(
        pod(container("c", "no-such-program"), restartPolicy="Never"), tmp_path, lambda plane: plane.phase() == "Failed"
    )
    ended = plane.state()["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert ended["message"] == 'exec: "no-such-program": executable file not found in $PATH'
    assert plane.said("Failed") == [f"Error: {ended['message']}"]


def test_a_container_without_a_command_waits_and_says_why(tmp_path: Path) -> None:
    plane = run_told(
        pod(container("c")), tmp_path, lambda plane: plane.state()["state"]["waiting"]["reason"] != "ContainerCreating"
    )
    waiting = plane.state()["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "runs no images" in waiting["message"]
    assert plane.phase() == "Pending"


def test_init_containers_run_in_order_and_a_sidecar_beside(tmp_path: Path) -> None:
    log = tmp_path / "order"
    probe = {"exec": {"command": ["grep", "side", str(log)]}, "periodSeconds": 0.05, "failureThreshold": 1_000}
    given = pod(
        shell(f"echo main >> {log}; sleep 100"),
        initContainers=[
            shell(f"echo first >> {log}", "first"),
            shell(f"echo side >> {log}; sleep 100", "side", restartPolicy="Always", startupProbe=probe),
            shell(f"echo second >> {log}", "second"),
        ],
    )
    # A container runs, and its pod is ready, a moment before its shell has written anything.
    plane = run_told(given, tmp_path / "node", lambda plane: plane.is_ready() and "main" in log.read_text())
    assert log.read_text().split() == ["first", "side", "second", "main"]
    statuses = {one["name"]: one["state"].keys() for one in _ready(plane)["initContainerStatuses"]}
    assert statuses == {"first": {"terminated"}, "side": {"running"}, "second": {"terminated"}}


def _ready(plane: FakePlane) -> dict[str, Any]:
    return next(
        status
        for _, status, _ in plane.reports
        if any(one["type"] == "Ready" and one["status"] == "True" for one in status["conditions"])
    )


def test_a_job_with_a_sidecar_succeeds_and_the_sidecar_ends_with_it(tmp_path: Path) -> None:
    given = pod(
        shell("exit 0"), restartPolicy="Never", initContainers=[shell("sleep 100", "side", restartPolicy="Always")]
    )
    plane = run_told(given, tmp_path, lambda plane: plane.phase() == "Succeeded")
    assert "terminated" in plane.state(of="initContainerStatuses")["state"]


def test_an_init_container_that_fails_fails_a_pod_that_does_not_restart(tmp_path: Path) -> None:
    given = pod(shell("exit 0"), restartPolicy="Never", initContainers=[shell("exit 4", "first")])
    plane = run_told(given, tmp_path, lambda plane: plane.phase() == "Failed")
    assert plane.state()["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_the_environment_has_what_the_pod_refers_to(tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = pod(
        shell(
            f'echo "$POD $COLOUR $PASS $JOINED $(cat $SITUATE_VOLUME_CONF/colour)" > {out}',
            env=[
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "colour"}}},
                {"name": "PASS", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "pass"}}},
                {"name": "JOINED", "value": "$(POD)-$(COLOUR)"},
            ],
        ),
        restartPolicy="Never",
        volumes=[{"name": "conf", "configMap": {"name": "conf"}}],
    )
    plane = FakePlane()
    plane.objects["ConfigMap", "conf"] = {"data": {"colour": "green"}}
    plane.objects["Secret", "secret"] = {"data": {"pass": "b3Blbg=="}}

    async def told() -> None:
        plane.put(given)
        async with running(agent_of(plane, tmp_path / "node")):
            await until(lambda: plane.phase() == "Succeeded")

    story(told)
    assert out.read_text() == "p green open p-green green\n"


def test_a_missing_config_map_is_said_and_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.agent.worker.RETRY_S", 0.05)
    plane = FakePlane()
    given = pod(shell("exit 0", envFrom=[{"configMapRef": {"name": "late"}}]), restartPolicy="Never")

    async def told() -> None:
        plane.put(given)
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.state()["state"]["waiting"].get("message") == 'configmap "late" not found')
            plane.objects["ConfigMap", "late"] = {"data": {}}
            await until(lambda: plane.phase() == "Succeeded")

    story(told)


def test_a_pod_that_is_deleted_is_asked_to_end_and_then_let_go(tmp_path: Path) -> None:
    out = tmp_path / "out"
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell(f"trap 'echo asked > {out}; exit 0' TERM; echo up; while :; do sleep 0.02; done")))
        async with running(agent_of(plane, tmp_path / "node")):
            await until(lambda: plane.is_ready() and _log(tmp_path / "node"))
            plane.ask_to_go("p")
            await until(lambda: not plane.pods_held)
            await until(lambda: not list((tmp_path / "node" / "pods").iterdir()))

    story(told)
    assert out.read_text() == "asked\n"
    assert plane.reports[-1][1]["phase"] == "Succeeded"


def _log(node: Path, name: str = "p", attempt: int = 0) -> str:
    file = node / "pods" / f"uid-{name}" / "containers" / "c" / f"{attempt}.log"
    return file.read_text() if file.exists() else ""


def test_what_does_not_end_when_asked_is_killed_with_all_it_began(tmp_path: Path, mark: str) -> None:
    script = f"trap '' TERM; setsid sleep 100 {mark} & sh -c 'trap \"\" TERM; sleep 100' {mark} & sleep 100 # {mark}"
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell(script.replace("sleep 100 " + mark, f"sh -c 'sleep 100' {mark}"))))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: len(processes_with(mark)) >= 3)
            plane.ask_to_go("p", grace_s=0)
            await until(lambda: not plane.pods_held)

    story(told)
    assert not processes_with(mark)


def test_a_process_that_is_killed_is_begun_again(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark)))
        async with running(agent_of(plane, tmp_path, ends_pods=True)):
            await until(plane.is_ready)
            (first,) = processes_with(mark)
            os.kill(first, signal.SIGKILL)
            await until(lambda: plane.state()["restartCount"] == 1 and plane.is_ready())
            assert plane.state()["lastState"]["terminated"]["exitCode"] == 137
            (second,) = processes_with(mark)
            assert second != first

    story(told)
    assert not processes_with(mark)


def test_a_pod_that_vanished_is_ended_without_a_word(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark)))
        async with running(agent_of(plane, tmp_path)):
            await until(plane.is_ready)
            plane.drop("p")
            await until(lambda: not processes_with(mark))
            await until(lambda: not list((tmp_path / "pods").iterdir()))

    story(told)


# -- an agent that ends and comes back -------------------------------------------------------------------------------


def test_pods_go_on_when_the_agent_ends_and_are_found_again(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark)))
        async with running(agent_of(plane, tmp_path)):
            await until(plane.is_ready)
        (found,) = processes_with(mark)
        async with running(agent_of(plane, tmp_path, ends_pods=True)) as agent:
            await until(lambda: agent.runtime.runs("uid-p")["c"][-1].state == "running")
            await until(plane.is_ready)
            assert processes_with(mark) == [found]
            assert plane.state()["restartCount"] == 0

    story(told)
    assert not processes_with(mark)


def test_how_a_pod_ended_meanwhile_is_learned(tmp_path: Path) -> None:
    plane, go = FakePlane(), tmp_path / "go"

    async def told() -> None:
        plane.put(pod(shell(f"while [ ! -e {go} ]; do sleep 0.02; done; exit 7"), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path / "node")):
            await until(plane.is_ready)
        go.touch()
        ended = tmp_path / "node" / "pods" / "uid-p" / "containers" / "c" / "0" / "ended"
        await until(ended.exists)
        async with running(agent_of(plane, tmp_path / "node")):
            await until(lambda: plane.phase() == "Failed")

    story(told)
    assert plane.state()["state"]["terminated"]["exitCode"] == 7


def test_without_the_control_plane_an_agent_goes_on_from_what_it_last_knew(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark)))
        async with running(agent_of(plane, tmp_path)):
            await until(plane.is_ready)
            await until((tmp_path / "pods.last").exists)
        os.kill(processes_with(mark)[0], signal.SIGKILL)
        plane.cut()
        agent = agent_of(plane, tmp_path, ends_pods=True)
        working = asyncio.create_task(agent.run())
        await until(lambda: agent.runtime.runs("uid-p")["c"][-1].attempt == 1)  # begun again, with nobody to ask
        plane.away = False
        await until(lambda: plane.state()["restartCount"] == 1 and plane.is_ready())
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    story(told)


def test_a_torn_file_of_pods_is_said_and_nothing_is_ended_for_it(
    tmp_path: Path, mark: str, caplog: pytest.LogCaptureFixture
) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark)))
        async with running(agent_of(plane, tmp_path)):
            await until(plane.is_ready)
            await until((tmp_path / "pods.last").exists)
        (found,) = processes_with(mark)
        kept = (tmp_path / "pods.last").read_bytes()
        (tmp_path / "pods.last").write_bytes(kept[: len(kept) // 2])
        async with running(agent_of(plane, tmp_path, ends_pods=True)) as agent:
            await until(lambda: agent.runtime.runs("uid-p")["c"][-1].state == "running" and agent.pods.workers)
            assert processes_with(mark) == [found]

    story(told)
    assert "Cannot use the checkpoint" in caplog.text


def test_what_is_left_of_a_pod_that_was_deleted_meanwhile_is_ended(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark)))
        async with running(agent_of(plane, tmp_path)):
            await until(plane.is_ready)
        (tmp_path / "pods.last").unlink(missing_ok=True)
        plane.drop("p")
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: not processes_with(mark))
            await until(lambda: not list((tmp_path / "pods").iterdir()))

    story(told)


def test_a_shim_that_is_killed_takes_its_container_along(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)) as agent:
            await until(plane.is_ready)
            process = Path(f"/proc/{processes_with(mark)[0]}/stat").read_text().rpartition(")")[2].split()
            os.kill(int(process[1]), signal.SIGKILL)
            await until(lambda: plane.phase() == "Failed")
            await until(lambda: not processes_with(mark))
            assert agent.runtime.runs("uid-p")["c"][-1].reason == "ContainerStatusUnknown"

    story(told)


def test_a_second_agent_in_the_same_place_is_refused(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        async with running(agent_of(plane, tmp_path)):
            with pytest.raises(Exception, match="another agent runs here"):
                await agent_of(plane, tmp_path).run()

    story(told)


# -- the node --------------------------------------------------------------------------------------------------------


def test_the_node_says_what_this_machine_is(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        async with running(agent_of(plane, tmp_path, labels={"disk": "fast"})):
            await until(lambda: plane.renewals)

    story(told)
    node = plane.nodes_held["this"]
    assert node["metadata"]["labels"]["disk"] == "fast"
    assert int(node["status"]["capacity"]["cpu"]) >= 1
    assert {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"] == "True"
    assert node["status"]["nodeInfo"]["kernelVersion"]


def test_a_pod_that_does_not_fit_is_refused_by_the_node(tmp_path: Path) -> None:
    given = pod(shell("exit 0", resources={"requests": {"cpu": "1000"}}))
    plane = run_told(given, tmp_path, lambda plane: plane.phase() == "Failed")
    assert plane.status()["reason"] == "OutOfcpu"
    assert "containerStatuses" not in plane.status()


def test_a_pod_does_not_go_back_to_an_older_version(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        given = pod(shell("sleep 100"))
        new = {**given, "metadata": {**given["metadata"], "resourceVersion": "20"}}
        old = {
            **given,
            "metadata": {**given["metadata"], "resourceVersion": "9", "deletionTimestamp": "2020-01-01T00:00:00Z"},
        }
        plane.put(new)
        async with running(agent_of(plane, tmp_path, ends_pods=True)) as agent:
            await until(plane.is_ready)
            held = plane.pods_held["p"]
            plane.put(old)
            plane.put(held)
            plane.put(pod(shell("exit 0"), name="later", restartPolicy="Never"))
            await until(lambda: plane.phase("later") == "Succeeded")
            assert agent.pods.workers["uid-p"].pod["metadata"]["resourceVersion"] == "20"
            assert plane.is_ready()

    story(told)


# -- contained -------------------------------------------------------------------------------------------------------


def test_a_container_that_forks_without_end_is_ended_and_others_go_on(tmp_path: Path, mark: str) -> None:
    bomb = "import os,time\nwhile True:\n    os.fork() or time.sleep(100)\n"
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell("sleep 100", "c"), name="other"))
        plane.put(pod(container("c", sys.executable, "-c", bomb, mark), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path, processes=50, ends_pods=True)):
            await until(lambda: plane.phase() == "Failed")
            assert not processes_with(mark)
            await until(lambda: plane.is_ready("other"))
            assert plane.state("other")["restartCount"] == 0

    story(told)
    if os.getuid():  # the kernel may stop an ordinary user's forks before the shim counts them: RLIMIT_NPROC
        assert plane.state()["state"]["terminated"]["reason"] in ("TooManyProcesses", "Error")
        return
    assert plane.state()["state"]["terminated"]["reason"] == "TooManyProcesses"
    assert plane.said("Failed") == ["Error: more than 50 processes"]


def test_a_log_without_end_takes_no_more_than_its_files_and_that_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situate.agent.node_status.LOOK_S", 0.05)
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell("yes a-line-of-text | head -c 3000000"), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path, log_bytes=100_000)):
            await until(lambda: plane.phase() == "Succeeded")
            logs = list((tmp_path / "pods" / "uid-p" / "containers" / "c").glob("0.log*"))
            assert len(logs) == 3
            assert sum(one.stat().st_size for one in logs) <= 300_000
            await until(lambda: plane.said("LogCut"))
            plane.put(pod(shell("exit 0"), name="other", restartPolicy="Never"))
            await until(lambda: plane.phase("other") == "Succeeded")

    story(told)
    assert [text[:23] for text in plane.said("LogCut")] == ["The log of container c "]


def test_a_probe_that_hangs_is_given_up_and_the_container_begun_again(tmp_path: Path, mark: str) -> None:
    probe = {"exec": {"command": ["sh", "-c", "sleep 100", mark]}, "timeoutSeconds": 0.1, "periodSeconds": 0.1}

    def done(plane: FakePlane) -> bool:
        return bool(plane.state()["restartCount"])

    plane = run_told(pod(shell("sleep 100", livenessProbe=probe), terminationGracePeriodSeconds=1), tmp_path, done)
    assert not processes_with(mark)
    assert "Liveness probe failed: timed out after 0.1s" in plane.said("Unhealthy")
    assert "Container c failed liveness probe, will be restarted" in plane.said("Killing")


def test_a_pod_is_ready_when_its_readiness_probe_says_so(tmp_path: Path) -> None:
    flag, plane = tmp_path / "flag", FakePlane()
    probe = {"exec": {"command": ["test", "-e", str(flag)]}, "periodSeconds": 0.05, "failureThreshold": 1}

    async def told() -> None:
        plane.put(pod(shell("sleep 100", readinessProbe=probe)))
        async with running(agent_of(plane, tmp_path / "node", ends_pods=True)):
            await until(lambda: plane.phase() == "Running" and plane.said("Unhealthy"))
            assert not plane.is_ready()
            flag.touch()
            await until(plane.is_ready)
            flag.unlink()
            await until(lambda: not plane.is_ready())

    story(told)


def test_a_port_that_is_taken_is_replaced_and_probes_follow(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        number = taken.getsockname()[1]
        server = container(
            "c",
            sys.executable,
            "-m",
            "http.server",
            "$(SITUATE_PORT_WEB)",
            ports=[{"name": "web", "containerPort": number}],
            readinessProbe={"httpGet": {"port": "web", "path": "/"}, "periodSeconds": 0.1},
        )
        plane = run_told(pod(server), tmp_path, lambda plane: plane.is_ready())
    (said,) = plane.said("PortsAssigned")
    assert said.startswith(f"c: {number} is ")


def test_a_pod_that_runs_beyond_its_deadline_is_failed(tmp_path: Path) -> None:
    given = pod(shell("sleep 100"), restartPolicy="Never", activeDeadlineSeconds=1)
    plane = run_told(given, tmp_path, lambda plane: plane.phase() == "Failed")
    assert plane.status()["reason"] == "DeadlineExceeded"


def test_the_stop_of_one_run_does_not_end_the_next(tmp_path: Path) -> None:
    ill, plane = tmp_path / "ill", FakePlane()
    fails_once = ["sh", "-c", f"! rm {ill} 2> {os.devnull}"]
    probe = {"exec": {"command": fails_once}, "periodSeconds": 0.05, "failureThreshold": 1}

    async def told() -> None:
        plane.put(pod(shell("echo up; exec sleep 100", livenessProbe=probe), terminationGracePeriodSeconds=1))
        async with running(agent_of(plane, tmp_path / "node", ends_pods=True)) as agent:
            await until(lambda: _log(tmp_path / "node"))
            ill.touch()
            await until(lambda: plane.state()["restartCount"] == 1 and plane.is_ready())
            worker = agent.pods.workers["uid-p"]
            await until(lambda: not worker._stopping)
            assert plane.state()["restartCount"] == 1

    story(told)


def test_a_run_whose_directory_is_deleted_ends(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(sleeper(mark), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)):
            await until(plane.is_ready)
            shutil.rmtree(tmp_path / "pods" / "uid-p")
            await until(lambda: not processes_with(mark))
            await until(lambda: plane.phase() == "Failed")

    story(told)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_a_container_runs_as_the_user_that_it_names_and_so_do_its_probes(tmp_path: Path) -> None:
    # By their paths: our own PATH may lead through folders that this user may not enter.
    probe = {"exec": {"command": ["/bin/sh", "-c", "test $(/usr/bin/id -u) = 65534"]}, "periodSeconds": 0.1}
    runs = container("c", "/bin/sh", "-c", "/usr/bin/id -u; exec /bin/sleep 100", readinessProbe=probe)
    given = pod(runs, securityContext={"runAsUser": 65534, "runAsGroup": 65534})
    plane = FakePlane()

    async def told() -> None:
        plane.put(given)
        async with running(agent_of(plane, tmp_path, ends_pods=True)):
            await until(plane.is_ready)
            assert _log(tmp_path).endswith(" 65534\n")

    story(told)


def test_a_process_that_wants_more_memory_than_its_limit_is_refused_it(tmp_path: Path) -> None:
    hungry = container("c", sys.executable, "-c", "bytearray(400 << 20)", resources={"limits": {"memory": "100Mi"}})
    plane = run_told(
        pod(hungry, restartPolicy="Never"), tmp_path, lambda plane: plane.phase() in ("Succeeded", "Failed")
    )
    assert plane.phase() == "Failed"
    assert plane.state()["state"]["terminated"]["exitCode"] == 1
