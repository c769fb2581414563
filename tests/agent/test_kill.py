"""An agent that is killed leaves its pods running, and the next one knows how they ended."""

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from agent.world import FakePlane, agent_of, container, pod, processes_with, running, story, until

TESTS = Path(__file__).parents[1]


def kill_an_agent_that_runs(given: dict[str, Any], directory: Path) -> None:
    file = directory.with_suffix(".json")
    file.write_text(json.dumps(given))
    with subprocess.Popen(
        [sys.executable, str(TESTS / "agent" / "agent_process.py"), str(directory), str(file)],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"},
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid.uuid4().hex}"


def test_a_pod_that_still_runs_is_found_again(tmp_path: Path, mark: str) -> None:
    given = pod(container("c", sys.executable, "-c", "import time; time.sleep(100)", mark))
    kill_an_agent_that_runs(given, tmp_path / "node")
    (found,) = processes_with(mark)
    plane = FakePlane()

    async def told() -> None:
        plane.put(given)
        async with running(agent_of(plane, tmp_path / "node", ends_pods=True)):
            await until(plane.is_ready)
            assert processes_with(mark) == [found]

    story(told)
    assert plane.state()["restartCount"] == 0
    assert not processes_with(mark)


def test_the_exit_code_of_one_that_ended_meanwhile_is_known(tmp_path: Path, mark: str) -> None:
    go = tmp_path / "go"
    script = f"import os,sys,time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nsys.exit(7)"
    given = pod(container("c", sys.executable, "-c", script, mark), restartPolicy="Never")
    kill_an_agent_that_runs(given, tmp_path / "node")
    plane = FakePlane()

    async def told() -> None:
        go.touch()
        await until(lambda: not processes_with(mark))
        plane.put(given)
        async with running(agent_of(plane, tmp_path / "node")):
            await until(lambda: plane.phase() == "Failed")

    story(told)
    assert plane.state()["state"]["terminated"]["exitCode"] == 7
