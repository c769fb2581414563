"""The shim of a container: that it loses no output, and ends nothing by mistake."""

import json
import os
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
