"""The shim of a container: starts its process, writes its log, waits for it, and records how it exited.

Every run of a container has a shim process of its own, so an agent may end or be killed and come back: containers keep
running, and how they exited is on disk. The shim gets its configuration as JSON on stdin, because environments contain
secrets. It writes two files, each atomically:

    started     {"shim": {pid, ticks}, "process": {pid, ticks}, "started_ns"}
    ended       {"code", "reason", "message", "started_ns", "finished_ns"}

It also runs the commands of probes and hooks, which must be part of the container: see `shim_exec`.

SIGTERM terminates the container's process group; SIGUSR1 kills all its descendants. The shim is a subreaper: it kills
what the container leaves behind when the container exits. If the shim itself is killed, the kernel kills the
container's process, and the agent kills the rest. It imports little, because there are many shims, and knows nothing of
pods.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import signal
import sys
import time
from typing import Any, Final

from situate.agent.launch import Order, close_others, launch
from situate.agent.log_writer import LogWriter
from situate.agent.processes import kill_all, reap, signal_group, start_ticks, tree
from situate.agent.shim_exec import ExecServer

LOCK_FD: Final = 3
"""Held open while the shim lives: an open lock shows that it does."""
READY_FD: Final = 4
"""Closed when the container has started, or has failed to."""
STARTED_ERROR: Final = 128
"""The exit code of a process that could not start, as in containerd."""
TOO_MANY: Final = "TooManyProcesses"
FENCED: Final = "Fenced"
"""The reason of a run that ended because nothing may run on the node."""
BOOT: Final = "/proc/sys/kernel/random/boot_id"
CHUNK: Final = 256 << 10
"""The size of an output pipe, and of one read."""
F_SETPIPE_SZ: Final = 1031
LOOK_S: Final = 0.25
"""The poll interval for conditions that cause no event."""
DRAIN_S: Final = 1.0
"""How long to wait for the rest of the output after the process has exited."""
NICE: Final = -10
PR_SET_DUMPABLE: Final = 4
PR_SET_CHILD_SUBREAPER: Final = 36


def main() -> None:
    order: Order = json.loads(sys.stdin.buffer.read())
    close_others(kept=(LOCK_FD, READY_FD))
    os.umask(0o077)
    with contextlib.suppress(OSError):  # only root may
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_DUMPABLE, 0)  # the container may have the same user, and must not read our memory
    log = LogWriter(order["log"], order["log_bytes"], order["log_files"])
    _Shim(order, log).run()


class _Shim:
    def __init__(self, order: Order, log: LogWriter) -> None:
        self._order = order
        self._cgroup: str = order["cgroup"]
        self._log = log
        self._pid = 0
        self._reason = self._message = ""
        self._started_ns = time.time_ns()

    def run(self) -> None:
        wakeup, wakeup_end = os.pipe()
        os.set_blocking(wakeup_end, False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, _ignore)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
        launched = launch(self._order, self._order["argv"], joined=False)
        if launched.problem:
            self._write("ended", _ending(STARTED_ERROR, "StartError", launched.problem, self._started_ns))
            return
        self._pid = launched.pid
        for output in launched.outputs:
            with contextlib.suppress(OSError):  # the user's limit of pipe memory is reached
                fcntl.fcntl(output, F_SETPIPE_SZ, CHUNK)
        code = self._follow(wakeup, dict(zip(launched.outputs, (b"stdout", b"stderr"), strict=True)))
        self._write("ended", _ending(code, self._reason, self._message, self._started_ns))

    def _has_started(self) -> None:
        me, it = os.getpid(), self._pid
        started = {
            "shim": {"pid": me, "ticks": start_ticks(me)},
            "process": {"pid": it, "ticks": start_ticks(it)},
            "started_ns": self._started_ns,
        }
        self._write("started", started)
        os.close(READY_FD)

    # -- running -----------------------------------------------------------------------------------------------------

    def _follow(self, wakeup: int, outputs: dict[int, bytes]) -> int:
        """Wait until the process has exited and its output ended; return its exit code."""
        with selectors.DefaultSelector() as selector:
            selector.register(wakeup, selectors.EVENT_READ)
            for output in outputs:
                selector.register(output, selectors.EVENT_READ)
            execs = ExecServer(self._order, selector)
            self._has_started()
            look_at = time.monotonic() + LOOK_S
            while True:
                heard = False
                for key, _ in selector.select(max(0.0, look_at - time.monotonic())):
                    if key.data is not None:
                        key.data()
                    elif key.fd == wakeup:
                        self._signalled(os.read(wakeup, 256))
                        heard = True
                    elif not self._copy(key.fd, outputs[key.fd]):
                        selector.unregister(key.fd)
                if time.monotonic() >= look_at:
                    self._look()
                    look_at = time.monotonic() + LOOK_S
                elif not heard:
                    continue  # only output: no process can have exited
                if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    break
                for pid, status in reap(self._pid):
                    execs.reaped(pid, status)
            # Its pid cannot be reused before it is reaped.
            kill_all(self._pid, self._cgroup)
            status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            execs.close()
            selector.unregister(wakeup)
            self._drain(selector, outputs)
        self._judge(status)
        return status if status >= 0 else 128 - status

    def _copy(self, output: int, stream: bytes) -> bool:
        data = os.read(output, CHUNK)
        if data:
            self._log.write(stream, data, time.time_ns())
        return bool(data)

    def _drain(self, selector: selectors.BaseSelector, outputs: dict[int, bytes]) -> None:
        deadline = time.monotonic() + DRAIN_S
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                if not self._copy(key.fd, outputs[key.fd]):
                    selector.unregister(key.fd)
        self._log.close(time.time_ns())

    def _signalled(self, numbers: bytes) -> None:
        if signal.SIGUSR1 in numbers:
            kill_all(self._pid, self._cgroup)
        elif signal.SIGTERM in numbers:
            signal_group(self._pid, signal.SIGTERM)

    def _look(self) -> None:
        """Check for too many processes, a deleted directory, and an expired lease."""
        most: int = self._order["processes"]
        if not os.path.isdir(self._order["directory"]):  # noqa: PTH112
            kill_all(self._pid, self._cgroup)
        elif self._is_fenced():
            self._reason, self._message = FENCED, "the node's lease expired, and its pods may run elsewhere"
            kill_all(self._pid, self._cgroup)
        elif most and sum(1 for _ in zip(range(most + 1), tree(os.getpid()), strict=False)) > most:
            self._reason, self._message = TOO_MANY, f"more than {most} processes"
            kill_all(self._pid, self._cgroup)

    def _is_fenced(self) -> bool:
        """Whether the time in the fence file is over. It counts without an agent as well."""
        path = self._order.get("fence")
        if not path:
            return False
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                found = json.load(file)
            with open(BOOT, encoding="ascii") as file:  # noqa: PTH123
                same = found["boot"] == file.read().strip()
            return bool(same and time.clock_gettime(time.CLOCK_BOOTTIME) >= found["dead_by"])
        except (OSError, ValueError, LookupError, TypeError):
            return False  # there is no file, or it is not readable

    def _judge(self, status: int) -> None:
        """Set the reason, unless there is one already."""
        if not self._reason and status == -signal.SIGKILL and _out_of_memory(self._cgroup):
            self._reason = "OOMKilled"
        self._reason = self._reason or ("Error" if status else "Completed")

    def _write(self, name: str, body: dict[str, Any]) -> None:
        path = os.path.join(self._order["directory"], name)  # noqa: PTH118
        with contextlib.suppress(OSError):  # the directory was deleted, or the disk is full: the run counts as lost
            with open(f"{path}.new", "w", encoding="utf-8") as file:  # noqa: PTH123
                json.dump(body, file)
            os.replace(f"{path}.new", path)  # noqa: PTH105


def _ending(code: int, reason: str, message: str, started_ns: int) -> dict[str, Any]:
    return {
        "code": code,
        "reason": reason,
        "message": message,
        "started_ns": started_ns,
        "finished_ns": time.time_ns(),
    }


def _out_of_memory(cgroup: str) -> bool:
    if not cgroup:
        return False
    try:
        with open(f"{cgroup}/memory.events", encoding="ascii") as file:  # noqa: PTH123
            return any(line.startswith("oom_kill ") and int(line.split()[1]) > 0 for line in file)
    except (OSError, ValueError):
        return False


def _ignore(_number: int, _frame: object) -> None:
    """The wakeup pipe delivers the signal."""


if __name__ == "__main__":
    main()
