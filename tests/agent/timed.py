"""An agent in virtual time: with containers that follow a script, and a control plane that notes when it is called."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.world import NODE, FakePlane, container
from situate.agent.agent import NodeAgent
from situate.agent.clock import Clock
from situate.agent.control_plane import NO_ORIGIN, LeaseRenewal, StatusOrigin
from situate.agent.runtime import ContainerConfig, ExecResult, Run, RunError
from situate.agent.settings import NodeSettings
from situate.core.reconcile.nodes.reports import AgentReport
from situate.sim.nodes.virtual_time import VirtualLoop, interposed

START_S = 0.05
NANO = 1_000_000_000


def scripted(*script: str, name: str = "c", **more: Any) -> dict[str, Any]:
    """`stay`: until it is asked to stop; `obey`: the same, with exit code 0; `exit CODE SECONDS`; `hang`: until it is
    killed."""
    return container(name, *script, **more)


class ScriptedRuntime:
    name = "scripted"

    def __init__(self, directory: Path, changed: Callable[[str], None], loop: VirtualLoop) -> None:
        self.changed = changed
        self.loop = loop
        self.calls: list[tuple[str, str, float]] = []
        self.orders: list[ContainerConfig] = []
        self.held: dict[str, dict[str, list[Run]]] = {}
        self.problem: Exception | None = None
        """Raised by whoever starts a container."""
        self.answers: dict[str, ExecResult | Exception] = {}
        """What a command answers, by its first word."""
        self.cut_bytes = 0
        self._directory = directory

    def note(self, what: str, name: str) -> None:
        self.calls.append((what, name, round(self.loop.now, 1)))

    def times(self, what: str, name: str = "c") -> list[float]:
        return [at for called, whom, at in self.calls if (called, whom) == (what, name)]

    def adopt(self) -> Sequence[str]:
        return sorted(self.held)

    def runs(self, pod: str) -> Mapping[str, Sequence[Run]]:
        return self.held.get(pod, {})

    def start(self, order: ContainerConfig) -> None:
        self.note("start", order.container)
        if self.problem is not None:
            raise self.problem
        self.orders.append(order)
        run = Run(order.attempt, order.backoff_ms, "starting", id=f"scripted://{order.container}/{order.attempt}")
        self.held.setdefault(order.pod, {}).setdefault(order.container, []).append(run)
        self.loop.call_later(START_S, self._run, order)

    def _run(self, order: ContainerConfig) -> None:
        self._become(order.pod, order.container, state="running", started_ns=time.time_ns())
        match order.argv:
            case ("exit", code, seconds, *message):
                self.loop.call_later(float(seconds), self.end, order.pod, order.container, int(code), " ".join(message))

    def _become(self, pod: str, name: str, **news: Any) -> None:
        runs = self.held[pod][name]
        if not runs[-1].is_over:
            runs[-1] = replace(runs[-1], **news)
            self.changed(pod)

    def end(self, pod: str, name: str, code: int = 0, message: str = "") -> None:
        reason = "Error" if code else "Completed"
        self._become(pod, name, state="exited", code=code, reason=reason, message=message, finished_ns=time.time_ns())

    def terminate(self, pod: str, name: str) -> None:
        self.note("terminate", name)
        order = next(one for one in reversed(self.orders) if (one.pod, one.container) == (pod, name))
        if order.argv[0] != "hang":
            self.end(pod, name, 0 if order.argv[0] == "obey" else 143)

    def kill(self, pod: str, name: str) -> None:
        self.note("kill", name)
        self.end(pod, name, 137)

    async def execute(self, pod: str, name: str, argv: Sequence[str], timeout_s: float | None) -> ExecResult:
        self.note("execute", argv[0])
        answer = self.answers.get(argv[0], ExecResult(0, ""))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def log(self, pod: str, name: str, attempt: int) -> Path:
        return self._directory / pod / f"{name}.{attempt}.log"

    def home(self, pod: str) -> Path:
        made = self._directory / pod
        made.mkdir(parents=True, exist_ok=True)
        return made

    def volumes(self, pod: str) -> Path:
        return self._directory / pod / "volumes"

    def forget(self, pod: str) -> None:
        self.note("forget", pod)
        if any(runs and not runs[-1].is_over for runs in self.held.get(pod, {}).values()):
            raise RunError("a container of the pod is still running")
        self.held.pop(pod, None)

    def close(self) -> None:
        self.note("close", "")

    def truncated_log_bytes(self, pod: str, name: str, attempt: int) -> int:
        return self.cut_bytes


class TimedPlane(FakePlane):
    """Notes who called it when, and refuses what `refused` names."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self.loop = loop
        self.calls: list[tuple[str, str, float]] = []
        self.refused: dict[str, Exception] = {}

    def _called(self, what: str, name: str) -> None:
        self.calls.append((what, name, round(self.loop.now, 1)))
        if what in self.refused:
            raise self.refused[what]

    def times(self, what: str, name: str = "p") -> list[float]:
        return [at for called, whom, at in self.calls if (called, whom) == (what, name)]

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        self._called("get", name)
        return await super().get(kind, namespace, name)

    async def report_status(self, pod: dict[str, Any], status: dict[str, Any], about: StatusOrigin = NO_ORIGIN) -> None:
        self._called("report", pod["metadata"]["name"])
        await super().report_status(pod, status, about)

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        self._called("register", node["metadata"]["name"])
        await super().register_node(node, report)

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        self._called("renew", str(renewal.acknowledged))
        await super().renew_lease(node, renewal)

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        self._called("delete", pod["metadata"]["name"])
        await super().delete_pod(pod)


class TimedAgent:
    """Agents on one machine, one after another. Containers go on between them."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.loop = VirtualLoop()
        self.plane = TimedPlane(self.loop)
        self.runtime = ScriptedRuntime(directory / "pods", lambda _: None, self.loop)
        self.agent: NodeAgent | None = None
        self._settings = NodeSettings(NODE, directory, **settings)

    def play(self, seconds: float, *then: tuple[float, Callable[[], object]]) -> None:
        """Have an agent for some time, in which things happen; times count from its beginning."""

        def made(changed: Callable[[str], None]) -> ScriptedRuntime:
            self.runtime.changed = changed
            return self.runtime

        async def run() -> None:
            # Look the functions of `time` up at the call: they are replaced while this runs.
            clock = Clock(lambda: 1_000 + time.monotonic(), lambda: time.time_ns(), asyncio.sleep)  # noqa: PLW0108
            self.agent = NodeAgent(self.plane, self._settings, made, clock)
            for at, happens in then:
                self.loop.call_later(at, happens)
            running = asyncio.create_task(self.agent.run())
            await asyncio.wait([running], timeout=seconds)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        with interposed(self.loop):
            self.loop.run_until_complete(run())
