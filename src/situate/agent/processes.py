"""Finds and kills processes of this machine. Imports little, because every shim loads this."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from typing import Final

MARK: Final = "SITUATE_RUN"
"""The variable that names a container's run in the environment of each of its processes."""
KILL_ROUNDS: Final = 1_000
KILL_ROUND_S: Final = 0.002
MARKED_ROUNDS: Final = 50
"""How often to look for processes of a lost run: each look reads the environment of all processes."""


def start_ticks(pid: int) -> int:
    """The start time of a process in ticks since boot, which identifies it together with its pid. 0: no such
    process."""
    stat = _stat(pid)
    return int(stat[19]) if stat else 0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat after the name; none if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def tree(pid: int) -> Iterator[int]:
    """All descendants of a process. A concurrent fork may be missed."""
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in children(parent):
            yield child
            waiting.append(child)


def children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123
                found.extend(int(one) for one in file.read().split())
    except OSError:
        pass  # exited meanwhile
    return found


def signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def kill_tree(pid: int) -> None:
    """Kill a process with its group and its descendants, once."""
    found = list(tree(pid))
    signal_group(pid, signal.SIGKILL)
    _kill(found)


def kill_all(pid: int, cgroup: str = "") -> None:
    """Kill the control group and the process group at once, which no fork can outrun, then all other descendants of
    this process until none is left. The process itself is not reaped."""
    kill_cgroup(cgroup)
    signal_group(pid, signal.SIGKILL)
    for _ in range(KILL_ROUNDS):
        reap(pid)
        left = [one for one in tree(os.getpid()) if one != pid]
        if not left:
            return
        _kill(left)
        time.sleep(KILL_ROUND_S)


def reap(kept: int) -> list[tuple[int, int]]:
    """Reap children that have exited, but not the container's own process: pids and statuses."""
    found = []
    for child in children(os.getpid()):
        if child != kept:
            try:
                pid, status = os.waitpid(child, os.WNOHANG)
            except ChildProcessError:
                continue
            if pid:
                found.append((pid, status))
    return found


def kill_cgroup(cgroup: str) -> None:
    """Kill all processes of a control group (version 2), where the kernel can: since 5.14."""
    if cgroup:
        with contextlib.suppress(OSError), open(f"{cgroup}/cgroup.kill", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("1")


def kill_marked(mark: str) -> int:
    """Kill what is left of a run that lost its shim: processes with its mark in their environment, with their
    descendants and sessions. Returns how many there were."""
    wanted, killed = f"{MARK}={mark}".encode(), set()
    for _ in range(MARKED_ROUNDS):
        left = _marked(wanted)
        if not left:
            break
        _kill(left)
        killed |= left
        time.sleep(KILL_ROUND_S)
    return len(killed)


def _marked(wanted: bytes) -> set[int]:
    own, pids = os.getpid(), [int(one) for one in os.listdir("/proc") if one.isdigit()]  # noqa: PTH208
    found = {pid for pid in pids if pid != own and wanted in _environment(pid)}
    sessions = {stat[3] for pid in found if (stat := _stat(pid))} - {str(os.getsid(0))}
    if sessions:
        found |= {pid for pid in pids if (stat := _stat(pid)) and stat[3] in sessions and stat[0] != "Z"}
    return found | {child for pid in list(found) for child in tree(pid)}


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return file.read().split(b"\0")
    except OSError:
        return []  # of another user, or exited


def _kill(pids: set[int] | list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
