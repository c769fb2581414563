"""Control groups (version 2) of containers, where this process may create groups.

    <own group>/situate/<pod>/<container>      memory.max, cpu.max, pids.max

They limit a container, and no process of it can leave them, so that all of them can be killed at once. A group that
limits its children cannot hold processes itself. So for limits the agent's own group must be delegated to it with no
other process in it, or be the root; without the controllers the groups are for killing only. `find` tries that once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

from situate.agent.processes import kill_cgroup
from situate.agent.runtime import ResourceLimits

ROOT: Final = Path("/sys/fs/cgroup")
OWN: Final = Path("/proc/self/cgroup")
HYBRID: Final = "unified"
"""Where version 2 is mounted beside version 1."""
NAME: Final = "situate"
MOST: Final = (1 << 63) - 1
MOST_US: Final = 1 << 40
"""The kernel's maximum. Larger limits are reduced to it."""
KILL_ROUNDS: Final = 100
KILL_ROUND_S: Final = 0.002
CONTROLLERS: Final = ("cpu", "memory", "pids")
PERIOD_US: Final = 100_000


class Cgroups:
    def __init__(self, root: Path, *, limits: bool = True) -> None:
        """`limits`: whether the groups have the controllers."""
        self.limits = limits
        self._root = root

    def make(self, pod: str, container: str, limits: ResourceLimits, processes: int) -> Path:
        """The container's group, with its limits. Raises OSError."""
        group = self._root / pod / container
        group.mkdir(parents=True, exist_ok=True)
        if not self.limits:
            return group
        _delegate(self._root / pod)
        for name, value in _settings(limits, processes).items():
            (group / name).write_text(value)
        return group

    def kill(self, pod: str, container: str) -> None:
        """Kill all processes of a container, including those that have left its process tree."""
        group = self._root / pod / container
        kill_cgroup(str(group))
        for _ in range(KILL_ROUNDS):
            left = _processes(group)
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(KILL_ROUND_S)

    def prune(self) -> None:
        """Remove all groups without processes, and this one if none is left."""
        for top, _, _ in os.walk(self._root, topdown=False):
            with contextlib.suppress(OSError):
                Path(top).rmdir()

    def remove(self, pod: str) -> None:
        """Remove all groups of a pod, and kill what is left in them."""
        for group in self._root.glob(f"{pod}/*/"):
            self.kill(pod, group.name)
        top = self._root / pod
        with contextlib.suppress(OSError):
            for group in [one for one in top.iterdir() if one.is_dir()]:
                group.rmdir()
            top.rmdir()


def find(root: Path = ROOT, own: Path = OWN, name: str = NAME) -> Cgroups | None:
    """None: there are no version 2 groups here, or the agent may not use them. `name`: of the agent's group."""
    try:
        path = next(line[3:].strip() for line in own.read_text().splitlines() if line.startswith("0::"))
        mounted = root if (root / "cgroup.controllers").exists() or not (root / HYBRID).is_dir() else root / HYBRID
        group = mounted / path.lstrip("/")
        available = (group / "cgroup.controllers").read_text().split()
        made = group / name
        limits = set(CONTROLLERS) <= set(available) and _may_delegate(group)
        made.mkdir(exist_ok=True)
        if limits:
            _delegate(made)
        elif not _may_join(made):
            return None
    except (OSError, StopIteration):
        return None
    return Cgroups(made, limits=limits)


def _may_delegate(group: Path) -> bool:
    try:
        _delegate(group)
    except OSError:
        return False  # processes are in it
    return True


def _may_join(group: Path) -> bool:
    """Whether this process may move others into the group."""
    return os.access(group / "cgroup.procs", os.W_OK) and os.access(group.parent / "cgroup.procs", os.W_OK)


def _processes(group: Path) -> list[int]:
    """Of the processes in the group and in those below it."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for file in (group / "cgroup.procs", *group.rglob("*/cgroup.procs")):
            found += [int(one) for one in file.read_text().split()]
    return found


def _delegate(group: Path) -> None:
    (group / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in CONTROLLERS))


def _settings(limits: ResourceLimits, processes: int) -> dict[str, str]:
    settings = {"pids.max": str(processes) if processes else "max"}
    if limits.memory_bytes:
        settings |= {"memory.max": str(min(limits.memory_bytes, MOST)), "memory.oom.group": "1"}
    if limits.milli_cpu:
        settings["cpu.max"] = f"{min(max(1_000, limits.milli_cpu * PERIOD_US // 1_000), MOST_US)} {PERIOD_US}"
    return settings
