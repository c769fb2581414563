"""The container runtime of an agent: processes of this machine, or later a CRI runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from situate.agent.shim import FENCED


class RunError(Exception):
    """The runtime failed; the message is one line."""


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """None: unlimited."""

    milli_cpu: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessSecurity:
    """The rights of a container's processes. None: as the agent has them."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None
    """The supplementary groups."""
    capabilities: tuple[int, ...] | None = None
    """The most that they can ever have."""
    no_new_privileges: bool = True
    writable: tuple[str, ...] | None = None
    """The only paths that they may write to."""
    seccomp: bool = False
    """Refuse the system calls that no container needs."""


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """All that is needed to start one run of a container."""

    pod: str
    """The pod's uid."""
    container: str
    attempt: int
    """0 for the first run; each restart adds one."""
    backoff_ms: int
    """The backoff before this run. The next one depends on it."""
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    chdir_as_user: bool = False
    """Whether its own user must be able to enter `cwd`: true if the pod names `cwd`."""
    security: ProcessSecurity = field(default_factory=ProcessSecurity)
    limits: ResourceLimits = field(default_factory=ResourceLimits)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container."""

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

    @property
    def is_fenced(self) -> bool:
        """Whether the node's fence ended it: that says nothing about the container."""
        return self.is_over and self.reason == FENCED


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The result of a command run in a container."""

    code: int
    output: str


class Runtime(Protocol):
    """A runtime calls `changed` with a pod's uid when one of its containers starts or exits. Raises RunError."""

    @property
    def name(self) -> str:
        """As in `containerRuntimeVersion` and `containerID`."""

    def adopt(self) -> Sequence[str]:
        """After a restart of the agent: the uids of all pods that the runtime has anything of."""

    def runs(self, pod: str) -> Mapping[str, Sequence[Run]]:
        """The last runs of each container that was ever started, oldest first."""

    def start(self, order: ContainerConfig) -> None:
        """Start a run. `runs` shows its state."""

    def terminate(self, pod: str, container: str) -> None:
        """Send SIGTERM. Does nothing if the container does not run."""

    def kill(self, pod: str, container: str) -> None:
        """Kill it with all its descendants. Does nothing if the container does not run."""

    async def execute(self, pod: str, container: str, argv: Sequence[str], timeout_s: float | None) -> ExecResult:
        """Run a command as part of the container: it ends with the container at the latest. Raises TimeoutError after
        killing it."""

    def log(self, pod: str, container: str, attempt: int) -> Path:
        """The log file of a run; see `log_writer`."""

    def home(self, pod: str) -> Path:
        """The pod's directory, created if it does not exist."""

    def volumes(self, pod: str) -> Path:
        """Where the pod's volumes are; it may not exist yet."""

    def forget(self, pod: str) -> None:
        """Delete everything of a pod that has no running container."""

    def close(self) -> None:
        """Stop watching. Containers keep running."""


class RunningCommand(Protocol):
    """A command that a user runs in a container."""

    async def wait(self) -> int:
        """The exit code. Raises RunError if it could not start, or the container has ended."""

    def close(self) -> None:
        """Kill it, if it runs."""


@runtime_checkable
class RunsCommands(Protocol):
    """A runtime that runs commands of users in containers."""

    async def start_command(
        self, pod: str, container: str, argv: Sequence[str], files: Sequence[int], *, terminal: bool
    ) -> RunningCommand:
        """Start it as part of the container, with these files as stdin, stdout and stderr. `terminal`: they are a
        terminal, which becomes its own. Raises RunError."""


@runtime_checkable
class RotatesLogs(Protocol):
    """A runtime that limits the size of logs."""

    def truncated_log_bytes(self, pod: str, container: str, attempt: int) -> int:
        """How many bytes are kept of a run's log if its beginning was removed, else 0."""
