"""Dead ends: parts of the search for devices that have no solution, so that it need not look there.

The search must find what kube-scheduler finds, and fail as it fails. So it skips only what provably ends in nothing:

- what follows a state in which it failed before;
- a device that nothing tells apart from one that was tried in its place;
- everything, while a request that is still to come has too few devices left.

The last two need to know that nothing can fail: no selector, and no constraint on a request for all devices. The search
must run into an error, or not, as kube-scheduler's does. None is used with a constraint that `forgets`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from situate.core.devices.allocated import PoolUse
from situate.core.devices.constraints import attribute_of
from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import Pool, PoolDevice
from situate.core.devices.requests import MOST_DEVICES, ClaimAsks, DeviceAsk, Taken
from situate.core.devices.taints import is_tolerated

HARD: Final = 256
"""After how many steps a search looks out for dead ends. Most find their devices at once."""
REMEMBERED: Final = 1 << 16
"""How many states without a solution are remembered."""


class DeadEnds:
    """What is known of one search. Sets of devices are bits by position."""

    def __init__(
        self, claims: Sequence[ClaimAsks], devices: Sequence[PoolDevice], pools: Sequence[tuple[Pool, PoolUse]]
    ) -> None:
        """Raises TimedOutError if the selectors are too much work."""
        self._claims = claims
        self._devices = devices
        self._of_pool = [at for at, (pool, _) in enumerate(pools) if pool.usable for _ in pool.devices]
        self._pools = pools
        self._failed: dict[Hashable, None] = {}
        self._fitting: dict[DeviceAsk, int] = {}
        """The devices that could serve each request, if nothing else took them."""
        self._alike: list[int] | None = None
        """By device: a number that devices share which nothing tells apart."""
        self._to_come: list[list[list[list[tuple[int, int]]]]] | None = None
        """By claim and request: the requests that follow, each with its alternatives: what fits, and how many."""
        try:
            self._find_fitting()
        except AllocationError:
            return
        if not any(map(_may_fail, claims)):
            self._alike = self._classes()
            if all(map(_counts_fit, claims)):
                self._to_come = self._requests_to_come()

    # -- states ----------------------------------------------------------------------------------------------------

    def is_known(self, state: Hashable) -> bool:
        """Whether the search failed from this state on."""
        return state in self._failed

    def remember(self, state: Hashable) -> None:
        if len(self._failed) < REMEMBERED:
            self._failed[state] = None

    # -- devices that nothing tells apart --------------------------------------------------------------------------

    def kind_of(self, at: int) -> int:
        """A number that the device shares with those that can take its place; its own if there are none."""
        return at if self._alike is None else self._alike[at]

    def _classes(self) -> list[int]:
        numbers: dict[Hashable, int] = {}
        return [numbers.setdefault(self._signature(at), at) for at in range(len(self._devices))]

    def _signature(self, at: int) -> Hashable:
        """All that the search asks about a device."""
        one, number = self._devices[at], self._of_pool[at]
        use = self._pools[number][1]
        if one.device.name in use.shared:
            return at
        constraints = (constraint for claim in self._claims for constraint in claim.constraints)
        return (
            number,
            one.content if one.device.allow_multiple_allocations else None,
            one.device.name in use.exclusive,
            tuple((name, tuple(sorted(counters.items()))) for name, counters in sorted(one.consumes.items())),
            tuple(attribute_of(one.device, one.slice.spec.driver, each.attribute) for each in constraints),
            tuple(fitting >> at & 1 for fitting in self._fitting.values()),
        )

    # -- requests to come ------------------------------------------------------------------------------------------

    def too_few(self, claim: int, request: int, ask: DeviceAsk, missing: int, start: int, marked: int) -> bool:
        """Whether a request has too few devices left: this one, of which some are missing, or one that follows.

        `marked`: the devices that are taken and not shared.
        """
        if self._to_come is None:
            return False
        free = ~marked
        here = self._fitting[ask] if ask.is_admin else self._fitting[ask] & free
        if ask.all is None:
            here >>= start
        if here.bit_count() < missing:
            return True
        return any(
            all((fitting & free).bit_count() < count for fitting, count in alternatives)
            for alternatives in self._to_come[claim][request]
        )

    def _find_fitting(self) -> None:
        """Raises AllocationError if a selector fails, or an answer is too much work."""
        for claim in self._claims:
            for alternatives in claim.requests:
                for ask in alternatives:
                    positions = range(len(self._devices)) if ask.all is None else ask.all
                    self._fitting[ask] = sum(1 << at for at in positions if self._fits(ask, at))

    def _fits(self, ask: DeviceAsk, at: int) -> bool:
        one, (pool, use) = self._devices[at], self._pools[self._of_pool[at]]
        return (
            (ask.is_admin or one.device.name not in use.exclusive)
            and ask.selects(at, pool, one)
            and ask.takes(at, one) is not None
            and all(is_tolerated(taint, ask.request.tolerations) for taint in one.device.taints)
        )

    def _requests_to_come(self) -> list[list[list[list[tuple[int, int]]]]]:
        later: list[list[tuple[int, int]]] = []
        found: list[list[list[list[tuple[int, int]]]]] = []
        for claim in reversed(self._claims):
            rows: list[list[list[tuple[int, int]]]] = []
            for alternatives in reversed(claim.requests):
                rows.insert(0, list(later))
                if not any(ask.is_admin for ask in alternatives):
                    later.append([(self._fitting[ask], ask.count) for ask in alternatives])
            found.insert(0, rows)
        return found


def _counts_fit(claim: ClaimAsks) -> bool:
    """Whether no alternatives make the result of the claim too long."""
    return sum(max(ask.count for ask in alternatives) for alternatives in claim.requests) <= MOST_DEVICES


def _may_fail(claim: ClaimAsks) -> bool:
    """Whether taking a device may be an error: where all must be taken and a constraint forbids one."""
    return bool(claim.constraints) and any(ask.all is not None for each in claim.requests for ask in each)


def sharing_key(sharing: Mapping[int, Sequence[Taken]]) -> Hashable:
    """What was taken of shared devices."""
    return tuple(
        (at, tuple(tuple((name, amount.nanos) for name, amount in sorted(taken.items())) for taken in takings))
        for at, takings in sorted(sharing.items())
    )
