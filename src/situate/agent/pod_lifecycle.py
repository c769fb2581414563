"""What is next for a pod's containers: which to begin, which to end, and when to look again. Pure, and of one pod.

Init containers run one after the other, each to its end. A sidecar is an init container that restarts always: it has to
have started before the next one begins, runs beside the others, and ends after them, the last one first. Then all other
containers run at once. What has ended runs again as the pod's restartPolicy says: the first time at once, then after 10
seconds, twice as long each time, up to 5 minutes; from the start again after a run of 10 minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from situate.agent.runtime import Run

__all__ = [
    "RestartBackoff",
    "ContainerState",
    "PodActions",
    "ContainerStart",
    "containers_of",
    "restart_at_ns",
    "will_restart",
    "is_initialized",
    "compute_pod_actions",
]

MILLI: Final = 1_000_000
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """How long a container waits before it runs again."""

    first_ms: int = 10_000
    most_ms: int = 300_000
    reset_ms: int = 600_000
    """After a run of this length, all is forgotten."""

    def after(self, run: Run) -> int:
        """The wait after this run, counted from its end."""
        if (run.finished_ns - run.started_ns) // MILLI >= self.reset_ms or not run.attempt:
            return 0
        return min(max(self.first_ms, 2 * run.backoff_ms), self.most_ms)


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container of a pod, and how far it is."""

    spec: Mapping[str, Any]
    kind: Literal["init", "sidecar", "main"]
    runs: Sequence[Run] = ()
    """The last ones, oldest first."""
    started: bool = False
    """It runs, and its startup probe is content."""
    ready: bool = False
    condemned: bool = False
    """A probe wants it to end."""
    blocked: tuple[str, str] | None = None
    """It cannot begin: reason and message."""
    retry_ns: int = 0
    """When what keeps it from beginning is to be looked at again."""

    @property
    def name(self) -> str:
        name: str = self.spec["name"]
        return name

    @property
    def last(self) -> Run | None:
        return self.runs[-1] if self.runs else None

    @property
    def runs_now(self) -> bool:
        return self.last is not None and not self.last.is_over


@dataclass(frozen=True, slots=True)
class ContainerStart:
    container: str
    attempt: int
    backoff_ms: int


@dataclass(slots=True)
class PodActions:
    start: list[ContainerStart] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    wake_ns: int | None = None
    """When something is due that nobody will tell of."""
    outcome: Literal["", "Succeeded", "Failed"] = ""
    """How the pod ended; its last containers may still run."""

    def wake(self, at_ns: int) -> None:
        self.wake_ns = at_ns if self.wake_ns is None else min(self.wake_ns, at_ns)


def containers_of(pod: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Literal["init", "sidecar", "main"]]]:
    """In the order in which they begin."""
    spec = pod["spec"]
    first: list[tuple[Mapping[str, Any], Literal["init", "sidecar", "main"]]] = [
        (one, "sidecar" if one.get("restartPolicy") == "Always" else "init") for one in spec.get("initContainers", ())
    ]
    return [*first, *((one, "main") for one in spec.get("containers", ()))]


def compute_pod_actions(
    pod: Mapping[str, Any], containers: Sequence[ContainerState], now_ns: int, backoff: RestartBackoff, *, ending: bool
) -> PodActions:
    """`ending`: nothing is to run any more."""
    made = PodActions()
    if ending:
        _end(containers, made)
        return made
    policy = pod["spec"].get("restartPolicy", "Always")
    made.outcome = _outcome(containers, policy)
    if made.outcome:
        _end(containers, made)
        return made
    for container in containers:
        if container.condemned and container.runs_now:
            made.stop.append(container.name)
    begun = any(one.kind == "main" and one.runs for one in containers)
    for container in containers:
        if container.kind == "main":
            continue
        if container.kind == "init" and (begun or _has_succeeded(container)):
            continue
        _run(container, policy, now_ns, backoff, made)
        if not (container.kind == "sidecar" and (container.started or begun)):
            return made
    for container in containers:
        if container.kind == "main":
            _run(container, policy, now_ns, backoff, made)
    return made


def will_restart(container: ContainerState, policy: str) -> bool:
    """Whether a run that is over is followed by another."""
    last = container.last
    if last is None or not last.is_over:
        return False
    if container.kind == "sidecar":
        return True
    if container.kind == "init":
        return bool(last.code) and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and bool(last.code))


def restart_at_ns(run: Run, backoff: RestartBackoff) -> int:
    """When a container that goes again does so."""
    return run.finished_ns + backoff.after(run) * MILLI


def is_initialized(containers: Sequence[ContainerState]) -> bool:
    """Whether everything that has to come before the containers proper is done."""
    if any(one.kind == "main" and one.runs for one in containers):
        return True
    return all(
        one.started if one.kind == "sidecar" else _has_succeeded(one) for one in containers if one.kind != "main"
    )


def _has_succeeded(container: ContainerState) -> bool:
    return container.last is not None and container.last.is_over and not container.last.code


def _run(container: ContainerState, policy: str, now_ns: int, backoff: RestartBackoff, made: PodActions) -> None:
    """Have it run, if it is time."""
    last = container.last
    if last is not None and not (last.is_over and will_restart(container, policy)):
        return
    at_ns, attempt, waited = container.retry_ns, 0, 0
    if last is not None:
        at_ns, attempt, waited = max(at_ns, restart_at_ns(last, backoff)), last.attempt + 1, backoff.after(last)
    if now_ns >= at_ns:
        made.start.append(ContainerStart(container.name, attempt, waited))
    else:
        made.wake(at_ns)


def _outcome(containers: Sequence[ContainerState], policy: str) -> Literal["", "Succeeded", "Failed"]:
    """How the pod ended, if it did."""
    begun = any(one.kind == "main" and one.runs for one in containers)
    for one in containers:
        last = one.last
        if one.kind == "init" and not begun and last is not None and last.is_over and last.code and policy == "Never":
            return "Failed"
    mains = [one for one in containers if one.kind == "main"]
    if not all(one.last is not None and one.last.is_over and not will_restart(one, policy) for one in mains):
        return ""
    return "Succeeded" if all(_has_succeeded(one) for one in mains) else "Failed"


def _end(containers: Sequence[ContainerState], made: PodActions) -> None:
    """All but the sidecars at once; then the sidecars, the last one first."""
    running = [one for one in containers if one.runs_now]
    others = [one.name for one in running if one.kind != "sidecar"]
    made.stop = others or [one.name for one in running[-1:]]
