"""Starts shims, and sets rlimits where there are no control groups."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from situate.agent.run_files import COMPLAINT, LOCK
from situate.agent.runtime import ResourceLimits


def spawn_shim(directory: Path, config: bytes, kept: Sequence[int]) -> tuple[int, int]:
    """Start a shim in its own session that inherits `kept`; return its pid and pidfd. Raises OSError."""
    complaint = os.open(directory / COMPLAINT, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    order, order_end = os.pipe()
    opened = [complaint, nothing, order]
    try:
        for one in kept:
            os.set_inheritable(one, True)
        argv = [sys.executable, "-P", "-m", "situate.agent.shim"]
        actions = [(os.POSIX_SPAWN_DUP2, own, number) for number, own in enumerate((order, nothing, complaint))]
        pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setsid=True)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
    except OSError:
        os.close(order_end)
        raise
    finally:
        for one in opened:
            os.close(one)
    with contextlib.suppress(BrokenPipeError), os.fdopen(order_end, "wb") as writing:
        # A pipe holds 64 KiB; a longer configuration waits for the shim, which reads it first.
        writing.write(config)
    return pid, pidfd


def rlimits(limits: ResourceLimits, processes: int) -> dict[str, int]:
    """Limits of a single process. RLIMIT_AS would count mapped memory, and few programs work with that.

    RLIMIT_NPROC counts all processes of the user, so those that run already are added.
    """
    made = {"RLIMIT_CORE": 0}
    if limits.memory_bytes is not None:
        made["RLIMIT_DATA"] = limits.memory_bytes
    if processes and os.getuid():
        made["RLIMIT_NPROC"] = _own_tasks() + processes
    return made


def _own_tasks() -> int:
    count, own = 0, os.getuid()
    for one in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if one.name.isdigit() and one.stat().st_uid == own:
                count += sum(1 for _ in (one / "task").iterdir())
    return count


def lock_directory(directory: Path) -> int:
    lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def is_locked(directory: Path) -> bool:
    try:
        os.close(lock_directory(directory))
    except BlockingIOError:
        return True
    return False
