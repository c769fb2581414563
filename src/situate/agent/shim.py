"""The shim of a container: starts its process, writes its log, waits for it, and records how it exited.

Every run of a container has a shim process of its own, so an agent may end or be killed and come back: containers keep
running, and how they exited is on disk. The shim gets its configuration as JSON on stdin, because environments contain
secrets. It writes two files, each atomically:

    started     {"shim": {pid, ticks}, "process": {pid, ticks}, "started_ns"}
    ended       {"code", "reason", "message", "started_ns", "finished_ns"}

SIGTERM terminates the container's process group; SIGUSR1 kills all its descendants. The shim is a subreaper: it kills
what the container leaves behind when the container exits. It imports little, because there are many shims, and knows
nothing of pods.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from situate.agent.log_writer import LogWriter

STARTED_ERROR: Final = 128
"""The exit code of a process that could not start, as in containerd."""
TOO_MANY: Final = "TooManyProcesses"
FENCED: Final = "Fenced"
BOOT: Final = "/proc/sys/kernel/random/boot_id"
CHUNK: Final = 256 << 10
"""The size of an output pipe, and of one read."""
F_SETPIPE_SZ: Final = 1031
LOOK_S: Final = 0.25
"""The poll interval for conditions that cause no event."""
DRAIN_S: Final = 1.0
"""How long to wait for the rest of the output after the process has exited."""
NICE: Final = -10
KILL_ROUNDS: Final = 1_000
KILL_ROUND_S: Final = 0.002
PR_SET_CHILD_SUBREAPER: Final = 36

Order = dict[str, Any]


def main() -> int:
    order: Order = json.loads(sys.stdin.buffer.read())
    for own in (order["lock"], order["ready"]):
        os.set_inheritable(own, False)  # the lock shows that the shim lives, the pipe that it is ready
    os.umask(0o077)
    with contextlib.suppress(OSError):  # only root may
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    log = LogWriter(order["log"], order["log_bytes"], order["log_files"])
    return _Shim(order, log).run()


class _Shim:
    def __init__(self, order: Order, log: LogWriter) -> None:
        self._order = order
        self._log = log
        self._pid = 0
        self._reason = self._message = ""
        self._started_ns = time.time_ns()

    def run(self) -> int:
        wakeup, wakeup_end = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(wakeup_end, False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, _ignore)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
        problem, outputs = self._start()
        if problem:
            self._write("ended", _ending(STARTED_ERROR, "StartError", problem, self._started_ns))
            return 0
        me, it = os.getpid(), self._pid
        started = {
            "shim": {"pid": me, "ticks": start_ticks(me)},
            "process": {"pid": it, "ticks": start_ticks(it)},
            "started_ns": self._started_ns,
        }
        self._write("started", started)
        os.close(self._order["ready"])
        code = self._follow(wakeup, outputs)
        self._write("ended", _ending(code, self._reason, self._message, self._started_ns))
        return 0

    # -- starting ----------------------------------------------------------------------------------------------------

    def _start(self) -> tuple[str, dict[int, bytes]]:
        """Fork and exec. A failure comes back through a pipe that closes on success."""
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        failed, failed_end = os.pipe()
        self._started_ns = time.time_ns()
        self._pid = os.fork()
        if not self._pid:
            _become(self._order, out_end, err_end, failed_end)
        for end in (out_end, err_end, failed_end):
            os.close(end)
        for output in (out, err):
            with contextlib.suppress(OSError):  # the user's limit of pipe memory is reached
                fcntl.fcntl(output, F_SETPIPE_SZ, CHUNK)
        with os.fdopen(failed, "rb") as reading:
            problem = reading.read().decode(errors="replace")
        if problem:
            os.waitpid(self._pid, 0)
        return problem, {out: b"stdout", err: b"stderr"}

    # -- running -----------------------------------------------------------------------------------------------------

    def _follow(self, wakeup: int, outputs: dict[int, bytes]) -> int:
        """Wait until the process has exited and its output ended; return its exit code."""
        with selectors.DefaultSelector() as selector:
            selector.register(wakeup, selectors.EVENT_READ)
            for output in outputs:
                selector.register(output, selectors.EVENT_READ)
            look_at = time.monotonic() + LOOK_S
            while True:
                heard = False
                for key, _ in selector.select(max(0.0, look_at - time.monotonic())):
                    if key.fd == wakeup:
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
                _reap(self._pid)
            # Its pid cannot be reused before it is reaped.
            _kill_all(self._pid)
            status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
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
            _kill_all(self._pid)
        elif signal.SIGTERM in numbers:
            _signal_group(self._pid, signal.SIGTERM)

    def _look(self) -> None:
        """Check for too many processes, a deleted directory, and an expired lease."""
        most: int = self._order["processes"]
        if not os.path.isdir(self._order["directory"]):  # noqa: PTH112
            _kill_all(self._pid)
        elif self._is_fenced():
            self._reason, self._message = FENCED, "the node's lease expired, and its pods may run elsewhere"
            _kill_all(self._pid)
        elif most and sum(1 for _ in zip(range(most + 1), tree(os.getpid()), strict=False)) > most:
            self._reason, self._message = TOO_MANY, f"more than {most} processes"
            _kill_all(self._pid)

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
        if not self._reason and status == -signal.SIGKILL and _out_of_memory(self._order.get("cgroup", "")):
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


# -- in the child, between fork and exec -----------------------------------------------------------------------------


def _become(order: Order, out: int, err: int, failed: int) -> NoReturn:
    """Become the container's process. Never returns: on failure it reports why and exits."""
    step = "starting"
    try:
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ,
        ):  # fmt: skip
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.umask(0o022)
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        step = "joining its control group"
        for group in order["cgroups"]:
            with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write("0")
        step = "limiting it"
        for name, limit in order["rlimits"].items():
            resource.setrlimit(getattr(resource, name), (limit, limit))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        step = f"changing to its directory {order['cwd']}"
        os.chdir(order["cwd"])  # before the user changes, who may have no access
        step = "changing to its user"
        if order["group"] is not None:
            os.setgroups([])
            os.setgid(order["group"])
        if order["user"] is not None:
            os.setuid(order["user"])
        step = f'exec: "{order["argv"][0]}"'
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606
    except (OSError, ValueError) as error:
        why = "executable file not found in $PATH" if _not_found(error, order) else _words(error)
        os.write(failed, f"{step}: {why}".encode())
    finally:
        os._exit(127)


def _not_found(error: Exception, order: Order) -> bool:
    return isinstance(error, FileNotFoundError) and "/" not in order["argv"][0]


def _words(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)


# -- processes -------------------------------------------------------------------------------------------------------


def start_ticks(pid: int) -> int:
    """The start time of a process in ticks since boot, which identifies it together with its pid. 0: no such
    process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return 0


def tree(pid: int) -> Iterator[int]:
    """All descendants of a process. A concurrent fork may be missed."""
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in _children(parent):
            yield child
            waiting.append(child)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123
                found.extend(int(one) for one in file.read().split())
    except OSError:
        pass  # exited meanwhile
    return found


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_all(pid: int) -> None:
    """Kill the group at once, which no fork can outrun, then all other descendants until none is left."""
    _signal_group(pid, signal.SIGKILL)
    for _ in range(KILL_ROUNDS):
        _reap(pid)
        left = [one for one in tree(os.getpid()) if one != pid]
        if not left:
            return
        for one in left:
            try:
                os.kill(one, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        time.sleep(KILL_ROUND_S)


def _reap(kept: int) -> None:
    """Reap orphans that have exited, but not the container's own process."""
    for child in _children(os.getpid()):
        if child != kept:
            try:
                os.waitpid(child, os.WNOHANG)
            except ChildProcessError:
                continue


def _out_of_memory(cgroup: str) -> bool:
    try:
        with open(f"{cgroup}/memory.events", encoding="ascii") as file:  # noqa: PTH123
            return any(line.startswith("oom_kill ") and int(line.split()[1]) > 0 for line in file)
    except (OSError, ValueError):
        return False


def _ignore(_number: int, _frame: object) -> None:
    """The wakeup pipe delivers the signal."""


if __name__ == "__main__":
    sys.exit(main())
