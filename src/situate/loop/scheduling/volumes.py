"""Makes the volumes of a reserved pod ready on its node: reserves volumes for their claims, has others provisioned, and
waits until every claim is bound.

In a cluster, the volume controller binds claims; here it is told what to bind, and watched through the objects that the
engine knows. A port without such a controller binds them itself. Each object is read before it is written, and written
only in the version that was read, so a volume that was given away meanwhile stays given. What cannot be finished is
undone unless others have built on it: a volume whose claim did not follow is released. A claim that is being
provisioned is left so, as Kubernetes does: a volume may be on its way, and the provisioner removes the node's name when
it gives up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from situate.core.changes import VolumesBound, VolumesFailed
from situate.core.effects import BindVolumes
from situate.core.model.csi_migration import MigrationError, handle, in_tree_plugin, is_migrated, migrated_affinity
from situate.core.model.node import Node
from situate.core.model.nodeselector import matches
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from situate.core.plugins.volume_binding import BIND_COMPLETED
from situate.loop.scheduling.port import (
    NOT_LEADER,
    BindClaim,
    ReleaseVolume,
    ReserveVolume,
    SchedulingPort,
    SelectNode,
    VolumeError,
    VolumeWrite,
)
from situate.loop.scheduling.pre_bind import PreBindAttempts
from situate.loop.scheduling.view import EngineView
from situate.wire.patches import SELECTED_NODE

REREAD_S: Final = 10.0
"""After how long to read what we wrote; claims that are not seen as we wrote them are read again and again."""
TRIES: Final = 4
"""How often to read and write one object, where somebody else is always quicker."""

RUNNING_PREBIND: Final = 'running PreBind plugin "VolumeBinding": '
WAITING: Final = "binding volumes: "
TIMED_OUT: Final = "context deadline exceeded"
NO_CLAIM: Final = 'persistentvolumeclaim "{}" not found'
NO_VOLUME: Final = 'persistentvolume "{}" not found'
TAKEN: Final = 'volume "{}" already bound to a different claim.'
ELSEWHERE: Final = 'persistentvolumeclaim "{}" is being provisioned for node "{}"'
RESET: Final = 'ClaimRef got reset for pv "{}"'


@dataclass(slots=True, eq=False)
class _Wait:
    """A pod whose volumes are not all ready."""

    effect: BindVolumes
    until: float
    reread_at: float
    reserved: list[tuple[PersistentVolumeClaim, str]] = field(default_factory=list)
    """The claims and volumes that this attempt put together."""
    annotated: set[str] = field(default_factory=set)
    """Claims that were seen with our annotation: if it is gone again, provisioning failed."""
    named: set[str] = field(default_factory=set)
    """Volumes that were seen with their claimRef."""


class VolumeBinder:
    """All pods whose volumes are being made ready."""

    def __init__(
        self,
        port: SchedulingPort,
        objects: EngineView,
        answer: Callable[[VolumesBound | VolumesFailed], None],
        may_write: Callable[[], bool],
        timeouts_s: Mapping[str, float] | None = None,
    ) -> None:
        """`timeouts_s`: by the name of the pod's scheduler."""
        self._port = port
        self._objects = objects
        self._answer = answer
        self._may_write = may_write
        self._attempts: PreBindAttempts[BindVolumes, _Wait] = PreBindAttempts(
            "volumes",
            port.limits.volumes,
            objects,
            may_write,
            version=lambda: objects.storage_version,
            look_at=self._look_at,
            end=self._end,
            timeouts_s=timeouts_s,
        )
        self.look = self._attempts.look
        self.drain = self._attempts.drain

    @property
    def busy(self) -> bool:
        """Whether reads or writes wait or run. Claims that are waited for do not count."""
        return self._attempts.busy

    def bind(self, effect: BindVolumes) -> None:
        """Begin a BindVolumes. Returns at once."""
        if refusal := self._attempts.refusal:
            self._answer(_failed(effect, refusal))
        elif self._attempts.begin(effect):
            self._attempts.stop_waiting(effect.pod.uid)
            self._put(effect, partial(self._begin, effect))

    def _put(self, effect: BindVolumes, run: Callable[[], Awaitable[None]]) -> None:
        self._attempts.put(effect.pod, run, partial(self._end, effect))

    # -- reserving and provisioning ----------------------------------------------------------------------------------

    async def _begin(self, effect: BindVolumes) -> None:
        now = asyncio.get_running_loop().time()
        wait = _Wait(effect, now + self._attempts.timeout_s(effect.pod), now + REREAD_S)
        try:
            for claim_name, volume_name in effect.static:
                claim = self._known_claim(effect.pod.namespace, claim_name)
                if await self._reserve(claim, volume_name):
                    wait.reserved.append((claim, volume_name))
                await self._bind_claim(claim, volume_name)
            for claim_name in effect.provision:
                await self._provision(self._known_claim(effect.pod.namespace, claim_name), effect.node)
        except VolumeError as error:
            await self._undo(wait)
            self._end(effect, str(error))
            return
        if self._attempts.is_current(effect):
            self._attempts.wait(effect, wait)

    def _known_claim(self, namespace: str, name: str) -> PersistentVolumeClaim:
        claim = self._objects.claim(namespace, name)
        if claim is None:
            raise VolumeError(NO_CLAIM.format(name))
        return claim

    async def _reserve(self, claim: PersistentVolumeClaim, name: str) -> bool:
        """Have a volume name its claim; whether this did it. Raises VolumeError if the volume is another claim's."""
        meta, problem = claim.metadata, ""
        for _ in range(TRIES):
            volume = await self._read_volume(name)
            ref = volume.spec.claim_ref
            if ref is not None:
                if (ref.namespace, ref.name) != (meta.namespace, meta.name) or ref.uid not in ("", meta.uid):
                    raise VolumeError(TAKEN.format(name))
                if ref.uid:
                    return bool(problem)  # after a failed write, it was this one: its answer was lost
            problem = await self._write(ReserveVolume(volume, claim))
            if not problem:
                return True
        raise VolumeError(problem)

    async def _bind_claim(self, claim: PersistentVolumeClaim, volume: str) -> None:
        """Have a claim name the volume that is reserved for it. Raises VolumeError."""
        problem = ""
        for _ in range(TRIES):
            problem = await self._write(BindClaim(claim, volume))
            if not problem:
                return
        raise VolumeError(problem)

    async def _provision(self, known: PersistentVolumeClaim, node: str) -> None:
        """Have a claim's volume provisioned for a node. Raises VolumeError."""
        meta, problem = known.metadata, ""
        for _ in range(TRIES):
            claim = await self._port.read_claim(meta.namespace, meta.name)
            if claim is None or claim.metadata.uid != meta.uid:
                raise VolumeError(NO_CLAIM.format(meta.name))
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected == node or claim.spec.volume_name:
                return  # asked for before, or bound meanwhile: `_ready` sees whether that suits
            if selected:
                raise VolumeError(ELSEWHERE.format(meta.name, selected))
            problem = await self._write(SelectNode(claim, node))
            if not problem:
                return
        raise VolumeError(problem)

    async def _read_volume(self, name: str) -> PersistentVolume:
        volume = await self._port.read_volume(name)
        if volume is None:
            raise VolumeError(NO_VOLUME.format(name))
        return volume

    async def _write(self, write: VolumeWrite) -> str:
        """What went wrong, if reading and writing again may help. Raises VolumeError if not."""
        if not self._may_write():
            raise VolumeError(NOT_LEADER)
        outcome = await self._port.write_volume(write)
        if outcome.problem and not outcome.retry:
            raise VolumeError(outcome.problem)
        return outcome.problem

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _look_at(self, wait: _Wait) -> None:
        now = asyncio.get_running_loop().time()
        try:
            ready = self._ready(wait)
        except VolumeError as error:
            self._fail(wait, str(error))
            return
        if ready:
            self._end(wait.effect)
        elif now >= wait.until:
            self._fail(wait, TIMED_OUT)
        elif now >= wait.reread_at:
            seen = len(wait.annotated) == len(wait.effect.provision)
            wait.reread_at = wait.until if seen else now + REREAD_S
            self._put(wait.effect, partial(self._reread, wait))

    def _ready(self, wait: _Wait) -> bool:
        """Whether all claims are bound to volumes that the node reaches. Raises VolumeError if they will not be."""
        effect, objects = wait.effect, self._objects
        node = objects.node(effect.node)
        if node is None:
            raise VolumeError(f'failed to get node "{effect.node}": node "{effect.node}" not found')
        if objects.pod(effect.pod) is None:
            raise VolumeError(f'pod does not exist any more: pod "{effect.pod.name}" not found')
        ready = True
        for claim_name, volume_name in effect.static:
            volume = objects.volume(volume_name)
            if volume is None:
                raise VolumeError(f'failed to check binding: could not find v1.PersistentVolume "{volume_name}"')
            self._check_reach(volume, node)
            if _names_claim(volume):
                wait.named.add(volume_name)
            elif volume_name in wait.named:
                raise VolumeError(RESET.format(volume_name))
            ready &= _is_bound(self._seen_claim(effect, claim_name, "failed to check binding"))
        for claim_name in effect.provision:
            ready &= self._is_provisioned(wait, claim_name, node)
        return ready

    def _is_provisioned(self, wait: _Wait, name: str, node: Node) -> bool:
        claim = self._seen_claim(wait.effect, name, "failed to check provisioning pvc")
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected == wait.effect.node:
            wait.annotated.add(name)
        elif selected is not None or name in wait.annotated:
            raise VolumeError(f'provisioning failed for PVC "{name}"')
        if claim.spec.volume_name:
            volume = self._objects.volume(claim.spec.volume_name)
            if volume is None:
                return False  # the engine may not have heard of it yet
            self._check_reach(volume, node)
        return _is_bound(claim)

    def _seen_claim(self, effect: BindVolumes, name: str, doing: str) -> PersistentVolumeClaim:
        claim = self._objects.claim(effect.pod.namespace, name)
        if claim is None:
            raise VolumeError(f'{doing}: could not find v1.PersistentVolumeClaim "{effect.pod.namespace}/{name}"')
        return claim

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        if not _reaches(volume, node, self._objects.csi_node(node.metadata.name)):
            pair = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}"'
            raise VolumeError(f"{pair}: no matching NodeSelectorTerms")

    async def _reread(self, wait: _Wait) -> None:
        """What we wrote may have been reset before the engine saw it."""
        try:
            for name in wait.effect.provision:
                claim = await self._port.read_claim(wait.effect.pod.namespace, name)
                if claim is not None and SELECTED_NODE not in claim.metadata.annotations:
                    wait.annotated.add(name)
            for _, name in wait.effect.static:
                if not _names_claim(await self._read_volume(name)):
                    self._fail(wait, RESET.format(name))
                    return
        except VolumeError:
            return  # it is looked at again later, and there is a time limit
        if self._attempts.waiting(wait.effect.pod.uid) is wait:
            self._attempts.look_now()

    # -- ending ------------------------------------------------------------------------------------------------------

    def _fail(self, wait: _Wait, problem: str) -> None:
        """Undo, then answer: nobody is to be given a volume that is still being released."""

        async def undo_and_end() -> None:
            await self._undo(wait)
            self._end(wait.effect, WAITING + problem)

        self._attempts.stop_waiting(wait.effect.pod.uid)
        self._put(wait.effect, undo_and_end)

    async def _undo(self, wait: _Wait) -> None:
        """Release the volumes that were reserved for claims that did not follow."""
        for claim, name in wait.reserved:
            try:
                for _ in range(TRIES):
                    volume = await self._read_volume(name)
                    ref = volume.spec.claim_ref
                    if ref is None or ref.uid != claim.metadata.uid or volume.status.phase == "Bound":
                        break
                    now = await self._port.read_claim(ref.namespace, ref.name)
                    if now is not None and now.metadata.uid == ref.uid and now.spec.volume_name == name:
                        break
                    if not await self._write(ReleaseVolume(volume)):
                        break
            except VolumeError:
                continue  # a volume controller takes it back when the claim is gone

    def _end(self, effect: BindVolumes, problem: str = "") -> None:
        """Answer, unless the engine has asked for something newer since."""
        if self._attempts.finish(effect):
            self._answer(_failed(effect, problem) if problem else VolumesBound(effect.pod, effect.attempt))


def _reaches(volume: PersistentVolume, node: Node, csi_node: CSINode | None) -> bool:
    """Whether a node can reach a volume. Raises VolumeError for a volume that cannot be read."""
    affinity, plugin = volume.spec.node_affinity, in_tree_plugin(volume.spec)
    if plugin is not None and plugin.driver and is_migrated(plugin, csi_node):
        try:
            handle(volume.spec, volume.metadata.labels)
        except MigrationError as error:
            raise VolumeError(f"failed to translate pv to csi: {error}") from None
        affinity = migrated_affinity(volume, plugin)
    return affinity is None or affinity.required is None or matches(affinity.required, node.metadata.labels, "")


def _names_claim(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is not None and bool(volume.spec.claim_ref.uid)


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _failed(effect: BindVolumes, problem: str) -> VolumesFailed:
    return VolumesFailed(effect.pod, effect.attempt, RUNNING_PREBIND + problem)
