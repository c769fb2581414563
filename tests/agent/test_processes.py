"""Processes of this machine: found and killed, and no others."""

import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from situate.agent import processes
from situate.agent.processes import (
    KILL_ROUND_S,
    KILL_ROUNDS,
    MARK,
    MARKED_ROUNDS,
    children,
    kill_all,
    kill_cgroup,
    kill_marked,
    kill_tree,
    start_ticks,
    tree,
)

NO_PID = 1 << 30
"""More than a pid can be."""
TWO_CHILDREN = "sleep 100 & sh -c 'sleep 100 & echo begun; wait' & wait"


class Processes:
    """Processes that end with the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def begin(self, script: str, *, mark: str = "", session: bool = True) -> subprocess.Popen[bytes]:
        """Returns when it has written a line."""
        env = {"PATH": os.environ["PATH"], **({MARK: mark} if mark else {})}
        begun = subprocess.Popen(["sh", "-c", script], env=env, start_new_session=session, stdout=subprocess.PIPE)
        self._stack.callback(self._end, begun)
        assert begun.stdout is not None
        begun.stdout.readline()
        return begun

    @staticmethod
    def _end(begun: subprocess.Popen[bytes]) -> None:
        if begun.poll() is None:
            kill_tree(begun.pid)
        begun.wait()
        if begun.stdout is not None:
            begun.stdout.close()


@pytest.fixture
def some() -> Iterator[Processes]:
    with ExitStack() as stack:
        yield Processes(stack)


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def members(session: int) -> list[int]:
    """The live processes of a session."""
    found = []
    for pid in (int(folder.name) for folder in Path("/proc").glob("[0-9]*")):
        with suppress(ProcessLookupError):
            if os.getsid(pid) == session and lives(pid):
                found.append(pid)
    return found


def are_gone(pids: list[int]) -> bool:
    """A killed process takes a moment to go, and longer on a busy machine."""
    deadline = time.monotonic() + 10
    while any(lives(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not any(lives(pid) for pid in pids)


def test_a_process_is_identified_by_when_it_started(some: Processes) -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert start_ticks(os.getpid()) == int(fields[19]) > 0
    assert start_ticks(NO_PID) == 0
    assert start_ticks(some.begin("echo; sleep 100").pid) >= start_ticks(os.getpid())


def test_all_descendants_of_a_process(some: Processes) -> None:
    begun = some.begin(TWO_CHILDREN)
    direct = children(begun.pid)
    assert len(direct) == 2
    found = list(tree(begun.pid))
    assert len(found) == 3
    assert {*direct} < {*found}
    assert list(tree(NO_PID)) == children(NO_PID) == []


def test_a_process_is_killed_with_its_descendants_in_other_sessions(some: Processes) -> None:
    begun = some.begin("setsid sleep 100 & sleep 100 & echo begun; wait")
    other = some.begin("echo; sleep 100")
    deadline = time.monotonic() + 5
    while len(found := [begun.pid, *tree(begun.pid)]) < 3 and time.monotonic() < deadline:
        pass
    kill_tree(begun.pid)
    assert are_gone(found)
    assert lives(other.pid)


def test_what_bears_a_mark_is_killed_with_its_session_and_nothing_else_is(some: Processes) -> None:
    mark = uuid.uuid4().hex
    marked = some.begin("env -i sleep 100 & echo begun; wait", mark=mark)
    here = some.begin("echo begun; sleep 100", mark=mark, session=False)
    others = [some.begin("echo; sleep 100", mark=mark + "x"), some.begin("echo; sleep 100", session=False)]
    found = [marked.pid, *tree(marked.pid), here.pid, *tree(here.pid)]
    assert kill_marked(mark) >= len(found), "a shell may have begun its last command since"
    assert are_gone(found)
    assert all(lives(one.pid) for one in others)
    assert kill_marked(mark) == 0


def test_an_orphan_without_the_mark_is_killed_with_the_session_that_has_it(some: Processes) -> None:
    mark = uuid.uuid4().hex
    begun = some.begin("(env -i sh -c 'echo $$; exec sleep 100' &); sleep 100", mark=mark)
    deadline = time.monotonic() + 10
    while len(session := members(begun.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert len(session) == 3, "the shell, its sleep, and the orphan"
    kill_marked(mark)
    assert are_gone(session)


def test_who_kills_by_a_mark_waits_between_rounds_and_gives_up_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(processes, "_marked", lambda _mark: {NO_PID})
    assert kill_marked("m") == 1
    assert slept == [KILL_ROUND_S] * MARKED_ROUNDS


def test_who_kills_waits_between_rounds_and_gives_up_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    ends_after = 3
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(
        processes, "tree", lambda _pid: iter([NO_PID, NO_PID + 1] if len(slept) < ends_after else [NO_PID])
    )
    kill_all(NO_PID)
    assert slept == [KILL_ROUND_S] * 3, "its own process does not count"
    ends_after = 1 << 20
    slept.clear()
    kill_all(NO_PID)
    assert len(slept) == KILL_ROUNDS


def test_a_control_group_is_killed_by_its_file(tmp_path: Path) -> None:
    kill_cgroup(str(tmp_path))
    assert (tmp_path / "cgroup.kill").read_text() == "1"
    kill_cgroup("")
    kill_cgroup(str(tmp_path / "none"))
