"""Makes the volumes of a reserved pod ready on its node: binds volumes and claims to each other, has others
provisioned, and waits until every claim is bound.

There is no volume controller in this process, so both sides of a static binding are written here: the volume names
its claim first, which settles whose it is, then the claim names its volume. Each write is of the version that was read,
so a volume that was given away meanwhile stays given. If the claim cannot follow, the volume is let go. Provisioning is
asked for, and waited for: whoever provisions writes the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from situate.core.changes import VolumesBound, VolumesFailed
from situate.core.effects import BindVolumes
from situate.core.engine.engine import Engine
from situate.core.plugins.volume_binding import BIND_COMPLETED
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.crew import Crew
from situate.wire.patches import BOUND_BY_CONTROLLER, SELECTED_NODE

__all__ = ["Volumes"]

AT_ONCE: Final = 16
LOOK_S: Final = 1.0
"""How often claims are looked at while nothing is heard of a change."""
RUNNING: Final = 'running PreBind plugin "VolumeBinding": '
TIMED_OUT: Final = "binding volumes: context deadline exceeded"
TAKEN: Final = 'volume "{}" already bound to a different claim.'
NO_CLAIM: Final = 'persistentvolumeclaim "{}" not found'
ELSEWHERE: Final = 'persistentvolumeclaim "{}" is being provisioned for node "{}"'
FAILED: Final = 'provisioning failed for PVC "{}"'
GONE: Final = 'pod does not exist any more: pod "{}" not found'
BOUND: Final = "yes"

VOLUMES: Final = BY_KIND["v1", "PersistentVolume"]
CLAIMS: Final = BY_KIND["v1", "PersistentVolumeClaim"]


class VolumeError(Exception):
    """Why the volumes cannot be made ready. One line."""


@dataclass(slots=True, eq=False)
class _Wait:
    """A pod whose volumes are not all ready."""

    ask: BindVolumes
    until: float


class Volumes:
    """All pods whose volumes are being made ready."""

    def __init__(
        self,
        registry: Registry,
        engine: Engine,
        tell: Callable[[VolumesBound | VolumesFailed], None],
        caller: Caller,
        wall_ns: Callable[[], int],
    ) -> None:
        self._registry = registry
        self._engine = engine
        self._tell = tell
        self._caller = caller
        self._wall_ns = wall_ns
        self._crew = Crew(AT_ONCE, self._begin)
        self._waits: dict[str, _Wait] = {}
        self._attempts: dict[str, int] = {}
        """By the pod's uid: the attempt that is under way."""
        self._looked_at = -1
        self._timer: asyncio.TimerHandle | None = None

    def bind(self, ask: BindVolumes) -> None:
        """Carry out a BindVolumes, by and by."""
        if self._attempts.get(ask.pod.uid) == ask.attempt:
            return  # it is under way
        self._attempts[ask.pod.uid] = ask.attempt
        self._waits.pop(ask.pod.uid, None)
        self._crew.put(ask)

    def look(self) -> None:
        """The engine heard of something: see whether it was what is waited for."""
        if self._waits and self._engine.cluster.objects.storage.version != self._looked_at:
            self._look()

    def close(self, why: str) -> None:
        """Those who wait are told why they need not."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._crew.cancel()
        for wait in list(self._waits.values()):
            self._end(wait.ask, why)

    # -- asking for it ---------------------------------------------------------------------------------------------

    async def _begin(self, ask: BindVolumes) -> None:
        try:
            for claim, volume in ask.static:
                await self._put_together(ask.pod.namespace, claim, volume)
            for claim in ask.provision:
                await self._provision(ask.pod.namespace, claim, ask.node)
        except VolumeError as error:
            self._end(ask, str(error))
            return
        if self._attempts.get(ask.pod.uid) != ask.attempt:
            return
        entry = self._engine.queue.get(ask.pod.key)
        deciding = None if entry is None else self._engine.profiles.get(entry.pod.spec.scheduler_name)
        within_s = 0.0 if deciding is None else deciding.volumes_ms / 1_000
        self._waits[ask.pod.uid] = _Wait(ask, asyncio.get_running_loop().time() + within_s)
        self._look()

    async def _put_together(self, namespace: str, claim: str, volume: str) -> None:
        """Bind a volume and a claim to each other. Raises VolumeError if either is another's."""
        found = self._registry.cache.get(CLAIMS, namespace, claim)
        if found is None:
            raise VolumeError(NO_CLAIM.format(claim))
        named = await self._write(Target(VOLUMES, "", volume), lambda obj, _: _name_claim(obj, found))
        shown = named.object(VOLUMES)
        try:
            await self._write(Target(CLAIMS, namespace, claim), lambda obj, _: _name_volume(obj, shown), found.uid)
        except VolumeError:
            await self._release(volume, found.uid)
            raise
        await self._write(Target(VOLUMES, "", volume), lambda obj, _: _is_bound(obj))

    async def _release(self, volume: str, claim_uid: str) -> None:
        """Let go of a volume whose claim did not follow, as far as that goes."""

        def change(obj: Object, _held: StoredObject) -> Object:
            if obj["spec"].get("claimRef", {}).get("uid") != claim_uid:
                raise VolumeError(TAKEN.format(volume))
            del obj["spec"]["claimRef"]
            obj["metadata"].get("annotations", {}).pop(BOUND_BY_CONTROLLER, None)
            return obj

        try:
            await self._write(Target(VOLUMES, "", volume), change)
        except VolumeError:
            return

    async def _provision(self, namespace: str, claim: str, node: str) -> None:
        """Have a claim's volume made for a node. Raises VolumeError."""

        def change(obj: Object, _held: StoredObject) -> Object:
            annotations = obj["metadata"].setdefault("annotations", {})
            selected = annotations.get(SELECTED_NODE)
            if selected and selected != node:
                raise VolumeError(ELSEWHERE.format(claim, selected))
            if not obj.get("spec", {}).get("volumeName"):
                annotations[SELECTED_NODE] = node
            return obj

        await self._write(Target(CLAIMS, namespace, claim), change)

    async def _write(
        self, target: Target, change: Callable[[Object, StoredObject], Object], uid: str = ""
    ) -> StoredObject:
        try:
            return await self._registry.modify(target, change, self._caller, uid=uid)
        except StatusError as error:
            raise VolumeError(error.message) from None

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._looked_at = self._engine.cluster.objects.storage.version
        now = asyncio.get_running_loop().time()
        for wait in list(self._waits.values()):
            try:
                if self._ready(wait.ask):
                    self._end(wait.ask)
                elif now >= wait.until:
                    self._end(wait.ask, TIMED_OUT)
            except VolumeError as error:
                self._end(wait.ask, f"binding volumes: {error}")
        if self._waits and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._look()

    def _ready(self, ask: BindVolumes) -> bool:
        """Whether all claims are bound. Raises VolumeError if they will not be."""
        if self._engine.queue.get(ask.pod.key) is None:
            raise VolumeError(GONE.format(ask.pod.name))
        claims = self._engine.cluster.objects.storage.claims
        for name in (*(claim for claim, _ in ask.static), *ask.provision):
            claim = claims.get((ask.pod.namespace, name))
            if claim is None:
                raise VolumeError(NO_CLAIM.format(name))
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if name in ask.provision and selected not in (None, ask.node):
                raise VolumeError(FAILED.format(name))
            if not claim.spec.volume_name or BIND_COMPLETED not in claim.metadata.annotations:
                return False
        return True

    def _end(self, ask: BindVolumes, problem: str = "") -> None:
        """Answer, if nothing newer was asked for since."""
        if self._attempts.get(ask.pod.uid) != ask.attempt:
            return
        del self._attempts[ask.pod.uid]
        self._waits.pop(ask.pod.uid, None)
        if problem:
            self._tell(VolumesFailed(ask.pod, ask.attempt, RUNNING + problem))
        else:
            self._tell(VolumesBound(ask.pod, ask.attempt))


def _name_claim(volume: Object, claim: StoredObject) -> Object:
    """Have a volume name its claim. Raises VolumeError if it is another's."""
    held = volume["spec"].get("claimRef")
    meant = (claim.namespace, claim.name)
    if held is not None and (held.get("namespace"), held.get("name")) != meant:
        raise VolumeError(TAKEN.format(volume["metadata"]["name"]))
    if held is not None and held.get("uid", "") not in ("", claim.uid):
        raise VolumeError(TAKEN.format(volume["metadata"]["name"]))
    if held is None:
        volume["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = BOUND
    volume["spec"]["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "apiVersion": "v1",
        "resourceVersion": str(claim.revision),
    }
    return volume


def _name_volume(claim: Object, volume: Object) -> Object:
    """Have a claim name its volume. Raises VolumeError if it has another."""
    name = volume["metadata"]["name"]
    if claim["spec"].get("volumeName", name) != name:
        raise VolumeError(TAKEN.format(name))
    claim["spec"]["volumeName"] = name
    annotations = claim["metadata"].setdefault("annotations", {})
    annotations[BIND_COMPLETED] = annotations[BOUND_BY_CONTROLLER] = BOUND
    status = claim.setdefault("status", {})
    status["phase"] = "Bound"
    for field in ("accessModes", "capacity"):
        if field in volume["spec"]:
            status[field] = volume["spec"][field]
    return claim


def _is_bound(volume: Object) -> Object:
    volume.setdefault("status", {})["phase"] = "Bound"
    return volume
