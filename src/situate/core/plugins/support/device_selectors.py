"""Device selectors for the search: expressions of CEL over the devices of slices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from situate.core.cel.device_selectors import (
    COST_LIMIT,
    AttributeValue,
    DeviceSelector,
    DeviceView,
    Version,
    compile_selector,
)
from situate.core.cel.errors import CompileError, EvaluationError
from situate.core.cel.libraries.quantity import Quantity
from situate.core.devices.budget import UNLIMITED, WORK_PER_COST, SearchBudget
from situate.core.devices.selectors import Compile, SelectorFailedError
from situate.core.model.devices import Device, DeviceAttribute
from situate.core.versions import DeviceRules


@dataclass(frozen=True, slots=True)
class _Selector:
    compiled: DeviceSelector

    def matches(self, device: Device, driver: str, budget: SearchBudget = UNLIMITED) -> bool:
        limit = budget.cost_limit(COST_LIMIT)
        try:
            matches, cost = self.compiled.evaluate(device_view(device, driver), limit)
            budget.spend(cost * WORK_PER_COST)
            return matches
        except EvaluationError as error:
            budget.spend(error.cost * WORK_PER_COST)
            raise SelectorFailedError(f"CEL runtime error: {error}", at_runtime=True) from None


def device_view(device: Device, driver: str) -> DeviceView:
    """A device as selectors see it."""
    return DeviceView(
        driver,
        {name: _value(attribute) for name, attribute in device.attributes.items()},
        {name: Quantity.parse(str(capacity.value)) for name, capacity in device.capacity.items()},
        device.allow_multiple_allocations,
    )


def _value(attribute: DeviceAttribute) -> AttributeValue:
    """A list that is not set is empty: CEL tells what it thinks of lists."""
    for one in (attribute.int_, attribute.bool_, attribute.string):
        if one is not None:
            return one
    if attribute.version is not None:
        return Version(attribute.version)
    if attribute.versions is not None:
        return tuple(map(Version, attribute.versions))
    return attribute.ints or attribute.bools or attribute.strings or ()


def selector_compiler(rules: DeviceRules) -> Compile:
    return partial(_compile, dynamic=rules.dynamic_attributes)


def _compile(expression: str, *, dynamic: bool) -> _Selector:
    try:
        return _Selector(compile_selector(expression, dynamic_attributes=dynamic))
    except CompileError as error:
        raise SelectorFailedError(f"CEL compile error: {error}", at_runtime=False) from None
