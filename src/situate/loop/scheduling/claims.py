"""Writes the devices of a reserved pod in its ResourceClaims, reserves the claims for it, and waits until the devices
are ready; gives claims and devices back when the pod is not bound after all.

Each claim is written only in the version that was read, first the one that the engine knows: a claim that somebody else
allocated meanwhile stays as it is. If it is unknown whether a write was made, the claim is read until that is known.
The engine gets all claims with the answer, so it knows which devices are taken before any watch shows it.

What the scheduler before us has sent may still arrive when we start, also a bind. Nobody can take back the devices of a
pod at that moment and be sure that it is not bound, so nothing is taken back in the first SETTLED_S.

An extended resource gets a claim that is created here. Its name is chosen here, too, so a claim whose creation was not
answered is found again; it is a name that no other scheduler chooses.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias
from uuid import uuid4

from situate.core.changes import ClaimsBound, ClaimsFailed, PodRef
from situate.core.devices.claims import binding_failure, is_prepared, is_same
from situate.core.effects import BindClaims, ClaimToBind, ClaimToCreate, ReleaseClaim, UnreserveClaims
from situate.core.model.devices import ResourceClaim
from situate.core.model.timestamp import epoch_ms
from situate.loop.logs import Log
from situate.loop.scheduling.claim_changes import (
    deallocated,
    deleted,
    extended_claim_name,
    holds,
    is_for,
    unreserved,
)
from situate.loop.scheduling.port import (
    NOT_LEADER,
    AllocateClaim,
    ClaimError,
    ClaimOutcome,
    ClaimWrite,
    CreateClaim,
    ExtendedStatus,
    ProtectClaim,
    ReserveClaim,
    SchedulingPort,
)
from situate.loop.scheduling.pre_bind import PreBindAttempts
from situate.loop.scheduling.view import EngineView

TRIES: Final = 6
"""How often to write one claim, where somebody else is always quicker."""
RETRY_S: Final = 0.02
"""How long to wait after a write that failed; RETRY_FACTOR times as long after each later one."""
RETRY_FACTOR: Final = 3
RETRY_MAX_S: Final = 5.0
SETTLED_S: Final = 5.0
"""How long what an earlier scheduler has sent may still arrive. With leader election, a lease is not taken over before.
"""
REMEMBERED: Final = 1 << 16
"""For how many pods to remember the claim that was created for them."""

RUNNING_PREBIND: Final = 'running PreBind plugin "DynamicResources": '
DELETED: Final = "claim {}/{} got deleted in the meantime"
ALLOCATED: Final = "claim {}/{} got allocated elsewhere in the meantime"
DEALLOCATED: Final = "claim {}/{} got deallocated elsewhere in the meantime"
BINDING_FAILED: Final = "device binding failed: claim={}, reason={}, message={}"
TIMED_OUT: Final = "device binding timeout: claim={}"
NO_MAPPINGS: Final = "nil or empty request mappings, no update of pod {} ExtendedResourceClaimStatus"
OVERTAKEN: Final = "the pod is decided again"

_log = Log(__name__)

_Needed: TypeAlias = Callable[[ResourceClaim], ClaimWrite | None]
"""What has to be written to give a claim back as it is; None: nothing."""


@dataclass(slots=True, eq=False)
class _Wait:
    """A pod whose devices are written, and not all ready."""

    effect: BindClaims
    claims: tuple[str, ...]
    until: float
    found: dict[str, ResourceClaim]


@dataclass(slots=True, eq=False)
class _Binding:
    """What is known of a BindClaims that is being carried out."""

    effect: BindClaims
    known: Mapping[str, ResourceClaim | None]
    """The claims, by name, as they were decided on."""
    found: dict[str, ResourceClaim] = field(default_factory=dict)
    """The claims, by name, as they were last read or written."""


class ClaimBinder:
    """All pods whose devices are being written."""

    def __init__(
        self,
        port: SchedulingPort,
        objects: EngineView,
        answer: Callable[[ClaimsBound | ClaimsFailed], None],
        may_write: Callable[[], bool],
        now_ns: Callable[[], int],
        *,
        waits: Callable[[BindClaims], None],
        timeouts_s: Mapping[str, float] | None = None,
        salt: str = "",
        settled_s: float = SETTLED_S,
    ) -> None:
        """`waits` is called when the devices of a pod are written and not ready. `timeouts_s`: by the name of the pod's
        scheduler. `salt` makes the names of created claims its own; none: a random one. `settled_s`: how long after now
        to take nothing back."""
        self._port = port
        self._objects = objects
        self._answer = answer
        self._may_write = may_write
        self._now_ns = now_ns
        self._now_waits = waits
        self._attempts: PreBindAttempts[BindClaims, _Wait] = PreBindAttempts(
            "claims",
            port.limits.claims,
            objects,
            may_write,
            version=lambda: objects.devices_version,
            look_at=self._look_at,
            end=self._end,
            timeouts_s=timeouts_s,
        )
        self._created: OrderedDict[str, str] = OrderedDict()
        """By the pod's uid: the claim for its extended resources, if it was created or may have been."""
        self._salt = salt or uuid4().hex
        self._early: dict[tuple[str, str], tuple[PodRef, _Needed]] | None = None
        """By the pod's uid and the claim's name: what to give back when it is late enough; None: that is now."""
        if settled_s:
            self._early = {}
            asyncio.get_running_loop().call_later(settled_s, self._settled)
        self.look = self._attempts.look
        self.drain = self._attempts.drain

    @property
    def busy(self) -> bool:
        """Whether reads or writes wait or run. Devices that are waited for do not count."""
        return self._attempts.busy

    @property
    def writing(self) -> int:
        """For how many pods devices are still to be written."""
        return self._attempts.writing

    def bind(self, effect: BindClaims) -> None:
        """Begin a BindClaims. Returns at once."""
        if refusal := self._attempts.refusal:
            self._answer(_failed(effect, refusal))
        elif self._attempts.begin(effect):
            self._overtake(effect.pod.uid)
            self._keep(effect)
            known = {one.name: self._objects.resource_claim(effect.pod.namespace, one.name) for one in effect.claims}
            self._attempts.put(effect.pod, partial(self._bind, _Binding(effect, known)), partial(self._end, effect))

    def unreserve(self, effect: UnreserveClaims) -> None:
        """The pod is not bound after all. Returns at once."""
        pod = effect.pod
        self._attempts.give_up(pod.uid)
        self._overtake(pod.uid)
        for name in effect.claims:
            if name:
                self._give_back(pod, name, partial(unreserved, pod))
            elif created := self._created.pop(pod.uid, ""):
                self._give_back(pod, created, partial(deleted, pod))

    def _overtake(self, uid: str) -> None:
        """Wait no longer for the devices of an earlier attempt."""
        wait = self._attempts.stop_waiting(uid)
        if wait is not None:
            self._end(wait.effect, OVERTAKEN, wait.found)

    def release(self, effect: ReleaseClaim) -> None:
        """Take back the devices of a claim. Returns at once."""
        pod = effect.pod
        needed = partial(deleted, pod) if effect.delete else partial(deallocated, pod, effect.uid)
        self._give_back(pod, effect.claim, needed)

    def _keep(self, effect: BindClaims) -> None:
        """The pod can use its claims after all."""
        if self._early:
            for one in effect.claims:
                self._early.pop((effect.pod.uid, one.name), None)

    def _settled(self) -> None:
        early, self._early = self._early, None
        for (_, name), (pod, needed) in (early or {}).items():
            self._give_back(pod, name, needed)

    def _give_back(self, pod: PodRef, name: str, needed: _Needed) -> None:
        """Have a claim given back once it is late enough, if it may be written then. Nobody waits for an answer."""

        async def run() -> None:
            try:
                await self._write_needed(pod, name, needed)
            except ClaimError as error:
                _log.warning("A claim could not be given back", pod=pod.key, claim=name, err=str(error))

        if self._early is not None:
            self._early[pod.uid, name] = pod, needed
        elif not self._attempts.refusal:
            self._attempts.put(pod, run, lambda _problem: None)

    def _end(self, effect: BindClaims, problem: str = "", found: Mapping[str, ResourceClaim] | None = None) -> None:
        """Answer. Also if the engine has asked for something newer since: it has to know what was written."""
        claims = tuple((found or {}).values())
        if not self._attempts.finish(effect) and not problem:
            problem = OVERTAKEN
        if problem:
            self._answer(_failed(effect, problem, claims))
        else:
            self._answer(ClaimsBound(effect.pod, effect.attempt, claims))

    # -- writing -----------------------------------------------------------------------------------------------------

    async def _bind(self, binding: _Binding) -> None:
        effect = binding.effect
        try:
            for one in effect.claims:
                await self._write_devices(binding, one)
            if effect.create is not None:
                await self._create(binding, effect.create)
        except ClaimError as error:
            self._end(effect, str(error), binding.found)
            return
        unready = [name for name, claim in binding.found.items() if not is_prepared(claim)]
        if not unready:
            self._end(effect, found=binding.found)
        elif not self._attempts.is_current(effect):
            self._end(effect, OVERTAKEN, binding.found)
        else:
            now = asyncio.get_running_loop().time()
            left_s = min(self._left_s(effect.pod, binding.found[name]) for name in unready)
            self._now_waits(effect)
            self._attempts.wait(effect, _Wait(effect, tuple(unready), now + left_s, binding.found))

    async def _write_devices(self, binding: _Binding, one: ClaimToBind) -> None:
        """Give a claim its devices, and reserve it for the pod. Raises ClaimError."""
        pod, name = binding.effect.pod, one.name
        claim = self._objects.resource_claim(pod.namespace, name)
        was_read = claim is None
        if claim is None:
            claim = await self._read(pod.namespace, name)
        written = protected = False
        tries_left, pause_s, problem = TRIES, RETRY_S, ""
        while True:
            if claim is not None and claim.metadata.uid == one.uid:
                binding.found[name] = claim
            if claim is None or claim.metadata.uid != one.uid or claim.metadata.deletion_timestamp is not None:
                raise ClaimError(DELETED.format(pod.namespace, name))
            if self._has_devices(one, claim, binding, written=written):
                if was_read:
                    return
                # No write would show that this is no longer so: that we have given the claim back, for example.
                claim, was_read = await self._read(pod.namespace, name), True
                continue
            if not tries_left:
                raise ClaimError(problem)
            outcome = ClaimOutcome(claim=claim)
            if one.allocation is not None and not protected:
                outcome = await self._write(binding, ProtectClaim(claim))
                protected = not outcome.problem
            if not outcome.problem and outcome.claim is not None:
                ours = ReserveClaim(outcome.claim, pod)
                give = None if one.allocation is None else AllocateClaim(outcome.claim, one.allocation, pod)
                outcome = await self._write(binding, give or ours)
                written |= outcome.lost
            if not outcome.problem and outcome.claim is not None:
                binding.found[name] = outcome.claim
                return
            problem = _doing(one, claim, outcome.problem)
            tries_left = tries_left - 1 if outcome.retry else 0
            if not tries_left and not written:
                raise ClaimError(problem)
            if outcome.lost:
                pause_s = await self._pause(pause_s)
            claim = await self._read_now(pod.namespace, name) if written else await self._read(pod.namespace, name)
            was_read = True

    def _has_devices(self, one: ClaimToBind, claim: ResourceClaim, binding: _Binding, *, written: bool) -> bool:
        """Whether nothing is left to write in a claim. Raises ClaimError if it is not as it was decided on."""
        meta, status, pod = claim.metadata, claim.status, binding.effect.pod
        is_ours = any(user.uid == pod.uid for user in status.reserved_for)
        if one.allocation is None:
            known = binding.known.get(one.name)
            had = status.allocation if known is None else known.status.allocation
            if status.allocation is None or had is None or not is_same(had, status.allocation):
                raise ClaimError(DEALLOCATED.format(meta.namespace, meta.name))
            return is_ours
        if status.allocation is None:
            return False
        if written and is_ours and is_same(one.allocation, status.allocation):
            return True  # the write whose answer was lost
        raise ClaimError(ALLOCATED.format(meta.namespace, meta.name))

    async def _create(self, binding: _Binding, create: ClaimToCreate) -> None:
        """Create the claim for extended resources, give it its devices, and name it in the pod. Raises ClaimError."""
        pod = binding.effect.pod
        if not create.mappings:
            raise ClaimError(NO_MAPPINGS.format(pod.key))
        name = extended_claim_name(pod, binding.effect.attempt, self._salt)
        self._remember(pod, name)
        claim = await self._created_claim(binding, CreateClaim(pod, name, create.requests))
        await self._write_devices(binding, ClaimToBind(name, claim.metadata.uid, create.allocation))
        pause_s, problem = RETRY_S, ""
        for _ in range(TRIES):
            outcome = await self._write(binding, ExtendedStatus(pod, name, create.mappings))
            if not outcome.problem:
                return
            problem = outcome.problem
            if not outcome.retry:
                break
            pause_s = await self._pause(pause_s)
        raise ClaimError(problem)

    async def _created_claim(self, binding: _Binding, create: CreateClaim) -> ResourceClaim:
        """The claim of this name, created now or by a request that was not answered. Raises ClaimError."""
        pause_s, problem = RETRY_S, ""
        for _ in range(TRIES):
            outcome = await self._write(binding, create)
            claim = outcome.claim
            if outcome.problem:
                claim = await self._read_now(create.pod.namespace, create.name)
                problem = outcome.problem
            if claim is not None and is_for(claim, create.pod):
                binding.found[create.name] = claim
                return claim
            if not outcome.retry:
                break
            pause_s = await self._pause(pause_s)
        raise ClaimError(problem)

    def _remember(self, pod: PodRef, claim: str) -> None:
        self._created[pod.uid] = claim
        self._created.move_to_end(pod.uid)
        if len(self._created) > REMEMBERED:
            self._created.popitem(last=False)

    async def _write(self, binding: _Binding, write: ClaimWrite) -> ClaimOutcome:
        """Raises ClaimError if nothing may be written any more."""
        if not self._attempts.is_current(binding.effect):
            raise ClaimError(OVERTAKEN)
        if not self._may_write():
            raise ClaimError(NOT_LEADER)
        return await self._port.write_resource_claim(write)

    async def _read(self, namespace: str, name: str) -> ResourceClaim | None:
        """Raises ClaimError."""
        return await self._port.read_resource_claim(namespace, name)

    async def _read_now(self, namespace: str, name: str) -> ResourceClaim | None:
        """Read a claim that may have been written, again and again until it is known. Raises ClaimError if that is no
        longer our business: the next leader, or the next session, reads everything."""
        pause_s = RETRY_S
        while True:
            try:
                return await self._read(namespace, name)
            except ClaimError:
                if self._attempts.refusal:
                    raise
            pause_s = await self._pause(pause_s)

    async def _pause(self, seconds: float) -> float:
        """Wait so long; how long to wait the next time."""
        await asyncio.sleep(seconds)
        return min(seconds * RETRY_FACTOR, RETRY_MAX_S)

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _left_s(self, pod: PodRef, claim: ResourceClaim) -> float:
        """How long the devices of a claim may still take to be ready."""
        timeout_s, allocation = self._attempts.timeout_s(pod), claim.status.allocation
        if allocation is None or allocation.allocation_timestamp is None:
            return timeout_s
        age_ms = self._now_ns() // 1_000_000 - epoch_ms(allocation.allocation_timestamp)
        return min(timeout_s, max(0.0, timeout_s - age_ms / 1_000))

    def _look_at(self, wait: _Wait) -> None:
        try:
            unready = self._unready(wait)
        except ClaimError as error:
            self._end(wait.effect, str(error), wait.found)
            return
        if not unready:
            self._end(wait.effect, found=wait.found)
        elif asyncio.get_running_loop().time() >= wait.until:
            # As in Kubernetes, where the next attempt to place the pod takes these devices back.
            effect, uid = wait.effect, wait.found[unready].metadata.uid
            self.release(ReleaseClaim(effect.pod, unready, uid))
            self._end(effect, TIMED_OUT.format(unready), wait.found)

    def _unready(self, wait: _Wait) -> str:
        """The first claim whose devices are not ready; empty if all are. Raises ClaimError if one will not be."""
        pod = wait.effect.pod
        first = ""
        for name in wait.claims:
            seen = self._objects.resource_claim(pod.namespace, name)
            if seen is None or seen.metadata.uid != wait.found[name].metadata.uid:
                if name in (one.name for one in wait.effect.claims):
                    raise ClaimError(DELETED.format(pod.namespace, name))
                seen = wait.found[name]  # created, and not seen yet
            failure = binding_failure(seen)
            if failure is not None:
                raise ClaimError(BINDING_FAILED.format(name, failure.reason, _quoted(failure.message)))
            if not first and (seen.status.allocation is None or not is_prepared(seen)):
                first = name
        return first

    # -- giving back -------------------------------------------------------------------------------------------------

    async def _write_needed(self, pod: PodRef, name: str, needed: _Needed) -> None:
        """Write what a claim needs, until it needs nothing. Raises ClaimError.

        The pod is read each time: what the engine knows may be older than a bind by another scheduler, or by the one
        before us.
        """
        pause_s, problem = RETRY_S, ""
        for _ in range(TRIES):
            claim = await self._read(pod.namespace, name)
            write = None if claim is None else needed(claim)
            if write is None or claim is None or self._attempts.refusal:
                return
            now = await self._port.read_pod(pod)
            if (now is not None and holds(now, claim)) or self._attempts.refusal:
                return
            outcome = await self._port.write_resource_claim(write)
            problem = outcome.problem
            if not problem:
                return
            if not outcome.retry:
                break
            pause_s = await self._pause(pause_s)
        raise ClaimError(problem)


def _doing(one: ClaimToBind, claim: ResourceClaim, problem: str) -> str:
    what = "add reservation to claim" if one.allocation is None else "add allocation and reservation to claim"
    return f"{what} {claim.metadata.namespace}/{claim.metadata.name}: {problem}"


def _quoted(text: str) -> str:
    """As Go's %q, for plain text."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _failed(effect: BindClaims, problem: str, claims: tuple[ResourceClaim, ...] = ()) -> ClaimsFailed:
    return ClaimsFailed(effect.pod, effect.attempt, RUNNING_PREBIND + problem, claims)
