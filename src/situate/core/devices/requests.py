"""The requests of claims, checked and ready for the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from situate.core.devices.allocated import PoolUse
from situate.core.devices.budget import UNLIMITED, SearchBudget
from situate.core.devices.capacity import Amount, consumption, is_left
from situate.core.devices.constraints import ClaimConstraint, constraint
from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import Pool, PoolDevice
from situate.core.devices.selectors import SelectorAnswers, SelectorFailedError
from situate.core.model.devices import (
    ALL,
    EXACT_COUNT,
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    ResourceClaim,
)
from situate.core.versions import DeviceRules

MOST_DEVICES: Final = 32
"""How many devices the result of a claim can list."""

MISSING_KEY: Final = "no such key:"
ADVICE: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
    "for optional fields"
)

Taken: TypeAlias = Mapping[str, Amount]
"""What one device gives to one request, by capacity."""


@dataclass(frozen=True, slots=True)
class AllocatorInputs:
    """What the search reads beside the claims and the node's pools."""

    classes: Mapping[str, DeviceClass]
    answers: SelectorAnswers
    rules: DeviceRules
    budget: SearchBudget = UNLIMITED


@dataclass(eq=False, slots=True)
class DeviceAsk:
    """One request, or one alternative of a request, of one claim."""

    claim: str
    """`namespace/name`, for messages."""
    parent: str
    """The request that it is an alternative of; empty if it is none."""
    request: DeviceSubRequest
    device_class: DeviceClass
    inputs: AllocatorInputs
    count: int = 0
    all: list[int] | None = None
    """For `All`: the positions of the devices."""
    selected: dict[int, bool] = None  # type: ignore[assignment]
    consumed: dict[int, Taken | None] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.selected, self.consumed = {}, {}

    @property
    def base(self) -> str:
        """The name that constraints know it by."""
        return self.parent or self.request.name

    @property
    def alternative(self) -> str:
        return self.request.name if self.parent else ""

    @property
    def name(self) -> str:
        """The name in results."""
        return f"{self.parent}/{self.request.name}" if self.parent else self.request.name

    @property
    def is_admin(self) -> bool:
        return bool(self.request.admin_access)

    def selects(self, at: int, pool: Pool, one: PoolDevice) -> bool:
        """Whether the selectors of the class and of the request select a device. Raises AllocationError."""
        found = self.selected.get(at)
        if found is None:
            found = self.selected[at] = self._matches(pool, one) and one.here
        return found

    def _matches(self, pool: Pool, one: PoolDevice) -> bool:
        spec = self.device_class.spec
        for whose, selectors in (
            (f"class {self.device_class.metadata.name}", spec.selectors),
            (f"claim {self.claim}", self.request.selectors),
        ):
            for number, selector in enumerate(selectors):
                expression = "" if selector.cel is None else selector.cel.expression
                try:
                    if not self.inputs.answers.matches(expression, one, self.inputs.budget):
                        return False
                except SelectorFailedError as failure:
                    raise AllocationError(self._failed(f"{whose}: selector #{number}", failure, pool, one)) from None
        return True

    def _failed(self, where: str, failure: SelectorFailedError, pool: Pool, one: PoolDevice) -> str:
        text = str(failure)
        if failure.at_runtime and self.inputs.rules.selector_error_names_device:
            where += f" on device {pool.driver}/{pool.name}/{one.device.name}"
            text += ADVICE if MISSING_KEY in text else ""
        return f"{where}: {text}"

    def takes(self, at: int, one: PoolDevice) -> Taken | None:
        """What it would consume of a device; None if the device cannot serve it."""
        if at not in self.consumed:
            self.consumed[at] = consumption(one.device, self.request.capacity, self.inputs.rules)
        return self.consumed[at]


@dataclass(eq=False, slots=True)
class ClaimAsks:
    """A claim: its requests, each with its alternatives, and its constraints."""

    claim: ResourceClaim
    requests: list[list[DeviceAsk]]
    constraints: list[ClaimConstraint]


def claim_asks(
    claim: ResourceClaim, pools: Sequence[tuple[Pool, PoolUse]], starts: Sequence[int], inputs: AllocatorInputs
) -> ClaimAsks:
    """Check a claim, and find the devices of requests for all devices. Raises AllocationError."""
    name = f"{claim.metadata.namespace}/{claim.metadata.name}"
    requests = []
    fewest = 0
    for request in claim.spec.devices.requests:
        asks = [_ask(name, parent, one, pools, starts, inputs) for parent, one in alternatives(request)]
        requests.append(asks)
        least = min(ask.count for ask in asks)
        if inputs.rules.claim_limit_names_request and fewest + least > MOST_DEVICES:
            told = (
                f"adding {least} devices exceeds the claim limit of {MOST_DEVICES}, with {fewest} already accounted for"
            )
            raise AllocationError(f"claim {name}, request {request.name}: {told}")
        fewest += least
    if fewest > MOST_DEVICES:
        told = f"number of requested devices {fewest} exceeds the claim limit of {MOST_DEVICES}"
        raise AllocationError(f"claim {name}: {told}")
    constraints = []
    for number, spec in enumerate(claim.spec.devices.constraints):
        made = constraint(spec, inputs.rules)
        if made is None:
            told = "empty constraint (unsupported constraint type?)"
            raise AllocationError(f"claim {name}, constraint #{number}: {told}")
        constraints.append(made)
    return ClaimAsks(claim, requests, constraints)


def alternatives(request: DeviceRequest) -> list[tuple[str, DeviceSubRequest]]:
    """(the request's name, alternative), in order; for a plain request, an empty name and what it asks for."""
    if request.first_available:
        return [(request.name, one) for one in request.first_available]
    exactly = request.exactly or DeviceSubRequest()
    return [("", _named(exactly, request.name))]


def _named(exactly: DeviceSubRequest, name: str) -> DeviceSubRequest:
    return DeviceSubRequest(
        name=name,
        device_class_name=exactly.device_class_name,
        selectors=exactly.selectors,
        allocation_mode=exactly.allocation_mode,
        count=exactly.count,
        admin_access=exactly.admin_access,
        tolerations=exactly.tolerations,
        capacity=exactly.capacity,
    )


def _ask(
    claim: str,
    parent: str,
    request: DeviceSubRequest,
    pools: Sequence[tuple[Pool, PoolUse]],
    starts: Sequence[int],
    inputs: AllocatorInputs,
) -> DeviceAsk:
    where = f"claim {claim}, request {request.name}"
    for number, selector in enumerate(request.selectors):
        if selector.cel is None:
            told = "CEL expression empty (unsupported selector type?)"
            raise AllocationError(f"{where}, selector #{number}: {told}")
    if not request.device_class_name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    device_class = inputs.classes.get(request.device_class_name)
    if device_class is None:
        problem = f'deviceclass.resource.k8s.io "{request.device_class_name}" not found'
        raise AllocationError(f"{where}: could not retrieve device class {request.device_class_name}: {problem}")
    ask = DeviceAsk(claim, parent, request, device_class, inputs)
    mode = request.allocation_mode or EXACT_COUNT
    if mode == EXACT_COUNT:
        ask.count = request.count or 1
    elif mode == ALL:
        ask.all = _all_devices(ask, where, pools, starts)
        ask.count = len(ask.all)
    else:
        raise AllocationError(f"{where}: unsupported count mode {mode}")
    return ask


def _all_devices(ask: DeviceAsk, where: str, pools: Sequence[tuple[Pool, PoolUse]], starts: Sequence[int]) -> list[int]:
    """The positions of all devices that a request selects, in use or not."""
    found = []
    for (pool, use), start in zip(pools, starts, strict=True):
        state = "being updated" if pool.incomplete else "invalid" if pool.invalid else ""
        if state:
            told = f"asks for all devices, but resource pool {pool.driver}/{pool.name} is currently {state}"
            raise AllocationError(f"{where}: {told}")
        for at, one in enumerate(pool.devices, start):
            ask.inputs.budget.spend(1)
            if not ask.selects(at, pool, one):
                continue
            taken = ask.takes(at, one)
            if taken is None:
                continue
            if not ask.inputs.rules.all_includes_used_up and not is_left(
                one.device, taken, use.consumed(one.device.name), None
            ):
                continue
            found.append(at)
    return found
