"""Makes the volumes of a reserved pod ready on its node: has volumes name their claims, has others provisioned, and
waits until every claim is bound.

Whoever binds claims is the cluster's volume controller; here it is only told what to bind, and watched through the
objects that the engine knows. Each object is read before it is written, and written only in the version that was read:
a volume that was given away meanwhile stays given. What could not be finished is undone as far as nobody built on it:
a volume whose claim did not follow is let go. A claim that is being provisioned is left so, as Kubernetes does: a
volume may be under way, and its provisioner takes the node's name off when it gives up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeVar

from situate.core.changes import PodRef, VolumesBound, VolumesFailed
from situate.core.effects import BindVolumes
from situate.core.model.base import Model
from situate.core.model.csi_migration import MigrationError, handle, in_tree_plugin, is_migrated, migrated_affinity
from situate.core.model.node import Node
from situate.core.model.nodeselector import matches
from situate.core.model.pod import Pod
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from situate.core.plugins.volume_binding import BIND_COMPLETED
from situate.kube.binding import NOT_LEADER, STOPPING
from situate.kube.client import Client
from situate.kube.lanes import Lanes
from situate.kube.pods import READ_S
from situate.kube.problems import ApiError
from situate.wire.errors import InputError
from situate.wire.objects import decode
from situate.wire.patches import MERGE, SELECTED_NODE, bind_volume, release_volume, select_node

IN_FLIGHT: Final = 4
TIMEOUT_S: Final = 600.0
"""How long claims may take to be bound, where no profile says otherwise: bindTimeoutSeconds."""
LOOK_S: Final = 1.0
"""How often the known objects are looked at while nothing is heard of a change."""
REREAD_S: Final = 10.0
"""After how long what we wrote is read from the server; claims that are not seen as we wrote them, again and again."""
WRITE_S: Final = 15.0
TRIES: Final = 4
"""How often one object is read and written, where somebody else is always quicker."""

RUNNING: Final = 'running PreBind plugin "VolumeBinding": '
WAITING: Final = "binding volumes: "
TIMED_OUT: Final = "context deadline exceeded"
RESET: Final = 'ClaimRef got reset for pv "{}"'

_Object = TypeVar("_Object", bound=Model)


class StorageView(Protocol):
    """What is known of the cluster. `storage_version` moves with every change of a volume or claim."""

    @property
    def storage_version(self) -> int: ...

    def pod(self, ref: PodRef) -> Pod | None: ...

    def node(self, name: str) -> Node | None: ...

    def volume(self, name: str) -> PersistentVolume | None: ...

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None: ...

    def csi_node(self, name: str) -> CSINode | None: ...


class VolumeError(Exception):
    """Why the volumes cannot be made ready. One line."""


@dataclass(slots=True, eq=False)
class _Wait:
    """A pod whose volumes are not all ready."""

    ask: BindVolumes
    until: float
    reread_at: float
    set_by_us: list[tuple[str, str]] = field(default_factory=list)
    """(claim's uid, volume) that this attempt put together."""
    annotated: set[str] = field(default_factory=set)
    """Claims that were seen with our annotation: if it is gone again, provisioning failed."""
    named: set[str] = field(default_factory=set)
    """Volumes that were seen to name their claim."""


class Volumes:
    """All pods whose volumes are being made ready."""

    def __init__(
        self,
        client: Client,
        objects: StorageView,
        tell: Callable[[VolumesBound | VolumesFailed], None],
        may_write: Callable[[], bool],
        *,
        timeouts_s: Mapping[str, float] | None = None,
    ) -> None:
        self._client = client
        self._objects = objects
        self._tell = tell
        self._may_write = may_write
        self._timeouts_s = timeouts_s or {}
        self._lanes = Lanes({"volumes": IN_FLIGHT})
        self._waits: dict[str, _Wait] = {}
        """By the pod's uid: those whose requests were made."""
        self._attempts: dict[str, int] = {}
        """By the pod's uid: the attempt that is under way."""
        self._looked_at = -1
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def bind(self, ask: BindVolumes) -> None:
        """Carry out a BindVolumes, by and by."""
        if self._closed or not self._may_write():
            self._tell(_failed(ask, STOPPING if self._closed else NOT_LEADER))
            return
        if self._attempts.get(ask.pod.uid) == ask.attempt:
            return  # it is under way
        self._attempts[ask.pod.uid] = ask.attempt
        self._waits.pop(ask.pod.uid, None)
        self._lanes.put(ask.pod.uid, _Job(partial(self._begin, ask)))

    def look(self) -> None:
        """The engine heard of something: see whether it was what is waited for."""
        if self._waits and self._objects.storage_version != self._looked_at:
            self._look()

    @property
    def busy(self) -> bool:
        """Whether requests are to be made or under way."""
        return self._lanes.busy

    async def drain(self, timeout_s: float) -> bool:
        """Begin nothing more, and wait for requests that are under way. Those who wait for a controller are left."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._lanes.drop_all()
        done = await self._lanes.idle(timeout_s)
        self._lanes.cancel()
        for wait in list(self._waits.values()):
            self._end(wait.ask, _failed(wait.ask, STOPPING))
        return done

    # -- asking for it ---------------------------------------------------------------------------------------------

    async def _begin(self, ask: BindVolumes) -> None:
        clock = asyncio.get_running_loop().time
        pod = self._objects.pod(ask.pod)
        scheduler = pod.spec.scheduler_name if pod is not None else ""
        until = clock() + self._timeouts_s.get(scheduler, TIMEOUT_S)
        wait = _Wait(ask, until, clock() + REREAD_S)
        try:
            for claim_name, volume_name in ask.static:
                claim = self._known_claim(ask.pod.namespace, claim_name)
                if await self._put_together(claim, volume_name):
                    wait.set_by_us.append((claim.metadata.uid, volume_name))
            for claim_name in ask.provision:
                await self._provision(self._known_claim(ask.pod.namespace, claim_name), ask.node)
        except VolumeError as error:
            await self._undo(wait)
            self._end(ask, _failed(ask, str(error)))
            return
        if self._attempts.get(ask.pod.uid) == ask.attempt:
            self._waits[ask.pod.uid] = wait
            self._look()

    def _known_claim(self, namespace: str, name: str) -> PersistentVolumeClaim:
        claim = self._objects.claim(namespace, name)
        if claim is None:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found')
        return claim

    async def _put_together(self, claim: PersistentVolumeClaim, name: str) -> bool:
        """Have a volume name its claim; whether it did not before. Raises VolumeError if it is another's."""
        path, meta, problem = f"/api/v1/persistentvolumes/{name}", claim.metadata, ""
        ref = PodRef(meta.namespace, meta.name, meta.uid)
        for _ in range(TRIES):
            volume = await self._read(PersistentVolume, path, f'persistentvolume "{name}"')
            held = volume.spec.claim_ref
            named = held is not None and (held.namespace, held.name) == (ref.namespace, ref.name)
            if held is not None and (not named or held.uid not in ("", ref.uid)):
                raise VolumeError(f'volume "{name}" already bound to a different claim.')
            if held is not None and held.uid == ref.uid:
                return bool(problem)  # if we asked before, it was us, and the answer was lost
            version = volume.metadata.resource_version
            problem = await self._write(path, bind_volume(version, ref, meta.resource_version, annotate=not named))
            if not problem:
                return True
        raise VolumeError(problem)

    async def _provision(self, known: PersistentVolumeClaim, node: str) -> None:
        """Have a claim's volume made for a node. Raises VolumeError."""
        meta, problem = known.metadata, ""
        path = _claim_path(meta.namespace, meta.name)
        for _ in range(TRIES):
            claim = await self._read(PersistentVolumeClaim, path, f'persistentvolumeclaim "{meta.name}"')
            if claim.metadata.uid != meta.uid:
                raise VolumeError(f'persistentvolumeclaim "{meta.name}" not found')
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected == node or claim.spec.volume_name:
                return  # asked for already, or bound meanwhile: whether that suits is looked at when waiting
            if selected:
                raise VolumeError(f'persistentvolumeclaim "{meta.name}" is being provisioned for node "{selected}"')
            problem = await self._write(path, select_node(meta.uid, claim.metadata.resource_version, node))
            if not problem:
                return
        raise VolumeError(problem)

    async def _read(self, kind: type[_Object], path: str, what: str) -> _Object:
        try:
            return decode(kind, await self._client.request("GET", path, timeout_s=READ_S))
        except ApiError as error:
            raise VolumeError(f"{what} not found" if error.not_found else error.message) from None
        except InputError as error:
            raise VolumeError(f"{what} cannot be read: {error}") from None

    async def _write(self, path: str, patch: bytes) -> str:
        """Patch; what went wrong, if reading and trying again may help. Raises VolumeError if not."""
        if not self._may_write():
            raise VolumeError(NOT_LEADER)
        try:
            await self._client.request("PATCH", path, body=patch, content_type=MERGE, timeout_s=WRITE_S)
        except ApiError as error:
            if not (error.conflict or error.temporary):
                raise VolumeError(error.message) from None
            return error.message
        return ""

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._looked_at = self._objects.storage_version
        now = asyncio.get_running_loop().time()
        for wait in list(self._waits.values()):
            try:
                ready = self._ready(wait)
            except VolumeError as error:
                self._fail_later(wait, f"{WAITING}{error}")
                continue
            if ready:
                self._end(wait.ask, VolumesBound(wait.ask.pod, wait.ask.attempt))
            elif now >= wait.until:
                self._fail_later(wait, WAITING + TIMED_OUT)
            elif now >= wait.reread_at:
                seen = len(wait.annotated) == len(wait.ask.provision)
                wait.reread_at = wait.until if seen else now + REREAD_S
                self._lanes.put(wait.ask.pod.uid, _Job(partial(self._reread, wait)))
        if self._waits and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        if not self._closed:
            self._look()

    def _ready(self, wait: _Wait) -> bool:
        """Whether all claims are bound to volumes that the node reaches. Raises VolumeError if they will not be."""
        ask, objects = wait.ask, self._objects
        node = objects.node(ask.node)
        if node is None:
            raise VolumeError(f'failed to get node "{ask.node}": node "{ask.node}" not found')
        if objects.pod(ask.pod) is None:
            raise VolumeError(f'pod does not exist any more: pod "{ask.pod.name}" not found')
        ready = True
        for claim_name, volume_name in ask.static:
            volume = objects.volume(volume_name)
            if volume is None:
                raise VolumeError(f'failed to check binding: could not find v1.PersistentVolume "{volume_name}"')
            self._check_reach(volume, node)
            if _names_a_claim(volume):
                wait.named.add(volume_name)
            elif volume_name in wait.named:
                raise VolumeError(RESET.format(volume_name))
            ready &= _is_bound(self._seen_claim(ask, claim_name, "failed to check binding"))
        for claim_name in ask.provision:
            ready &= self._is_provisioned(wait, claim_name, node)
        return ready

    def _is_provisioned(self, wait: _Wait, name: str, node: Node) -> bool:
        claim = self._seen_claim(wait.ask, name, "failed to check provisioning pvc")
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected == wait.ask.node:
            wait.annotated.add(name)
        elif selected is not None or name in wait.annotated:
            raise VolumeError(f'provisioning failed for PVC "{name}"')
        if claim.spec.volume_name:
            volume = self._objects.volume(claim.spec.volume_name)
            if volume is None:
                return False  # it may not have been heard of yet
            self._check_reach(volume, node)
        return _is_bound(claim)

    def _seen_claim(self, ask: BindVolumes, name: str, doing: str) -> PersistentVolumeClaim:
        claim = self._objects.claim(ask.pod.namespace, name)
        if claim is None:
            raise VolumeError(f'{doing}: could not find v1.PersistentVolumeClaim "{ask.pod.namespace}/{name}"')
        return claim

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        if not reaches(volume, node, self._objects.csi_node(node.metadata.name)):
            pair = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}"'
            raise VolumeError(f"{pair}: no matching NodeSelectorTerms")

    async def _reread(self, wait: _Wait) -> None:
        """What we wrote may have been taken back before anybody looked."""
        try:
            for name in wait.ask.provision:
                path = _claim_path(wait.ask.pod.namespace, name)
                claim = await self._read(PersistentVolumeClaim, path, f'persistentvolumeclaim "{name}"')
                if SELECTED_NODE not in claim.metadata.annotations:
                    wait.annotated.add(name)
            for _, name in wait.ask.static:
                path = f"/api/v1/persistentvolumes/{name}"
                if not _names_a_claim(await self._read(PersistentVolume, path, f'persistentvolume "{name}"')):
                    self._fail_later(wait, WAITING + RESET.format(name))
                    return
        except VolumeError:
            return  # it is looked at again later, and there is a time limit
        if self._waits.get(wait.ask.pod.uid) is wait:
            self._look()

    # -- the end -----------------------------------------------------------------------------------------------------

    def _fail_later(self, wait: _Wait, problem: str) -> None:
        """Undo first: nobody is to be given a volume that is still being let go."""
        self._waits.pop(wait.ask.pod.uid, None)
        self._lanes.put(wait.ask.pod.uid, _Job(partial(self._fail, wait, problem)))

    async def _fail(self, wait: _Wait, problem: str) -> None:
        await self._undo(wait)
        self._end(wait.ask, _failed(wait.ask, problem))

    async def _undo(self, wait: _Wait) -> None:
        """Let go of the volumes that were put together with claims that did not follow, as far as that goes."""
        for uid, name in wait.set_by_us:
            path = f"/api/v1/persistentvolumes/{name}"
            try:
                for _ in range(TRIES):
                    volume = await self._read(PersistentVolume, path, name)
                    held = volume.spec.claim_ref
                    if held is None or held.uid != uid or volume.status.phase == "Bound":
                        break
                    claim_path = _claim_path(held.namespace, held.name)
                    claim = await self._read(PersistentVolumeClaim, claim_path, held.name)
                    if claim.spec.volume_name:
                        break
                    if not await self._write(path, release_volume(volume.metadata.resource_version)):
                        break
            except VolumeError:
                continue  # the volume controller takes a volume back whose claim is gone

    def _end(self, ask: BindVolumes, answer: VolumesBound | VolumesFailed) -> None:
        """Answer, if nothing newer was asked for since."""
        if self._attempts.get(ask.pod.uid) == ask.attempt:
            del self._attempts[ask.pod.uid]
            self._waits.pop(ask.pod.uid, None)
            self._tell(answer)


def reaches(volume: PersistentVolume, node: Node, csi_node: CSINode | None) -> bool:
    """Whether a volume can be reached from a node. Raises VolumeError for one that cannot be read."""
    affinity, plugin = volume.spec.node_affinity, in_tree_plugin(volume.spec)
    if plugin is not None and plugin.driver and is_migrated(plugin, csi_node):
        try:
            handle(volume.spec, volume.metadata.labels)
        except MigrationError as error:
            raise VolumeError(f"failed to translate pv to csi: {error}") from None
        affinity = migrated_affinity(volume, plugin)
    return affinity is None or affinity.required is None or matches(affinity.required, node.metadata.labels, "")


def _names_a_claim(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is not None and bool(volume.spec.claim_ref.uid)


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _claim_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"


def _failed(ask: BindVolumes, problem: str) -> VolumesFailed:
    return VolumesFailed(ask.pod, ask.attempt, RUNNING + problem)


@dataclass(slots=True, eq=False)
class _Job:
    does: Callable[[], Awaitable[None]]
    kind: str = "volumes"

    async def run(self) -> None:
        await self.does()
