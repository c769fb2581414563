"""Starts shims, asks them to run commands, and sets rlimits where there are no control groups."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from situate.agent.run_files import COMPLAINT, LOCK
from situate.agent.runtime import ExecResult, ResourceLimits, RunError
from situate.agent.shim_exec import EXEC

SHIM_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
"""What a shim inherits: enough to find Python and us. The rest may be secret, and a container of the same user could
read it."""
ANSWER_BYTES: Final = 1 << 20
"""The longest answer of a shim to a command."""
FIRST_PIECE: Final = 1_024
"""How much of a request is sent with its files: an empty socket always takes so much."""
FIRST_FREE: Final = 10
"""The first file number that no shim is given."""
MOST_BYTES: Final = (1 << 63) - 1
"""Larger limits are reduced to this one."""
DEFAULT_SIGNALS: Final = tuple(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP})


def spawn_shim(directory: Path, config: bytes, lock: int, ready: int) -> tuple[int, int]:
    """Start a shim in its own session that inherits these files and no others; return its pid and pidfd. Raises
    OSError."""
    opened = [os.memfd_create("order")]  # not a pipe, which would make the agent wait for the shim to read
    try:
        with os.fdopen(os.dup(opened[0]), "wb") as writing:
            writing.write(config)
        os.lseek(opened[0], 0, os.SEEK_SET)
        opened.append(os.open(os.devnull, os.O_WRONLY))
        opened.append(os.open(directory / COMPLAINT, os.O_WRONLY | os.O_CREAT, 0o600))
        given = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for one in (*opened, lock, ready)]
        opened += given  # above all the numbers that the shim has, so that none is overwritten
        actions = [(os.POSIX_SPAWN_DUP2, own, number) for number, own in enumerate(given)]
        argv = [sys.executable, "-P", "-m", "situate.agent.shim"]
        env = {name: os.environ[name] for name in SHIM_ENVIRONMENT if name in os.environ}
        pid = os.posix_spawn(
            sys.executable, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=DEFAULT_SIGNALS
        )
        try:
            return pid, os.pidfd_open(pid)
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
    finally:
        for one in opened:
            os.close(one)


async def run_in_shim(directory: Path, argv: Sequence[str], timeout_s: float | None) -> ExecResult:
    """Run a command in the container; see `shim_exec`. Hanging up kills it. Raises RunError, TimeoutError."""
    try:
        reader, writer = await asyncio.open_unix_connection(sock=_connected(directory), limit=ANSWER_BYTES)
    except OSError as error:
        raise RunError(f"cannot reach the container's shim: {error.strerror}") from None
    try:
        async with asyncio.timeout(timeout_s):
            writer.write(json.dumps({"argv": list(argv)}).encode() + b"\n")
            line = await reader.readline()
    except ConnectionError:
        line = b""
    finally:
        writer.close()
    answer = _answer(line)
    return ExecResult(answer["code"], answer["output"])


@dataclass(slots=True)
class ShimCommand:
    """A command of a user in the container. Closing it kills the command, if it runs."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def wait(self) -> int:
        """The exit code. Raises RunError if the command could not start, or the container has ended."""
        try:
            line = await self.reader.readline()
        except ConnectionError:
            line = b""
        return int(_answer(line)["code"])

    def close(self) -> None:
        self.writer.close()


async def start_in_shim(directory: Path, argv: Sequence[str], files: Sequence[int], *, terminal: bool) -> ShimCommand:
    """Start a command with these files as stdin, stdout and stderr; they stay the caller's. Raises RunError."""
    request = json.dumps({"argv": list(argv), "files": True, "terminal": terminal}).encode() + b"\n"
    try:
        connection = _connected(directory)
        sent = socket.send_fds(connection, [request[:FIRST_PIECE]], files)
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=ANSWER_BYTES)
    except OSError as error:
        raise RunError(f"cannot reach the container's shim: {error.strerror}") from None
    writer.write(request[sent:])
    return ShimCommand(reader, writer)


def _answer(line: bytes) -> dict[str, Any]:
    """Raises RunError."""
    if not line:
        raise RunError("the container is not running")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise RunError(answer["error"])
    return answer


def _connected(directory: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            made.connect(f"/proc/self/fd/{opened}/{EXEC}")  # by the descriptor: a socket's path may have 108 bytes only
        finally:
            os.close(opened)
    except OSError:
        made.close()
        raise
    return made


def rlimits(limits: ResourceLimits, processes: int) -> dict[str, int]:
    """Limits of a single process. RLIMIT_AS would count mapped memory, and few programs work with that.

    RLIMIT_NPROC counts all processes of the user, so those that run already are added.
    """
    made = {"RLIMIT_CORE": 0}
    if limits.memory_bytes:
        made["RLIMIT_DATA"] = min(limits.memory_bytes, MOST_BYTES)
    if processes and os.getuid():
        made["RLIMIT_NPROC"] = _own_tasks() + 2 * processes  # so that the shim's own count reaches its limit first
    return made


def _own_tasks() -> int:
    """Processes of this user. The owner of a directory in /proc is no guide: root owns those of shims."""
    count, own = 0, f"Uid:\t{os.getuid()}\t"
    for one in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if one.name.isdigit() and own in (one / "status").read_text(errors="replace"):
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
