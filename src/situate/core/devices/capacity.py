"""Consumable capacity: how much of a device's capacity a request consumes, and whether that is left.

Amounts are in billionths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from situate.core.model.devices import CapacityRequestPolicy, CapacityRequirements, Device, DeviceCapacity
from situate.core.model.quantity import NANO, RawQuantity, parse_quantity, value
from situate.core.versions import DeviceRules

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity: its text, as it is written down, and its value."""

    text: RawQuantity
    nanos: int


def amount(raw: RawQuantity) -> Amount:
    return Amount(raw, parse_quantity(raw))


def consumption(device: Device, asked: CapacityRequirements | None, rules: DeviceRules) -> dict[str, Amount] | None:
    """What a request consumes of each capacity of a device; None if the device cannot serve it, however empty it is."""
    requests = {} if asked is None else asked.requests
    if any(name not in device.capacity for name in requests):
        return None
    found = {}
    for name, has in device.capacity.items():
        taken = _taken(requests.get(name), has, rules)
        if has.request_policy is not None and _violates(taken, has.request_policy):
            return None
        if taken.nanos > parse_quantity(has.value):
            return None
        found[name] = taken
    return found


def is_left(
    device: Device, consumed: Mapping[str, Amount], others: Mapping[str, int], picked: Mapping[str, int] | None
) -> bool:
    """Whether that much is left beside what others consume, and what was picked before."""
    for name, taken in consumed.items():
        total = taken.nanos + others.get(name, 0) + (picked.get(name, 0) if picked else 0)
        if total > parse_quantity(device.capacity[name].value):
            return False
    return True


def _taken(asked: RawQuantity | None, has: DeviceCapacity, rules: DeviceRules) -> Amount:
    policy = has.request_policy
    if asked is None:
        return amount(has.value if policy is None or policy.default is None else policy.default)
    wanted = amount(asked)
    if policy is None:
        return wanted
    limits = policy.valid_range
    if limits is not None and limits.min is not None:
        least = amount(limits.min)
        if wanted.nanos < least.nanos:
            return least
        return wanted if limits.step is None else _stepped(asked, limits.min, limits.step, rules)
    larger = (one for one in map(amount, policy.valid_values) if one.nanos >= wanted.nanos)
    return next(larger, wanted)


def _stepped(asked: RawQuantity, least: RawQuantity, step: RawQuantity, rules: DeviceRules) -> Amount:
    """Up to the next step above the minimum, in whole units."""
    start, size = value(least), value(step)
    steps = -(-(value(asked) - start) // size) if size else 0
    units = start + steps * size
    binary = not rules.rounds_in_format_of_step or str(step).strip().endswith("i")
    return Amount(_text(units, binary=binary), units * NANO)


@lru_cache(maxsize=1024)
def _text(units: int, *, binary: bool) -> str:
    """As Go writes a whole number; small ones have no binary suffix."""
    if binary and not -1024 < units < 1024:
        base, suffixes = 1024, _BINARY
    else:
        base, suffixes = 1000, _DECIMAL
    power = 0
    while units and units % base == 0 and power < len(suffixes) - 1:
        units //= base
        power += 1
    return f"{units}{suffixes[power]}"


def _violates(taken: Amount, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and taken.text == policy.default:
        return False
    limits = policy.valid_range
    if limits is not None:
        if limits.max is not None and taken.nanos > parse_quantity(limits.max):
            return True
        if limits.step is not None and (size := value(limits.step)):
            start = 0 if limits.min is None else value(limits.min)
            return (value(taken.text) - start) % size != 0
        return False
    return bool(policy.valid_values) and all(taken.nanos != parse_quantity(one) for one in policy.valid_values)
