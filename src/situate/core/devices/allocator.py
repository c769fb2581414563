"""The search for devices: the first complete solution for the claims of a pod on one node, in kube-scheduler's order.

It goes depth first through claims, requests, alternatives and devices, and takes back what led nowhere. It is
exhaustive, so it may take exponential time: it skips dead ends, and ends when its budget is spent.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from situate.core.devices.allocated import PoolUse
from situate.core.devices.budget import TimedOutError
from situate.core.devices.capacity import is_left
from situate.core.devices.dead_ends import HARD, DeadEnds, sharing_key
from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import Pool, PoolDevice
from situate.core.devices.requests import MOST_DEVICES, AllocatorInputs, ClaimAsks, DeviceAsk, Taken, claim_asks
from situate.core.devices.taints import is_tolerated
from situate.core.model.devices import ResourceClaim


@dataclass(frozen=True, slots=True)
class Pick:
    """One device for one request: its position, the number of the alternative, and what is consumed if it is shared."""

    at: int
    request: int
    alternative: int
    consumed: Taken | None


Solution: TypeAlias = tuple[tuple[Pick, ...], ...]
"""For each claim, its devices. It holds for every node with equal pools and equal use."""


@dataclass(frozen=True, slots=True)
class NoSolution:
    """The claims cannot be had on the node."""

    invalid_pools: bool = False


class _TooManyDevicesError(Exception):
    """The result of a claim would get too long. Other devices do not help; another alternative may."""


def allocate(
    claims: Sequence[ResourceClaim],
    pools: Sequence[tuple[Pool, PoolUse]],
    inputs: AllocatorInputs,
) -> Solution | NoSolution:
    """Raises AllocationError if the claims cannot be judged, TimedOutError if that is too much work."""
    return _Search(claims, pools, inputs).run()


@dataclass(slots=True)
class _Taking:
    """What has to be undone when a device is taken back."""

    at: int
    counters: bool = False
    constraints: int = 0
    consumed: Taken | None = None


class _Search:
    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        pools: Sequence[tuple[Pool, PoolUse]],
        inputs: AllocatorInputs,
    ) -> None:
        self._rules = inputs.rules
        self._budget = inputs.budget
        self._invalid = any(pool.invalid for pool, _ in pools)
        self._pools = pools
        self._devices: list[PoolDevice] = []
        self._pool_at: list[int] = []
        starts = []
        for number, (pool, _) in enumerate(pools):
            starts.append(len(self._devices))
            if pool.usable:
                self._devices.extend(pool.devices)
                self._pool_at.extend([number] * len(pool.devices))
        self._claims: list[ClaimAsks] = [claim_asks(claim, pools, starts, inputs) for claim in claims]
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._marked: dict[int, list[int]] = {}
        """Devices that were picked and that are not shared: for which claims."""
        self._sharing: dict[int, list[Taken]] = {}
        """Shared devices that were picked: what each pick consumes."""
        self._available: dict[int, dict[tuple[str, str], int]] = {}
        """By pool: what is left of its counters."""
        self._bits = [0] * len(claims)
        """The marked devices of each claim, as bits."""
        self._steps = 0
        self._forgets = any(one.forgets for claim in self._claims for one in claim.constraints)
        self._dead_ends: DeadEnds | None = None

    def run(self) -> Solution | NoSolution:
        try:
            solved = self._solve(0, 0)
        except _TooManyDevicesError:
            solved = False
        except RecursionError:
            raise TimedOutError from None
        if solved:
            return tuple(tuple(picks) for picks in self._picks)
        return NoSolution(self._invalid)

    # -- requests --------------------------------------------------------------------------------------------------

    def _solve(self, claim: int, request: int) -> bool:
        """Whether there is a solution for this request and all that follow."""
        if claim == len(self._claims):
            return True
        requests = self._claims[claim].requests
        if request == len(requests):
            try:
                return self._solve(claim + 1, 0)
            except _TooManyDevicesError:
                return False  # with fewer devices for the claims before, another alternative may be left
        asks = requests[request]
        if not asks[0].parent:
            return self._devices_for(claim, request, 0, 0, 0)
        all_too_many = True
        for alternative in range(len(asks)):
            try:
                if self._devices_for(claim, request, alternative, 0, 0):
                    return True
            except _TooManyDevicesError:
                continue
            all_too_many = False
        if all_too_many:
            raise _TooManyDevicesError
        return False

    def _devices_for(self, claim: int, request: int, alternative: int, taken: int, start: int) -> bool:
        """Find the remaining devices of a request, from a position on, and a solution for all that follows."""
        self._budget.spend(1)
        ask = self._claims[claim].requests[request][alternative]
        if ask.all is not None and not ask.all:
            return False
        if taken >= ask.count:
            return self._solve(claim, request + 1)
        if len(self._picks[claim]) + ask.count - taken > MOST_DEVICES:
            raise _TooManyDevicesError
        self._steps += 1
        if self._steps < HARD or self._forgets:
            return self._try_devices(claim, request, alternative, taken, start)
        if self._dead_ends is None:
            self._dead_ends = DeadEnds(self._claims, self._devices, self._pools)
        if self._dead_ends.too_few(claim, request, ask, ask.count - taken, start, self._all_bits()):
            return False
        state = self._state(claim, request, alternative, taken, start)
        if self._dead_ends.is_known(state):
            return False
        found = self._try_devices(claim, request, alternative, taken, start)
        if not found:
            self._dead_ends.remember(state)
        return found

    def _state(self, claim: int, request: int, alternative: int, taken: int, start: int) -> Hashable:
        """All that decides whether the rest of the search finds a solution."""
        constraints = tuple(one.state for one in self._claims[claim].constraints)
        picked = len(self._picks[claim])
        sharing = sharing_key(self._sharing) if self._sharing else ()
        return (claim, request, alternative, taken, start, picked, tuple(self._bits), sharing, constraints)

    def _all_bits(self) -> int:
        found = 0
        for bits in self._bits:
            found |= bits
        return found

    def _try_devices(self, claim: int, request: int, alternative: int, taken: int, start: int) -> bool:
        ask = self._claims[claim].requests[request][alternative]
        if ask.all is not None:
            taking = self._take(claim, ask, ask.all[taken], must=True)
            return taking is not None and self._go_on(claim, request, alternative, taken, 0, taking)
        tried: dict[int, None] = {}
        for at in range(start, len(self._devices)):
            one = self._devices[at]
            self._budget.spend(1)
            if self._in_use(claim, ask, at, one):
                continue
            if self._dead_ends is not None and at not in self._sharing:
                kind = self._dead_ends.kind_of(at)
                if kind in tried:
                    continue
                tried[kind] = None
            pool = self._pools[self._pool_at[at]][0]
            if not ask.selects(at, pool, one) or not self._has_capacity(ask, at, one):
                continue
            taking = self._take(claim, ask, at, must=False)
            if taking is not None and self._go_on(claim, request, alternative, taken, at + 1, taking):
                return True
        return False

    def _go_on(self, claim: int, request: int, alternative: int, taken: int, start: int, taking: _Taking) -> bool:
        """Record the pick and find the rest; take the device back if that leads nowhere."""
        self._picks[claim].append(Pick(taking.at, request, alternative, taking.consumed))
        done = False
        try:
            done = self._devices_for(claim, request, alternative, taken + 1, start)
        finally:
            if not done:
                self._picks[claim].pop()
                self._take_back(claim, self._claims[claim].requests[request][alternative], taking)
        return done

    # -- devices ---------------------------------------------------------------------------------------------------

    def _use(self, at: int) -> PoolUse:
        return self._pools[self._pool_at[at]][1]

    def _in_use(self, claim: int, ask: DeviceAsk, at: int, one: PoolDevice) -> bool:
        """Admin access looks only at what the same claim has."""
        marked = self._marked.get(at, ())
        if ask.is_admin:
            return claim in marked
        return bool(marked) or one.device.name in self._use(at).exclusive

    def _has_capacity(self, ask: DeviceAsk, at: int, one: PoolDevice) -> bool:
        taken = ask.takes(at, one)
        if taken is None:
            return False
        others, picked = self._use(at).consumed(one.device.name), self._sharing.get(at)
        if not others and not picked:
            return True
        return is_left(one.device, taken, others, _total(picked) if picked else None)

    def _take(self, claim: int, ask: DeviceAsk, at: int, *, must: bool) -> _Taking | None:
        """Take a device, if counters, taints, constraints and capacity allow it."""
        one = self._devices[at]
        if self._in_use(claim, ask, at, one):
            return None
        shared = one.device.allow_multiple_allocations
        taking = _Taking(at)
        if one.consumes and not (shared and self._is_shared_already(at, one)):
            if not self._pay(at, one):
                return None
            taking.counters = True
        if not all(is_tolerated(taint, ask.request.tolerations) for taint in one.device.taints):
            self._take_back(claim, ask, taking, only_checked=True)
            return None
        for constraint in self._claims[claim].constraints:
            if not constraint.add(ask.base, ask.alternative, one.device, one.slice.spec.driver):
                self._take_back(claim, ask, taking, only_checked=True)
                if must:
                    raise AllocationError(self._unsatisfied(ask, at))
                return None
            taking.constraints += 1
        if not self._has_capacity(ask, at, one):
            self._take_back(claim, ask, taking, only_checked=True)
            return None
        if shared:
            taking.consumed = ask.takes(at, one) or {}
            self._sharing.setdefault(at, []).append(taking.consumed)
        else:
            self._marked.setdefault(at, []).append(claim)
            self._bits[claim] |= 1 << at
        return taking

    def _unsatisfied(self, ask: DeviceAsk, at: int) -> str:
        pool = self._pools[self._pool_at[at]][0]
        device = f"{pool.driver}/{pool.name}/{self._devices[at].device.name}"
        told = f"cannot add device {device} because a claim constraint would not be satisfied"
        return f"claim {ask.claim}, request {ask.request.name}: {told}"

    def _take_back(self, claim: int, ask: DeviceAsk, taking: _Taking, *, only_checked: bool = False) -> None:
        at = taking.at
        if not only_checked:
            table: dict[int, list[int]] | dict[int, list[Taken]]
            table = self._marked if taking.consumed is None else self._sharing
            table[at].pop()
            if not table[at]:
                del table[at]
            if taking.consumed is None:
                self._bits[claim] &= ~(1 << at)
        for constraint in reversed(self._claims[claim].constraints[: taking.constraints]):
            constraint.remove(ask.base, ask.alternative)
        if taking.counters:
            self._move_counters(at, self._devices[at], 1)

    # -- counters --------------------------------------------------------------------------------------------------

    def _is_shared_already(self, at: int, one: PoolDevice) -> bool:
        """Whether its counters are paid: 1.36 knows that by the capacity that others consume."""
        shares = self._use(at).shared.get(one.device.name)
        if shares is not None and (shares.with_capacity > 0 or self._rules.counters_charged_once):
            return True
        return at in self._sharing

    def _pay(self, at: int, one: PoolDevice) -> bool:
        """Charge a device's counters; False if that overdraws any counter of the pool."""
        number = self._pool_at[at]
        if number not in self._available:
            self._available[number] = counters_left(*self._pools[number])
        self._move_counters(at, one, -1)
        if min(self._available[number].values(), default=0) >= 0:
            return True
        self._move_counters(at, one, 1)
        return False

    def _move_counters(self, at: int, one: PoolDevice, sign: int) -> None:
        available = self._available[self._pool_at[at]]
        for name, counters in one.consumes.items():
            for counter, nanos in counters.items():
                available[name, counter] += sign * nanos


def counters_left(pool: Pool, use: PoolUse) -> dict[tuple[str, str], int]:
    """What the allocated devices leave of a pool's counters."""
    found = {(name, counter): nanos for name, counters in pool.counters.items() for counter, nanos in counters.items()}
    for one in (*pool.devices, *pool.others):
        if one.consumes and use.is_allocated(one.device.name):
            for name, counters in one.consumes.items():
                for counter, nanos in counters.items():
                    found[name, counter] -= nanos
    return found


def _total(picked: Sequence[Taken]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for taken in picked:
        for name, amount in taken.items():
            found[name] = found.get(name, 0) + amount.nanos
    return found
