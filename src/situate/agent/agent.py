"""The agent of a node that is this machine: registers it, keeps its lease, and has the pods bound to it run here.

What is wanted comes from the control plane, and is kept on disk: when that is away, the agent goes on from there. What
runs is asked of the runtime. Where the two differ, the second is made to follow the first: what is missing is begun,
what nobody wants is ended, and what is left of it deleted. Places nothing, and asks no scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiohttp
import msgspec

from situate.agent import host
from situate.agent.admission import refusal
from situate.agent.checkpoint import Checkpoint, CheckpointError, load, save
from situate.agent.life import Backoff
from situate.agent.machine import RENEW_S
from situate.agent.plane import Plane, PlaneError, PodRead
from situate.agent.ports import Ports, assigned, is_free
from situate.agent.runtime import Runtime
from situate.agent.statuses import Ended
from situate.agent.telling import Teller
from situate.agent.worker import Means, PodWorker
from situate.loop.logs import Log

__all__ = ["AgentError", "NodeAgent", "NodeSettings"]

CHECKPOINT: Final = "pods.last"
LOCK: Final = "agent.lock"
RENEWED: Final = "lease.renewed"
"""A file whose time is that of the last renewal."""
RETRY_S: Final = 1.0
LOOK_S: Final = 10.0
"""How often the machine is looked at."""
STATUS_S: Final = 300.0
"""How often a node says how it is, when nothing has changed: its lease says that it lives."""
SAVE_S: Final = 0.5
"""Changes of the pods within this time are kept on disk together."""
SHUT_DOWN_S: Final = 5.0
"""How long containers may take to end, when the machine is to stop running any."""
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
    backoff: Backoff = field(default_factory=Backoff)
    renew_s: float = RENEW_S
    ends_pods: bool = False
    """When the agent is told to stop, its pods stop with it. One that is killed leaves them in any case."""
    fence_s: float | None = None
    """After so long without its lease renewed, it ends its pods: somebody may run them elsewhere. None: never."""


class NodeAgent:
    """`run` it until cancelled. What it began goes on, unless its settings say otherwise."""

    def __init__(
        self, plane: Plane, settings: NodeSettings, runtime: Callable[[Callable[[str], None]], Runtime]
    ) -> None:
        settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ready = asyncio.Event()
        """The node is registered."""
        self.runtime = runtime(self._changed)
        self.facts = host.facts(settings.directory)
        self._plane = plane
        self._settings = settings
        self._teller = Teller(plane, settings.name)
        self._workers: dict[str, PodWorker] = {}
        self._uids: dict[Key, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listed = False
        self._heard: dict[Key, str] = {}
        self._unsaved = asyncio.Event()
        self._status: dict[str, Any] = {}
        self._renewed = time.monotonic() - self._since_renewal()
        self._ending = False
        self._left_over: list[str] = []

    # -- its life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Raises AgentError."""
        with _only_one(self._settings.directory / LOCK):
            async with aiohttp.ClientSession() as http:
                self._means = self._made_means(http)
                try:
                    self._come_back()
                    async with asyncio.TaskGroup() as group:
                        for work in (self._register, self._renew, self._hear, self._save, self._teller.run):
                            group.create_task(work())
                finally:
                    if self._settings.ends_pods:
                        await self._shut_down()
                    for task in list(self._tasks.values()):
                        task.cancel()
                    await asyncio.gather(*self._tasks.values(), return_exceptions=True)
                    self.runtime.close()

    async def _shut_down(self) -> None:
        """End all containers, as a machine that is switched off would."""
        self._ending = True
        for worker in self._workers.values():
            worker.wake()
        deadline = time.monotonic() + SHUT_DOWN_S
        while (running := self._running()) and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
        for uid, container in running:
            self.runtime.kill(uid, container)
        deadline = time.monotonic() + SHUT_DOWN_S
        while self._running() and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)

    def _running(self) -> list[tuple[str, str]]:
        return [
            (uid, name)
            for uid in self._workers
            for name, runs in self.runtime.runs(uid).items()
            if runs and not runs[-1].is_over
        ]

    def _made_means(self, http: aiohttp.ClientSession) -> Means:
        return Means(
            runtime=self.runtime,
            plane=self._plane,
            http=http,
            teller=self._teller,
            host_ip=self.facts.address,
            allocatable=self.facts.allocatable(),
            backoff=self._settings.backoff,
            give_ports=self._give_ports,
            fenced=self._is_fenced,
        )

    def _come_back(self) -> None:
        """What was wanted when an agent last ran here, and what is left of it."""
        try:
            held = load(self._settings.directory / CHECKPOINT, self._settings.name)
        except CheckpointError as error:
            _log.error("The last known pods cannot be used", err=str(error))
            held = None
        self._left_over = list(self.runtime.adopt())
        for pod in held.pods if held is not None else ():
            version = held.versions.get(pod["metadata"]["uid"]) if held is not None else None
            self._work(pod, version, None)
        if held is not None and held.pods:
            _log.info("Going on from what was last known", pods=len(held.pods))

    # -- the node ----------------------------------------------------------------------------------------------------

    async def _register(self) -> None:
        """Then again whenever something has changed, or has not for a while."""
        said_at, short = float("-inf"), None
        while True:
            now = host.pressure(self._settings.directory)
            if now != short or time.monotonic() - said_at > STATUS_S:
                body = host.body_of(
                    self._settings.name, self.facts, now, time.time_ns(), self._settings.labels, self._status
                )
                await self._until_done("register", partial(self._plane.register, body))
                self._status, short, said_at = body["status"], now, time.monotonic()
                self.ready.set()
            await asyncio.sleep(LOOK_S)

    async def _renew(self) -> None:
        await self.ready.wait()
        while True:
            try:
                await self._plane.renew(self._settings.name)
                was_fenced, self._renewed = self._is_fenced(), time.monotonic()
                self._note_renewal()
                if was_fenced:
                    self._fence_changed("The lease is renewed: pods run again")
            except PlaneError as error:
                _log.warning("The lease is not renewed", node=self._settings.name, err=str(error))
            await self._rest()

    async def _rest(self) -> None:
        """Until the lease is to be renewed; or until it is too late, of which all pods are told."""
        end = time.monotonic() + self._settings.renew_s
        fence = self._settings.fence_s
        if fence is not None and time.monotonic() < self._renewed + fence <= end:
            await asyncio.sleep(self._renewed + fence - time.monotonic())
            self._fence_changed("The lease could not be renewed for too long: all pods here are ended")
        await asyncio.sleep(max(0.0, end - time.monotonic()))

    def _note_renewal(self) -> None:
        """Where fences count: the next agent here has no more time than this one had."""
        if self._settings.fence_s is not None:
            (self._settings.directory / RENEWED).touch()

    def _since_renewal(self) -> float:
        if self._settings.fence_s is None:
            return 0.0
        try:
            return max(0.0, time.time() - (self._settings.directory / RENEWED).stat().st_mtime)
        except FileNotFoundError:
            return 0.0

    def _is_fenced(self) -> bool:
        fence = self._settings.fence_s
        return self._ending or (fence is not None and time.monotonic() - self._renewed >= fence)

    def _fence_changed(self, text: str) -> None:
        _log.warning(text, node=self._settings.name, pods=len(self._workers))
        for worker in self._workers.values():
            worker.wake()

    async def _until_done(self, what: str, call: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await call()
            except PlaneError as error:
                _log.warning("The node waits for the control plane", to=what, err=str(error))
                await asyncio.sleep(RETRY_S)

    # -- pods --------------------------------------------------------------------------------------------------------

    async def _hear(self) -> None:
        await self.ready.wait()
        while True:
            self._heard.clear()
            self._listed = False
            try:
                async for read in self._plane.pods(self._settings.name):
                    await self._told(read)
            except PlaneError as error:
                _log.warning("Pods are not seen; trying again", err=str(error))
            await asyncio.sleep(RETRY_S)

    async def _told(self, read: PodRead) -> None:
        if read.listed:
            self._all_listed()
            return
        key = (read.namespace, read.name)
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
            else:
                await self._take(pod)
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
        self._listed = True
        for key in [key for key, uid in self._uids.items() if self._heard.get(key) != uid]:
            self._vanished(key)
        for uid in self._left_over:
            if uid not in self._workers:
                self._end_orphan(uid)
        self._left_over.clear()

    def _vanished(self, key: Key) -> None:
        uid = self._uids.pop(key, None)
        self._heard.pop(key, None)
        if uid is not None and uid in self._workers:
            self._workers[uid].gone()

    def _end_orphan(self, uid: str) -> None:
        """What is left of a pod that nobody knows."""
        _log.info("Ending what is left of a pod that is gone", uid=uid)
        pod = {"metadata": {"uid": uid, "name": "unknown", "namespace": "unknown"}, "spec": {"containers": []}}
        pod["spec"] = {"containers": [{"name": name} for name in self.runtime.runs(uid)], "nodeName": ""}
        worker = self._workers[uid] = PodWorker(self._means, pod, None, None)
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
        self._work(pod, await self._version(pod["metadata"]["uid"]), why)

    def _work(self, pod: dict[str, Any], version: int | None, why: Ended | None) -> None:
        meta = pod["metadata"]
        worker = self._workers[meta["uid"]] = PodWorker(self._means, pod, version, why)
        self._uids[meta["namespace"], meta["name"]] = meta["uid"]
        if why is not None:
            self._teller.tell(pod, "Warning", why.reason, why.message)
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

    async def _refusal(self, pod: dict[str, Any]) -> Ended | None:
        others = [one.pod for one in self._workers.values() if one.holds_room]
        try:
            node = await self._plane.read("Node", "", self._settings.name)
        except PlaneError:
            node = None
        return refusal(pod, others, self.facts.allocatable(), node)

    async def _version(self, uid: str) -> int | None:
        """Which binding of the pod this is, if the server counts them."""
        try:
            found = await self._plane.read("NodeSnapshot", "", self._settings.name)
        except PlaneError as error:
            _log.v(2).info("The binding's version is not known", err=str(error))
            return None
        pods = (found or {}).get("spec", {}).get("pods", ())
        return next((one.get("bindingVersion") for one in pods if one.get("uid") == uid), None)

    def _changed(self, uid: str) -> None:
        worker = self._workers.get(uid)
        if worker is not None:
            worker.wake()

    def _give_ports(self, pod: Mapping[str, Any]) -> Ports:
        taken = {real for worker in self._workers.values() for own in worker.ports.values() for real in own.values()}
        return assigned(pod, taken, is_free)

    # -- on disk -----------------------------------------------------------------------------------------------------

    async def _save(self) -> None:
        while True:
            await self._unsaved.wait()
            await asyncio.sleep(SAVE_S)
            self._unsaved.clear()
            workers = [one for uid in self._uids.values() if (one := self._workers.get(uid)) is not None]
            versions = {one.uid: one.version for one in workers if one.version is not None}
            held = Checkpoint(self._settings.name, [one.pod for one in workers], versions)
            try:
                await asyncio.to_thread(save, self._settings.directory / CHECKPOINT, held)
            except OSError as error:
                _log.error("The pods are not kept on disk", err=str(error))


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
