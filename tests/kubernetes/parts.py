"""The programs of a real cluster: where they are, and one running process of them with its log.

It knows nothing of Kubernetes' API; cluster.py puts the parts together. `make kubernetes` builds them.
"""

import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import IO

NAMES = ("etcd", "kube-apiserver", "kube-scheduler", "kubectl", "kwok")
START_S = 60.0
STOP_S = 15.0
TAIL_LINES = 25
# Below those that outgoing connections are given: a server that is down for a moment finds its port free again.
PORTS = range(20_000, 32_000)
POLL_S = 0.05

# A test run that is killed leaves no servers behind: prctl(PR_SET_PDEATHSIG, SIGKILL) in the child, then the part,
# unless the parent is gone by then.
DIE_WITH_PARENT = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
# By "parent" the kernel means the thread, so all parts are started by one that lasts.
LAUNCHER = ThreadPoolExecutor(1, "launcher of parts")


class PartFailedError(Exception):
    """A part did not start, or ended on its own; the message carries the end of its log."""


def folder() -> Path:
    """KUBE_ASSETS if set, else where `make kubernetes` puts the parts."""
    given = os.environ.get("KUBE_ASSETS")
    return Path(given).resolve() if given else Path(__file__).resolve().parent / "bin"


@lru_cache(maxsize=1)
def minor() -> int:
    """The minor version of the parts: 36 or 37. Without parts, that of `make kubernetes`."""
    program = folder() / "kube-apiserver"
    if not os.access(program, os.X_OK):
        return 36
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split()[-1].split(".")[1])


def missing(more: Sequence[str] = ()) -> str | None:
    """One line saying what is absent and how to get it, or None. `more`: names of parts that few need."""
    absent = [name for name in (*NAMES, *more) if not os.access(folder() / name, os.X_OK)]
    if absent:
        return f"a real cluster needs {', '.join(absent)}: `make kubernetes` builds them, or KUBE_ASSETS=dir says where"
    if shutil.which("openssl") is None:
        return "a real cluster needs openssl on the path, to make its certificates"
    return None


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; whoever listens on them must be ready to lose the race."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().choice(PORTS)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        if port not in found:
            found.append(port)
    return found


def wait_until(check: Callable[[], object], what: str, within_s: float = 30.0) -> None:
    """Ask until the answer is truthy; TimeoutError with `what` in it when it never is."""
    deadline = time.monotonic() + within_s
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {within_s:g} s in vain for {what}")
        time.sleep(POLL_S)


class Part:
    """One process. Its output is appended to a file, across restarts. It never outlives the process that started it."""

    def __init__(
        self, name: str, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        self.env = dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise PartFailedError(f"{self.name} is not running")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.poll() if self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, ready: Callable[[], object] | None = None, within_s: float = START_S) -> "Part":
        """Start, and wait until `ready` says yes."""
        if self.running:
            raise PartFailedError(f"{self.name} runs already")
        self._close()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._output = self.log.open("ab")
        self._process = LAUNCHER.submit(
            subprocess.Popen,
            [sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, str(os.getpid()), *self.command],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=os.environ | self.env,
        ).result()
        if ready is not None:
            self.wait_ready(ready, within_s)
        return self

    def wait_ready(self, ready: Callable[[], object], within_s: float = START_S) -> None:
        def ready_or_gone() -> object:
            if not self.running:
                raise PartFailedError(f"{self.name} ended with exit code {self.exit_code}\n{self.tail()}")
            return ready()

        try:
            wait_until(ready_or_gone, f"{self.name} to be ready", within_s)
        except TimeoutError as error:
            self.kill()
            raise PartFailedError(f"{error}\n{self.tail()}") from None

    def wait(self, within_s: float = STOP_S) -> int:
        """Wait for it to end on its own; its exit code."""
        if self._process is None:
            raise PartFailedError(f"{self.name} was never started")
        return self._process.wait(within_s)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def stop(self, within_s: float = STOP_S) -> int | None:
        """SIGTERM, then SIGKILL; its exit code. Nothing happens to a part that does not run."""
        if self._process is None:
            return None
        if self.running:
            self._process.terminate()
            try:
                self._process.wait(within_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        code = self._process.wait()
        self._close()
        return code

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._close()

    def said(self) -> str:
        """All it has written so far, by every start."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def tail(self, lines: int = TAIL_LINES) -> str:
        kept = self.said().splitlines()[-lines:]
        return "\n".join([f"the end of {self.log}:", *(f"  {line}" for line in kept)])

    def _close(self) -> None:
        if self._output is not None:
            self._output.close()
            self._output = None
