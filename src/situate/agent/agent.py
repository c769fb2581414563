"""The agent of the node that is this machine: it registers the node, keeps its lease, and runs the pods bound to it.

It places no pods and talks to no scheduler. The parts: `lease` and `fence`, `node_status`, `pod_manager`, `worker`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import aiohttp

from situate.agent import host
from situate.agent.claim_volumes import ClaimVolumes
from situate.agent.clock import REAL, Clock
from situate.agent.control_plane import ControlPlane, LeaseLostError
from situate.agent.events import PodEventRecorder
from situate.agent.kubelet_server import KubeletServer
from situate.agent.lease import LeaseSettings, NodeLease
from situate.agent.node_status import NodeStatusManager
from situate.agent.pod_manager import PodManager, load_checkpoint
from situate.agent.runtime import Runtime
from situate.agent.settings import NodeSettings
from situate.agent.worker import WorkerContext
from situate.core.reconcile.nodes.fencing import STOP_MS
from situate.loop.logs import Log

LOCK: Final = "agent.lock"
VOLUMES: Final = "volumes"
SHUT_DOWN_S: Final = 5.0
"""The grace period of containers when the agent shuts down."""
STOP_S: Final = STOP_MS / 1_000
"""The grace period of containers when the lease has expired."""
POLL_S: Final = 0.03

_log = Log(__name__)


class AgentError(Exception):
    """The agent cannot run; the message is one line."""


class NodeAgent:
    """`run` it until cancelled. Its pods keep running, unless its settings say otherwise."""

    def __init__(
        self,
        control_plane: ControlPlane,
        settings: NodeSettings,
        runtime: Callable[[Callable[[str], None]], Runtime],
        clock: Clock = REAL,
    ) -> None:
        settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.runtime = runtime(self._container_changed)
        self.facts = host.facts(settings.directory)
        self._control_plane = control_plane
        self._settings = settings
        self._clock = clock
        self._recorder = PodEventRecorder(control_plane, settings.name, clock.wall_ns)
        self._shutting_down = False
        checkpoint = load_checkpoint(settings)
        snapshot = checkpoint.snapshot
        configuration = settings.configuration if snapshot is None else snapshot.configuration
        lease = LeaseSettings(settings.name, settings.directory, self.facts.info["bootID"], settings.fenced)
        self._lease = NodeLease(control_plane, lease, clock, configuration, self._fence_changed)
        self.status = NodeStatusManager(
            control_plane, settings, self.facts, clock, self._lease, lambda: list(self.pods.workers.values())
        )
        self.pods = PodManager(control_plane, settings, checkpoint, clock, self._lease, self.status, self.runtime)
        self._volumes = ClaimVolumes(
            control_plane,
            settings.volumes or settings.directory / VOLUMES,
            clock,
            lambda: [worker.pod for worker in self.pods.workers.values()],
        )
        self.server = KubeletServer(self.runtime, lambda: [worker.pod for worker in self.pods.workers.values()])

    @property
    def ready(self) -> asyncio.Event:
        """The node is registered."""
        return self.status.registered

    async def run(self) -> None:
        """Raises AgentError."""
        with _only_one(self._settings.directory / LOCK):
            async with aiohttp.ClientSession() as http, self._serve():
                stop_pods = self._settings.ends_pods
                try:
                    self.pods.restore(self._worker_context(http))
                    await self._run_parts()
                except BaseExceptionGroup as group:
                    if group.subgroup(LeaseLostError) is None:
                        raise
                    stop_pods = True  # another agent runs them now
                    raise AgentError(f"{self._settings.name}: another agent has taken this node") from None
                finally:
                    if stop_pods:
                        await self._stop_pods()
                    await self.pods.close()
                    self.runtime.close()

    @contextlib.asynccontextmanager
    async def _serve(self) -> AsyncIterator[None]:
        """Listen if there are authorities to trust. The node works without: then nobody can read its logs."""
        authorities, address = self._settings.authorities, self.facts.address
        async with self.server:
            if authorities:
                try:
                    self.status.endpoint = await self.server.listen(self._settings.directory, address, authorities)
                except OSError as error:
                    _log.warning("Cannot serve logs", address=address, err=str(error))
            yield

    async def _run_parts(self) -> None:
        status, pods = self.status, self.pods
        async with asyncio.TaskGroup() as group:
            for part in (
                self._lease.run,
                status.run,
                status.watch,
                pods.watch_snapshots,
                pods.watch,
                pods.save,
                self._recorder.run,
                self._volumes.run,
            ):
                group.create_task(part())

    async def _stop_pods(self) -> None:
        """Stop all containers, as a machine that shuts down would."""
        self._shutting_down = True
        self.pods.wake_all()
        running = await self._wait_until_stopped()
        for uid, container in running:
            self.runtime.kill(uid, container)
        await self._wait_until_stopped()

    async def _wait_until_stopped(self) -> list[tuple[str, str]]:
        """Wait at most SHUT_DOWN_S; return the containers that still run, as (pod uid, name)."""
        clock = self._clock
        deadline = clock.monotonic() + SHUT_DOWN_S
        while (running := self.pods.running_containers()) and clock.monotonic() < deadline:
            await clock.sleep(POLL_S)
        return running

    def _worker_context(self, http: aiohttp.ClientSession) -> WorkerContext:
        return WorkerContext(
            runtime=self.runtime,
            control_plane=self._control_plane,
            http=http,
            recorder=self._recorder,
            host_ip=self.facts.address,
            allocatable=self.facts.allocatable(),
            backoff=self._settings.backoff,
            assign_ports=self.pods.assign_ports,
            security=self._settings.security,
            volumes=self._volumes,
            stop_within_s=self._stop_within_s,
            is_fenced=self._lease.is_closed,
            may_start=lambda: self.pods.is_current,
            next_report=self._lease.next_report,
            wall_ns=self._clock.wall_ns,
        )

    def _stop_within_s(self) -> float | None:
        """The grace period if nothing may run here now; None: pods may run."""
        if self._lease.is_closed():
            return STOP_S
        return SHUT_DOWN_S if self._shutting_down else None

    def _container_changed(self, uid: str) -> None:
        self.pods.wake(uid)

    def _fence_changed(self, message: str) -> None:
        _log.warning(message, node=self._settings.name, pods=len(self.pods.workers))
        if self._lease.is_closed():
            self.pods.is_current = False
        else:
            self.pods.relist()
        self.pods.wake_all()


@contextlib.contextmanager
def _only_one(path: Path) -> Any:
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AgentError(f"{path.parent}: another agent runs here") from None
        yield
