"""The pods of this node: watches them and the node's snapshot, and has one worker for each pod.

The snapshot says which pods are to run here, in versions that never go back. A checkpoint on disk holds the last
version, so the agent can go on without the control plane. A pod that is in the snapshot gets a worker; a pod that is
gone, or that nobody knows, is stopped and deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from situate.agent.admission import UNEXPECTED, rejection
from situate.agent.checkpoint import Checkpoint, CheckpointError, load, save
from situate.agent.clock import Clock
from situate.agent.control_plane import ControlPlane, ControlPlaneError, NotServedError, PodUpdate
from situate.agent.desired_state import DesiredState, Snapshot, decode_snapshot
from situate.agent.lease import NodeLease
from situate.agent.node_status import NodeStatusManager
from situate.agent.pod_status import TerminationReason
from situate.agent.ports import Ports, assign_ports, first_port_of, free_port
from situate.agent.runtime import Runtime
from situate.agent.settings import NodeSettings
from situate.agent.worker import FINISHED, LONGEST_PROBLEM, PodWorker, WorkerContext
from situate.loop.logs import Log

CHECKPOINT: Final = "pods.last"
RETRY_S: Final = 1.0
SAVE_S: Final = 0.1
"""The agent saves the changes of this time together, and then acknowledges them."""

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""

_log = Log(__name__)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def load_checkpoint(settings: NodeSettings) -> Checkpoint:
    """The checkpoint on disk, or an empty one."""
    empty = Checkpoint(settings.name, ())
    try:
        found = load(settings.directory / CHECKPOINT, settings.name)
    except CheckpointError as error:
        _log.error("Cannot use the checkpoint", err=str(error))
        return empty
    if found is not None and found.cluster != settings.cluster:
        _log.warning("The checkpoint belongs to another cluster", node=settings.name)
        return empty
    return found or empty


class PodManager:
    def __init__(
        self,
        control_plane: ControlPlane,
        settings: NodeSettings,
        checkpoint: Checkpoint,
        clock: Clock,
        lease: NodeLease,
        status: NodeStatusManager,
        runtime: Runtime,
    ) -> None:
        self.workers: dict[str, PodWorker] = {}
        """By the pod's uid."""
        self.desired = DesiredState(checkpoint.snapshot)
        self.is_current = lease.unbroken
        """False after a time in which another node may have been given the pods. Then the agent starts no pod before
        it has listed all of them again."""
        self._control_plane = control_plane
        self._settings = settings
        self._checkpoint = checkpoint
        self._clock = clock
        self._lease = lease
        self._status = status
        self._runtime = runtime
        self._uids: dict[Key, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listed: dict[Key, str] = {}
        """The uids seen since the last relist."""
        self._revisions: dict[Key, int] = {}
        """The revision of the last change of each pod since the last relist, deletions included."""
        self._announced: dict[str, dict[str, Any]] = {}
        """Pods that were seen and are not in the snapshot yet."""
        self._orphans: list[str] = []
        """Pods that the runtime still knows and that have no worker."""
        self._unsaved = asyncio.Event()
        self._has_snapshots = True
        """The server serves NodeSnapshots."""
        self._seen_snapshot = False
        """The checkpoint may be older than what was acknowledged, so the agent reads the first snapshot whole."""
        self._watch: asyncio.Task[None] | None = None

    # -- life cycle --------------------------------------------------------------------------------------------------

    def restore(self, context: WorkerContext) -> None:
        """Start workers for the pods of the checkpoint.

        The checkpoint may be older than the last agent here. If the runtime has nothing of a pod, the control plane
        may have moved it since, so it waits until the pod is seen.
        """
        self._context = context
        checkpoint = self._checkpoint
        self._orphans = list(self._runtime.adopt())
        for pod in checkpoint.pods:
            uid = pod["metadata"]["uid"]
            if not self._settings.fenced or uid in self._orphans:
                with _only_this_pod(pod):
                    self._add_worker(pod, checkpoint.versions.get(uid), None)
        if checkpoint.pods:
            _log.info("Restored the checkpoint", pods=len(checkpoint.pods), version=self.desired.version)

    async def close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def wake(self, uid: str) -> None:
        worker = self.workers.get(uid)
        if worker is not None:
            worker.wake()

    def wake_all(self) -> None:
        for worker in self.workers.values():
            worker.wake()

    def relist(self) -> None:
        """List all pods again."""
        if self._watch is not None:
            self._watch.cancel()

    def running_containers(self) -> list[tuple[str, str]]:
        """(pod uid, name)."""
        return [
            (uid, name)
            for uid in self.workers
            for name, runs in self._runtime.runs(uid).items()
            if runs and not runs[-1].is_over
        ]

    def assign_ports(self, pod: Mapping[str, Any]) -> Ports:
        taken = {real for worker in self.workers.values() for own in worker.ports.values() for real in own.values()}
        lowest = first_port_of(self._settings.security.user)
        return assign_ports(pod, taken, lambda number: free_port(number, lowest))

    # -- the snapshot ------------------------------------------------------------------------------------------------

    async def watch_snapshots(self) -> None:
        await self._status.registered.wait()
        while True:
            try:
                since = self.desired.version if self._seen_snapshot else 0
                async for update in self._control_plane.watch_snapshots(self._settings.name, since):
                    if update.body is not None:
                        await self._apply(decode_snapshot(update.body))
            except NotServedError:
                _log.info("The server has no NodeSnapshots: pods start as soon as they are seen")
                self._has_snapshots = False
                await self._start_announced()
                return
            except (ControlPlaneError, msgspec.DecodeError) as error:
                _log.warning("Cannot watch the snapshot; retrying", err=str(error))
            await self._clock.sleep(RETRY_S)

    async def _apply(self, snapshot: Snapshot) -> None:
        known = self.desired.version
        age = self.desired.update(snapshot)
        self._seen_snapshot = self._seen_snapshot or age != "older"
        match age:
            case "older":
                _log.warning("Ignored a snapshot that is older than the known one", known=known, got=snapshot.version)
            case "same":
                self._unsaved.set()
            case "newer":
                self._lease.configure(snapshot.configuration)
                for uid, version in snapshot.bindings.items():
                    if uid in self.workers:
                        self.workers[uid].version = version
                await self._start_announced()
                self._unsaved.set()

    async def _start_announced(self) -> None:
        for uid in [uid for uid in self._announced if not self._has_snapshots or self.desired.binding(uid) is not None]:
            pod = self._announced.pop(uid, None)
            if pod is not None:
                with _only_this_pod(pod):
                    await self._admit(pod)

    # -- pods --------------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        await self._status.registered.wait()
        while True:
            watch = self._watch = asyncio.create_task(self._list_and_watch())
            try:
                await asyncio.wait([watch])
            finally:
                watch.cancel()
            if not watch.cancelled():
                watch.result()
                await self._clock.sleep(RETRY_S)

    async def _list_and_watch(self) -> None:
        self._listed.clear()
        self._revisions.clear()
        try:
            async for update in self._control_plane.watch_pods(self._settings.name):
                await self._handle(update)
        except ControlPlaneError as error:
            _log.warning("Cannot watch the pods; retrying", err=str(error))

    async def _handle(self, update: PodUpdate) -> None:
        if update.listed:
            self._finish_list()
            return
        key = (update.namespace, update.name)
        if update.version < self._revisions.get(key, 0):
            return  # late or repeated
        self._revisions[key] = update.version
        if update.body is None:
            self._pod_gone(key)
        else:
            pod = _decode(update.body)
            with _only_this_pod(pod):
                await self._seen(key, pod)
        self._unsaved.set()

    async def _seen(self, key: Key, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        if self._uids.get(key, uid) != uid:
            self._pod_gone(key)
        self._listed[key] = uid
        if uid in self.workers:
            self._update_worker(self.workers[uid], pod)
        elif not self._has_snapshots or self.desired.binding(uid) is not None or _is_finished(pod):
            await self._admit(pod)
        else:
            self._announced[uid] = pod
            self._uids[key] = uid

    def _update_worker(self, worker: PodWorker, pod: dict[str, Any]) -> None:
        """Ignore versions that are older than the known one."""
        known, got = (one["metadata"].get("resourceVersion", "") for one in (worker.pod, pod))
        if known.isdigit() and got.isdigit() and int(got) < int(known):
            _log.warning("Ignored an old version of a pod", pod=pod["metadata"]["name"], known=known, got=got)
            return
        worker.update(pod)

    def _finish_list(self) -> None:
        """The list is complete: a pod that was not in it does not exist."""
        for key in [key for key, uid in self._uids.items() if self._listed.get(key) != uid]:
            self._pod_gone(key)
        for uid in self._orphans:
            if uid not in self.workers and uid not in self._announced:
                self._stop_orphan(uid)
        self._orphans = [uid for uid in self._orphans if uid in self._announced]
        if not self._lease.is_closed():
            self.is_current = True
            self.wake_all()
        self._unsaved.set()

    def _pod_gone(self, key: Key) -> None:
        uid = self._uids.pop(key, None)
        self._listed.pop(key, None)
        if uid is not None:
            self._announced.pop(uid, None)
            if uid in self.workers:
                self.workers[uid].pod_gone()
            elif uid in self._orphans:
                self._orphans.remove(uid)
                self._stop_orphan(uid)

    def _stop_orphan(self, uid: str) -> None:
        """Stop what the runtime still has of a pod that does not exist."""
        _log.info("Stopping the containers of a pod that is gone", uid=uid)
        containers = [{"name": name} for name in self._runtime.runs(uid)]
        meta = {"uid": uid, "name": "unknown", "namespace": "unknown"}
        pod = {"metadata": meta, "spec": {"containers": containers, "nodeName": ""}}
        worker = self.workers[uid] = PodWorker(self._context, pod, None, None)
        worker.pod_gone()
        self._start(worker)

    async def _admit(self, pod: dict[str, Any]) -> None:
        """Start a worker for a pod that is new here, after checking that the node may run it."""
        rejected = None
        meta = pod["metadata"]
        pending = (pod.get("status") or {}).get("phase", "Pending") == "Pending" and not meta.get("deletionTimestamp")
        if pending and meta["uid"] not in self._orphans:
            rejected = await self._rejection(pod)
        self._add_worker(pod, self.desired.binding(meta["uid"]), rejected)

    async def _rejection(self, pod: dict[str, Any]) -> TerminationReason | None:
        """Why the node does not run the pod. Before it rejects one, the agent reads the Node again: with an old
        version of it, the scheduler could bind pods and the agent reject them for ever."""
        others = [one.pod for one in self.workers.values() if one.holds_resources]
        node = self._status.node
        if node is not None and self._judged(pod, others, node) is None:
            return None
        with contextlib.suppress(ControlPlaneError):
            node = await self._control_plane.get("Node", "", self._settings.name)
        return self._judged(pod, others, node)

    def _judged(self, pod: dict[str, Any], others: list[dict[str, Any]], node: Any) -> TerminationReason | None:
        """If the check itself fails, the agent rejects the pod, as the kubelet does."""
        try:
            return rejection(pod, others, self._context.allocatable, node)
        except Exception as error:  # noqa: BLE001 - of one pod
            text = f"Pod was rejected: {type(error).__name__}: {error}"[:LONGEST_PROBLEM]
            return TerminationReason(UNEXPECTED, text)

    def _add_worker(self, pod: dict[str, Any], version: int | None, rejected: TerminationReason | None) -> None:
        meta = pod["metadata"]
        worker = self.workers[meta["uid"]] = PodWorker(self._context, pod, version, rejected)
        self._uids[meta["namespace"], meta["name"]] = meta["uid"]
        if rejected is not None:
            self._context.recorder.record(pod, "Warning", rejected.reason, rejected.message)
        self._start(worker)

    def _start(self, worker: PodWorker) -> None:
        task = self._tasks[worker.uid] = asyncio.create_task(worker.run(), name=f"pod {worker.uid}")
        task.add_done_callback(lambda done: self._worker_done(worker, done))

    def _worker_done(self, worker: PodWorker, task: asyncio.Task[None]) -> None:
        if self.workers.get(worker.uid) is worker:
            del self.workers[worker.uid]
            self._tasks.pop(worker.uid, None)
            self._unsaved.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            name = worker.pod["metadata"]["name"]
            _log.error("A pod worker failed; starting it again", pod=name, err=f"{type(error).__name__}: {error}")
            asyncio.get_running_loop().call_later(RETRY_S, self._restart, worker)

    def _restart(self, failed: PodWorker) -> None:
        meta = failed.pod["metadata"]
        known = self._uids.get((meta["namespace"], meta["name"])) == failed.uid
        if known and failed.uid not in self.workers:
            with _only_this_pod(failed.pod):
                self._add_worker(failed.pod, failed.version, failed.rejected)

    # -- the checkpoint ----------------------------------------------------------------------------------------------

    async def save(self) -> None:
        """Save the checkpoint after every change, then acknowledge the snapshot in it."""
        while True:
            await self._unsaved.wait()
            await self._clock.sleep(SAVE_S)
            self._unsaved.clear()
            snapshot, current = self.desired.held, self.is_current
            complete = snapshot is not None and all(uid in self.workers for uid in snapshot.bindings)
            try:
                await asyncio.to_thread(save, self._settings.directory / CHECKPOINT, self._new_checkpoint())
            except OSError as error:
                _log.error("Cannot save the checkpoint", err=str(error))
                await self._clock.sleep(RETRY_S)
                self._unsaved.set()
                continue
            if current and self.is_current:
                self._lease.pods_saved()
            if snapshot is not None and complete and self._seen_snapshot:
                self._lease.acknowledge(snapshot.version)

    def _new_checkpoint(self) -> Checkpoint:
        workers = [one for uid in self._uids.values() if (one := self.workers.get(uid)) is not None]
        return Checkpoint(
            self._settings.name,
            [one.pod for one in workers],
            {one.uid: one.version for one in workers if one.version is not None},
            self.desired.held,
            self._settings.cluster,
        )


@contextlib.contextmanager
def _only_this_pod(pod: Mapping[str, Any]) -> Iterator[None]:
    """An unexpected error about one pod is logged, and the other pods go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - of one pod
        name = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}"
        _log.error("Cannot handle a pod", pod=name, err=f"{type(error).__name__}: {error}")


def _is_finished(pod: Mapping[str, Any]) -> bool:
    """A finished pod uses no resources, so its node's snapshot does not have it."""
    return (pod.get("status") or {}).get("phase") in FINISHED
