"""The shim of a container: that it loses no output, and ends nothing by mistake."""

import json
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.world import FakePlane, agent_of, pod, running, shell, story, until
from situate.agent import shim
from situate.agent.log_writer import LogWriter


def shim_in(tmp_path: Path, **order: Any) -> shim._Shim:
    given = {"directory": str(tmp_path), "cgroup": "", "processes": 0, "fence": "", **order}
    return shim._Shim(given, LogWriter(str(tmp_path / "0.log"), 1 << 20, 2))


def test_what_a_process_writes_just_before_it_exits_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes after the shim has looked for output, and exits before the shim looks whether it has."""
    made = shim_in(tmp_path)
    wakeup, wakeup_end = os.pipe()
    output, output_end = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    made._pid = process.pid

    def write_meanwhile(_numbers: bytes) -> None:
        os.write(output_end, b"the last line\n")
        os.close(output_end)
        os.write(wakeup_end, bytes([signal.SIGTERM]))  # too late to matter

    monkeypatch.setattr(made, "_signalled", write_meanwhile)
    monkeypatch.setattr(made, "_has_started", lambda: None)
    monkeypatch.setattr(shim, "kill_all", lambda *_: None)  # it would kill all children of this test
    os.write(wakeup_end, bytes([signal.SIGCHLD]))
    try:
        assert made._follow(wakeup, {output: b"stdout"}) == 0
    finally:
        process.returncode = 0
        for one in (wakeup, wakeup_end, output):
            os.close(one)
    assert (tmp_path / "0.log").read_text().endswith(" stdout F the last line\n")
    assert made._reason == "Completed"


def test_a_last_line_without_an_end_is_in_the_log(tmp_path: Path) -> None:
    plane = FakePlane()

    async def told() -> None:
        plane.put(pod(shell("printf 'no newline'"), restartPolicy="Never"))
        async with running(agent_of(plane, tmp_path)) as agent:
            await until(lambda: plane.phase() == "Succeeded")
            assert "no newline" in agent.runtime.log("uid-p", "c", 0).read_text()

    story(told)


BOOT = Path(shim.BOOT).read_text().strip()


@pytest.mark.parametrize(
    "text, fenced",
    [
        pytest.param("", False, id="an empty file"),
        pytest.param("{", False, id="half a file"),
        pytest.param("[]", False, id="another file"),
        pytest.param(json.dumps({"boot": BOOT}), False, id="without a time"),
        pytest.param(json.dumps({"boot": BOOT, "dead_by": "soon"}), False, id="a time that is none"),
        pytest.param(json.dumps({"boot": "another", "dead_by": 0}), False, id="a time of another boot"),
        pytest.param(json.dumps({"boot": BOOT, "dead_by": 1e12}), False, id="a time to come"),
        pytest.param(json.dumps({"boot": BOOT, "dead_by": 0}), True, id="a time that is over"),
    ],
)
def test_only_a_time_that_is_over_fences(text: str, fenced: bool, tmp_path: Path) -> None:
    """An agent that cannot write the file, or writes half of it, must not end its containers."""
    (tmp_path / "fence").write_text(text)
    assert shim_in(tmp_path, fence=str(tmp_path / "fence"))._is_fenced() is fenced


def test_without_a_fence_file_nothing_is_fenced(tmp_path: Path) -> None:
    assert not shim_in(tmp_path, fence=str(tmp_path / "none"))._is_fenced()
    assert not shim_in(tmp_path, fence=str(tmp_path))._is_fenced()


# -- what a shim kills its container for -----------------------------------------------------------------------------


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done to the container, instead of doing it to this test."""
    done: list[str] = []
    monkeypatch.setattr(shim, "kill_all", lambda *_: done.append("killed"))
    monkeypatch.setattr(shim, "signal_group", lambda _pid, number: done.append(signal.Signals(number).name))
    return done


@pytest.mark.parametrize("count, most, killed", [(3, 3, False), (4, 3, True), (9, 3, True), (9, 0, False)])
def test_a_container_with_too_many_processes_is_killed(
    count: int, most: int, killed: bool, tmp_path: Path, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim, "tree", lambda _pid: iter(range(count)))
    made = shim_in(tmp_path, processes=most)
    made._look()
    assert ended == (["killed"] if killed else [])
    made._judge(-signal.SIGKILL)
    assert (made._reason, made._message) == (("TooManyProcesses", "more than 3 processes") if killed else ("Error", ""))


def test_a_container_whose_directory_is_gone_is_killed(tmp_path: Path, ended: list[str]) -> None:
    made = shim_in(tmp_path)
    made._look()
    assert ended == []
    made._order["directory"] = str(tmp_path / "none")
    made._look()
    assert ended == ["killed"]


def test_a_container_of_a_fenced_node_is_killed_and_says_why(tmp_path: Path, ended: list[str]) -> None:
    (tmp_path / "fence").write_text(json.dumps({"boot": BOOT, "dead_by": 0}))
    made = shim_in(tmp_path, fence=str(tmp_path / "fence"))
    made._look()
    assert (ended, made._reason) == (["killed"], "Fenced")


@pytest.mark.parametrize(
    "numbers, done",
    [
        pytest.param([signal.SIGTERM], ["SIGTERM"], id="asked to stop"),
        pytest.param([signal.SIGUSR1], ["killed"], id="to be killed"),
        pytest.param([signal.SIGTERM, signal.SIGUSR1], ["killed"], id="both"),
        pytest.param([signal.SIGCHLD], [], id="a child has exited"),
    ],
)
def test_what_a_signal_does(numbers: list[int], done: list[str], tmp_path: Path, ended: list[str]) -> None:
    shim_in(tmp_path)._signalled(bytes(numbers))
    assert ended == done


@pytest.mark.parametrize(
    "status, events, reason",
    [
        pytest.param(0, None, "Completed", id="it is done"),
        pytest.param(3, None, "Error", id="it failed"),
        pytest.param(-signal.SIGKILL, None, "Error", id="it was killed, without a control group"),
        pytest.param(-signal.SIGKILL, "low 0\noom 1\noom_kill 1\n", "OOMKilled", id="for want of memory"),
        pytest.param(-signal.SIGKILL, "oom 3\noom_kill 0\n", "Error", id="not for want of memory"),
        pytest.param(-signal.SIGKILL, "oom_kill x\n", "Error", id="nobody knows why"),
        pytest.param(-signal.SIGTERM, "oom_kill 1\n", "Error", id="another process was"),
        pytest.param(0, "oom_kill 1\n", "Completed", id="another process was, and it went on"),
    ],
)
def test_why_a_container_ended(status: int, events: str | None, reason: str, tmp_path: Path) -> None:
    if events is not None:
        (tmp_path / "memory.events").write_text(events)
    made = shim_in(tmp_path, cgroup="" if events is None else str(tmp_path))
    made._judge(status)
    assert made._reason == reason


def test_what_is_written_about_a_run_is_whole(tmp_path: Path) -> None:
    made = shim_in(tmp_path)
    made._write("ended", {"code": 3})
    assert json.loads((tmp_path / "ended").read_text()) == {"code": 3}
    assert not (tmp_path / "ended.new").exists()
    made._order["directory"] = str(tmp_path / "none")
    made._write("ended", {"code": 3})  # the run counts as lost


# -- the process itself ----------------------------------------------------------------------------------------------

MAIN = """
import ctypes, json, os, sys
from situate.agent import shim

class Shim:
    def __init__(self, order, log):
        pass

    def run(self):
        libc, got = ctypes.CDLL(None), ctypes.c_int()
        libc.prctl(37, ctypes.byref(got))
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        opened = sorted(int(one) for one in os.listdir("/proc/self/fd"))
        print(json.dumps([got.value, libc.prctl(3), os.umask(0), nice, opened]))

shim._Shim = Shim
for number in (shim.LOCK_FD, shim.READY_FD, 9):
    os.dup2(2, number)
shim.main()
"""


def test_a_shim_adopts_orphans_keeps_its_memory_to_itself_and_closes_what_is_not_its_own(tmp_path: Path) -> None:
    order = json.dumps({"log": str(tmp_path / "0.log"), "log_bytes": 1, "log_files": 1})
    done = subprocess.run([sys.executable, "-c", MAIN], input=order, capture_output=True, check=True, text=True)
    subreaper, dumpable, mask, nice, opened = json.loads(done.stdout)
    assert (subreaper, dumpable, mask) == (1, 0, 0o077)
    assert nice == (shim.NICE if os.geteuid() == 0 else os.getpriority(os.PRIO_PROCESS, 0))
    assert 9 not in opened
    assert {shim.LOCK_FD, shim.READY_FD} <= {*opened}


def drained(tmp_path: Path, *, open_end: bool) -> bool:
    """Whether the shim waits for nothing more after the rest of the output."""
    output, output_end = os.pipe()
    os.write(output_end, b"the rest\n")
    if not open_end:
        os.close(output_end)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            shim_in(tmp_path)._drain(selector, {output: b"stderr"})
            return not selector.get_map()
    finally:
        os.close(output)
        if open_end:
            os.close(output_end)


def test_the_rest_of_the_output_is_read_to_its_end_but_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drained(tmp_path, open_end=False)
    assert (tmp_path / "0.log").read_text().endswith(" stderr F the rest\n")
    monkeypatch.setattr(shim, "DRAIN_S", 0.01)
    assert not drained(tmp_path, open_end=True), "somebody who was not killed has it open"
