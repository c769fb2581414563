"""Everything that a pod started ends with it: daemons, probes, hooks, and what a killed shim leaves behind."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.world import FakePlane, agent_of, container, pod, processes_with, running, shell, story, until
from situate.agent.agent import NodeAgent
from situate.agent.cgroups import Cgroups, find
from situate.agent.process import ProcessRuntime, ProcessSettings
from situate.agent.settings import NodeSettings

DAEMON = (
    "import os,sys,time\n"
    "if os.fork(): sys.exit()\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "os.close(1); os.close(2)\n"
    "time.sleep(100)\n"
)
"""Forks twice into a session of its own, as daemons do."""


@pytest.fixture
def mark() -> Iterator[str]:
    """A word that only this test's processes have in their command lines. None is left, whatever happens."""
    word = f"mark-{uuid.uuid4().hex}"
    yield word
    left = processes_with(word)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def daemon(mark: str) -> list[str]:
    return [sys.executable, "-c", DAEMON, mark]


def daemons(mark: str) -> list[int]:
    """Those whose session has lost its leader: they have forked twice, and nobody is left who knows them."""
    found = []
    for pid in processes_with(mark):
        with contextlib.suppress(ProcessLookupError):
            if not Path(f"/proc/{os.getsid(pid)}").exists():
                found.append(pid)
    return found


def shim_of(directory: Path) -> int:
    """The pid of the only shim there."""
    (found,) = directory.glob("pods/*/containers/*/*/started")
    pid: int = json.loads(found.read_text())["shim"]["pid"]
    return pid


def ended(given: dict[str, Any], tmp_path: Path, mark: str, *, begun: int = 1, grace_s: int = 0) -> FakePlane:
    """Run a pod until so many of its daemons run; then delete it, and nothing of it is left."""
    plane = FakePlane()

    async def told() -> None:
        plane.put(given)
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase() == "Running" and len(daemons(mark)) >= begun)
            plane.ask_to_go("p", grace_s=grace_s)
            await until(lambda: not plane.pods_held)
            assert not processes_with(mark)

    story(told)
    return plane


def test_a_daemon_of_the_container_ends_with_it(tmp_path: Path, mark: str) -> None:
    script = f"{sys.executable} -c '{DAEMON}' {mark}; exec sleep 100"
    ended(pod(shell(script)), tmp_path, mark)


@pytest.mark.parametrize("kind", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_a_daemon_of_a_probe_ends_with_the_container(kind: str, tmp_path: Path, mark: str) -> None:
    probe: dict[str, Any] = {kind: {"exec": {"command": daemon(mark)}, "periodSeconds": 100}}
    ended(pod(shell("exec sleep 100", **probe)), tmp_path, mark)


def test_a_daemon_of_a_post_start_hook_ends_with_the_container(tmp_path: Path, mark: str) -> None:
    hook = {"postStart": {"exec": {"command": daemon(mark)}}}
    ended(pod(shell("exec sleep 100", lifecycle=hook)), tmp_path, mark)


def test_a_daemon_of_a_pre_stop_hook_ends_with_the_container(tmp_path: Path, mark: str) -> None:
    hook = {"preStop": {"exec": {"command": daemon(mark)}}}
    given = pod(shell(f": {mark}; sleep 100; :", lifecycle=hook))
    ended(given, tmp_path, mark, begun=0, grace_s=3)


def test_a_post_start_hook_that_fails_restarts_the_container(tmp_path: Path) -> None:
    plane, ill = FakePlane(), tmp_path / "ill"
    ill.touch()
    hook = {"postStart": {"exec": {"command": ["sh", "-c", f"! rm {ill}"]}}}

    async def told() -> None:
        plane.put(pod(shell("exec sleep 100", lifecycle=hook), terminationGracePeriodSeconds=1))
        async with running(agent_of(plane, tmp_path / "node", ends_pods=True)):
            await until(lambda: plane.state()["restartCount"] == 1 and plane.is_ready())

    story(told)
    assert plane.said("FailedPostStartHook") == ["PostStartHook failed: exit code 1: "]


def test_a_post_start_hook_is_not_run_again_by_the_next_agent(tmp_path: Path) -> None:
    plane, runs = FakePlane(), tmp_path / "runs"
    hook = {"postStart": {"exec": {"command": ["sh", "-c", f"echo run >> {runs}"]}}}

    async def told() -> None:
        plane.put(pod(shell("exec sleep 100", lifecycle=hook)))
        async with running(agent_of(plane, tmp_path / "node")):
            await until(plane.is_ready)
        async with running(agent_of(plane, tmp_path / "node", ends_pods=True)) as agent:
            await until(lambda: agent.pods.workers["uid-p"]._health["c"][1].ready)

    story(told)
    assert runs.read_text() == "run\n"


def test_a_pre_stop_hook_that_hangs_ends_with_the_grace_period(tmp_path: Path, mark: str) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "trap '' TERM; setsid sleep 100; :", mark]}}}
    given = pod(shell(f": {mark}; sleep 100; :", lifecycle=hook))
    plane = ended(given, tmp_path, mark, begun=0, grace_s=1)
    assert plane.said("FailedPreStopHook") == ["PreStopHook failed: it took too long"]


def test_a_command_is_part_of_the_container(tmp_path: Path, mark: str) -> None:
    """It has the environment, the directory and the limits, and is a child of the shim, not of the agent."""
    plane = FakePlane()
    probe = {"exec": {"command": ["sh", "-c", f"echo $OWN $PWD; exec sleep 100 # {mark}"]}, "timeoutSeconds": 100}
    runs = shell(
        "exec sleep 100",
        env=[{"name": "OWN", "value": "own"}],
        readinessProbe=probe,
        resources={"limits": {"memory": "100Mi"}},
    )

    async def told() -> None:
        plane.put(pod(runs))
        async with running(agent_of(plane, tmp_path, ends_pods=True)) as agent:
            await until(lambda: plane.phase() == "Running")
            done = await agent.runtime.execute("uid-p", "c", ["sh", "-c", "echo $OWN; pwd; ulimit -d; exit 3"], 10)
            assert done.code == 3
            assert done.output.split() == ["own", str(tmp_path / "pods" / "uid-p" / "work"), str(100 << 10)]
            parent = await agent.runtime.execute("uid-p", "c", ["sh", "-c", "echo $PPID"], 10)
            assert int(parent.output) == shim_of(tmp_path)

    story(told)


def test_a_command_that_takes_too_long_is_killed_while_the_container_goes_on(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell("exec sleep 100")))
        async with running(agent_of(plane, tmp_path, ends_pods=True)) as agent:
            await until(lambda: plane.phase() == "Running")
            with pytest.raises(TimeoutError):
                await agent.runtime.execute("uid-p", "c", ["sh", "-c", f"setsid sleep 100; : {mark}"], 0.3)
            await until(lambda: not processes_with(mark))
            assert (await agent.runtime.execute("uid-p", "c", ["true"], 10)).code == 0
            assert plane.state()["restartCount"] == 0

    story(told)


@pytest.fixture
def groups() -> Iterator[Cgroups]:
    """Real control groups, with a name of their own."""
    name = f"situate-test-{uuid.uuid4().hex[:12]}"
    found = find(name=name)
    if found is None:
        pytest.skip("this machine lets us make no control groups")
    yield found
    found.prune()
    assert not found._root.exists()


def killed_shim(agent: NodeAgent, plane: FakePlane, tmp_path: Path, mark: str, script: str) -> None:
    async def told() -> None:
        plane.put(pod(shell(script), restartPolicy="Never"))
        async with running(agent):
            await until(lambda: plane.phase() == "Running" and daemons(mark) and len(processes_with(mark)) >= 3)
            os.kill(shim_of(tmp_path), signal.SIGKILL)
            await until(lambda: plane.phase() == "Failed")
            assert not processes_with(mark)

    story(told)
    assert plane.state()["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


def test_what_a_killed_shim_leaves_behind_ends(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()
    script = f"setsid sh -c 'sleep 100; :' {mark} & {sys.executable} -c '{DAEMON}' {mark}; sleep 100"
    killed_shim(agent_of(plane, tmp_path), plane, tmp_path, mark, script)


def test_with_control_groups_not_even_a_process_without_its_environment_is_left(
    tmp_path: Path, mark: str, groups: Cgroups
) -> None:
    plane = FakePlane()
    agent = NodeAgent(
        plane, NodeSettings("this", tmp_path),
        lambda changed: ProcessRuntime(tmp_path / "pods", changed, groups=groups, settings=ProcessSettings()),
    )  # fmt: skip
    hidden = f"env -i setsid {sys.executable} -c '{DAEMON}' {mark}"
    killed_shim(agent, plane, tmp_path, mark, f"{hidden}; {hidden}; sleep 100")


def test_a_container_that_stops_its_shim_ends_all_the_same(tmp_path: Path, mark: str) -> None:
    """It stops the shim again and again, until the agent has to kill the shim."""
    stopper = "import os,signal,sys,time\nwhile True: os.kill(os.getppid(), signal.SIGSTOP); time.sleep(0.001)\n"
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(container("c", sys.executable, "-c", stopper, mark), name="p"))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.phase() == "Running" and processes_with(mark))
            plane.ask_to_go("p", grace_s=0)
            await until(lambda: not plane.pods_held)
            assert not processes_with(mark)

    story(told)


def test_the_kernel_kills_the_process_of_a_killed_shim_without_an_agent(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(container("c", sys.executable, "-c", "import time; time.sleep(100)", mark)))
        async with running(agent_of(plane, tmp_path)):
            await until(plane.is_ready)
        assert processes_with(mark)
        os.kill(shim_of(tmp_path), signal.SIGKILL)
        await until(lambda: not processes_with(mark))

    story(told)


def test_what_a_shim_left_behind_while_there_was_no_agent_ends_with_the_next_one(tmp_path: Path, mark: str) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell(f"{sys.executable} -c '{DAEMON}' {mark}; sleep 100"), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: plane.is_ready() and daemons(mark))
        os.kill(shim_of(tmp_path), signal.SIGKILL)
        await asyncio.sleep(0.05)
        assert processes_with(mark)
        async with running(agent_of(plane, tmp_path)):
            await until(lambda: not processes_with(mark))

    story(told)


def test_a_container_inherits_no_files_and_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = FakePlane()
    monkeypatch.setenv("SITUATE_TEST_SECRET", "secret")
    # 3 is the directory that `ls` reads. A shim's environment is closed even to its own user, but not to root.
    script = "ls /proc/self/fd; env; cat /proc/$PPID/environ | tr '\\0' '\\n'; echo done; sleep 100"

    async def told() -> None:
        plane.put(pod(shell(script)))
        async with running(agent_of(plane, tmp_path, ends_pods=True)) as agent:
            await until(lambda: plane.phase() == "Running")
            log = agent.runtime.log("uid-p", "c", 0)
            await until(lambda: log.exists() and "done" in log.read_text())
            lines = [line.split(" ", 3)[3] for line in log.read_text().splitlines()]
            assert [one for one in lines if one.isdigit()] == ["0", "1", "2", "3"]
            assert not [one for one in lines if "SITUATE_TEST_SECRET" in one]

    with tempfile.TemporaryFile() as stray:
        os.set_inheritable(stray.fileno(), True)
        story(told)
