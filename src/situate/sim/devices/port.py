"""Claims as a scheduler reads and writes them: requests and answers take time, and some are lost.

A request that was sent is carried out even if the scheduler is killed meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias, assert_never

from msgspec.structs import replace

from situate.core.changes import Millis, PodRef
from situate.core.devices.extended import CLAIM_ANNOTATION
from situate.core.model.devices import (
    AllocationResult,
    DeviceClaim,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from situate.core.model.meta import ObjectMeta, OwnerReference, key_of
from situate.core.model.pod import ContainerExtendedResourceRequest, Pod, PodExtendedResourceClaimStatus
from situate.core.state.pods import timestamp_text
from situate.loop.scheduling.port import (
    ASSIGNED,
    AllocateClaim,
    ClaimError,
    ClaimOutcome,
    ClaimWrite,
    CreateClaim,
    DeallocateClaim,
    DeleteClaim,
    ExtendedStatus,
    InFlightLimits,
    ProtectClaim,
    ReserveClaim,
    UnreserveClaim,
)
from situate.sim.devices.claim_server import ClaimServer, WriteProblem
from situate.sim.faults import Faults
from situate.sim.store import ObjectStore
from situate.sim.timeline import Timeline

REQUEST_MS: Final = (1, 30)
SLOW_MS: Final = (200, 3_000)
LIMITS: Final = InFlightLimits(binds=1, notes=1, evictions=1, volumes=1, claims=8, events=1)
UNAVAILABLE: Final = "etcdserver: leader changed"
TIMEOUT: Final = "Timeout: request did not complete within the allotted duration"

StatusWrite: TypeAlias = AllocateClaim | ReserveClaim | UnreserveClaim | DeallocateClaim


class SimulatedClaimPort:
    """For one scheduler, from one start to the next. It has what a ClaimBinder needs of a SchedulingPort."""

    limits = LIMITS

    def __init__(
        self,
        timeline: Timeline,
        rng: Random,
        store: ObjectStore,
        server: ClaimServer,
        around: Callable[[bool], None],
    ) -> None:
        """`around` is called with True before each write is carried out, and with False after it."""
        self.faults = Faults()
        self.killed = False
        self._timeline = timeline
        self._rng = rng
        self._store = store
        self._server = server
        self._around = around

    async def read_resource_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        await self._travel()
        if self._rng.random() < self.faults.claims_fail:
            raise ClaimError(UNAVAILABLE)
        claim = self._server.get(f"{namespace}/{name}")
        await self._travel()
        return claim

    async def read_pod(self, ref: PodRef) -> Pod | None:
        await self._travel()
        if self._rng.random() < self.faults.claims_fail:
            raise ClaimError(UNAVAILABLE)
        pod = self._store.find(ref)
        await self._travel()
        return pod

    async def write_resource_claim(self, write: ClaimWrite) -> ClaimOutcome:
        done: asyncio.Future[ClaimOutcome] = asyncio.get_running_loop().create_future()
        self._timeline.after(self._delay_ms(), self._arrive, write, done)
        outcome = await done
        await self._travel()
        return outcome

    async def _travel(self) -> None:
        await asyncio.sleep(self._delay_ms() / 1_000)

    def _delay_ms(self) -> Millis:
        slow = self._rng.random() < self.faults.server_is_slow
        return self._rng.randint(*(SLOW_MS if slow else REQUEST_MS))

    # -- the server's side -----------------------------------------------------------------------------------------

    def _arrive(self, write: ClaimWrite, done: asyncio.Future[ClaimOutcome]) -> None:
        if self.killed and self._rng.random() < 0.5:
            return  # it died before it sent this
        outcome = ClaimOutcome(UNAVAILABLE, retry=True)
        if self._rng.random() >= self.faults.claims_fail:
            if self._rng.random() < self.faults.claims_conflict:
                self._touch(write)
            self._around(True)
            try:
                outcome = self._carry_out(write)
            finally:
                self._around(False)
        if self._rng.random() < self.faults.claims_are_unsure:
            outcome = ClaimOutcome(TIMEOUT, retry=True, lost=True)
        if not self.killed and not done.done():
            done.set_result(outcome)

    def _touch(self, write: ClaimWrite) -> None:
        """Somebody else writes the claim a moment before, with nothing new."""
        if not isinstance(write, CreateClaim | ExtendedStatus):
            claim = self._server.get(key_of(write.claim.metadata))
            if claim is not None and not (
                claim.metadata.deletion_timestamp is not None and not self._server.is_protected(claim)
            ):
                self._server.protect(claim, protected=self._server.is_protected(claim))

    def _carry_out(self, write: ClaimWrite) -> ClaimOutcome:
        match write:
            case CreateClaim(pod, name, requests):
                problem = self._server.create(
                    _extended(pod, name, ResourceClaimSpec(devices=DeviceClaim(requests=requests)))
                )
                return self._outcome(f"{pod.namespace}/{name}", problem)
            case ProtectClaim(claim):
                if self._server.is_protected(claim):
                    return ClaimOutcome(claim=claim)
                return self._outcome(key_of(claim.metadata), self._server.protect(claim, protected=True))
            case DeleteClaim(claim):
                problem = self._server.protect(claim, protected=False) if self._server.is_protected(claim) else ""
                if not problem:
                    self._server.delete(key_of(claim.metadata), claim.metadata.uid)
                return self._outcome("", problem)
            case AllocateClaim() | ReserveClaim() | UnreserveClaim() | DeallocateClaim():
                return self._outcome(
                    key_of(write.claim.metadata), self._server.write_status(write.claim, self._status(write))
                )
            case ExtendedStatus(pod, name, mappings):
                found = self._store.find(pod)
                if found is None:
                    return ClaimOutcome(f'pods "{pod.name}" not found')
                if node := found.spec.node_name:
                    return ClaimOutcome(ASSIGNED.format(pod.name, node))
                served = tuple(
                    ContainerExtendedResourceRequest(
                        container_name=one.container, resource_name=one.resource, request_name=one.request
                    )
                    for one in mappings
                )
                named = PodExtendedResourceClaimStatus(resource_claim_name=name, request_mappings=served)
                self._store.put_pod(replace(found, status=replace(found.status, extended_resource_claim_status=named)))
                return ClaimOutcome()
            case _:
                assert_never(write)

    def _status(self, write: StatusWrite) -> ResourceClaimStatus:
        status = write.claim.status
        match write:
            case AllocateClaim(_, allocation, pod):
                return replace(status, allocation=self._stamped(allocation), reserved_for=(_user(pod),))
            case ReserveClaim(_, pod):
                return replace(status, reserved_for=(*status.reserved_for, _user(pod)))
            case UnreserveClaim(_, pod):
                kept = tuple(one for one in status.reserved_for if one.uid != pod.uid)
                return replace(status, reserved_for=kept)
            case DeallocateClaim():
                return ResourceClaimStatus()

    def _stamped(self, allocation: AllocationResult) -> AllocationResult:
        return replace(allocation, allocation_timestamp=timestamp_text(self._timeline.now // 1_000 * 1_000))

    def _outcome(self, key: str, problem: WriteProblem) -> ClaimOutcome:
        if problem:
            # As the live ports have it: what was refused for the devices, and a claim that is there, are conflicts.
            return ClaimOutcome(f"{key}: {problem}", retry=problem in ("conflict", "refused", "already exists"))
        return ClaimOutcome(claim=self._server.get(key))


def _user(pod: PodRef) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)


def _extended(pod: PodRef, name: str, spec: ResourceClaimSpec) -> ResourceClaim:
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    metadata = ObjectMeta(
        name=name,
        namespace=pod.namespace,
        annotations={CLAIM_ANNOTATION: "true"},
        owner_references=(owner,),
    )
    return ResourceClaim(metadata=metadata, spec=spec)
