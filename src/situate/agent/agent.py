"""The agent of a node that is this machine: registers it, keeps its lease, and has the pods bound to it run here.

What is wanted is said by the node's snapshot, in versions that never go back, and by the pods in it. It is kept on
disk: when the control plane is away, the agent goes on from there. What runs is asked of the runtime. Where the two
differ, the second is made to follow the first: what is missing is begun, what nobody wants is ended, and what is left
of it deleted. Places nothing, and asks no scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiohttp
import msgspec

from situate.agent import host
from situate.agent.admission import refusal
from situate.agent.checkpoint import Checkpoint, CheckpointError, load, save
from situate.agent.clock import REAL, Clock
from situate.agent.control_plane import ControlPlane, ControlPlaneError, LeaseLostError, NotServedError, PodUpdate
from situate.agent.damping import LOOK_S, next_due
from situate.agent.desired_state import DesiredState, NodeConfiguration, Snapshot, decode_snapshot
from situate.agent.events import EventRecorder
from situate.agent.lease import LeaseSettings, NodeLease
from situate.agent.log_server import Endpoint, serve_logs
from situate.agent.pod_lifecycle import RestartBackoff
from situate.agent.pod_status import TerminationReason
from situate.agent.ports import Ports, assign_ports, free_port
from situate.agent.runtime import Runtime
from situate.agent.worker import FINISHED, PodWorker, WorkerContext
from situate.core.reconcile.nodes.fencing import STOP_MS
from situate.loop.logs import Log

__all__ = ["AgentError", "NodeAgent", "NodeSettings"]

CHECKPOINT: Final = "pods.last"
LOCK: Final = "agent.lock"
RETRY_S: Final = 1.0
SAVE_S: Final = 0.1
"""Changes within this time are kept on disk together; what is kept is acknowledged."""
SHUT_DOWN_S: Final = 5.0
"""How long containers may take to end, when the machine is to stop running any."""
STOP_S: Final = STOP_MS / 1_000
"""The same, when it has to stop because its lease ran out."""
POLL_S: Final = 0.03

Key: TypeAlias = tuple[str, str]

_log = Log(__name__)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class AgentError(Exception):
    """The agent cannot run, in one line."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    name: str
    directory: Path
    """Its own: pods, what it last knew, a lock against a second agent."""
    labels: Mapping[str, str] = field(default_factory=dict)
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    configuration: NodeConfiguration = field(default_factory=NodeConfiguration)
    """How it renews its lease, until the control plane says how."""
    ends_pods: bool = False
    """When the agent is told to stop, its pods stop with it. One that is killed leaves them in any case."""
    fenced: bool = True
    """When it cannot renew its lease, it ends its pods before somebody may run them elsewhere."""
    cluster: str = ""
    """Whose node it is. What is on disk of another's does not count."""
    authorities: tuple[bytes, ...] = ()
    """Certificates (DER) of those who may vouch for a control plane that asks for logs; none: nobody may ask."""


class NodeAgent:
    """`run` it until cancelled. What it began goes on, unless its settings say otherwise."""

    def __init__(
        self,
        plane: ControlPlane,
        settings: NodeSettings,
        runtime: Callable[[Callable[[str], None]], Runtime],
        clock: Clock = REAL,
    ) -> None:
        settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ready = asyncio.Event()
        """The node is registered."""
        self.runtime = runtime(self._changed)
        self.facts = host.facts(settings.directory)
        self._plane = plane
        self._settings = settings
        self._clock = clock
        self._recorder = EventRecorder(plane, settings.name, clock.wall_ns)
        self._workers: dict[str, PodWorker] = {}
        self._uids: dict[Key, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._heard: dict[Key, str] = {}
        self._revisions: dict[Key, int] = {}
        """At which each pod became what it is known to be, or was deleted; since all were last told of."""
        self._announced: dict[str, dict[str, Any]] = {}
        """Pods that are told of, and not in the snapshot yet: they begin when they are."""
        self._left_over: list[str] = []
        self._unsaved = asyncio.Event()
        self._speak = asyncio.Event()
        """The node has to say how it is."""
        self._node: dict[str, Any] | None = None
        self._status: dict[str, Any] | None = None
        """The node, as it was last seen, and its status, as it was last said."""
        self._counts = True
        """The server has snapshots."""
        self._ending = False
        self._endpoint: Endpoint | None = None
        held = self._last_known()
        self._checkpoint = held
        self._wanted = DesiredState(held.snapshot)
        self._told_snapshot = False
        """In this life. What is on disk may be older than what was acknowledged: the first is pulled whole."""
        place = LeaseSettings(settings.name, settings.directory, self.facts.info["bootID"], settings.fenced)
        configuration = settings.configuration if held.snapshot is None else held.snapshot.configuration
        self._hearing: asyncio.Task[None] | None = None
        self._lease = NodeLease(plane, place, clock, configuration, self._fence_changed)

        self._current = self._lease.unbroken
        """What is known of the pods is still so. Not after a time in which others may have been given them: then the
        control plane has to tell of all of them anew, before any is begun."""

    # -- its life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Raises AgentError."""
        with _only_one(self._settings.directory / LOCK):
            async with aiohttp.ClientSession() as http, self._serving():
                self._context = self._made_means(http)
                ends = self._settings.ends_pods
                try:
                    self._come_back()
                    await self._work_on()
                except BaseExceptionGroup as group:
                    taken = group.subgroup(LeaseLostError)
                    if taken is None:
                        raise
                    ends = True  # they are another's now
                    raise AgentError(f"{self._settings.name}: another agent has taken this node") from None
                finally:
                    if ends:
                        await self._shut_down()
                    for task in list(self._tasks.values()):
                        task.cancel()
                    await asyncio.gather(*self._tasks.values(), return_exceptions=True)
                    self.runtime.close()

    @contextlib.asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        """Logs, if there is somebody to serve them to. Without that port the node goes on: it is only for reading."""
        async with contextlib.AsyncExitStack() as stack:
            if self._settings.authorities:
                where = serve_logs(
                    self.runtime, self._settings.directory, self.facts.address, self._settings.authorities
                )
                try:
                    self._endpoint = await stack.enter_async_context(where)
                except OSError as error:
                    _log.warning("Logs cannot be served", address=self.facts.address, err=str(error))
            yield

    async def _work_on(self) -> None:
        works = (
            self._lease.run,
            self._register,
            self._see_node,
            self._see_snapshots,
            self._hear,
            self._save,
            self._recorder.run,
        )
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work())

    async def _shut_down(self) -> None:
        """End all containers, as a machine that is switched off would."""
        self._ending = True
        for worker in self._workers.values():
            worker.wake()
        clock = self._clock
        deadline = clock.monotonic() + SHUT_DOWN_S
        while (running := self._running()) and clock.monotonic() < deadline:
            await clock.sleep(POLL_S)
        for uid, container in running:
            self.runtime.kill(uid, container)
        deadline = clock.monotonic() + SHUT_DOWN_S
        while self._running() and clock.monotonic() < deadline:
            await clock.sleep(POLL_S)

    def _running(self) -> list[tuple[str, str]]:
        return [
            (uid, name)
            for uid in self._workers
            for name, runs in self.runtime.runs(uid).items()
            if runs and not runs[-1].is_over
        ]

    def _made_means(self, http: aiohttp.ClientSession) -> WorkerContext:
        return WorkerContext(
            runtime=self.runtime,
            plane=self._plane,
            http=http,
            recorder=self._recorder,
            host_ip=self.facts.address,
            allocatable=self.facts.allocatable(),
            backoff=self._settings.backoff,
            give_ports=self._give_ports,
            may_take_s=self._may_take_s,
            may_begin=lambda: self._current,
            next_report=self._lease.next_report,
            wall_ns=self._clock.wall_ns,
        )

    def _last_known(self) -> Checkpoint:
        nothing = Checkpoint(self._settings.name, ())
        try:
            held = load(self._settings.directory / CHECKPOINT, self._settings.name)
        except CheckpointError as error:
            _log.error("The last known pods cannot be used", err=str(error))
            return nothing
        if held is not None and held.cluster != self._settings.cluster:
            _log.warning("The last known pods are another cluster's", node=self._settings.name)
            return nothing
        return held or nothing

    def _come_back(self) -> None:
        """What was wanted when an agent last ran here, and what is left of it. The disk may be older than that agent:
        a pod of which there is nothing here may have been let go since, and waits until it is told of."""
        held = self._checkpoint
        self._left_over = list(self.runtime.adopt())
        for pod in held.pods:
            if self._settings.fenced and pod["metadata"]["uid"] not in self._left_over:
                continue
            self._work(pod, held.versions.get(pod["metadata"]["uid"]), None)
        if held.pods:
            _log.info("Going on from what was last known", pods=len(held.pods), version=self._wanted.version)

    # -- the node ----------------------------------------------------------------------------------------------------

    async def _register(self) -> None:
        """Then again when something has changed (see `damping`), or when somebody thinks otherwise of the node."""
        await self._lease.held.wait()
        said_at, clock = 0.0, self._clock
        while True:
            for worker in self._workers.values():
                worker.look_at_logs()
            body = self._body()
            due = next_due(self._status, body["status"], said_at)
            if self._speak.is_set() or clock.monotonic() >= due:
                self._speak.clear()
                await self._until_done("register", lambda: self._plane.register_node(body, self._lease.next_report()))  # noqa: B023 - is over before there is another
                self._status, said_at = body["status"], clock.monotonic()
                self.ready.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._speak.wait()

    def _body(self) -> dict[str, Any]:
        settings = self._settings
        short = host.pressure(settings.directory)
        pods = [worker.pod for worker in self._workers.values()]
        return host.body_of(
            settings.name,
            self.facts,
            short,
            self._clock.wall_ns(),
            settings.labels,
            self._status or {},
            pods=pods,
            endpoint=self._endpoint,
        )

    async def _see_node(self) -> None:
        """What is thought of the node. One that is held to be lost, or was deleted, says at once that it is there."""
        await self.ready.wait()
        while True:
            newest = 0
            try:
                async for read in self._plane.watch_nodes(self._settings.name):
                    node = None if read.body is None else _decode(read.body)
                    version = newest if node is None else int(node["metadata"].get("resourceVersion") or newest)
                    if version < newest:
                        continue  # it was on its way for longer than what came after it
                    self._node, newest = node, version
                    if self._node is None or not _is_ready(self._node):
                        self._speak.set()
            except ControlPlaneError as error:
                _log.v(2).info("The node is not seen; trying again", err=str(error))
            await self._clock.sleep(RETRY_S)

    def _may_take_s(self) -> float | None:
        """How long what runs here may take to end, if it must; None: it may run."""
        if self._lease.is_closed():
            return STOP_S
        return SHUT_DOWN_S if self._ending else None

    def _fence_changed(self, text: str) -> None:
        _log.warning(text, node=self._settings.name, pods=len(self._workers))
        if self._lease.is_closed():
            self._current = False
        elif self._hearing is not None:
            self._hearing.cancel()  # and all over again
        for worker in self._workers.values():
            worker.wake()

    async def _until_done(self, what: str, call: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await call()
            except ControlPlaneError as error:
                _log.warning("The node waits for the control plane", to=what, err=str(error))
                await self._clock.sleep(RETRY_S)

    # -- its snapshot ------------------------------------------------------------------------------------------------

    async def _see_snapshots(self) -> None:
        """What is to run here: increments from the version that is known, or the whole."""
        await self.ready.wait()
        while True:
            try:
                since = self._wanted.version if self._told_snapshot else 0
                async for read in self._plane.watch_snapshots(self._settings.name, since):
                    if read.body is not None:
                        await self._wants(decode_snapshot(read.body))
            except NotServedError:
                _log.info("The server has no snapshots: pods begin as they are told of")
                self._counts = False
                await self._begin_announced()
                return
            except (ControlPlaneError, msgspec.DecodeError) as error:
                _log.warning("The snapshot is not seen; trying again", err=str(error))
            await self._clock.sleep(RETRY_S)

    async def _wants(self, told: Snapshot) -> None:
        known = self._wanted.version
        taken = self._wanted.told(told)
        self._told_snapshot = self._told_snapshot or taken != "older"
        match taken:
            case "older":
                _log.warning("A snapshot is older than what is known, and is refused", known=known, told=told.version)
            case "same":
                self._unsaved.set()
            case "newer":
                self._lease.configure(told.configuration)
                for uid, version in told.bindings.items():
                    if uid in self._workers:
                        self._workers[uid].version = version
                await self._begin_announced()
                self._unsaved.set()

    async def _begin_announced(self) -> None:
        for uid in [uid for uid in self._announced if not self._counts or self._wanted.binding(uid) is not None]:
            pod = self._announced.pop(uid, None)
            if pod is not None:
                await self._take(pod)

    def _has_all(self, snapshot: Snapshot) -> bool:
        """Whether everything in it is looked after."""
        return all(uid in self._workers for uid in snapshot.bindings)

    # -- pods --------------------------------------------------------------------------------------------------------

    async def _hear(self) -> None:
        await self.ready.wait()
        while True:
            hearing = self._hearing = asyncio.create_task(self._hear_all())
            try:
                await asyncio.wait([hearing])
            finally:
                hearing.cancel()
            if not hearing.cancelled():
                hearing.result()
                await self._clock.sleep(RETRY_S)

    async def _hear_all(self) -> None:
        """All pods of this node, and then what changes, for as long as it is told."""
        self._heard.clear()
        self._revisions.clear()
        try:
            async for read in self._plane.watch_pods(self._settings.name):
                await self._told(read)
        except ControlPlaneError as error:
            _log.warning("Pods are not seen; trying again", err=str(error))

    async def _told(self, read: PodUpdate) -> None:
        if read.listed:
            self._all_listed()
            return
        key = (read.namespace, read.name)
        if read.version < self._revisions.get(key, 0):
            return  # told late, or again: what is known is newer
        self._revisions[key] = read.version
        if read.body is None:
            self._vanished(key)
        else:
            pod = _decode(read.body)
            uid = pod["metadata"]["uid"]
            if self._uids.get(key, uid) != uid:
                self._vanished(key)
            self._heard[key] = uid
            if uid in self._workers:
                self._seen(self._workers[uid], pod)
            elif not self._counts or self._wanted.binding(uid) is not None or _has_ended(pod):
                await self._take(pod)
            else:
                self._announced[uid] = pod
                self._uids[key] = uid
        self._unsaved.set()

    def _seen(self, worker: PodWorker, pod: dict[str, Any]) -> None:
        """A pod does not go back to what it was: what is older than what is known is not taken."""
        known, told = (one["metadata"].get("resourceVersion", "") for one in (worker.pod, pod))
        if known.isdigit() and told.isdigit() and int(told) < int(known):
            _log.warning("A pod is told as it was before", pod=pod["metadata"]["name"], known=known, told=told)
            return
        worker.seen(pod)

    def _all_listed(self) -> None:
        """From now on, what was not told of does not exist."""
        for key in [key for key, uid in self._uids.items() if self._heard.get(key) != uid]:
            self._vanished(key)
        for uid in self._left_over:
            if uid not in self._workers and uid not in self._announced:
                self._end_orphan(uid)
        self._left_over = [uid for uid in self._left_over if uid in self._announced]
        if not self._lease.is_closed():
            self._current = True
            for worker in self._workers.values():
                worker.wake()

    def _vanished(self, key: Key) -> None:
        uid = self._uids.pop(key, None)
        self._heard.pop(key, None)
        if uid is not None:
            self._announced.pop(uid, None)
            if uid in self._workers:
                self._workers[uid].gone()
            elif uid in self._left_over:
                self._left_over.remove(uid)
                self._end_orphan(uid)

    def _end_orphan(self, uid: str) -> None:
        """What is left of a pod that nobody knows."""
        _log.info("Ending what is left of a pod that is gone", uid=uid)
        pod = {"metadata": {"uid": uid, "name": "unknown", "namespace": "unknown"}, "spec": {"containers": []}}
        pod["spec"] = {"containers": [{"name": name} for name in self.runtime.runs(uid)], "nodeName": ""}
        worker = self._workers[uid] = PodWorker(self._context, pod, None, None)
        worker.gone()
        self._begin(worker)

    async def _take(self, pod: dict[str, Any]) -> None:
        """A pod that is new here."""
        why = None
        fresh = (pod.get("status") or {}).get("phase", "Pending") == "Pending" and not pod["metadata"].get(
            "deletionTimestamp"
        )
        if fresh and pod["metadata"]["uid"] not in self._left_over:
            why = await self._refusal(pod)
        self._work(pod, self._wanted.binding(pod["metadata"]["uid"]), why)

    def _work(self, pod: dict[str, Any], version: int | None, why: TerminationReason | None) -> None:
        meta = pod["metadata"]
        worker = self._workers[meta["uid"]] = PodWorker(self._context, pod, version, why)
        self._uids[meta["namespace"], meta["name"]] = meta["uid"]
        if why is not None:
            self._recorder.tell(pod, "Warning", why.reason, why.message)
        self._begin(worker)

    def _begin(self, worker: PodWorker) -> None:
        task = self._tasks[worker.uid] = asyncio.create_task(worker.run(), name=f"pod {worker.uid}")
        task.add_done_callback(lambda done: self._done(worker, done))

    def _done(self, worker: PodWorker, task: asyncio.Task[None]) -> None:
        if self._workers.get(worker.uid) is worker:
            del self._workers[worker.uid]
            self._tasks.pop(worker.uid, None)
            self._unsaved.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            named = worker.pod["metadata"]["name"]
            _log.error("A pod is not looked after any more", pod=named, err=f"{type(error).__name__}: {error}")

    async def _refusal(self, pod: dict[str, Any]) -> TerminationReason | None:
        """Why the pod is not taken. Nobody is refused for what the node was: if it is to be so, the server is asked how
        the node is. Else whoever binds and whoever refuses could go on for ever."""
        others = [one.pod for one in self._workers.values() if one.holds_room]
        why = refusal(pod, others, self.facts.allocatable(), self._node)
        if self._node is not None and why is None:
            return None
        node = self._node
        with contextlib.suppress(ControlPlaneError):
            node = await self._plane.get("Node", "", self._settings.name)
        return refusal(pod, others, self.facts.allocatable(), node)

    def _changed(self, uid: str) -> None:
        worker = self._workers.get(uid)
        if worker is not None:
            worker.wake()

    def _give_ports(self, pod: Mapping[str, Any]) -> Ports:
        taken = {real for worker in self._workers.values() for own in worker.ports.values() for real in own.values()}
        return assign_ports(pod, taken, free_port)

    # -- on disk -----------------------------------------------------------------------------------------------------

    async def _save(self) -> None:
        """What is wanted, as it changes; and once it is kept, that it is."""
        while True:
            await self._unsaved.wait()
            await self._clock.sleep(SAVE_S)
            self._unsaved.clear()
            snapshot = self._wanted.held
            complete = snapshot is not None and self._has_all(snapshot)
            try:
                await asyncio.to_thread(save, self._settings.directory / CHECKPOINT, self._known_now())
            except OSError as error:
                _log.error("The pods are not kept on disk", err=str(error))
                await self._clock.sleep(RETRY_S)
                self._unsaved.set()
                continue
            if snapshot is not None and complete and self._told_snapshot:
                self._lease.acknowledge(snapshot.version)

    def _known_now(self) -> Checkpoint:
        workers = [one for uid in self._uids.values() if (one := self._workers.get(uid)) is not None]
        return Checkpoint(
            self._settings.name,
            [one.pod for one in workers],
            {one.uid: one.version for one in workers if one.version is not None},
            self._wanted.held,
            self._settings.cluster,
        )


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _has_ended(pod: Mapping[str, Any]) -> bool:
    """It holds no room, so its snapshot does not have it."""
    return (pod.get("status") or {}).get("phase") in FINISHED


@contextlib.contextmanager
def _only_one(path: Path) -> Any:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise AgentError(f"{path.parent}: another agent runs here") from None
    try:
        yield
    finally:
        os.close(lock)
