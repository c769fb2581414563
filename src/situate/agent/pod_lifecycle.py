"""What to do next for one pod: which containers to start and stop, and when to look again. Pure.

Init containers run one after another to completion. A sidecar is an init container with restartPolicy Always: it must
have started before the next container starts, runs next to the others, and stops after them, the last one first. Then
all other containers run at once. The restartPolicy decides whether a container that exited runs again: the first time
at once, then after 10 seconds, doubled each time up to 5 minutes, and from the start again after a run of 10 minutes.
A run that the node's fence ended has neither failed nor succeeded, whatever its exit code: it is repeated at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from situate.agent.runtime import Run

MILLI: Final = 1_000_000
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """The delay before a container restarts."""

    first_ms: int = 10_000
    most_ms: int = 300_000
    reset_ms: int = 600_000
    """A run of this length resets the backoff."""

    def after(self, run: Run) -> int:
        """The delay after this run, from its end."""
        if run.is_fenced or (run.finished_ns - run.started_ns) // MILLI >= self.reset_ms or not run.attempt:
            return 0
        return min(max(self.first_ms, 2 * run.backoff_ms), self.most_ms)


@dataclass(frozen=True, slots=True)
class ContainerState:
    spec: Mapping[str, Any]
    kind: Literal["init", "sidecar", "main"]
    runs: Sequence[Run] = ()
    """Oldest first."""
    started: bool = False
    """It runs, and its startup probe has succeeded."""
    ready: bool = False
    condemned: bool = False
    """A probe failed: it must be restarted."""
    blocked: tuple[str, str] | None = None
    """Why it cannot start: reason and message."""
    retry_ns: int = 0
    """When to try again."""

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
    """When to look again if nothing changes."""
    outcome: Literal["", "Succeeded", "Failed"] = ""
    """How the pod finished; some containers may still run."""

    def wake(self, at_ns: int) -> None:
        self.wake_ns = at_ns if self.wake_ns is None else min(self.wake_ns, at_ns)


def containers_of(pod: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Literal["init", "sidecar", "main"]]]:
    """In start order."""
    spec = pod["spec"]
    first: list[tuple[Mapping[str, Any], Literal["init", "sidecar", "main"]]] = [
        (one, "sidecar" if one.get("restartPolicy") == "Always" else "init") for one in spec.get("initContainers", ())
    ]
    return [*first, *((one, "main") for one in spec.get("containers", ()))]


def compute_pod_actions(
    pod: Mapping[str, Any], containers: Sequence[ContainerState], now_ns: int, backoff: RestartBackoff, *, ending: bool
) -> PodActions:
    """`ending`: the pod must not run any more."""
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
    """Whether the container restarts after its last run."""
    last = container.last
    if last is None or not last.is_over:
        return False
    if container.kind == "sidecar":
        return True
    incomplete = not _has_succeeded(container)
    if container.kind == "init":
        return incomplete and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and incomplete)


def restart_at_ns(run: Run, backoff: RestartBackoff) -> int:
    """When a container that restarts does so."""
    return run.finished_ns + backoff.after(run) * MILLI


def is_initialized(containers: Sequence[ContainerState]) -> bool:
    """Whether all init containers are done and all sidecars have started."""
    if any(one.kind == "main" and one.runs for one in containers):
        return True
    return all(
        one.started if one.kind == "sidecar" else _has_succeeded(one) for one in containers if one.kind != "main"
    )


def _has_succeeded(container: ContainerState) -> bool:
    last = container.last
    return last is not None and last.is_over and not last.code and not last.is_fenced


def _run(container: ContainerState, policy: str, now_ns: int, backoff: RestartBackoff, made: PodActions) -> None:
    """Start the container if it is due."""
    last = container.last
    if last is not None and not will_restart(container, policy):
        return
    at_ns, attempt, waited = container.retry_ns, 0, 0
    if last is not None:
        at_ns, attempt, waited = max(at_ns, restart_at_ns(last, backoff)), last.attempt + 1, backoff.after(last)
    if now_ns >= at_ns:
        made.start.append(ContainerStart(container.name, attempt, waited))
    else:
        made.wake(at_ns)


def _outcome(containers: Sequence[ContainerState], policy: str) -> Literal["", "Succeeded", "Failed"]:
    """How the pod finished; empty: it has not."""
    begun = any(one.kind == "main" and one.runs for one in containers)
    for one in containers:
        if one.kind != "init" or begun or one.last is None or not one.last.is_over or policy != "Never":
            continue
        if not _has_succeeded(one):
            return "Failed"
    mains = [one for one in containers if one.kind == "main"]
    if not all(one.last is not None and one.last.is_over and not will_restart(one, policy) for one in mains):
        return ""
    return "Succeeded" if all(_has_succeeded(one) for one in mains) else "Failed"


def _end(containers: Sequence[ContainerState], made: PodActions) -> None:
    """First all but the sidecars, then the sidecars one by one, the last one first."""
    running = [one for one in containers if one.runs_now]
    others = [one.name for one in running if one.kind != "sidecar"]
    made.stop = others or [one.name for one in running[-1:]]
