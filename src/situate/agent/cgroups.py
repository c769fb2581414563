"""Container limits by control groups (version 2), where this process may create groups; otherwise it sets none.

    <own group>/situate/<pod>/<container>      memory.max, cpu.max, pids.max

A group that limits its children cannot hold processes itself. So the agent's own group must be delegated to it with no
other process in it, or be the root. `find` tries that once.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from situate.agent.runtime import ResourceLimits

ROOT: Final = Path("/sys/fs/cgroup")
OWN: Final = Path("/proc/self/cgroup")
NAME: Final = "situate"
CONTROLLERS: Final = ("cpu", "memory", "pids")
PERIOD_US: Final = 100_000


class Cgroups:
    def __init__(self, root: Path) -> None:
        self._root = root

    def make(self, pod: str, container: str, limits: ResourceLimits, processes: int) -> Path:
        """The container's group, with its limits. Raises OSError."""
        group = self._root / pod / container
        group.mkdir(parents=True, exist_ok=True)
        _delegate(self._root / pod)
        for name, value in _settings(limits, processes).items():
            (group / name).write_text(value)
        return group

    def remove(self, pod: str) -> None:
        """Remove all groups of a pod whose processes have ended."""
        top = self._root / pod
        with contextlib.suppress(OSError):
            for group in [one for one in top.iterdir() if one.is_dir()]:
                group.rmdir()
            top.rmdir()


def find(root: Path = ROOT, own: Path = OWN) -> Cgroups | None:
    """None: there are no version 2 groups here, or the agent may not use them."""
    try:
        path = next(line[3:].strip() for line in own.read_text().splitlines() if line.startswith("0::"))
        group = root / path.lstrip("/")
        available = (group / "cgroup.controllers").read_text().split()
        if not set(CONTROLLERS) <= set(available):
            return None
        made = group / NAME
        _delegate(group)
        made.mkdir(exist_ok=True)
        _delegate(made)
    except (OSError, StopIteration):
        return None
    return Cgroups(made)


def _delegate(group: Path) -> None:
    (group / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in CONTROLLERS))


def _settings(limits: ResourceLimits, processes: int) -> dict[str, str]:
    settings = {"pids.max": str(processes) if processes else "max"}
    if limits.memory_bytes is not None:
        settings |= {"memory.max": str(limits.memory_bytes), "memory.oom.group": "1"}
    if limits.milli_cpu is not None:
        settings["cpu.max"] = f"{max(1_000, limits.milli_cpu * PERIOD_US // 1_000)} {PERIOD_US}"
    return settings
