"""One pod on this node: has its containers run as planned, asks its probes, and reports what becomes of it.

All that is decided is decided by `life.plan` and said by `statuses.status_of`; here it is done, one step after another,
whenever something is told: the pod changed, a container began or ended, a probe changed its mind, a wait is over.
Knows no other pod.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import aiohttp

from situate.agent.container_config import container_config, references
from situate.agent.control_plane import ControlPlane, ControlPlaneError, StaleError, StatusOrigin
from situate.agent.environment import ConfigReference, ContainerConfigError, EnvironmentSources
from situate.agent.events import EventRecorder
from situate.agent.pod_lifecycle import (
    ContainerStart,
    ContainerState,
    PodActions,
    RestartBackoff,
    compute_pod_actions,
    containers_of,
)
from situate.agent.pod_status import TerminationReason, rejected_status, status_of
from situate.agent.ports import Ports, known_ports, port_variables, ports_by_name
from situate.agent.probes import ContainerHealth, ProbeTarget, run_probes
from situate.agent.runtime import ContainerConfig, RotatesLogs, Run, RunError, Runtime
from situate.core.reconcile.nodes.reports import AgentReport
from situate.loop.logs import Log

__all__ = ["WorkerContext", "PodWorker"]

RETRY_S: Final = 10.0
"""How long until what kept a container from beginning is looked at again."""
AWAY_S: Final = 1.0
"""The same, if it was the control plane."""
REPORT_RETRY_S: Final = (0.5, 10.0)
"""How long until a report is tried again: at first, and at most."""
GRACE_S: Final = 30
STOP_LOOK_S: Final = 0.03
"""How often to look whether what was asked to end has ended."""
SECOND_NS: Final = 1_000_000_000
FINISHED: Final = ("Succeeded", "Failed")

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What all workers of a node have in common."""

    runtime: Runtime
    plane: ControlPlane
    http: aiohttp.ClientSession
    recorder: EventRecorder
    host_ip: str
    allocatable: Mapping[str, str]
    backoff: RestartBackoff
    give_ports: Callable[[Mapping[str, Any]], Ports]
    may_take_s: Callable[[], float | None] = lambda: None
    """If nothing may run here now, whatever the pods say: how long what runs may take to end. None: it may run."""
    may_begin: Callable[[], bool] = lambda: True
    """Whether what is known of the pods is known to be so still: if not, what runs goes on, and nothing is begun."""
    next_report: Callable[[], AgentReport | None] = lambda: None
    """None: nothing can be reported yet."""
    wall_ns: Callable[[], int] = time.time_ns


class PodWorker:
    """`run` it until it ends: then nothing is left of the pod. `refusal`: why the node does not take it."""

    def __init__(
        self, context: WorkerContext, pod: dict[str, Any], version: int | None, refusal: TerminationReason | None
    ) -> None:
        self.pod = pod
        self.uid: str = pod["metadata"]["uid"]
        self.version = version
        self._context = context
        self._refusal = refusal
        self._gone = False
        self._removed = False
        self._ended: TerminationReason | None = refusal
        self._woken = asyncio.Event()
        self._heard = asyncio.Event()
        self._blocked: dict[str, tuple[tuple[str, str], int]] = {}
        self._health: dict[str, tuple[int, ContainerHealth]] = {}
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._status: dict[str, Any] = {}
        self._reported: dict[str, Any] | None = None
        self._report_due = asyncio.Event()
        self._told: set[tuple[str, int]] = set()
        self.ports: Ports = known_ports(context.runtime.home(self.uid) / "ports") or {}

    # -- what is told ------------------------------------------------------------------------------------------------

    def seen(self, pod: dict[str, Any]) -> None:
        self.pod = pod
        self._heard.set()
        self.wake()

    def gone(self) -> None:
        """There is no such pod any more."""
        self._gone = True
        self.wake()

    def wake(self) -> None:
        self._woken.set()

    @property
    def holds_room(self) -> bool:
        """Whether it counts when another pod asks for room."""
        return self._refusal is None and (not self._is_finished or self._runs_anything)

    # -- its life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        reporting = asyncio.create_task(self._report())
        try:
            while not (self._gone and not self._runs_anything):
                self._woken.clear()
                wake_ns = await self._step()
                await self._rest(wake_ns)
        finally:
            tasks = [reporting, *self._probing.values(), *self._stopping.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(RunError):
            self._context.runtime.forget(self.uid)

    async def _rest(self, wake_ns: int | None) -> None:
        wait_s = None if wake_ns is None else max(0.0, (wake_ns - self._context.wall_ns()) / SECOND_NS)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._woken.wait()

    async def _step(self) -> int | None:
        """Do what is due. When to look again, if nobody tells."""
        now_ns = self._context.wall_ns()
        self._expire(now_ns)
        ending = self._is_ending
        made = compute_pod_actions(self.pod, self._containers(), now_ns, self._context.backoff, ending=ending)
        for name in made.stop:
            self._stop(name)
        for start in made.start:
            if self._context.may_begin():
                await self._begin(start)
        self._look_after_probes()
        # What a fence ended is not over for the pod: it runs again behind it, if its restartPolicy says so.
        self._say(now_ns, ending=self._is_over)
        if ending and not self._runs_anything:
            await self._leave()
        return self._next(made)

    def _next(self, made: PodActions) -> int | None:
        wakes = [at for _, at in self._blocked.values()] if made.start else []
        deadline = self._deadline_ns()
        wakes += [at for at in (made.wake_ns, deadline) if at is not None]
        return min(wakes, default=None)

    @property
    def _is_finished(self) -> bool:
        return (self.pod.get("status") or {}).get("phase") in FINISHED

    @property
    def _is_ending(self) -> bool:
        return self._is_over or self._context.may_take_s() is not None

    @property
    def _is_over(self) -> bool:
        """Whether the pod is to run no more, wherever."""
        deleted = "deletionTimestamp" in self.pod["metadata"]
        return deleted or self._gone or self._is_finished or self._ended is not None

    @property
    def _runs_anything(self) -> bool:
        return any(runs and not runs[-1].is_over for runs in self._context.runtime.runs(self.uid).values())

    def _containers(self) -> list[ContainerState]:
        runs = self._context.runtime.runs(self.uid)
        return [self._container(spec, kind, runs.get(spec["name"], ())) for spec, kind in containers_of(self.pod)]

    def _container(
        self, spec: Mapping[str, Any], kind: Literal["init", "sidecar", "main"], runs: Sequence[Run]
    ) -> ContainerState:
        name, last = spec["name"], runs[-1] if runs else None
        attempt, health = self._health.get(name, (-1, ContainerHealth(started=False, ready=False)))
        if last is None or last.attempt != attempt or last.state != "running":
            health = ContainerHealth(started=False, ready=False)
        why, retry_ns = self._blocked.get(name, (None, 0))
        return ContainerState(
            spec, kind, runs, health.started, health.ready, bool(health.condemned), blocked=why, retry_ns=retry_ns
        )

    def _deadline_ns(self) -> int | None:
        """When a pod with activeDeadlineSeconds has run for too long."""
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        begun = self._status.get("startTime")
        if seconds is None or begun is None or self._is_finished or self._ended is not None:
            return None
        return int(datetime.fromisoformat(begun).timestamp() + seconds) * SECOND_NS

    def _expire(self, now_ns: int) -> None:
        deadline = self._deadline_ns()
        if deadline is not None and now_ns >= deadline:
            text = "Pod was active on the node longer than the specified deadline"
            self._ended = TerminationReason("DeadlineExceeded", text)

    # -- beginning ---------------------------------------------------------------------------------------------------

    async def _begin(self, start: ContainerStart) -> None:
        spec = next(one for one, _ in containers_of(self.pod) if one["name"] == start.container)
        try:
            self._context.runtime.start(await self._order(spec, start))
        except ContainerConfigError as error:
            self._block(start, error.reason, str(error), RETRY_S)
        except RunError as error:
            self._block(start, "CreateContainerError", str(error), RETRY_S)
        except ControlPlaneError as error:
            _log.v(2).info("A pod waits for the control plane", pod=self._named, err=str(error))
            self._blocked[start.container] = (("ContainerCreating", str(error)), self._in(AWAY_S))
        else:
            self._blocked.pop(start.container, None)
            if start.attempt > 1 and start.backoff_ms:
                text = f"Back-off restarting failed container {start.container} in pod {self._named}({self.uid})"
                self._tell("Warning", "BackOff", text, start.container)

    def _block(self, start: ContainerStart, reason: str, message: str, wait_s: float) -> None:
        if self._blocked.get(start.container, (None, 0))[0] != (reason, message):
            told = "FailedMount" if reason == "FailedMount" else "Failed"
            self._tell("Warning", told, f"Error: {message}", start.container)
        self._blocked[start.container] = ((reason, message), self._in(wait_s))

    def _in(self, seconds: float) -> int:
        return self._context.wall_ns() + int(seconds * SECOND_NS)

    async def _order(self, spec: Mapping[str, Any], start: ContainerStart) -> ContainerConfig:
        """Raises ConfigError, PlaneError."""
        context = self._context
        self._give_ports()
        objects = await self._read(references(self.pod, spec))
        return container_config(
            self.pod,
            spec,
            start,
            EnvironmentSources(context.host_ip, context.allocatable, objects, port_variables(spec, self.ports)),
            context.runtime.home(self.uid),
        )

    async def _read(self, wanted: Iterable[ConfigReference]) -> dict[tuple[str, str], Mapping[str, Any]]:
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for reference in wanted:
            read = await self._context.plane.get(reference.kind, self.pod["metadata"]["namespace"], reference.name)
            if read is not None:
                found[reference.kind, reference.name] = read
        return found

    def _give_ports(self) -> None:
        if self.ports or not any(one.get("ports") for one, _ in containers_of(self.pod)):
            return
        self.ports = self._context.give_ports(self.pod)
        (self._context.runtime.home(self.uid) / "ports").write_text(json.dumps(self.ports))
        moved = [
            f"{container}: {number} is {real}"
            for container, own in self.ports.items()
            for number, real in own.items()
            if number != str(real)
        ]
        if moved:
            self._tell("Normal", "PortsAssigned", "; ".join(moved))

    # -- ending ------------------------------------------------------------------------------------------------------

    def _stop(self, name: str) -> None:
        if name in self._stopping:
            return
        _, health = self._health.get(name, (-1, None))
        text = health.condemned if health is not None and health.condemned else f"Stopping container {name}"
        self._tell("Normal", "Killing", text, name)
        self._stopping[name] = asyncio.create_task(self._stopped(name))

    async def _stopped(self, name: str) -> None:
        """Ask it to end, wait for as long as it may take, then end it. All of this run: the next is another matter."""
        try:
            attempt = self._last(name).attempt
            while self._is_at(name, attempt) and self._last(name).state == "starting":
                await asyncio.sleep(STOP_LOOK_S)
            begun = self._now()
            left = self._end_by(begun) - begun
            if left > 0 and self._is_at(name, attempt):
                await self._before_stop(name, left)
                if self._is_at(name, attempt):
                    self._context.runtime.terminate(self.uid, name)
            while self._is_at(name, attempt):
                if self._now() >= self._end_by(begun):
                    self._context.runtime.kill(self.uid, name)
                await asyncio.sleep(STOP_LOOK_S)
        finally:
            self._stopping.pop(name, None)
            self.wake()

    def _now(self) -> float:
        return self._context.wall_ns() / SECOND_NS

    def _last(self, name: str) -> Run:
        return self._context.runtime.runs(self.uid)[name][-1]

    def _is_at(self, name: str, attempt: int) -> bool:
        last = self._last(name)
        return last.attempt == attempt and not last.is_over

    def _end_by(self, begun: float) -> float:
        """When a container that was asked to end at that time is to be killed. Whoever deletes may shorten it."""
        meta, most = self.pod["metadata"], self._context.may_take_s()
        if most is not None:
            return begun + most
        own: int = self.pod["spec"].get("terminationGracePeriodSeconds", GRACE_S)
        if "deletionTimestamp" not in meta:
            return begun + own
        grace: int = meta.get("deletionGracePeriodSeconds", own)
        # That time is in whole seconds; and it may have begun before this agent did.
        asked = datetime.fromisoformat(meta["deletionTimestamp"]).timestamp() + 1 if grace else 0.0
        return min(begun + grace, asked)

    async def _before_stop(self, name: str, grace_s: float) -> None:
        spec = next((one for one, _ in containers_of(self.pod) if one["name"] == name), {})
        hook = (spec.get("lifecycle") or {}).get("preStop") or {}
        try:
            if "exec" in hook:
                await self._context.runtime.execute(self.uid, name, hook["exec"].get("command", ()), grace_s)
            elif "sleep" in hook:
                await asyncio.sleep(min(grace_s, hook["sleep"].get("seconds", 0)))
        except (RunError, TimeoutError) as error:
            self._tell("Warning", "FailedPreStopHook", f"PreStopHook failed: {str(error) or 'it took too long'}", name)

    async def _leave(self) -> None:
        """Nothing runs any more. If the pod was to go, say how it ended, and let it."""
        if self._gone or self._removed or "deletionTimestamp" not in self.pod["metadata"]:
            return
        if self._reported is not self._status:
            return  # comes back here when that is told
        try:
            await self._context.plane.delete_pod(self.pod)
            self._removed = True
        except StaleError:
            self._removed = True
        except ControlPlaneError as error:
            _log.v(2).info("A pod that has ended is not let go yet", pod=self._named, err=str(error))
            asyncio.get_running_loop().call_later(AWAY_S, self.wake)

    # -- probes ------------------------------------------------------------------------------------------------------

    def _look_after_probes(self) -> None:
        for spec, _ in containers_of(self.pod):
            name = spec["name"]
            runs = self._context.runtime.runs(self.uid).get(name, ())
            last = runs[-1] if runs else None
            running = last is not None and last.state == "running"
            attempt, _health = self._health.get(name, (-1, None))
            if last is not None and running and attempt != last.attempt:
                self._cancel_probes(name)
                self._health[name] = (last.attempt, ContainerHealth(started=False, ready=False))
                self._tell("Normal", "Started", f"Container {name} started", name)
                self._probing[name] = asyncio.create_task(self._probe(spec, last.attempt))
            elif not running:
                self._cancel_probes(name)

    def _cancel_probes(self, name: str) -> None:
        task = self._probing.pop(name, None)
        if task is not None:
            task.cancel()

    async def _probe(self, spec: Mapping[str, Any], attempt: int) -> None:
        name, context = spec["name"], self._context
        asked = ProbeTarget(
            context.runtime, context.http, self.uid, name, context.host_ip, ports_by_name(spec, self.ports)
        )

        def tell(health: ContainerHealth) -> None:
            self._health[name] = (attempt, health)
            self.wake()

        def complain(kind: str, text: str) -> None:
            self._tell("Warning", "Unhealthy", f"{kind} probe failed: {text}", name)

        await run_probes(spec, asked, tell, complain)

    # -- what is said ------------------------------------------------------------------------------------------------

    def _say(self, now_ns: int, *, ending: bool) -> None:
        if self._is_finished and not self._status:
            self._status = self._reported = self.pod["status"]  # it was said before
            return
        if self._is_finished and self._reported is self._status:
            return
        if self._refusal is not None:
            status = rejected_status(self.pod, self._refusal, now_ns)
        else:
            status = self._status_now(now_ns, ending=ending)
        for name, text in self._failures():
            self._tell("Warning", "Failed", text, name)
        if status != self._status:
            self._status = status
            self._report_due.set()

    def _status_now(self, now_ns: int, *, ending: bool) -> dict[str, Any]:
        return status_of(
            self.pod,
            self._containers(),
            self._status or self.pod.get("status") or {},
            now_ns=now_ns,
            host_ip=self._context.host_ip,
            backoff=self._context.backoff,
            ending=ending,
            ended=self._ended,
        )

    def look_at_logs(self) -> None:
        """Tell once of each run whose log was longer than what is kept of it."""
        runtime = self._context.runtime
        if not isinstance(runtime, RotatesLogs):
            return
        for name, runs in runtime.runs(self.uid).items():
            last = runs[-1] if runs else None
            told = ("" if last is None else f"log of {name}", 0 if last is None else last.attempt)
            if (
                last is not None
                and told not in self._told
                and (kept := runtime.truncated_log_bytes(self.uid, name, last.attempt))
            ):
                self._told.add(told)
                text = f"The log of container {name} is longer than what is kept of it, {kept >> 20} MiB: its beginning"
                self._tell("Warning", "LogCut", f"{text} is gone", name)

    def _failures(self) -> list[tuple[str, str]]:
        """Runs that ended in a way that somebody should hear of, each once."""
        found = []
        for name, runs in self._context.runtime.runs(self.uid).items():
            last = runs[-1] if runs else None
            if last is not None and last.is_over and last.message and (name, last.attempt) not in self._told:
                self._told.add((name, last.attempt))
                found.append((name, f"Error: {last.message}"))
        return found

    async def _report(self) -> None:
        wait_s = REPORT_RETRY_S[0]
        while True:
            await self._report_due.wait()
            self._report_due.clear()
            status = self._status
            try:
                report = self._context.next_report()
                if report is None:
                    raise ControlPlaneError("the node has no lease yet")
                await self._context.plane.report_status(self.pod, status, StatusOrigin(self.version, report))
            except StaleError as error:
                _log.v(2).info("A report came too late", pod=self._named, err=str(error))
            except ControlPlaneError as error:
                _log.v(2).info("A report is not taken; trying again", pod=self._named, err=str(error))
                self._report_due.set()
                self._heard.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._heard.wait()  # whoever tells of the pod may well listen, too
                wait_s = min(2 * wait_s, REPORT_RETRY_S[1])
                continue
            wait_s = REPORT_RETRY_S[0]
            self._reported = status
            self.wake()

    def _tell(self, kind: Literal["Normal", "Warning"], reason: str, message: str, container: str = "") -> None:
        self._context.recorder.tell(self.pod, kind, reason, message, container)

    @property
    def _named(self) -> str:
        return f"{self.pod['metadata']['name']}_{self.pod['metadata']['namespace']}"
