"""Invariants of devices, at every write to the store.

No device, no share and no counter is given beyond what there is, but for admin access. A pod is bound with all its
claims allocated, usable on its node and reserved for it, and they are not taken from it while it runs. In the end
nothing is left behind: every allocation has a user, or an owner that is still there.

Kubernetes' server lets two schedulers give one device twice. So a scheduler is held to what it gave itself, and to what
others gave long before, as with the resources of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Final

from situate.core.changes import Millis
from situate.core.devices.claims import reaches
from situate.core.devices.extended import CLAIM_ANNOTATION
from situate.core.devices.inventory import NodeFacts
from situate.core.model.devices import DeviceClass, ResourceClaim, ResourceSlice
from situate.core.model.meta import controller_of, key_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.requests import pod_requests
from situate.core.state.cluster import FINISHED_PHASES
from situate.sim.devices.claim_server import ClaimServer
from situate.sim.devices.drawing import ACCELERATOR
from situate.sim.devices.usage import overuse
from situate.sim.store import ObjectStore, StoreEvent
from situate.sim.timeline import Timeline

EXCUSED_MS: Final = 60_000
"""How long after another writer took devices, or after a restart, a decision need not know of it."""


BOUND, RUNNING = "bound", "running"


@dataclass(frozen=True, slots=True)
class SchedulerLife:
    """A scheduler from one start to the next."""

    name: str
    life: int


@dataclass(frozen=True, slots=True)
class _Allocated:
    by: SchedulerLife | None
    at: Millis


class DeviceChecker:
    """`wrong` gets the violations; `writer` says whose write the current one is."""

    def __init__(
        self,
        timeline: Timeline,
        store: ObjectStore,
        server: ClaimServer,
        writer: Callable[[], SchedulerLife | None],
        wrong: Callable[[str, list[str]], None],
    ) -> None:
        self.guarded = False
        """Whether the server refuses what gives a device twice, as that of `situate up` does."""
        self.shares_pods = False
        """Whether two schedulers decide the same pods: they may undo each other's reservations."""
        self._timeline = timeline
        self._store = store
        self._server = server
        self._writer = writer
        self._wrong = wrong
        self._allocated: dict[str, _Allocated] = {}
        """By the claim's uid."""
        self._began: dict[str, Millis] = {}
        """When each scheduler started last."""
        self._changed: dict[object, Millis] = {}
        """When a pool, by driver and name, or a node, by name, changed last."""
        self._classes_changed = -EXCUSED_MS
        self._bound: dict[str, Pod] = {}
        """The pods that our schedulers bound, by uid."""
        self._excused: dict[str, None] = {}
        """Those of them that were bound when their reservation may have been undone."""
        self._claims: dict[str, ResourceClaim] = {}
        """By uid, as they were last written."""
        self.allocations = self.refused = 0
        server.refuses_use = self._refuses

    def restarted(self, who: str) -> None:
        """A scheduler starts, from a list that may lag."""
        self._began[who] = self._timeline.now

    # -- at every write --------------------------------------------------------------------------------------------

    def hear(self, written: StoreEvent) -> None:
        match written.item:
            case ResourceClaim() as claim:
                self._claim_written(claim, gone=written.gone)
            case ResourceSlice() as one:
                self._changed[one.spec.driver, one.spec.pool.name] = self._timeline.now
            case Node() as node:
                self._changed[node.metadata.name] = self._timeline.now
            case DeviceClass():
                self._classes_changed = self._timeline.now
            case Pod() as pod if written.gone:
                self._bound.pop(pod.metadata.uid, None)
                self._excused.pop(pod.metadata.uid, None)
            case _:
                pass

    def _claim_written(self, claim: ResourceClaim, *, gone: bool) -> None:
        uid = claim.metadata.uid
        before = self._claims.pop(uid, None)
        if not gone:
            self._claims[uid] = claim
        if before is not None:
            self._wrong("", list(self._taken_away(before, None if gone else claim)))
        if gone or claim.status.allocation is None:
            self._allocated.pop(uid, None)
        elif uid not in self._allocated:
            self.allocations += 1
            self._allocated[uid] = _Allocated(self._writer(), self._timeline.now)
            if self.guarded and (found := overuse(claim, self._server.all(), self._slices())):
                self._wrong("", [f"given twice: {key_of(claim.metadata)}: {one.problem}" for one in found])

    def _taken_away(self, before: ResourceClaim, after: ResourceClaim | None) -> Iterator[str]:
        """Nobody takes the devices of pods that run."""
        kept = (
            set()
            if after is None or after.status.allocation is None
            else {one.uid for one in after.status.reserved_for}
        )
        for user in before.status.reserved_for:
            pod = self._store.pods.get(f"{before.metadata.namespace}/{user.name}")
            if user.uid in kept or user.uid not in self._bound or user.uid in self._excused:
                continue
            if pod is None or pod.metadata.uid != user.uid or _is_over(pod):
                continue
            if not _is_extended(before, pod) or _names(pod, before):
                yield f"devices: claim {key_of(before.metadata)} was taken from {user.name}, which runs"

    def _refuses(self, claim: ResourceClaim) -> bool:
        """Called before a claim gets its allocation."""
        writer, now = self._writer(), self._timeline.now
        everybody = overuse(claim, self._server.all(), self._slices())
        if everybody and writer is not None:
            known = [one for one in self._server.all() if self._must_know(writer, one)]
            for one in overuse(claim, known, self._slices()):
                if not one.by_slices or self._changed.get(one.device[:2], -EXCUSED_MS) + EXCUSED_MS <= now:
                    self._wrong(writer.name, [f"given twice: {key_of(claim.metadata)}: {one.problem}"])
        self.refused += bool(everybody) and self.guarded
        return bool(everybody) and self.guarded

    def _must_know(self, writer: SchedulerLife, claim: ResourceClaim) -> bool:
        """Whether a decision of this scheduler had to know that the claim is allocated."""
        found = self._allocated.get(claim.metadata.uid)
        if found is None or found.by == writer:
            return True
        before = self._timeline.now - EXCUSED_MS
        return found.at <= before and self._began.get(writer.name, -EXCUSED_MS) <= before

    def bound(self, pod: Pod, who: str) -> None:
        """One of our schedulers bound a pod."""
        self._bound[pod.metadata.uid] = pod
        if self.shares_pods:
            self._excused[pod.metadata.uid] = None
        else:
            self._wrong(who, list(self._without_devices(pod, BOUND)))

    def _without_devices(self, pod: Pod, what: str) -> Iterator[str]:
        """What a bound pod lacks."""
        name, node = key_of(pod.metadata), self._store.nodes.get(pod.spec.node_name)
        for key in claims_of(pod):
            claim = None if key is None else self._server.get(key)
            if claim is None:
                yield f"devices: {name} is {what} without its claim {key}"
            else:
                yield from self._not_for(claim, pod, node, what)
        if pod_requests(pod).scalar.get(ACCELERATOR) and node is not None:
            # The node's agent looks only at the claim that the pod names. A killed scheduler may have asked for others.
            served = [one for one in self._server.all() if _is_extended(one, pod) and _names(pod, one)]
            if ACCELERATOR not in node.status.allocatable and not served and self._is_old(node):
                yield f"devices: {name} is {what} without a claim for {ACCELERATOR}"
            # A resource that no class serves needs no claim, and then nobody looks for one, as in kube-scheduler.
            if ACCELERATOR in node.status.allocatable and self._classes_changed + EXCUSED_MS > self._timeline.now:
                return
            for claim in served:
                yield from self._not_for(claim, pod, node, what)

    def _not_for(self, claim: ResourceClaim, pod: Pod, node: Node | None, what: str) -> Iterator[str]:
        name, key = key_of(pod.metadata), key_of(claim.metadata)
        if claim.status.allocation is None:
            yield f"devices: {name} is {what}, and its claim {key} is not allocated"
            return
        if all(user.uid != pod.metadata.uid for user in claim.status.reserved_for):
            yield f"devices: {name} is {what}, and its claim {key} is not reserved for it"
        if what != BOUND or node is None or not self._is_old(node):
            return  # its labels may have changed since
        if not reaches(claim, NodeFacts(node.metadata.name, node.metadata.labels)):
            yield f"devices: {name} is {what} on {pod.spec.node_name}, where the devices of {key} are not"

    def _is_old(self, node: Node) -> bool:
        """Whether a decision had to know the node as it is."""
        return self._changed.get(node.metadata.name, 0) + EXCUSED_MS <= self._timeline.now

    def _slices(self) -> list[ResourceSlice]:
        return [one for one in self._store.others.values() if isinstance(one, ResourceSlice)]

    # -- in the end ------------------------------------------------------------------------------------------------

    def left_behind(self, being_bound: Container[str]) -> Iterator[str]:
        """What is wrong when nothing has happened for a minute.

        `being_bound`: the uids of pods with a node that are not bound yet.
        """
        pods = {pod.metadata.uid: pod for pod in self._store.pods.values()}
        for claim in self._server.all():
            key, status = key_of(claim.metadata), claim.status
            for user in status.reserved_for:
                pod = pods.get(user.uid)
                if pod is None or _is_over(pod):
                    yield f"leaked: claim {key} is reserved for {user.name}, which is {'over' if pod else 'gone'}"
            owner = controller_of(claim.metadata)
            if owner is not None and owner.uid not in pods:
                yield f"leaked: claim {key} of {owner.name}, which is gone"
            elif owner is not None and status.allocation is not None and _is_over(pods[owner.uid]):
                yield f"leaked: claim {key} of {owner.name}, which is over, has devices"
            elif owner is not None and _is_left_over(claim, pods[owner.uid]) and owner.uid not in being_bound:
                yield f"leaked: claim {key} was made for {owner.name}, which is not being bound"
            if claim.metadata.deletion_timestamp is not None and not status.reserved_for:
                yield f"leaked: claim {key} is being deleted, and nobody uses it"
        for uid, bound in self._bound.items():
            pod = pods.get(uid)
            if pod is not None and not _is_over(pod) and uid not in self._excused:
                yield from self._without_devices(replace_node(pod, bound), RUNNING)


def replace_node(pod: Pod, bound: Pod) -> Pod:
    """The pod as it is, if it is where it was bound."""
    return pod if pod.spec.node_name == bound.spec.node_name else bound


def claims_of(pod: Pod) -> list[str | None]:
    """The keys of the pod's claims; None for one that was never made."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    names = [one.resource_claim_name or made.get(one.name) for one in pod.spec.resource_claims]
    return [None if name is None else f"{pod.metadata.namespace}/{name}" for name in names]


def _is_extended(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was made for the extended resources of a pod."""
    owner = controller_of(claim.metadata)
    is_own = owner is not None and owner.uid == pod.metadata.uid
    return is_own and claim.metadata.annotations.get(CLAIM_ANNOTATION) == "true"


def _names(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether the pod's status names the claim as the one for its extended resources."""
    named = pod.status.extended_resource_claim_status
    return named is not None and named.resource_claim_name == claim.metadata.name


def _is_left_over(claim: ResourceClaim, pod: Pod) -> bool:
    return not pod.spec.node_name and _is_extended(claim, pod)


def _is_over(pod: Pod) -> bool:
    unbound = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
    return pod.status.phase in FINISHED_PHASES or unbound
