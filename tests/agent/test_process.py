"""The process runtime: its directories, the runs that it finds again, and what it refuses."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.world import story, until
from situate.agent.process import KEPT_RUNS, SHIM_REACTS_S, ProcessRuntime, ProcessSettings
from situate.agent.run_files import LOST, LOST_REASON
from situate.agent.runtime import ContainerConfig, RunError


def runtime_in(tmp_path: Path, **more: Any) -> ProcessRuntime:
    return ProcessRuntime(tmp_path / "pods", lambda _: None, **more)


def order(*argv: str, attempt: int = 0) -> ContainerConfig:
    return ContainerConfig("u", "c", attempt, 7, argv, {"PATH": os.environ["PATH"]}, "/")


def state(runtime: ProcessRuntime) -> str:
    return runtime.runs("u")["c"][-1].state


# -- directories -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart, mode", [(False, 0o700), (True, 0o711)])
def test_a_home_can_be_entered_by_those_who_live_there(apart: bool, mode: int, tmp_path: Path) -> None:
    homes = tmp_path / "homes"
    homes.mkdir()
    before = os.umask(0)
    try:
        runtime = runtime_in(tmp_path, homes=homes if apart else None)
        home = runtime.home("u")
    finally:
        os.umask(before)
    assert home == (homes if apart else tmp_path / "pods") / "u"
    assert home.stat().st_mode & 0o7777 == mode
    home.chmod(0o755)
    assert runtime.home("u").stat().st_mode & 0o7777 == 0o755, "one that is there stays as it is"
    assert (tmp_path / "pods").stat().st_mode & 0o7777 == 0o700


def test_a_log_was_cut_if_all_its_files_are_there(tmp_path: Path) -> None:
    runtime = runtime_in(tmp_path, settings=ProcessSettings(log_bytes=100, log_files=3))
    log = runtime.log("u", "c", 0)
    log.parent.mkdir(parents=True)
    for name, cut in (("0.log", 0), ("0.log.1", 0), ("0.log.2", 300)):
        (log.parent / name).touch()
        assert runtime.truncated_log_bytes("u", "c", 0) == cut


@pytest.mark.parametrize("left", [False, True])
def test_the_directory_of_homes_goes_when_nobody_lives_there(left: bool, tmp_path: Path) -> None:
    homes = tmp_path / "homes"
    homes.mkdir()
    runtime = runtime_in(tmp_path, homes=homes)
    if left:
        runtime.home("u")
    runtime.close()
    assert homes.exists() == left
    runtime_in(tmp_path).close()
    assert (tmp_path / "pods").exists()


# -- runs of an earlier agent ----------------------------------------------------------------------------------------


def ended(tmp_path: Path, attempt: int, code: int | None, began: bool = True) -> None:
    directory = tmp_path / "pods" / "u" / "containers" / "c" / str(attempt)
    directory.mkdir(parents=True)
    if began:
        (directory / "began").write_text(json.dumps({"backoff_ms": 10 * attempt}))
    if code is not None:
        body = {"code": code, "reason": "Error", "message": "m", "started_ns": 1, "finished_ns": 2}
        (directory / "ended").write_text(json.dumps(body))


def adopted(tmp_path: Path) -> tuple[list[str], list[tuple[int, int, str, int, str]]]:
    found: tuple[list[str], list[tuple[int, int, str, int, str]]] = ([], [])

    async def told() -> None:
        runtime = runtime_in(tmp_path)
        found[0].extend(runtime.adopt())
        for one in runtime.runs("u").get("c", ()):
            found[1].append((one.attempt, one.backoff_ms, one.state, one.code, one.message))
        runtime.close()

    story(told)
    return found


def test_the_last_runs_are_found_again_with_their_ends(tmp_path: Path) -> None:
    for attempt in (2, 9, 10):
        ended(tmp_path, attempt, attempt)
    (tmp_path / "pods" / "u" / "containers" / "c" / "x").mkdir()
    (tmp_path / "pods" / "file").touch()
    pods, runs = adopted(tmp_path)
    assert pods == ["u"]
    assert runs == [(9, 90, "exited", 9, "m"), (10, 100, "exited", 10, "m")]
    assert len(runs) == KEPT_RUNS


def test_runs_whose_end_nobody_saw_are_lost(tmp_path: Path) -> None:
    ended(tmp_path, 0, None)
    ended(tmp_path, 1, None, began=False)
    _, runs = adopted(tmp_path)
    assert runs == [(0, 0, "exited", 137, LOST), (1, 0, "exited", 137, LOST)]
    written = json.loads((tmp_path / "pods" / "u" / "containers" / "c" / "1" / "ended").read_text())
    assert (written["code"], written["reason"]) == (137, LOST_REASON)


def test_a_pod_with_nothing_but_a_home_is_known(tmp_path: Path) -> None:
    (tmp_path / "pods" / "v").mkdir(parents=True)
    assert adopted(tmp_path)[0] == ["v"]


# -- real processes --------------------------------------------------------------------------------------------------


def with_runtime(tmp_path: Path, tell: Callable[[ProcessRuntime], Any]) -> None:
    async def told() -> None:
        runtime = runtime_in(tmp_path)
        try:
            await tell(runtime)
        finally:
            while any(runs and not runs[-1].is_over for runs in runtime.runs("u").values()):
                runtime.kill("u", "c")
                await asyncio.sleep(0.02)
            runtime.close()

    story(told)


def test_a_pod_that_runs_cannot_be_forgotten_and_one_that_does_not_leaves_nothing(tmp_path: Path) -> None:
    async def told(runtime: ProcessRuntime) -> None:
        runtime.start(order("sleep", "100"))
        with pytest.raises(RunError, match="not running"):
            await runtime.execute("u", "c", ["true"], 5)  # it is about to
        await until(lambda: state(runtime) == "running")
        with pytest.raises(RunError, match="still running"):
            runtime.forget("u")
        runtime.forget("another")
        for argv in ([], ["a\0b"]):
            with pytest.raises(RunError, match="missing or contains a NUL"):
                await runtime.execute("u", "c", argv, 5)
        done = await runtime.execute("u", "c", ["sh", "-c", "echo said; exit 3"], 5)
        assert (done.code, done.output) == (3, "said\n")
        runtime.terminate("u", "c")
        await until(lambda: state(runtime) == "exited")
        assert runtime.runs("u")["c"][-1].code == 128 + 15
        with pytest.raises(RunError, match="not running"):
            await runtime.execute("u", "c", ["true"], 5)
        runtime.forget("u")
        assert runtime.runs("u") == {}
        assert list((tmp_path / "pods").iterdir()) == []

    with_runtime(tmp_path, told)


def test_the_runs_before_the_last_two_leave_nothing(tmp_path: Path) -> None:
    async def told(runtime: ProcessRuntime) -> None:
        for attempt in range(3):
            runtime.start(order("true", attempt=attempt))
            await until(lambda: state(runtime) == "exited")
        kept = sorted(one.name for one in runtime.log("u", "c", 0).parent.iterdir())
        assert kept == ["1", "1.log", "2", "2.log"]
        assert [(one.attempt, one.backoff_ms, one.code) for one in runtime.runs("u")["c"]] == [(1, 7, 0), (2, 7, 0)]
        assert runtime.runs("u")["c"][-1].id == "process://u/c/2"

    with_runtime(tmp_path, told)


def test_a_run_that_cannot_have_a_directory_says_why(tmp_path: Path) -> None:
    async def told() -> None:
        runtime = runtime_in(tmp_path)
        (tmp_path / "pods" / "u").touch()
        with pytest.raises(RunError, match="Not a directory"):
            runtime.start(order("true"))
        assert runtime.runs("u") == {}

    story(told)


def test_a_shim_gets_time_to_react_before_it_is_killed_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[signal.Signals] = []
    clock = [100.0]

    async def told(runtime: ProcessRuntime) -> None:
        runtime.start(order("sleep", "100"))
        await until(lambda: state(runtime) == "running")
        with monkeypatch.context() as patched:
            patched.setattr(ProcessRuntime, "_signal", lambda _self, _pod, _container, number: sent.append(number))
            patched.setattr("situate.agent.process.time", SimpleNamespace(monotonic=lambda: clock[0]))
            for clock[0] in (100.0, 100.0 + SHIM_REACTS_S - 0.1, 100.0 + SHIM_REACTS_S):
                runtime.kill("u", "c")

    with_runtime(tmp_path, told)
    assert sent == [signal.SIGUSR1, signal.SIGUSR1, signal.SIGUSR1, signal.SIGKILL]
