"""Assumed claims: devices that were given to pods whose bind is under way, though no claim in the cluster says so yet.

In our cluster such a claim has its allocation, and is reserved for the pod. That ends when the claim is seen so, or
when the bind fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from situate.core.devices.claims import is_same
from situate.core.devices.extended import CLAIM_ANNOTATION, IN_MEMORY_NAME
from situate.core.model.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from situate.core.model.meta import ObjectMeta, controller_of, is_older
from situate.core.model.named import NamedObject
from situate.core.plugins.support.device_demand import DeviceDecision
from situate.core.state.cluster import Cluster


@dataclass(eq=False, slots=True)
class _Assumed:
    """A claim as it was last seen, and what is on its way to it."""

    seen: ResourceClaim | None
    """None: it will be created."""
    claim: ResourceClaim
    """The claim that was decided on."""
    allocation: AllocationResult | None
    users: dict[str, ResourceClaimConsumerReference] = field(default_factory=dict)
    """By pod key."""

    def as_assumed(self) -> ResourceClaim:
        claim = self.claim if self.seen is None else self.seen
        status = claim.status
        known = {user.uid for user in status.reserved_for}
        users = tuple(user for user in self.users.values() if user.uid not in known)
        allocation = status.allocation if status.allocation is not None else self.allocation
        return replace(
            claim, status=replace(status, allocation=allocation, reserved_for=(*status.reserved_for, *users))
        )


class AssumedClaims:
    """Which devices are on their way to which claims."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._assumed: dict[tuple[str, str], _Assumed] = {}
        self._of_pod: dict[str, tuple[tuple[str, str], ...]] = {}
        self._to_create: dict[tuple[str, str], tuple[str, str]] = {}
        """(namespace, uid of the pod) -> the claim for its extended resources, until it is created."""
        self._ahead: dict[tuple[str, str], str] = {}
        """Claims that we know in a version that we wrote, and have not been shown yet."""

    def take(self, key: str, pod: ObjectMeta, decision: DeviceDecision) -> None:
        """A pod gets these devices, and shares the claims that have theirs already."""
        devices = self._cluster.objects.devices
        user = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
        taken = []
        for claim, allocation in (*((one, None) for one in decision.reserved), *decision.allocations):
            name = (claim.metadata.namespace, claim.metadata.name)
            if claim.metadata.name == IN_MEMORY_NAME:
                name = (name[0], f"{IN_MEMORY_NAME} {pod.name} {pod.uid}")
                claim = replace(claim, metadata=replace(claim.metadata, name=name[1]))  # noqa: PLW2901
                self._to_create[name[0], pod.uid] = name
            found = self._assumed.get(name)
            if found is None:
                found = self._assumed[name] = _Assumed(devices.claims.get(name), claim, None)
            if allocation is not None and name not in taken:  # a pod may name a claim twice: the first is written
                found.allocation = allocation
                devices.begin_flight(name)
            found.users[key] = user
            taken.append(name)
            self._cluster.put_object(found.as_assumed())
        self._of_pod[key] = tuple(taken)

    def written(self, key: str) -> Iterator[ResourceClaim]:
        """The claims of a pod were written: others may share them from now on. One that lost its devices meanwhile
        may be on its way to another pod."""
        devices = self._cluster.objects.devices
        for name in self._of_pod.get(key, ()):
            assumed = self._assumed.get(name)
            if assumed is not None and key in assumed.users and devices.end_flight(name):
                claim = devices.claims.get(name)
                if claim is not None:
                    yield claim

    def hold(self, key: str, uid: str) -> None:
        """The pod will not be bound, but it is not known yet what was written in its claims: its devices stay taken
        until `give_back(uid)`."""
        names = self._of_pod.pop(key, ())
        for name in dict.fromkeys(names):
            assumed = self._assumed.get(name)
            if assumed is not None and key in assumed.users:
                assumed.users[uid] = assumed.users.pop(key)
        if names:
            self._of_pod[uid] = names

    def is_held(self, uid: str) -> bool:
        return uid in self._of_pod

    def names(self, key: str) -> tuple[str, ...]:
        """The claims of a pod as UnreserveClaims names them."""
        return tuple("" if name.startswith(IN_MEMORY_NAME) else name for _, name in self._of_pod.get(key, ()))

    def give_back(self, key: str) -> Iterator[tuple[ResourceClaim, ResourceClaim | None]]:
        """The bind failed, or the pod is gone: its claims as they were here, and as they were last seen."""
        devices = self._cluster.objects.devices
        for name in self._of_pod.pop(key, ()):
            assumed = self._assumed.get(name)
            if assumed is None or assumed.users.pop(key, None) is None:
                continue
            before = devices.claims.get(name)
            if not assumed.users:
                del self._assumed[name]
                devices.end_flight(name)
                assumed.allocation = None
            if assumed.seen is None and not assumed.users:
                self._to_create = {pod: made for pod, made in self._to_create.items() if made != name}
                if before is not None:
                    self._cluster.forget_object(before)
                    yield before, None
            elif before is not None:
                after = assumed.as_assumed()
                self._cluster.put_object(after)
                yield before, after

    def news(self, claims: Sequence[ResourceClaim]) -> Iterator[ResourceClaim]:
        """Of claims that were written, those that have not been shown in that version. One that we do not know is
        gone by now, unless it was created for a pod."""
        known = self._cluster.objects.devices.claims
        for claim in claims:
            meta = claim.metadata
            name, owner = (meta.namespace, meta.name), controller_of(meta)
            before = known.get(name)
            if before is None:
                is_news = owner is not None and (meta.namespace, owner.uid) in self._to_create
            else:
                assumed = self._assumed.get(name)
                last = (before if assumed is None or assumed.seen is None else assumed.seen).metadata
                is_news = last.uid == meta.uid and is_older(last.resource_version, meta.resource_version)
            if is_news:
                yield claim
                self._ahead[name] = meta.resource_version

    def as_seen(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim as it was last seen, without what is on its way to it."""
        assumed = self._assumed.get((namespace, name))
        return self._cluster.objects.devices.claims.get((namespace, name)) if assumed is None else assumed.seen

    def seen(self, item: NamedObject) -> NamedObject:
        """The object to store: an assumed claim has its devices already."""
        if not isinstance(item, ResourceClaim):
            return item
        if self._to_create:
            self._created(item)
        name = (item.metadata.namespace, item.metadata.name)
        if name in self._ahead:
            ours = self._cluster.objects.devices.claims.get(name)
            is_stale = is_older(item.metadata.resource_version, self._ahead[name])
            if ours is not None and ours.metadata.uid == item.metadata.uid and is_stale:
                return ours
            del self._ahead[name]
        assumed = self._assumed.get(name)
        if assumed is None:
            return item
        if assumed.seen is not None and assumed.seen.metadata.uid != item.metadata.uid:
            self._drop(name)
            return item
        assumed.seen = item
        if item.status.allocation is not None:
            assumed.allocation = None
            self._cluster.objects.devices.end_flight(name)
        known = {user.uid for user in item.status.reserved_for}
        assumed.users = {key: user for key, user in assumed.users.items() if user.uid not in known}
        if not assumed.users and assumed.allocation is None:
            self._drop(name)
            return item
        return assumed.as_assumed()

    def gone(self, item: NamedObject) -> None:
        if isinstance(item, ResourceClaim):
            name = (item.metadata.namespace, item.metadata.name)
            self._ahead.pop(name, None)
            self._drop(name)

    def _created(self, item: ResourceClaim) -> None:
        """The claim for a pod's extended resources may be here: then the one that we assumed has done its work."""
        owner = controller_of(item.metadata)
        if owner is None or item.metadata.annotations.get(CLAIM_ANNOTATION) != "true":
            return
        name = self._to_create.get((item.metadata.namespace, owner.uid))
        assumed = None if name is None else self._cluster.objects.devices.claims.get(name)
        if name is None or assumed is None or not _has_devices_of(item, assumed):
            return  # its devices are not written yet, or another scheduler made it
        del self._to_create[item.metadata.namespace, owner.uid]
        self._drop(name)
        self._cluster.forget_object(assumed)

    def _drop(self, name: tuple[str, str]) -> None:
        self._assumed.pop(name, None)
        self._cluster.objects.devices.end_flight(name)


def _has_devices_of(claim: ResourceClaim, other: ResourceClaim) -> bool:
    has, wanted = claim.status.allocation, other.status.allocation
    return has is not None and wanted is not None and is_same(has, wanted)
