"""A machine of a world: its simulated containers, its disk, its power, and the real agent on it.

Containers outlive their agent and end with the machine. The disk may be reset to an older state.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from situate.agent import host
from situate.agent.agent import NodeAgent
from situate.agent.clock import Clock as AgentClock
from situate.agent.control_plane import ControlPlane
from situate.agent.desired_state import NodeConfiguration
from situate.agent.lease import FENCE
from situate.agent.runtime import ContainerConfig, ExecResult, Run
from situate.agent.settings import NodeSettings
from situate.agent.shim import FENCED
from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.sim.nodes.checkers import NodeCheckers
from situate.sim.nodes.network import Link, NetworkControlPlane
from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.virtual_time import Actor, DriftingClock, VirtualLoop

START_S: Final = 0.05
KILL_S: Final = 0.01
SHIM_S: Final = 0.25
"""How often shims look for a fence file."""
KILLED: Final = 137
NANO: Final = 1_000_000_000
LOST: Final = ("ContainerStatusUnknown", "The container could not be located when the pod was last looked at.")

Records = dict[str, dict[str, list[Run]]]
"""The runs of each container, by pod uid and name."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The contents of a disk at some time."""

    at: float
    files: Mapping[str, bytes]
    times: Mapping[str, int]
    records: Records


@dataclass(slots=True)
class _Container:
    """A running container. `argv`: its run time in seconds ("-": no end), its exit code, its stop time."""

    order: ContainerConfig
    steps: list[asyncio.TimerHandle] = field(default_factory=list)

    @property
    def lasts_s(self) -> float | None:
        said = self.order.argv[1]
        return None if said == "-" else float(said)

    @property
    def code(self) -> int:
        return int(self.order.argv[2])

    @property
    def takes_s(self) -> float:
        return float(self.order.argv[3])


def facts_of(boots: int) -> host.Facts:
    """All machines are alike; only the boot ID changes."""
    info = dict.fromkeys(("kernelVersion", "kubeProxyVersion", "machineID", "systemUUID"), "")
    info["bootID"] = f"boot-{boots}"
    info |= {"architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "situate", "osImage": "hollow"}
    return host.Facts(8, 16 << 30, 100 << 30, "10.0.0.1", {**info, "containerRuntimeVersion": "hollow://1"})


class Machine:
    """Has an agent while it is powered on, unless the agent is killed."""

    def __init__(
        self,
        loop: VirtualLoop,
        name: str,
        labels: Mapping[str, str],
        clock: DriftingClock,
        directory: Path,
        link: Link,
        profile: NodeProfile,
        log: RunLog,
        checkers: NodeCheckers,
    ) -> None:
        self.name = name
        self.labels = labels
        self.link = link
        self.clock = clock
        self.actor = Actor(f"machine {name}", clock)
        self.directory = directory
        self.agent: NodeAgent | None = None
        self.agent_actor: Actor | None = None
        self.on = False
        self.boots = 0
        self.records: Records = {}
        self.alive: dict[tuple[str, str], _Container] = {}
        self.disks: list[Disk] = []
        self.changed: Callable[[str], None] = lambda uid: None
        self._loop = loop
        self._profile = profile
        self._log = log
        self._checkers = checkers
        self._runtime: HollowRuntime | None = None
        self._control_plane: NetworkControlPlane | None = None
        self._lives = 0
        self._shims: asyncio.TimerHandle | None = None
        directory.mkdir(parents=True)

    # -- the agent -----------------------------------------------------------------------------------------------------

    def begin_agent(self) -> None:
        self._lives += 1
        actor = self.agent_actor = Actor(f"agent {self.name}.{self._lives}", self.clock)
        control_plane = self._control_plane = NetworkControlPlane(self.link)
        settings = NodeSettings(
            self.name,
            self.directory,
            labels=self.labels,
            configuration=NodeConfiguration(self._profile.lease_ms // SECOND, self._profile.renew_ms // SECOND),
        )
        # Look the functions of `time` up at the call: they are replaced while the world runs.
        clock = AgentClock(lambda: time.monotonic(), lambda: time.time_ns(), asyncio.sleep)  # noqa: PLW0108

        def made() -> NodeAgent:
            return NodeAgent(cast(ControlPlane, control_plane), settings, self._new_runtime, clock)

        agent = self.agent = actor.run(made)
        actor.watched = self._look
        actor.begin(agent.run()).add_done_callback(lambda task: self._agent_ended(agent, task))

    def _look(self) -> None:
        if self.agent is not None:
            self._checkers.agent_at(self.name, self._lives, self.agent.pods.desired.version)

    def _new_runtime(self, changed: Callable[[str], None]) -> HollowRuntime:
        self._runtime, self.changed = HollowRuntime(self), changed
        return self._runtime

    def _agent_ended(self, agent: NodeAgent, task: asyncio.Task[None]) -> None:
        if self.agent is not agent:
            return
        error = None if task.cancelled() else task.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self._log.violation(f"the agent of {self.name} crashed: {type(error).__name__}: {error}")

    async def kill_agent(self) -> None:
        """Containers keep running."""
        actor, self.agent, self.agent_actor = self.agent_actor, None, None
        if self._runtime is not None:
            self._runtime.severed = True
        if self._control_plane is not None:
            self._control_plane.severed = True
        self.changed = lambda uid: None
        if actor is not None:
            await actor.end()

    # -- power ---------------------------------------------------------------------------------------------------------

    def power_on(self) -> None:
        self.on = True
        self.boots += 1
        self.begin_agent()

    async def power_off(self) -> None:
        """All containers are lost; their records stay on disk."""
        await self.kill_agent()
        self.on = False
        for uid, container in list(self.alive):
            self._over(uid, container, KILLED, *LOST)

    # -- disk ----------------------------------------------------------------------------------------------------------

    def keep_disk(self) -> None:
        """Save the current contents."""
        files = [path for path in sorted(self.directory.iterdir()) if path.is_file() and path.name != "agent.lock"]
        self.disks.append(
            Disk(
                self._loop.now,
                {path.name: path.read_bytes() for path in files},
                {path.name: path.stat().st_mtime_ns for path in files},
                {uid: {name: list(runs) for name, runs in of.items()} for uid, of in self.records.items()},
            )
        )

    def put_back(self, disk: Disk) -> None:
        """Restore old contents. Running containers are not affected."""
        for path in self.directory.iterdir():
            if path.is_file() and path.name != "agent.lock":
                path.unlink()
        for name, body in disk.files.items():
            path = self.directory / name
            path.write_bytes(body)
            os.utime(path, ns=(disk.times[name], disk.times[name]))
        if not self.on:
            self.records = {
                uid: {name: [_lost(run) for run in runs] for name, runs in of.items()}
                for uid, of in disk.records.items()
            }

    # -- containers ----------------------------------------------------------------------------------------------------

    def start(self, order: ContainerConfig) -> None:
        uid, name = order.pod, order.container
        runs = self.records.setdefault(uid, {}).setdefault(name, [])
        runs.append(Run(order.attempt, order.backoff_ms, "starting", id=f"hollow://{uid}/{name}/{order.attempt}"))
        one = self.alive[uid, name] = _Container(order)
        self._checkers.began(self.name, uid)
        one.steps.append(self._later(START_S, self._runs, uid, name))
        if self._shims is None:
            self._later(0.0, self._guard)

    def _later(self, delay: float, call: Callable[..., None], *args: Any) -> asyncio.TimerHandle:
        return self._loop.call_later(delay, call, *args, context=self.actor.context())

    def _now_ns(self) -> int:
        return int(self.clock.wall(self._loop.now) * NANO)

    def _runs(self, uid: str, name: str) -> None:
        one, runs = self.alive[uid, name], self.records[uid][name]
        runs[-1] = replace(runs[-1], state="running", pid=1, started_ns=self._now_ns())
        if one.lasts_s is not None:
            one.steps.append(self._later(one.lasts_s, self._over, uid, name, one.code))
        self.changed(uid)

    def _over(self, uid: str, name: str, code: int, reason: str = "", message: str = "") -> None:
        one = self.alive.pop((uid, name), None)
        if one is None:
            return
        for step in one.steps:
            step.cancel()
        runs = self.records[uid][name]
        said = reason or ("Error" if code else "Completed")
        last = replace(runs[-1], state="exited", finished_ns=self._now_ns(), code=code, reason=said, message=message)
        runs[-1] = replace(last, started_ns=last.started_ns or last.finished_ns)
        if not any(pod == uid for pod, _ in self.alive):
            self._checkers.ended(self.name, uid)
        self.changed(uid)

    def end(self, uid: str, name: str, *, at_once: bool) -> None:
        one = self.alive.get((uid, name))
        if one is not None:
            wait_s = KILL_S if at_once else max(KILL_S, one.takes_s)
            one.steps.append(self._later(wait_s, self._over, uid, name, KILLED if at_once else 0))

    def _guard(self) -> None:
        """Act as the shims: stop containers when the time in the fence file is over, with or without an agent."""
        self._shims = None
        if not self.alive:
            return
        now = self.clock.shown(self._loop.now)
        dead_by = self._dead_by()
        if dead_by is not None and now >= dead_by:
            for uid, name in list(self.alive):
                self._over(uid, name, KILLED, FENCED)
        else:
            wait_s = SHIM_S if dead_by is None else max(dead_by - now, 0.0)
            self._shims = self._later(wait_s, self._guard)

    def _dead_by(self) -> float | None:
        try:
            found = json.loads((self.directory / FENCE).read_text())
        except FileNotFoundError:
            return None
        return float(found["dead_by"]) if found["boot"] == f"boot-{self.boots}" else None

    def forget(self, uid: str) -> None:
        self.records.pop(uid, None)
        self._checkers.let_go(self.name, uid)


def _lost(run: Run) -> Run:
    """The record of a run after the machine was off."""
    reason, message = LOST
    return run if run.is_over else replace(run, state="exited", code=KILLED, reason=reason, message=message)


class HollowRuntime:
    """The Runtime for one life of an agent. It ignores a dead agent."""

    def __init__(self, machine: Machine) -> None:
        self.severed = False
        self._machine = machine

    @property
    def name(self) -> str:
        return "hollow"

    def adopt(self) -> Sequence[str]:
        return sorted(self._machine.records)

    def runs(self, pod: str) -> Mapping[str, Sequence[Run]]:
        return self._machine.records.get(pod, {})

    def start(self, order: ContainerConfig) -> None:
        if not self.severed:
            self._machine.start(order)

    def terminate(self, pod: str, container: str) -> None:
        if not self.severed:
            self._machine.end(pod, container, at_once=False)

    def kill(self, pod: str, container: str) -> None:
        if not self.severed:
            self._machine.end(pod, container, at_once=True)

    async def execute(self, pod: str, container: str, argv: Sequence[str], timeout_s: float | None) -> ExecResult:
        return ExecResult(0, "")

    def log(self, pod: str, container: str, attempt: int) -> Path:
        return self.home(pod) / "log"

    def home(self, pod: str) -> Path:
        made = self._machine.directory / "pods" / pod
        made.mkdir(parents=True, exist_ok=True)
        return made

    def volumes(self, pod: str) -> Path:
        return self.home(pod) / "volumes"

    def forget(self, pod: str) -> None:
        if not self.severed:
            self._machine.forget(pod)

    def close(self) -> None:
        pass
