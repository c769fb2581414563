"""Extended resources that devices serve: which DeviceClass stands behind a name, and the claim for a pod's requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from situate.core.model.devices import (
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.pod import Container, Pod
from situate.core.model.quantity import NANO, parse_quantity
from situate.core.model.resources import is_extended
from situate.core.model.timestamp import epoch_ms

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Before the name of a DeviceClass: the extended resource that every class serves."""

CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IN_MEMORY_NAME: Final = "<extended-resources>"
"""The name of the claim for extended resources until it is created."""


@lru_cache(maxsize=1024)
def may_be_served(resource: str) -> bool:
    """Whether devices may stand behind this resource name."""
    return resource.startswith(IMPLICIT_PREFIX) or is_extended(resource)


class ExtendedResources:
    """Resource name -> the DeviceClass that serves it, maintained class by class as kube-scheduler does.

    Of two classes with one name the newer one wins, then the one whose name is lower. A class that loses when it comes
    is ignored altogether; one that loses later keeps its implicit name.
    """

    __slots__ = ("_winners", "classes")

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}
        self._winners: dict[str, DeviceClass] = {}
        """Resource name -> the class as it was when it won."""

    def put(self, before: DeviceClass | None, after: DeviceClass | None) -> None:
        if after is None:
            if before is not None:
                self._remove(before)
            return
        name = after.spec.extended_resource_name
        rival = None if name is None else self._winners.get(name)
        if rival is not None and not _wins(after, rival):
            return
        if before is not None:
            self._remove(before)
        for served in (IMPLICIT_PREFIX + after.metadata.name, name):
            if served is not None:
                self._winners[served] = after
                self.classes[served] = after.metadata.name

    def _remove(self, one: DeviceClass) -> None:
        for served in (IMPLICIT_PREFIX + one.metadata.name, one.spec.extended_resource_name):
            if served is not None:
                self._winners.pop(served, None)
                self.classes.pop(served, None)


def _wins(one: DeviceClass, rival: DeviceClass) -> bool:
    mine, theirs = _created(one), _created(rival)
    return mine > theirs or (mine == theirs and one.metadata.name.encode() < rival.metadata.name.encode())


def _created(one: DeviceClass) -> int:
    stamp = one.metadata.creation_timestamp
    return -1 if stamp is None else epoch_ms(stamp)


def is_extended_claim_of(claim: ResourceClaim, pod: ObjectMeta) -> bool:
    """Whether a claim was made for the extended resources of a pod."""
    if claim.metadata.annotations.get(CLAIM_ANNOTATION) != "true":
        return False
    return any(
        owner.name == pod.name and owner.controller and owner.uid == pod.uid
        for owner in claim.metadata.owner_references
    )


@dataclass(frozen=True, slots=True)
class RequestMapping:
    """Which request of the claim serves a container's extended resource."""

    container: str
    resource: str
    request: str


@dataclass(frozen=True, slots=True)
class ExtendedResourceClaim:
    """The claim for the extended resources that devices of one node serve."""

    claim: ResourceClaim
    mappings: tuple[RequestMapping, ...]


def extended_claim(pod: Pod, resources: Iterable[str], classes: Mapping[str, str]) -> ExtendedResourceClaim:
    """The claim for these resources of a pod; `classes` is the class of each."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    initial = len(pod.spec.init_containers)
    short = [at for at in range(initial) if containers[at].restart_policy != "Always"]
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        found, mapped = _requests_for(resource, classes[resource], containers, short)
        requests += found
        mappings += mapped
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    metadata = ObjectMeta(
        name=IN_MEMORY_NAME,
        namespace=pod.metadata.namespace,
        uid=f"{pod.metadata.uid}-extended-resources",
        annotations={CLAIM_ANNOTATION: "true"},
        owner_references=(owner,),
    )
    requests.sort(key=lambda request: request.name)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return ExtendedResourceClaim(ResourceClaim(metadata=metadata, spec=spec), tuple(mappings))


def _requests_for(
    resource: str, device_class: str, containers: Sequence[Container], short: Sequence[int]
) -> tuple[list[DeviceRequest], list[RequestMapping]]:
    """The requests for one resource. Init containers that end reuse what later containers hold."""
    lasting: dict[int, DeviceRequest] = {}
    mappings: list[RequestMapping] = []
    for at, container in enumerate(containers):
        if at in short or not (count := _count(container, resource)):
            continue
        lasting[at] = _request(at, container, resource, device_class, count)
        mappings.append(RequestMapping(container.name, resource, lasting[at].name))
    largest: DeviceRequest | None = None
    own: dict[str, None] = {}
    reused: list[RequestMapping] = []
    for at in short:
        container = containers[at]
        missing = _count(container, resource)
        for later, request in lasting.items():
            if later >= at and missing > 0:
                missing -= _size(request)
                reused.append(RequestMapping(container.name, resource, request.name))
        if missing > 0:
            request = _request(at, container, resource, device_class, missing)
            own[request.name] = None
            reused.append(RequestMapping(container.name, resource, request.name))
            if largest is None or _size(largest) < missing:
                largest = request
    if largest is not None:
        reused = [
            RequestMapping(one.container, one.resource, largest.name if one.request in own else one.request)
            for one in reused
        ]
    return [*([] if largest is None else [largest]), *lasting.values()], mappings + reused


def _count(container: Container, resource: str) -> int:
    """The whole number that a container requests; 0 if it is none."""
    nanos = parse_quantity(container.resources.requests.get(resource, 0))
    return nanos // NANO if nanos % NANO == 0 else 0


def _request(at: int, container: Container, resource: str, device_class: str, count: int) -> DeviceRequest:
    index = sorted(container.resources.requests).index(resource)
    exactly = DeviceSubRequest(device_class_name=device_class, allocation_mode=EXACT_COUNT, count=count)
    return DeviceRequest(name=f"container-{at}-request-{index}", exactly=exactly)


def _size(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
