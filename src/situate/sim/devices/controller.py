"""The claim controller of a world: the functions of `core/reconcile`, called now and then, and late, and killed.

What it does was decided on objects as they were a moment ago. Also the garbage collector, for claims of pods that are
gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec.structs import replace

from situate.core.model.devices import ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from situate.core.model.managed import ManagedPod
from situate.core.model.managed_devices import (
    ManagedResourceClaim,
    ManagedResourceClaimTemplate,
    ManagedResourceClaimTemplateSpec,
)
from situate.core.model.managed_volumes import ManagedVolume
from situate.core.model.meta import controller_of, key_of
from situate.core.model.pod import Pod, PodResourceClaimStatus
from situate.core.model.stored import StoredMeta
from situate.core.reconcile.effects import CreateObject, DeleteObject, Effect, PatchStatus, ReconcileError, UpdateObject
from situate.core.reconcile.objects import to_json
from situate.core.reconcile.pod_counts import OwnedPodCounts
from situate.core.reconcile.resourceclaim import FINALIZER, pod_claims, resource_claim
from situate.sim.devices.claim_server import ClaimServer
from situate.sim.faults import Faults
from situate.sim.store import ObjectStore
from situate.sim.timeline import Timeline
from situate.sim.workload import NAMESPACE

T = TypeVar("T")

ROUND_MS: Final = (30, 300)
LATE_MS: Final = (2_000, 12_000)
DEAD_MS: Final = (5_000, 20_000)
WRITE_MS: Final = (1, 60)


def make_template(name: str, spec: ResourceClaimSpec) -> ManagedResourceClaimTemplate:
    metadata = StoredMeta(name=name, namespace=NAMESPACE)
    return ManagedResourceClaimTemplate(metadata=metadata, spec=ManagedResourceClaimTemplateSpec(spec=to_json(spec)))


class _Objects:
    """Pods and claims as controllers read them."""

    def __init__(
        self, store: ObjectStore, server: ClaimServer, templates: Mapping[str, ManagedResourceClaimTemplate]
    ) -> None:
        self._store = store
        self._server = server
        self._templates = templates
        self._read: dict[tuple[str, str], tuple[object, Any]] = {}

    def pod(self, pod: Pod) -> ManagedPod:
        return cast(ManagedPod, self._converted("Pod", key_of(pod.metadata), pod, ManagedPod))

    def claim(self, claim: ResourceClaim) -> ManagedResourceClaim:
        found: ManagedResourceClaim = self._converted(
            "ResourceClaim", key_of(claim.metadata), claim, ManagedResourceClaim
        )
        finalizers = (FINALIZER,) if self._server.is_protected(claim) else ()
        return replace(found, metadata=replace(found.metadata, finalizers=finalizers))

    def _converted(self, kind: str, key: str, item: Any, to: type) -> Any:
        known = self._read.get((kind, key))
        if known is None or known[0] is not item:
            known = self._read[kind, key] = item, msgspec.convert(to_json(item), to)
        return known[1]

    # -- what reconcile calls ------------------------------------------------------------------------------------

    def get(self, kind: type[T], namespace: str, name: str) -> T | None:
        key = f"{namespace}/{name}"
        found: Any = None
        if kind is ManagedPod and (pod := self._store.pods.get(key)) is not None:
            found = self.pod(pod)
        elif kind is ManagedResourceClaim and (claim := self._server.get(key)) is not None:
            found = self.claim(claim)
        elif kind is ManagedResourceClaimTemplate:
            found = self._templates.get(name)
        return cast("T | None", found)

    def volumes_for(self, namespace: str, name: str) -> Sequence[ManagedVolume]:
        raise NotImplementedError

    def free_volumes(self, storage_class: str) -> Sequence[ManagedVolume]:
        raise NotImplementedError

    def controlled(self, kind: type[T], namespace: str, uid: str) -> Sequence[T]:
        owned = (one for one in self._server.all() if (owner := controller_of(one.metadata)) and owner.uid == uid)
        return cast("list[T]", [self.claim(one) for one in owned])

    def among(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        raise NotImplementedError

    def pod_counts(self, namespace: str, uid: str) -> OwnedPodCounts:
        raise NotImplementedError

    def in_pool(self, kind: type[T], driver: str, pool: str) -> Sequence[T]:
        raise NotImplementedError

    def on_node(self, node: str) -> Sequence[ManagedPod]:
        raise NotImplementedError

    def naming(self, kind: type, namespace: str, name: str) -> Sequence[ManagedPod]:
        raise NotImplementedError


class ClaimController:
    def __init__(
        self,
        timeline: Timeline,
        rng: Random,
        store: ObjectStore,
        server: ClaimServer,
        templates: Mapping[str, ManagedResourceClaimTemplate],
    ) -> None:
        self.faults = Faults()
        self._timeline = timeline
        self._rng = rng
        self._store = store
        self._server = server
        self._objects = _Objects(store, server, templates)
        self._life = 0
        self._busy: dict[str, None] = {}
        """The objects that are being written."""
        self._looked_at = -1
        """The version of the store at the last look: without a write there is nothing to do."""

    def begin(self) -> None:
        self._timeline.after(self._rng.randint(*ROUND_MS), self._round)

    def _round(self) -> None:
        if self._rng.random() < self.faults.claim_controller_dies:
            self._life += 1
            self._busy.clear()
            self._looked_at = -1
            self._timeline.after(self._rng.randint(*DEAD_MS), self._round)
            return
        if self._store.version != self._looked_at or self._busy:
            self._looked_at = self._store.version
            for pod in list(self._store.pods.values()):
                if pod.spec.resource_claims:
                    self._sync_pod(pod)
            for claim in self._server.all():
                self._sync_claim(claim)
        late = self._rng.random() < self.faults.claim_controller_is_late
        self._timeline.after(self._rng.randint(*(LATE_MS if late else ROUND_MS)), self._round)

    def _sync_pod(self, pod: Pod) -> None:
        try:
            result = pod_claims(self._objects.pod(pod), self._objects)
        except ReconcileError:
            return  # there is no such template
        self._start(f"Pod {pod.metadata.uid}", result.effects, pod)

    def _sync_claim(self, claim: ResourceClaim) -> None:
        owner = controller_of(claim.metadata)
        pod = None if owner is None else self._store.pods.get(f"{claim.metadata.namespace}/{owner.name}")
        if owner is not None and (pod is None or pod.metadata.uid != owner.uid):
            self._server.delete(key_of(claim.metadata), claim.metadata.uid)
            claim_now = self._server.get(key_of(claim.metadata))
            if claim_now is None or claim_now.metadata.uid != claim.metadata.uid:
                return
            claim = claim_now
        result = resource_claim(self._objects.claim(claim), self._objects, self._timeline.now)
        self._start(f"ResourceClaim {claim.metadata.uid}", result.effects, claim)

    def _start(self, key: str, effects: Sequence[Effect], read: Pod | ResourceClaim) -> None:
        if effects and key not in self._busy:
            self._busy[key] = None
            self._timeline.after(self._rng.randint(*WRITE_MS), self._perform, key, effects, read, self._life)

    def _perform(self, key: str, effects: Sequence[Effect], read: Pod | ResourceClaim, life: int) -> None:
        """Carry out the first of these, and then the others; the first failure ends that."""
        if life != self._life:
            return
        if self._carry_out(effects[0], read) and effects[1:]:
            self._timeline.after(self._rng.randint(*WRITE_MS), self._perform, key, effects[1:], read, life)
        else:
            del self._busy[key]

    def _carry_out(self, effect: Effect, read: Pod | ResourceClaim) -> bool:
        match effect:
            case CreateObject(_, body):
                return not self._server.create(msgspec.convert(body, ResourceClaim))
            case DeleteObject(ref):
                self._server.delete(f"{ref.namespace}/{ref.name}", ref.uid)
                return True
            case UpdateObject(_, _, patch) if isinstance(read, ResourceClaim):
                return not self._server.protect(read, protected=bool(patch["metadata"].get("finalizers")))
            case PatchStatus(ref, version, patch) if ref.kind == "ResourceClaim":
                return self._patch_claim(f"{ref.namespace}/{ref.name}", ref.uid, version, patch)
            case PatchStatus(_, _, patch) if isinstance(read, Pod):
                if self._store.pods.get(key_of(read.metadata)) is not read:
                    return False
                made = msgspec.convert(patch["resourceClaimStatuses"], tuple[PodResourceClaimStatus, ...])
                self._store.put_pod(replace(read, status=replace(read.status, resource_claim_statuses=made)))
                return True
            case _:
                raise TypeError(f"an effect that no claim controller asks for: {effect}")

    def _patch_claim(self, key: str, uid: str, version: str, patch: Mapping[str, Any]) -> bool:
        claim = self._server.get(key)
        if claim is None or (claim.metadata.uid, claim.metadata.resource_version) != (uid, version):
            return False
        merged = {name: part for name, part in {**to_json(claim.status), **patch}.items() if part is not None}
        return not self._server.write_status(claim, msgspec.convert(merged, ResourceClaimStatus))
