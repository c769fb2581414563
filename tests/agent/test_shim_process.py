"""The agent's side of a shim: its files, its answers, and the limits of a process without a control group."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from situate.agent import shim_process
from situate.agent.run_files import COMPLAINT, LOCK
from situate.agent.runtime import ExecResult, ResourceLimits, RunError
from situate.agent.shim_exec import EXEC
from situate.agent.shim_process import MOST_BYTES, is_locked, lock_directory, rlimits, run_in_shim, spawn_shim

USER = 4711


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """We are an ordinary user, who has no processes but these."""
    proc = tmp_path / "proc"
    proc.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: USER)
    monkeypatch.setattr(shim_process, "Path", lambda _: proc)

    def add(name: str, user: int, tasks: int) -> None:
        for task in range(tasks):
            (proc / name / "task" / str(task)).mkdir(parents=True)
        (proc / name / "status").write_text(f"Name:\tx\nUid:\t{user}\t0\t0\t0\n")

    return add


def test_without_limits_a_process_leaves_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rlimits(ResourceLimits(), 0) == {"RLIMIT_CORE": 0}
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert rlimits(ResourceLimits(), 10) == {"RLIMIT_CORE": 0}, "root has no limit of processes"


@pytest.mark.parametrize("asked, limit", [(1000, 1000), (MOST_BYTES, MOST_BYTES), (MOST_BYTES + 1, MOST_BYTES)])
def test_memory_is_limited_by_what_a_limit_can_be(asked: int, limit: int) -> None:
    assert rlimits(ResourceLimits(memory_bytes=asked), 0)["RLIMIT_DATA"] == limit


def test_the_limit_of_processes_leaves_room_for_those_of_the_user(nobody: Callable[..., None]) -> None:
    assert rlimits(ResourceLimits(), 10)["RLIMIT_NPROC"] == 20
    assert rlimits(ResourceLimits(), 0) == {"RLIMIT_CORE": 0}
    nobody("7", USER, 3)
    nobody("8", USER, 2)
    nobody("9", USER + 1, 16)
    nobody("self", USER, 16)
    assert rlimits(ResourceLimits(), 10)["RLIMIT_NPROC"] == 25


def test_a_directory_is_locked_while_its_lock_is_open(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert not is_locked(tmp_path)
        lock = lock_directory(tmp_path)
    finally:
        os.umask(before)
    assert is_locked(tmp_path)
    assert (tmp_path / LOCK).stat().st_mode & 0o777 == 0o600
    assert not os.get_inheritable(lock)
    os.close(lock)
    assert not is_locked(tmp_path)


def test_a_shim_that_cannot_be_watched_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def refuse(pid: int) -> int:
        begun.append(pid)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    lock = lock_directory(tmp_path)
    before = os.umask(0)
    try:
        with pytest.raises(OSError, match="Too many open files"):
            spawn_shim(tmp_path, b"{}", lock, lock)
    finally:
        os.umask(before)
    os.close(lock)
    assert not [one for one in Path("/proc/self/fd").iterdir() if one.exists() and one.samefile(tmp_path / COMPLAINT)]
    with pytest.raises(ChildProcessError):
        os.waitpid(begun[0], os.WNOHANG)
    assert (tmp_path / COMPLAINT).stat().st_mode & 0o777 == 0o600


def answered(directory: Path, said: bytes, timeout_s: float | None = None) -> tuple[ExecResult, Any]:
    """What a command returns if the shim says this, and what the shim was asked."""
    asked: list[Any] = []
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(json.loads(await reader.readline()))
        if timeout_s is None:
            writer.write(said)
        else:
            await reader.read()  # until the agent hangs up
        writer.close()
        await writer.wait_closed()
        done.set()

    async def told() -> ExecResult:
        async with await asyncio.start_unix_server(serve, directory / EXEC):
            try:
                return await run_in_shim(directory, ("a", "b"), timeout_s)
            finally:
                async with asyncio.timeout(5):
                    await done.wait()

    return asyncio.run(told()), asked


def test_a_command_has_a_code_and_an_output(tmp_path: Path) -> None:
    found, asked = answered(tmp_path, b'{"code": 3, "output": "x"}\n')
    assert (found.code, found.output) == (3, "x")
    assert asked == [{"argv": ["a", "b"]}]


@pytest.mark.parametrize(
    "said, why",
    [
        pytest.param(b'{"error": "no such program"}\n', "^no such program$", id="it could not start"),
        pytest.param(b"", "^the container is not running$", id="the container ended meanwhile"),
    ],
)
def test_why_a_command_has_no_code(said: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=why):
        answered(tmp_path, said)


def test_a_command_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        answered(tmp_path, b"", timeout_s=0)


@pytest.mark.parametrize("name", ["", "none"])
def test_a_shim_that_is_gone_cannot_be_reached(name: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^cannot reach the container's shim: No such file or directory$"):
        asyncio.run(run_in_shim(tmp_path / name, ["true"], None))
