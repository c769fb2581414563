"""Which devices of a node a request could have, and what keeps the others away: one reason for each device.

Requests are judged one by one: what several of them take from each other is left to `device_details`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Final, NamedTuple

from situate.core.devices.allocated import PoolUse
from situate.core.devices.allocator import counters_left
from situate.core.devices.capacity import consumption, is_left
from situate.core.devices.constraints import attribute_of
from situate.core.devices.inventory import Pool, PoolDevice
from situate.core.devices.requests import AllocatorInputs, alternatives
from situate.core.devices.selectors import SelectorFailedError
from situate.core.devices.taints import is_tolerated
from situate.core.model.devices import ALL, DeviceClass, DeviceConstraint, DeviceSubRequest, DeviceTaint, ResourceClaim
from situate.core.plugins.support.device_shortages import Pools

OF_CLASS: Final = -1
"""The number of a selector that is the class's."""
LONGEST_EXPRESSION: Final = 80
"""How many characters of an expression a text shows."""


@unique
class Obstacle(Enum):
    """What kind of thing keeps a device away."""

    CLASS = "class"
    SELECTOR = "selector"
    ERROR = "error"
    CONSTRAINT = "constraint"
    IN_USE = "in use"
    CAPACITY = "capacity"
    COUNTER = "counter"
    TAINT = "taint"


class DeviceReason(NamedTuple):
    """Why a request cannot have a device. `at` is the number of the selector, or of the constraint."""

    obstacle: Obstacle
    text: str
    at: int = 0
    taint: DeviceTaint | None = None


class RequestName(NamedTuple):
    """One request of one claim, or one alternative of a request, by their numbers."""

    claim: int
    request: int
    alternative: int


@dataclass(slots=True)
class DeviceRequestState:
    """What one node has for one request."""

    name: RequestName
    ask: DeviceSubRequest
    label: str
    """`request gpu`, `request gpu/large`."""
    needed: int
    """How many devices it asks for; for `All`, every device that it selects."""
    usable: list[int] = field(default_factory=list)
    """The positions of the devices that it could have."""
    kept: dict[DeviceReason, list[int]] = field(default_factory=dict)
    """The positions of the others."""

    @property
    def short(self) -> int:
        return max(0, self.needed - len(self.usable))

    @property
    def selected(self) -> int:
        """How many devices it selects, whoever has them."""
        return len(self.usable) + sum(map(len, _selected(self).values()))

    @property
    def total(self) -> int:
        """How many devices its class has here."""
        others = sum(len(those) for why, those in self.kept.items() if why.obstacle is not Obstacle.CLASS)
        return len(self.usable) + others


def listed(pools: Pools) -> list[tuple[Pool, PoolDevice, PoolUse]]:
    """The devices of some pools; a position is an index into this list."""
    return [(pool, one, use) for pool, use in pools if pool.usable for one in pool.devices]


def request_states(claims: Sequence[ResourceClaim], pools: Pools, inputs: AllocatorInputs) -> list[DeviceRequestState]:
    """The state of each request of some claims; of those whose class does not exist, nothing."""
    devices = listed(pools)
    left = {pool.id: counters_left(pool, use) for pool, use in pools if pool.usable and pool.counters}
    found = []
    for number, claim in enumerate(claims):
        for at, request in enumerate(claim.spec.devices.requests):
            for which, (parent, ask) in enumerate(alternatives(request)):
                of = inputs.classes.get(ask.device_class_name)
                if of is None:
                    continue
                label = label_of(parent, ask)
                state = DeviceRequestState(RequestName(number, at, which), ask, label, ask.count or 1)
                constraints = list(_concerning(claim, parent or ask.name, ask.name if parent else ""))
                for position, (pool, one, use) in enumerate(devices):
                    if one.here:
                        reason = _reason(ask, of, constraints, one, use, left.get(pool.id, {}), inputs)
                        _count(state, position, reason)
                if ask.allocation_mode == ALL:
                    state.needed = max(1, state.selected)
                found.append(state)
    return found


def label_of(parent: str, ask: DeviceSubRequest) -> str:
    return f"request {parent}/{ask.name}" if parent else f"request {ask.name}"


def _count(state: DeviceRequestState, position: int, reason: DeviceReason | None) -> None:
    (state.usable if reason is None else state.kept.setdefault(reason, [])).append(position)


def _selected(state: DeviceRequestState) -> Mapping[DeviceReason, list[int]]:
    """What is kept away although the request selects it."""
    aside = (Obstacle.CLASS, Obstacle.SELECTOR, Obstacle.ERROR)
    return {why: those for why, those in state.kept.items() if why.obstacle not in aside}


def _concerning(claim: ResourceClaim, base: str, alternative: str) -> Iterator[tuple[int, DeviceConstraint]]:
    for number, one in enumerate(claim.spec.devices.constraints):
        if not one.requests or base in one.requests or (alternative and f"{base}/{alternative}" in one.requests):
            yield number, one


def _reason(
    ask: DeviceSubRequest,
    of: DeviceClass,
    constraints: Sequence[tuple[int, DeviceConstraint]],
    one: PoolDevice,
    use: PoolUse,
    left: Mapping[tuple[str, str], int],
    inputs: AllocatorInputs,
) -> DeviceReason | None:
    if (found := _not_selected(ask, of, one, inputs)) is not None:
        return found
    for number, constraint in constraints:
        attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        if attribute and attribute_of(one.device, one.slice.spec.driver, attribute) is None:
            return DeviceReason(Obstacle.CONSTRAINT, f"without the attribute {attribute} of a constraint", number)
    if (found := _taken_by_others(ask, one, use, left, inputs)) is not None:
        return found
    for taint in one.device.taints:
        if not is_tolerated(taint, ask.tolerations):
            return DeviceReason(Obstacle.TAINT, f"tainted {device_taint_text(taint)}", taint=taint)
    return None


def _not_selected(
    ask: DeviceSubRequest, of: DeviceClass, one: PoolDevice, inputs: AllocatorInputs
) -> DeviceReason | None:
    for selectors, obstacle in ((of.spec.selectors, Obstacle.CLASS), (ask.selectors, Obstacle.SELECTOR)):
        for number, selector in enumerate(selectors):
            expression = "" if selector.cel is None else selector.cel.expression
            try:
                if inputs.answers.matches(expression, one):
                    continue
            except SelectorFailedError as error:
                whose = f"class {of.metadata.name}" if obstacle is Obstacle.CLASS else "the request"
                at = OF_CLASS if obstacle is Obstacle.CLASS else number
                return DeviceReason(Obstacle.ERROR, f"such that a selector of {whose} fails: {_line(str(error))}", at)
            told = f"of class {of.metadata.name}" if obstacle is Obstacle.CLASS else f"selected by {_line(expression)}"
            return DeviceReason(obstacle, f"not {told}", number)
    return None


def _taken_by_others(
    ask: DeviceSubRequest,
    one: PoolDevice,
    use: PoolUse,
    left: Mapping[tuple[str, str], int],
    inputs: AllocatorInputs,
) -> DeviceReason | None:
    device, name = one.device, one.device.name
    if name in use.exclusive and not ask.admin_access:
        return DeviceReason(Obstacle.IN_USE, "in use")
    taken = consumption(device, ask.capacity, inputs.rules)
    if taken is None:
        return DeviceReason(Obstacle.CAPACITY, f"unable to give {_capacity(ask)}")
    if not is_left(device, taken, use.consumed(name), None):
        return DeviceReason(Obstacle.CAPACITY, f"with less than {_capacity(ask)} left")
    if device.allow_multiple_allocations and name in use.shared:
        return None  # its counters are paid
    for set_, counters in one.consumes.items():
        if any(left.get((set_, counter), 0) < amount for counter, amount in counters.items()):
            return DeviceReason(Obstacle.COUNTER, f"short of counters of {set_}, which other devices use up")
    return None


def _capacity(ask: DeviceSubRequest) -> str:
    asked = {} if ask.capacity is None else ask.capacity.requests
    return ", ".join(f"{amount} {name}" for name, amount in asked.items()) or "its capacity"


def device_taint_text(taint: DeviceTaint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _line(text: str) -> str:
    """One line, cut if it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_EXPRESSION else f"{flat[: LONGEST_EXPRESSION - 1]}…"
