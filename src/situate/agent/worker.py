"""The worker of one pod: it starts and stops the pod's containers, runs their probes, and reports the pod's status.

`pod_lifecycle` decides what to do next and `pod_status` how to report it; the worker carries both out. It acts when the
pod changes, a container starts or exits, a probe's result changes, or a timer expires. It knows no other pod.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import aiohttp

from situate.agent.claim_volumes import ClaimVolumes
from situate.agent.container_config import container_config, references
from situate.agent.control_plane import ControlPlane, ControlPlaneError, StaleError, StatusOrigin
from situate.agent.environment import ConfigReference, ContainerConfigError, EnvironmentSources
from situate.agent.events import PodEventRecorder
from situate.agent.hooks import HookError, run_hook
from situate.agent.pod_lifecycle import (
    ContainerStart,
    ContainerState,
    PodActions,
    RestartBackoff,
    compute_pod_actions,
    containers_of,
)
from situate.agent.pod_status import TerminationReason, rejected_status, status_of
from situate.agent.ports import PORTS, Ports, known_ports, port_variables, ports_by_name
from situate.agent.probes import NOT_STARTED, ContainerHealth, ProbeTarget, run_probes
from situate.agent.run_files import read, write
from situate.agent.runtime import ContainerConfig, RotatesLogs, Run, RunError, Runtime
from situate.agent.security import NodeSecurity
from situate.agent.shim import FENCED
from situate.agent.termination import ContainerTermination
from situate.agent.volumes import token_references
from situate.core.reconcile.nodes.reports import AgentReport
from situate.loop.logs import Log

RETRY_S: Final = 10.0
"""How long a container that could not start waits for the next try."""
AWAY_S: Final = 1.0
"""The same, if the control plane could not be reached."""
LONGEST_PROBLEM: Final = 1_024
"""How much of an unexpected error is shown in the pod's status."""
REPORT_RETRY_S: Final = (0.5, 10.0)
"""The first and the longest wait before a status report is retried."""
SECOND_NS: Final = 1_000_000_000
FENCED_RUNS: Final = "fenced"
"""The file with the last attempt of each container that the worker stopped because of the fence."""
FINISHED: Final = ("Succeeded", "Failed")

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What the workers of a node share."""

    runtime: Runtime
    control_plane: ControlPlane
    http: aiohttp.ClientSession
    recorder: PodEventRecorder
    host_ip: str
    allocatable: Mapping[str, str]
    backoff: RestartBackoff
    assign_ports: Callable[[Mapping[str, Any]], Ports]
    security: NodeSecurity
    volumes: ClaimVolumes
    stop_within_s: Callable[[], float | None] = lambda: None
    """The grace period if nothing may run on this node now, whatever the pods say; None: pods may run."""
    is_fenced: Callable[[], bool] = lambda: False
    """Whether that is because the node's fence is closed."""
    may_start: Callable[[], bool] = lambda: True
    """Whether the known pods are known to be current. If not, containers keep running and none is started."""
    next_report: Callable[[], AgentReport | None] = lambda: None
    """None: the node has no lease yet, so nothing can be reported."""
    wall_ns: Callable[[], int] = time.time_ns


class PodWorker:
    """`run` it until it returns: then nothing of the pod is left. `rejected`: why the node does not run the pod."""

    def __init__(
        self, context: WorkerContext, pod: dict[str, Any], version: int | None, rejected: TerminationReason | None
    ) -> None:
        self.pod = pod
        self.uid: str = pod["metadata"]["uid"]
        self.version = version
        self._context = context
        self.rejected = rejected
        self._gone = False
        self._deleted = False
        self._terminated: TerminationReason | None = rejected
        self._woken = asyncio.Event()
        self._updated = asyncio.Event()
        self._blocked: dict[str, tuple[tuple[str, str], int]] = {}
        self._health: dict[str, tuple[int, ContainerHealth]] = {}
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._status: dict[str, Any] = {}
        self._reported: dict[str, Any] | None = None
        self._report_due = asyncio.Event()
        self._recorded: set[tuple[str, int]] = set()
        self.ports: Ports = known_ports(context.runtime.home(self.uid) / PORTS) or {}
        self._fenced: dict[str, int] = read(context.runtime.home(self.uid) / FENCED_RUNS) or {}

    # -- updates -----------------------------------------------------------------------------------------------------

    def update(self, pod: dict[str, Any]) -> None:
        self.pod = pod
        self._updated.set()
        self.wake()

    def pod_gone(self) -> None:
        """The pod does not exist any more."""
        self._gone = True
        self.wake()

    def wake(self) -> None:
        self._woken.set()

    @property
    def holds_resources(self) -> bool:
        """Whether the pod's requests count against the node."""
        return self.rejected is None and (not self._is_finished or self._is_running)

    # -- sync loop ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        reporting = asyncio.create_task(self._report())
        try:
            while not (self._gone and not self._is_running):
                self._woken.clear()
                try:
                    wake_ns = await self._sync()
                except Exception as error:  # noqa: BLE001 - of one pod
                    wake_ns = self._sync_failed(error)
                await self._wait(wake_ns)
        finally:
            tasks = [reporting, *self._probing.values(), *self._stopping.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(RunError):
            self._context.runtime.forget(self.uid)

    async def _wait(self, wake_ns: int | None) -> None:
        wait_s = None if wake_ns is None else max(0.0, (wake_ns - self._context.wall_ns()) / SECOND_NS)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._woken.wait()

    async def _sync(self) -> int | None:
        """Do what is due; return when to look again."""
        now_ns = self._context.wall_ns()
        self._check_deadline(now_ns)
        ending = self._is_over or self._context.stop_within_s() is not None
        actions = compute_pod_actions(self.pod, self._containers(), now_ns, self._context.backoff, ending=ending)
        for name in actions.stop:
            self._stop(name)
        for start in actions.start:
            if self._context.may_start():
                await self._start(start)
        self._sync_probes()
        # A closed fence does not end the pod: its containers restart behind it if the restartPolicy allows.
        self._update_status(now_ns, ending=self._is_over)
        if ending and not self._is_running:
            await self._delete_pod()
        return self._next_wake_ns(actions)

    def _sync_failed(self, error: Exception) -> int:
        """An unexpected error about this pod must not end its worker: report it, and try again."""
        text = f"{type(error).__name__}: {error}"[:LONGEST_PROBLEM]
        _log.error("Cannot sync a pod; retrying", pod=self._full_name, err=text)
        self._record("Warning", "FailedSync", f"error syncing pod: {text}")
        again_ns = self._after(RETRY_S)
        for spec, _ in containers_of(self.pod):
            self._blocked.setdefault(spec["name"], (("CreateContainerError", text), again_ns))
        with suppress(Exception):
            self._update_status(self._context.wall_ns(), ending=self._is_over)
        return again_ns

    def _next_wake_ns(self, actions: PodActions) -> int | None:
        wakes = [at for _, at in self._blocked.values()] if actions.start else []
        wakes += [at for at in (actions.wake_ns, self._deadline_ns()) if at is not None]
        return min(wakes, default=None)

    @property
    def _is_finished(self) -> bool:
        return (self.pod.get("status") or {}).get("phase") in FINISHED

    @property
    def _is_over(self) -> bool:
        """Whether the pod must not run any more, on any node."""
        deleted = "deletionTimestamp" in self.pod["metadata"]
        return deleted or self._gone or self._is_finished or self._terminated is not None

    @property
    def _is_running(self) -> bool:
        return any(runs and not runs[-1].is_over for runs in self._context.runtime.runs(self.uid).values())

    def _containers(self) -> list[ContainerState]:
        runs = self._context.runtime.runs(self.uid)
        return [
            self._container(spec, kind, self._marked(spec["name"], runs.get(spec["name"], ())))
            for spec, kind in containers_of(self.pod)
        ]

    def _marked(self, name: str, runs: Sequence[Run]) -> Sequence[Run]:
        """The runs, with the reason of the one that the fence ended."""
        fenced = self._fenced.get(name)
        if fenced is None:
            return runs
        return [replace(run, reason=FENCED) if run.attempt == fenced and run.is_over else run for run in runs]

    def _container(
        self, spec: Mapping[str, Any], kind: Literal["init", "sidecar", "main"], runs: Sequence[Run]
    ) -> ContainerState:
        name, last = spec["name"], runs[-1] if runs else None
        attempt, health = self._health.get(name, (-1, NOT_STARTED))
        if last is None or last.attempt != attempt or last.state != "running":
            health = NOT_STARTED
        blocked, retry_ns = self._blocked.get(name, (None, 0))
        return ContainerState(
            spec, kind, runs, health.started, health.ready, bool(health.failure), blocked=blocked, retry_ns=retry_ns
        )

    def _deadline_ns(self) -> int | None:
        """When activeDeadlineSeconds expires."""
        seconds, begun = self.pod["spec"].get("activeDeadlineSeconds"), self._status.get("startTime")
        if seconds is None or begun is None or self._is_finished or self._terminated is not None:
            return None
        return int(datetime.fromisoformat(begun).timestamp() + seconds) * SECOND_NS

    def _check_deadline(self, now_ns: int) -> None:
        deadline = self._deadline_ns()
        if deadline is not None and now_ns >= deadline:
            text = "Pod was active on the node longer than the specified deadline"
            self._terminated = TerminationReason("DeadlineExceeded", text)

    # -- starting containers -----------------------------------------------------------------------------------------

    async def _start(self, start: ContainerStart) -> None:
        spec = next(one for one, _ in containers_of(self.pod) if one["name"] == start.container)
        try:
            self._context.runtime.start(await self._container_config(spec, start))
        except ContainerConfigError as error:
            self._block(start, error.reason, str(error))
        except RunError as error:
            self._block(start, "CreateContainerError", str(error))
        except (OSError, ValueError) as error:  # of the pod's directory, or of a value that the system cannot take
            self._block(start, "CreateContainerError", str(error)[:LONGEST_PROBLEM])
        except ControlPlaneError as error:
            _log.v(2).info("A pod waits for the control plane", pod=self._full_name, err=str(error))
            self._blocked[start.container] = (("ContainerCreating", str(error)), self._after(AWAY_S))
        else:
            self._blocked.pop(start.container, None)
            if start.attempt > 1 and start.backoff_ms:
                text = f"Back-off restarting failed container {start.container} in pod {self._full_name}({self.uid})"
                self._record("Warning", "BackOff", text, start.container)

    def _block(self, start: ContainerStart, reason: str, message: str) -> None:
        if self._blocked.get(start.container, (None, 0))[0] != (reason, message):
            event = "FailedMount" if reason == "FailedMount" else "Failed"
            self._record("Warning", event, f"Error: {message}", start.container)
        self._blocked[start.container] = ((reason, message), self._after(RETRY_S))

    def _after(self, seconds: float) -> int:
        return self._context.wall_ns() + int(seconds * SECOND_NS)

    async def _container_config(self, spec: Mapping[str, Any], start: ContainerStart) -> ContainerConfig:
        """Raises ContainerConfigError, ControlPlaneError."""
        context = self._context
        self._assign_ports()
        objects = await self._read(references(self.pod, spec))
        home, volumes = context.runtime.home(self.uid), context.runtime.volumes(self.uid)
        ports = port_variables(spec, self.ports)
        tokens = {
            one: await context.control_plane.request_token(self.pod, *one)
            for one in token_references(self.pod, volumes)
        }
        claims = await context.volumes.paths(self.pod)
        sources = EnvironmentSources(context.host_ip, context.allocatable, objects, ports, tokens, claims)
        return container_config(self.pod, spec, start, sources, home, volumes, context.security)

    async def _read(self, wanted: Iterable[ConfigReference]) -> dict[tuple[str, str], Mapping[str, Any]]:
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for one in wanted:
            obj = await self._context.control_plane.get(one.kind, self.pod["metadata"]["namespace"], one.name)
            if obj is not None:
                found[one.kind, one.name] = obj
        return found

    def _assign_ports(self) -> None:
        if self.ports or not any(one.get("ports") for one, _ in containers_of(self.pod)):
            return
        self.ports = self._context.assign_ports(self.pod)
        (self._context.runtime.home(self.uid) / PORTS).write_text(json.dumps(self.ports))
        moved = [
            f"{container}: {number} is {real}"
            for container, own in self.ports.items()
            for number, real in own.items()
            if number != str(real)
        ]
        if moved:
            self._record("Normal", "PortsAssigned", "; ".join(moved))

    # -- stopping containers -----------------------------------------------------------------------------------------

    def _stop(self, name: str) -> None:
        if name in self._stopping:
            return
        _, health = self._health.get(name, (-1, NOT_STARTED))
        self._record("Normal", "Killing", health.failure or f"Stopping container {name}", name)
        if self._context.is_fenced() and not self._is_over:
            self._fenced[name] = self._context.runtime.runs(self.uid)[name][-1].attempt
            with suppress(OSError):  # the disk is full: the next agent will take it for a failure
                write(self._context.runtime.home(self.uid) / FENCED_RUNS, self._fenced)
        self._stopping[name] = asyncio.create_task(self._terminate(name))

    async def _terminate(self, name: str) -> None:
        spec = next((one for one, _ in containers_of(self.pod) if one["name"] == name), {"name": name})
        try:
            await ContainerTermination(self._context, lambda: self.pod, spec, self._target(spec)).run()
        except Exception as error:  # noqa: BLE001 - of one pod
            _log.error("Cannot stop a container properly; killing it", pod=self._full_name, err=repr(error))
            self._context.runtime.kill(self.uid, name)
            await asyncio.sleep(AWAY_S)
        finally:
            self._stopping.pop(name, None)
            self.wake()

    async def _delete_pod(self) -> None:
        """Nothing runs any more. If the pod is being deleted, and its last status is reported, let it go."""
        if self._gone or self._deleted or "deletionTimestamp" not in self.pod["metadata"]:
            return
        if self._reported is not self._status:
            return  # the worker comes back here after the report
        try:
            await self._context.control_plane.delete_pod(self.pod)
            self._deleted = True
        except StaleError:
            self._deleted = True
        except ControlPlaneError as error:
            _log.v(2).info("Cannot delete a pod that has stopped; retrying", pod=self._full_name, err=str(error))
            asyncio.get_running_loop().call_later(AWAY_S, self.wake)

    # -- probes ------------------------------------------------------------------------------------------------------

    def _sync_probes(self) -> None:
        for spec, _ in containers_of(self.pod):
            name = spec["name"]
            runs = self._context.runtime.runs(self.uid).get(name, ())
            last = runs[-1] if runs and runs[-1].state == "running" else None
            if last is None:
                self._cancel_probes(name)
            elif self._health.get(name, (-1, None))[0] != last.attempt:
                self._cancel_probes(name)
                self._health[name] = (last.attempt, NOT_STARTED)
                self._record("Normal", "Started", f"Container {name} started", name)
                self._probing[name] = asyncio.create_task(self._probe(spec, last.attempt))

    def _cancel_probes(self, name: str) -> None:
        task = self._probing.pop(name, None)
        if task is not None:
            task.cancel()

    async def _probe(self, spec: Mapping[str, Any], attempt: int) -> None:
        name, target = spec["name"], self._target(spec)

        def changed(health: ContainerHealth) -> None:
            self._health[name] = (attempt, health)
            self.wake()

        def failed(kind: str, text: str) -> None:
            self._record("Warning", "Unhealthy", f"{kind} probe failed: {text}", name)

        if problem := await self._post_start(spec, attempt, target):
            self._record("Warning", "FailedPostStartHook", f"PostStartHook failed: {problem}", name)
            changed(replace(NOT_STARTED, failure=f"FailedPostStartHook: container {name} will be restarted"))
            return
        await run_probes(spec, target, changed, failed)

    async def _post_start(self, spec: Mapping[str, Any], attempt: int, target: ProbeTarget) -> str:
        """Run the postStart hook, once for each run of the container; return what went wrong."""
        hook = (spec.get("lifecycle") or {}).get("postStart")
        if not hook:
            return ""
        done = self._context.runtime.home(self.uid) / f"{spec['name']}.{attempt}.started"
        if done.exists():  # before this agent began
            return ""
        try:
            await run_hook(hook, target)
        except HookError as error:
            return str(error)
        done.touch()
        return ""

    def _target(self, spec: Mapping[str, Any]) -> ProbeTarget:
        context, ports = self._context, ports_by_name(spec, self.ports)
        return ProbeTarget(context.runtime, context.http, self.uid, spec["name"], context.host_ip, ports)

    # -- status and events -------------------------------------------------------------------------------------------

    def _update_status(self, now_ns: int, *, ending: bool) -> None:
        if self._is_finished and not self._status:
            self._status = self._reported = self.pod["status"]  # it was reported before
            return
        if self._is_finished and self._reported is self._status:
            return
        if self.rejected is not None:
            status = rejected_status(self.pod, self.rejected, now_ns)
        else:
            status = status_of(
                self.pod,
                self._containers(),
                self._status or self.pod.get("status") or {},
                now_ns=now_ns,
                host_ip=self._context.host_ip,
                backoff=self._context.backoff,
                ending=ending,
                terminated=self._terminated,
            )
        self._record_failures()
        if status != self._status:
            self._status = status
            self._report_due.set()

    def _record_failures(self) -> None:
        """Record one event for each run that ended with a message."""
        for name, runs in self._context.runtime.runs(self.uid).items():
            last = runs[-1] if runs else None
            if last is not None and last.is_over and last.message and (name, last.attempt) not in self._recorded:
                self._recorded.add((name, last.attempt))
                self._record("Warning", "Failed", f"Error: {last.message}", name)

    def check_logs(self) -> None:
        """Record one event for each run whose log exceeds what the runtime keeps."""
        runtime = self._context.runtime
        if not isinstance(runtime, RotatesLogs):
            return
        for name, runs in runtime.runs(self.uid).items():
            if not runs or (mark := (f"log of {name}", runs[-1].attempt)) in self._recorded:
                continue
            if kept := runtime.truncated_log_bytes(self.uid, name, runs[-1].attempt):
                self._recorded.add(mark)
                text = f"The log of container {name} exceeds {kept >> 20} MiB: its beginning was removed"
                self._record("Warning", "LogCut", text, name)

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
                await self._context.control_plane.report_status(self.pod, status, StatusOrigin(self.version, report))
            except StaleError as error:
                _log.v(2).info("A status report came too late", pod=self._full_name, err=str(error))
            except Exception as error:  # noqa: BLE001 - of one pod, or of the control plane
                log = _log.v(2).info if isinstance(error, ControlPlaneError) else _log.error
                log("Cannot report a pod's status; retrying", pod=self._full_name, err=str(error))
                self._report_due.set()
                self._updated.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._updated.wait()  # the control plane is back
                wait_s = min(2 * wait_s, REPORT_RETRY_S[1])
                continue
            wait_s = REPORT_RETRY_S[0]
            self._reported = status
            self.wake()

    def _record(self, kind: Literal["Normal", "Warning"], reason: str, message: str, container: str = "") -> None:
        self._context.recorder.record(self.pod, kind, reason, message, container)

    @property
    def _full_name(self) -> str:
        return f"{self.pod['metadata']['name']}_{self.pod['metadata']['namespace']}"
