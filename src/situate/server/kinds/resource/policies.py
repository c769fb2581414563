"""The rules of a shared capacity: which amounts of it a claim may request."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.quantity import parse_quantity, value
from situate.server.kinds.field_errors import Causes

MAX_VALUES: Final = 10
ONE_POLICY: Final = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
)


def request_policy(policy: Mapping[str, Any], capacity: Any, path: str, causes: Causes) -> None:
    values, allowed, usual = policy.get("validValues", ()), policy.get("validRange"), policy.get("default")
    if values and allowed is not None:
        causes.forbidden(path, ONE_POLICY)
    elif (values or allowed is not None) and usual is None:
        causes.required(f"{path}.default", f"required when {'validValues' if values else 'validRange'} is defined")
    elif values:
        _values(values, usual, capacity, f"{path}.validValues", causes)
    elif allowed is not None:
        _range(allowed, usual, capacity, f"{path}.validRange", causes)


def _values(values: Sequence[Any], usual: Any, capacity: Any, path: str, causes: Causes) -> None:
    amounts = [parse_quantity(one) for one in values]
    for index in range(1, len(values)):
        if amounts[index - 1] > amounts[index]:
            causes.invalid(f"{path}[{index}]", values[index], "values must be sorted in ascending order")
    if len(values) > MAX_VALUES:
        causes.too_many(path, len(values), MAX_VALUES)
        amounts = []  # kube-apiserver does not look at them either
    for index, one in enumerate(values[: len(amounts)]):
        if amounts[index] > parse_quantity(capacity):
            causes.invalid(f"{path}[{index}]", one, f"option is larger than capacity value: {capacity}")
    seen: set[str] = set()
    for index, one in enumerate(values[: len(amounts)]):
        causes.unique(str(value(one)), seen, f"{path}[{index}]")
    if parse_quantity(usual) not in amounts:
        causes.invalid(path, usual, "default value is not valid according to the requestPolicy")


def _range(allowed: Mapping[str, Any], usual: Any, capacity: Any, path: str, causes: Causes) -> None:
    low, high, step = allowed.get("min"), allowed.get("max"), allowed.get("step")
    if low is None:
        causes.required(f"{path}.min", "required when validRange is defined")
        return
    most, least = parse_quantity(capacity), parse_quantity(low)
    if least > most:
        causes.invalid(f"{path}.min", low, f"min is larger than capacity value: {capacity}")
    if parse_quantity(usual) < least:
        causes.invalid(f"{path}.min", usual, f"default is less than min: {low}")
    if high is not None:
        if least > parse_quantity(high):
            causes.invalid(f"{path}.max", low, f"min is larger than max: {high}")
        if parse_quantity(high) > most:
            causes.invalid(f"{path}.max", high, f"max is larger than capacity value: {capacity}")
        if parse_quantity(usual) > parse_quantity(high):
            causes.invalid(f"{path}.max", usual, f"default is more than max: {high}")
    for one in (usual, high):
        if one is not None and step is not None and value(step) and (value(one) - value(low)) % value(step):
            text = f"value is not a multiple of a given step ({step}) from ({low})"
            causes.invalid(f"{path}.step", one, text)
