"""Starts a process of a container from its shim: the container's own, and those of its probes, hooks and users.

All of them have the same environment, directory, user, limits and control group, and no open files but their input
and output. Imports little, because every shim loads this.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import signal
import termios
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NoReturn

from situate.agent.confinement import confine

Order = dict[str, Any]
"""The shim's configuration: `process.py` writes it."""

PR_SET_PDEATHSIG: Final = 1
FAILED_CODE: Final = 127


class Launched(NamedTuple):
    problem: str
    """Why it could not start; empty: it runs."""
    pid: int
    outputs: tuple[int, ...]
    """Where to read its stdout and stderr, or both together."""


def launch(
    order: Order, argv: Sequence[str], *, joined: bool, files: Sequence[int] = (), terminal: bool = False
) -> Launched:
    """Fork and exec. A failure comes back through a pipe that closes on success. `joined`: one pipe for stdout and
    stderr. `files`: stdin, stdout and stderr, instead of pipes; `terminal`: they are the process's terminal."""
    pipes = [] if files else [os.pipe() for _ in range(1 if joined else 2)]
    failed, failed_end = os.pipe()
    shim, pid = os.getpid(), os.fork()
    if not pid:
        ends = tuple(files) or (None, pipes[0][1], pipes[-1][1])
        _become(order, argv, shim, ends, failed_end, terminal)
    for end in (*(end for _, end in pipes), failed_end):
        os.close(end)
    with os.fdopen(failed, "rb") as reading:
        problem = reading.read().decode(errors="replace")
    outputs = tuple(output for output, _ in pipes)
    if problem:
        os.waitpid(pid, 0)
        for output in outputs:
            os.close(output)
        return Launched(problem, 0, ())
    return Launched("", pid, outputs)


# -- in the child, between fork and exec -----------------------------------------------------------------------------


def _become(
    order: Order, argv: Sequence[str], shim: int, ends: Sequence[int | None], failed: int, terminal: bool
) -> NoReturn:
    """Become the container's process. Never returns: on failure it reports why and exits. `ends`: stdin, stdout and
    stderr; None: it has no stdin."""
    step, (given, out, err) = "starting", ends
    try:
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ,
        ):  # fmt: skip
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.umask(0o022)
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        step = "joining its control group"
        if order["cgroup"]:
            with open(f"{order['cgroup']}/cgroup.procs", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write("0")
        step = "limiting it"
        for name, limit in order["rlimits"].items():
            resource.setrlimit(getattr(resource, name), (limit, limit))
        for own, end in enumerate((os.open(os.devnull, os.O_RDONLY) if given is None else given, out, err)):
            if end is not None:
                os.dup2(end, own)
        if terminal:
            step = "taking its terminal"
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if order["security"]["user"] is not None:
                os.fchown(0, order["security"]["user"], -1)
        close_others(kept=(failed,))
        if not order["chdir_as_user"]:  # the pod's own directory, whose parents may be closed to the user
            step = f"changing to its directory {order['cwd']}"
            os.chdir(order["cwd"])
        step = "changing to its user"
        confine(order["security"])
        if order["chdir_as_user"]:
            step = f"changing to its directory {order['cwd']}"
            os.chdir(order["cwd"])
        # After the user, because a change of user clears it.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != shim:
            os._exit(FAILED_CODE)  # the shim was killed meanwhile
        step = f'exec: "{argv[0]}"'
        os.execvpe(argv[0], list(argv), order["env"])  # noqa: S606
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
        searched = step.startswith("exec") and _not_found(error, argv, order["env"])
        why = "executable file not found in $PATH" if searched else _words(error)
        os.write(failed, f"{step}: {why}".encode(errors="replace"))
    finally:
        os._exit(FAILED_CODE)


def close_others(kept: tuple[int, ...] = ()) -> None:
    """Close all files but stdin, stdout, stderr and these."""
    for one in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(one) > 2 and int(one) not in kept:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(int(one))


def _not_found(error: Exception, argv: Sequence[str], env: dict[str, str]) -> bool:
    """Also if the search ended at a directory that this user may not enter."""
    if "/" in argv[0] or not isinstance(error, FileNotFoundError | PermissionError):
        return False
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return not any(os.path.isfile(os.path.join(one, argv[0])) for one in folders)  # noqa: PTH113, PTH118


def _words(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
