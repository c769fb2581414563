"""Validates what the search for devices computes with: quantities."""

from collections.abc import Iterator

from situate.core.model.devices import Device, ResourceClaim, ResourceSlice
from situate.core.model.quantity import RawQuantity
from situate.core.model.validate.problem import Problems
from situate.core.model.validate.resources import quantity_problems

_Found = Iterator[tuple[str, RawQuantity | None]]


def slice_problems(item: ResourceSlice) -> Problems:
    for number, device in enumerate(item.spec.devices):
        yield from _problems(_of_device(device, f"spec.devices[{number}]"))
    for number, counters in enumerate(item.spec.shared_counters):
        path = f"spec.sharedCounters[{number}].counters"
        yield from _problems((f"{path}[{name}].value", one.value) for name, one in counters.counters.items())


def resource_claim_problems(claim: ResourceClaim) -> Problems:
    for number, request in enumerate(claim.spec.devices.requests):
        path = f"spec.devices.requests[{number}]"
        exactly = [] if request.exactly is None else [(f"{path}.exactly", request.exactly)]
        others = [(f"{path}.firstAvailable[{at}]", one) for at, one in enumerate(request.first_available)]
        for where, one in (*exactly, *others):
            asked = {} if one.capacity is None else one.capacity.requests
            yield from _problems((f"{where}.capacity.requests[{name}]", amount) for name, amount in asked.items())
    if claim.status.allocation is not None:
        for number, result in enumerate(claim.status.allocation.devices.results):
            path = f"status.allocation.devices.results[{number}].consumedCapacity"
            yield from _problems((f"{path}[{name}]", amount) for name, amount in result.consumed_capacity.items())


def _of_device(device: Device, path: str) -> _Found:
    for name, capacity in device.capacity.items():
        here = f"{path}.capacity[{name}]"
        yield f"{here}.value", capacity.value
        policy = capacity.request_policy
        if policy is not None:
            yield f"{here}.requestPolicy.default", policy.default
            for number, one in enumerate(policy.valid_values):
                yield f"{here}.requestPolicy.validValues[{number}]", one
            if (limits := policy.valid_range) is not None:
                yield f"{here}.requestPolicy.validRange.min", limits.min
                yield f"{here}.requestPolicy.validRange.max", limits.max
                yield f"{here}.requestPolicy.validRange.step", limits.step
    for number, taken in enumerate(device.consumes_counters):
        for name, counter in taken.counters.items():
            yield f"{path}.consumesCounters[{number}].counters[{name}].value", counter.value


def _problems(found: _Found) -> Problems:
    for path, raw in found:
        if raw is not None:
            yield from quantity_problems(path, raw)
