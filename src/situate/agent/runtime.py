"""What an agent asks of whatever runs its containers: processes of this machine, or later a CRI runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

__all__ = ["RotatesLogs", "ExecResult", "ResourceLimits", "ContainerConfig", "Run", "Runtime", "RunError"]


class RunError(Exception):
    """The runtime did not do it, in one line."""


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What a container may take. None: as much as it wants."""

    milli_cpu: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """One run of a container, all that is needed to begin it."""

    pod: str
    """The pod's uid."""
    container: str
    attempt: int
    """0 is the first run; each restart counts one on."""
    backoff_ms: int
    """How long it had to wait for this run: the next wait depends on it."""
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    user: int | None = None
    group: int | None = None
    limits: ResourceLimits = field(default_factory=ResourceLimits)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container, as far as it came."""

    attempt: int
    backoff_ms: int
    state: Literal["starting", "running", "exited"]
    id: str = ""
    pid: int = 0
    started_ns: int = 0
    finished_ns: int = 0
    code: int = 0
    reason: str = ""
    message: str = ""

    @property
    def is_over(self) -> bool:
        return self.state == "exited"


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What became of a command that was run beside a container."""

    code: int
    output: str


class Runtime(Protocol):
    """Whoever is given `changed` calls it with a pod's uid when a run of it began or ended. Raises RunError."""

    @property
    def name(self) -> str:
        """As in `containerRuntimeVersion` and `containerID`."""

    def adopt(self) -> Sequence[str]:
        """After a start: the uids of all pods that there is anything of, running or not."""

    def runs(self, pod: str) -> Mapping[str, Sequence[Run]]:
        """Of each container that was ever begun, the last runs, oldest first."""

    def start(self, order: ContainerConfig) -> None:
        """Begin a run. What becomes of it is told by `runs`."""

    def terminate(self, pod: str, container: str) -> None:
        """SIGTERM. Nothing if it does not run."""

    def kill(self, pod: str, container: str) -> None:
        """At once, with all that came from it. Nothing if it does not run."""

    async def execute(self, pod: str, container: str, argv: Sequence[str], timeout_s: float) -> ExecResult:
        """Run a command as the container would. Raises TimeoutError after it was killed."""

    def log(self, pod: str, container: str, attempt: int) -> Path:
        """The file that a run's log is in; see situate.agent.log_writer."""

    def home(self, pod: str) -> Path:
        """The pod's own directory: made if it is not there."""

    def forget(self, pod: str) -> None:
        """Delete all that there is of a pod none of whose containers runs."""

    def close(self) -> None:
        """Look after nothing any more. What runs goes on."""


@runtime_checkable
class RotatesLogs(Protocol):
    """A runtime that keeps no more than so much of a log."""

    def truncated_log_bytes(self, pod: str, container: str, attempt: int) -> int:
        """If the beginning of a run's log is gone: how many bytes are kept of it. Else 0."""
