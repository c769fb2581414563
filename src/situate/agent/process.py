"""The process runtime: containers as processes of this machine, without images or namespaces.

    <homes>/<pod uid>/work, volumes                            what its containers may enter; homes may be the directory
    <directory>/<pod uid>/containers/<name>/<attempt>.log      its log, see log_writer.py
                                           /<attempt>/lock     held while its shim lives
                                                     /exec     the shim's socket, for probes and hooks
                                                     /began    {"backoff_ms"}
                                                     /started  by the shim, when the process runs
                                                     /ended    by the shim, when it has exited

If a run's lock is free and it has no `ended`, its shim is lost: the runtime kills what is left and marks the run as
exited. Not thread-safe: call it from the event loop's thread only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from situate.agent.cgroups import Cgroups
from situate.agent.log_writer import rotated
from situate.agent.processes import MARK, start_ticks
from situate.agent.run_files import BEGAN, STARTED, mark_of, read, read_ended, record_lost, write
from situate.agent.runtime import ContainerConfig, ExecResult, Run, RunError
from situate.agent.shim_process import (
    ShimCommand,
    is_locked,
    lock_directory,
    rlimits,
    run_in_shim,
    spawn_shim,
    start_in_shim,
)
from situate.loop.logs import Log

CONTAINERS: Final = "containers"
VOLUMES: Final = "volumes"
KEPT_RUNS: Final = 2
"""The last and the previous run of each container are kept, with their logs."""
SHIM_REACTS_S: Final = 5.0
"""How long a shim may take to kill its container."""
LOOK_S: Final = 0.05
"""The poll interval for shims that another agent started."""

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    log_bytes: int = 10 << 20
    log_files: int = 5
    """A container's log has at most this many files of `log_bytes` each."""
    processes: int = 1_024
    """The process limit of a container."""
    fence: Path | None = None
    """The fence file: shims stop their containers when the time in it is over."""


@dataclass(slots=True)
class _Held:
    """A run that has not exited."""

    run: Run
    directory: Path
    shim: int = 0
    pidfd: int = -1
    is_child: bool = False
    killed_at: float = 0.0
    """When the container was to be killed first; 0: not yet."""


class ProcessRuntime:
    """A Runtime. Without `groups` it can set rlimits only, and finds the processes of a killed shim by their
    environment."""

    name: Final = "process"

    def __init__(
        self,
        directory: Path,
        changed: Callable[[str], None],
        *,
        groups: Cgroups | None = None,
        settings: ProcessSettings | None = None,
        homes: Path | None = None,
    ) -> None:
        """`homes`: where the containers' own files are, if their users may not enter `directory`."""
        self._directory = directory
        self._homes = homes or directory
        self._home_mode = 0o700 if homes is None else 0o711
        self._changed = changed
        self._groups = groups
        self._settings = settings or ProcessSettings()
        self._runs: dict[str, dict[str, list[Run]]] = {}
        self._held: dict[tuple[str, str], _Held] = {}
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    # -- reading -----------------------------------------------------------------------------------------------------

    def adopt(self) -> Sequence[str]:
        tops = {self._directory, self._homes}
        pods = sorted({one.name for top in tops if top.is_dir() for one in top.iterdir() if one.is_dir()})
        for pod in pods:
            for container in sorted((self._directory / pod).glob(f"{CONTAINERS}/*/")):
                self._adopt(pod, container)
        return pods

    def runs(self, pod: str) -> Mapping[str, Sequence[Run]]:
        return self._runs.get(pod, {})

    def truncated_log_bytes(self, pod: str, container: str, attempt: int) -> int:
        most = self._settings.log_files
        last = rotated(str(self.log(pod, container, attempt)), most - 1)
        return most * self._settings.log_bytes if Path(last).exists() else 0

    def log(self, pod: str, container: str, attempt: int) -> Path:
        return self._of(pod, container) / f"{attempt}.log"

    def home(self, pod: str) -> Path:
        made = self._homes / pod
        if not made.is_dir():
            made.mkdir(exist_ok=True)
            made.chmod(self._home_mode)  # whatever the umask
        return made

    def volumes(self, pod: str) -> Path:
        return self._homes / pod / VOLUMES

    def _of(self, pod: str, container: str) -> Path:
        return self._directory / pod / CONTAINERS / container

    # -- starting ----------------------------------------------------------------------------------------------------

    def start(self, order: ContainerConfig) -> None:
        """Returns at once; the shim reports later."""
        top = self._of(order.pod, order.container)
        directory = top / str(order.attempt)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write(directory / BEGAN, {"backoff_ms": order.backoff_ms})
            group = self._group(order)
        except OSError as error:
            raise RunError(f"{error.filename or directory}: {error.strerror}") from None
        held = _Held(Run(order.attempt, order.backoff_ms, "starting", id=_id(order.pod, directory)), directory)
        self._spawn(order, held, group)
        self._runs.setdefault(order.pod, {}).setdefault(order.container, []).append(held.run)
        self._held[order.pod, order.container] = held
        self._clean(order.pod, order.container)

    @property
    def _has_group_limits(self) -> bool:
        return self._groups is not None and self._groups.limits

    def _group(self, order: ContainerConfig) -> Path | None:
        if self._groups is None:
            return None
        return self._groups.make(order.pod, order.container, order.limits, self._settings.processes)

    def _spawn(self, order: ContainerConfig, held: _Held, group: Path | None) -> None:
        lock = lock_directory(held.directory)
        ready, ready_end = os.pipe()
        config = {
            "directory": str(held.directory),
            "log": str(self.log(order.pod, order.container, order.attempt)),
            "log_bytes": self._settings.log_bytes,
            "log_files": self._settings.log_files,
            "argv": list(order.argv),
            "env": {**order.env, MARK: mark_of(held.directory)},
            "cwd": order.cwd,
            "chdir_as_user": order.chdir_as_user,
            "security": asdict(order.security),
            "cgroup": "" if group is None else str(group),
            "rlimits": {} if self._has_group_limits else rlimits(order.limits, self._settings.processes),
            "processes": 0 if self._has_group_limits else self._settings.processes,
            "fence": "" if self._settings.fence is None else str(self._settings.fence),
        }
        try:
            held.shim, held.pidfd = spawn_shim(held.directory, json.dumps(config).encode(), lock, ready_end)
        except OSError as error:
            os.close(ready)
            raise RunError(f"cannot start a process: {error.strerror}") from None
        finally:
            os.close(lock)
            os.close(ready_end)
        held.is_child = True
        loop = asyncio.get_running_loop()
        loop.add_reader(held.pidfd, self._shim_ended, order.pod, order.container, held)
        loop.add_reader(ready, self._shim_ready, order.pod, held, ready)

    def _shim_ready(self, pod: str, held: _Held, ready: int) -> None:
        asyncio.get_running_loop().remove_reader(ready)
        os.close(ready)
        if not held.run.is_over:
            self._started(pod, held)

    def _started(self, pod: str, held: _Held) -> bool:
        found = read(held.directory / STARTED)
        if found is None:
            return False
        self._replace(
            pod, held, replace(held.run, state="running", pid=found["process"]["pid"], started_ns=found["started_ns"])
        )
        return True

    def _replace(self, pod: str, held: _Held, run: Run) -> None:
        runs = self._runs[pod][held.directory.parent.name]
        runs[runs.index(held.run)] = run
        held.run = run
        self._changed(pod)

    # -- adopting runs of an earlier agent
    # ------------------------------------------------------------------------------

    def _adopt(self, pod: str, top: Path) -> None:
        attempts = sorted(int(one.name) for one in top.iterdir() if one.is_dir() and one.name.isdigit())
        runs = self._runs.setdefault(pod, {})[top.name] = []
        for attempt in attempts[-KEPT_RUNS:]:
            directory = top / str(attempt)
            began = read(directory / BEGAN) or {}
            run = Run(attempt, began.get("backoff_ms", 0), "starting", id=_id(pod, directory))
            over = read_ended(run, directory)
            if over is not None or attempt != attempts[-1]:
                runs.append(over or self._lost(pod, _Held(run, directory)))
                continue
            runs.append(run)
            held = self._held[pod, top.name] = _Held(run, directory)
            self._meet(pod, top.name, held)

    def _meet(self, pod: str, container: str, held: _Held) -> None:
        """Find the shim of a run that an earlier agent started, or that it is gone."""
        if held is not self._held.get((pod, container)):
            return
        if not is_locked(held.directory):
            self._shim_ended(pod, container, held)
            return
        if not self._started(pod, held):
            asyncio.get_running_loop().call_later(LOOK_S, self._meet, pod, container, held)
            return
        shim = (read(held.directory / STARTED) or {})["shim"]
        try:
            held.pidfd = os.pidfd_open(shim["pid"])
        except OSError:
            self._shim_ended(pod, container, held)
            return
        held.shim = shim["pid"]
        asyncio.get_running_loop().add_reader(held.pidfd, self._shim_ended, pod, container, held)
        if start_ticks(held.shim) != shim["ticks"]:  # the pid was reused
            self._shim_ended(pod, container, held)

    # -- stopping ----------------------------------------------------------------------------------------------------

    def _shim_ended(self, pod: str, container: str, held: _Held) -> None:
        self._release(held)
        self._held.pop((pod, container), None)
        self._replace(pod, held, read_ended(held.run, held.directory) or self._lost(pod, held))

    def _lost(self, pod: str, held: _Held) -> Run:
        if self._groups is not None:
            self._groups.kill(pod, held.directory.parent.name)
        return record_lost(held.run, held.directory)

    def _release(self, held: _Held) -> None:
        if held.pidfd >= 0:
            asyncio.get_running_loop().remove_reader(held.pidfd)
            os.close(held.pidfd)
            held.pidfd = -1
        if held.is_child:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(held.shim, os.WNOHANG)

    def terminate(self, pod: str, container: str) -> None:
        self._signal(pod, container, signal.SIGTERM)

    def kill(self, pod: str, container: str) -> None:
        """Kill a shim that does not react, for instance because the container stopped it."""
        self._signal(pod, container, signal.SIGUSR1)
        held = self._held.get((pod, container))
        if held is None or held.run.state != "running":
            return
        now = time.monotonic()
        held.killed_at = held.killed_at or now
        if now >= held.killed_at + SHIM_REACTS_S:
            self._signal(pod, container, signal.SIGKILL)

    def _signal(self, pod: str, container: str, number: signal.Signals) -> None:
        held = self._held.get((pod, container))
        if held is not None and held.pidfd >= 0 and held.run.state == "running":
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(held.pidfd, number)
                signal.pidfd_send_signal(held.pidfd, signal.SIGCONT)

    def forget(self, pod: str) -> None:
        if any(one == pod for one, _ in self._held):
            raise RunError("a container of the pod is still running")
        self._runs.pop(pod, None)
        for top in {self._directory, self._homes}:
            shutil.rmtree(top / pod, ignore_errors=True)
        if self._groups is not None:
            self._groups.remove(pod)

    def close(self) -> None:
        for held in self._held.values():
            self._release(held)
        self._held.clear()
        if self._groups is not None:
            self._groups.prune()
        if self._homes != self._directory:
            with contextlib.suppress(OSError):  # pods still have files there
                self._homes.rmdir()

    def _clean(self, pod: str, container: str) -> None:
        runs = self._runs[pod][container]
        for old in runs[:-KEPT_RUNS]:
            log = self.log(pod, container, old.attempt)
            shutil.rmtree(log.with_suffix(""), ignore_errors=True)
            for file in log.parent.glob(f"{log.name}*"):
                file.unlink(missing_ok=True)
        del runs[:-KEPT_RUNS]

    # -- exec --------------------------------------------------------------------------------------------------------

    async def execute(self, pod: str, container: str, argv: Sequence[str], timeout_s: float | None) -> ExecResult:
        """The shim runs it as part of the container: with its environment, user, limits and control group."""
        return await run_in_shim(self._directory_of(pod, container, argv), argv, timeout_s)

    async def start_command(
        self, pod: str, container: str, argv: Sequence[str], files: Sequence[int], *, terminal: bool
    ) -> ShimCommand:
        directory = self._directory_of(pod, container, argv)
        return await start_in_shim(directory, argv, files, terminal=terminal)

    def _directory_of(self, pod: str, container: str, argv: Sequence[str]) -> Path:
        """The directory of the run in which a command is to start. Raises RunError."""
        held = self._held.get((pod, container))
        if held is None or held.run.state != "running":
            raise RunError("the container is not running")
        if not argv or any("\0" in word for word in argv):
            raise RunError("the command is missing or contains a NUL character")
        return held.directory


def _id(pod: str, directory: Path) -> str:
    return f"process://{pod}/{directory.parent.name}/{directory.name}"
