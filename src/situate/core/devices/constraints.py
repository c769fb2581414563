"""Constraints over the devices of a claim: an attribute that all must share, or that all must differ in."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Protocol, TypeAlias

from situate.core.model.devices import Device, DeviceAttribute, DeviceConstraint
from situate.core.versions import DeviceRules

AttributeKey: TypeAlias = tuple[str, object]
"""The type and the value of an attribute."""

UNKNOWN: Final = "unknown"
"""The type of an attribute that constraints cannot compare."""


class ClaimConstraint(Protocol):
    attribute: str
    forgets: bool
    """Whether `remove` does not undo `add`: then what the search has tried in vain matters to what it finds."""

    @property
    def state(self) -> Hashable:
        """What decides which devices it refuses."""

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        """Count a device; False if the constraint refuses it, and then it is not counted."""

    def remove(self, request: str, alternative: str) -> None:
        """The device that was counted last is taken back."""


def constraint(spec: DeviceConstraint, rules: DeviceRules) -> ClaimConstraint | None:
    """None if it is of an unknown type."""
    if spec.match_attribute is not None:
        return _Match(spec.requests, spec.match_attribute)
    if spec.distinct_attribute is not None:
        kind = _DistinctFromAll if rules.distinct_compares_every_device else _DistinctFromLast
        return kind(spec.requests, spec.distinct_attribute)
    return None


def attribute_of(device: Device, driver: str, name: str) -> AttributeKey | None:
    """The attribute of a fully qualified name. Drivers may leave out their own domain."""
    found = device.attributes.get(name)
    if found is None:
        domain, slash, id_ = name.partition("/")
        found = device.attributes.get(id_) if slash and domain == driver else None
    return None if found is None else _key(found)


def _key(attribute: DeviceAttribute) -> AttributeKey:
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int_ is not None:
        return "int", attribute.int_
    if attribute.bool_ is not None:
        return "bool", attribute.bool_
    if attribute.version is not None:
        return "version", attribute.version
    return UNKNOWN, None


class _Applying:
    forgets = False

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        self.requests = frozenset(requests)
        self.attribute = attribute

    def applies(self, request: str, alternative: str) -> bool:
        if not self.requests or request in self.requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self.requests


class _Match(_Applying):
    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self.value: AttributeKey | None = None
        self.count = 0

    @property
    def state(self) -> Hashable:
        return self.value if self.count else None

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        if not self.applies(request, alternative):
            return True
        value = attribute_of(device, driver, self.attribute)
        if value is None:
            return False
        if self.count == 0:
            self.value = value
        elif value != self.value or value[0] == UNKNOWN:
            return False
        self.count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        if self.applies(request, alternative):
            self.count -= 1


class _DistinctFromAll(_Applying):
    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self.values: list[AttributeKey] = []

    @property
    def state(self) -> Hashable:
        return tuple(sorted(self.values, key=repr))

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        if not self.applies(request, alternative):
            return True
        value = attribute_of(device, driver, self.attribute)
        if value is None or (self.values and (value[0] == UNKNOWN or value in self.values)):
            return False
        self.values.append(value)
        return True

    def remove(self, request: str, alternative: str) -> None:
        if self.applies(request, alternative):
            self.values.pop()


class _DistinctFromLast(_Applying):
    """As in 1.36: it remembers one value a request, and forgets it when any device of the request is taken back."""

    forgets = True

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self.values: dict[str, AttributeKey] = {}
        self.count = 0

    @property
    def state(self) -> Hashable:
        return self.count, tuple(self.values.items())

    def add(self, request: str, alternative: str, device: Device, driver: str) -> bool:
        if not self.applies(request, alternative):
            return True
        value = attribute_of(device, driver, self.attribute)
        if value is None:
            return False
        if self.count and self.values and (value[0] == UNKNOWN or value in self.values.values()):
            return False
        self.values[request] = value
        self.count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        if self.applies(request, alternative):
            self.values.pop(request, None)
            self.count -= 1
