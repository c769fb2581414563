"""Selectors of devices: expressions over one variable, `device`, as dynamic resource allocation defines it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from situate.core.cel.comparison import equal
from situate.core.cel.compiler import Expression, compile_expression
from situate.core.cel.environment import Environment, make_environment
from situate.core.cel.errors import ErrorValue, EvaluationError
from situate.core.cel.functions import Function, Library, member
from situate.core.cel.libraries.kubernetes import LIBRARIES
from situate.core.cel.libraries.quantity import QUANTITY, Quantity
from situate.core.cel.libraries.semver import Semver, SemverError, parse_semver
from situate.core.cel.macros import BINDING_MACROS
from situate.core.cel.types import ANY, BOOL, DYN, STRING, CelType, map_of, struct
from situate.core.cel.values import EMPTY_MAP, MapValue, OptionalValue, StringMap, Value, type_name

# The most that one evaluation may cost.
COST_LIMIT: Final = 1_000_000
# The longest list that `includes` searches: the attribute values that a device may have.
MAX_INCLUDES: Final = 48

_CHANGED_OR_SEEN: Final = re.compile(r"\b(?:add|sub|isInteger|asInteger)\b")
"""In an expression with one of these functions it may be seen that quantities change while it is evaluated."""


class Version(str):
    """A `version` attribute: text that must be a semantic version."""

    __slots__ = ()


AttributeScalar = int | bool | str | Version
AttributeValue = AttributeScalar | tuple[AttributeScalar, ...]


@dataclass(frozen=True, slots=True)
class DeviceView:
    """What `device` is in an expression. Names are as in the slice: `model` or `gpu.example.com/model`."""

    driver: str
    attributes: Mapping[str, AttributeValue]
    capacity: Mapping[str, Quantity]
    allow_multiple_allocations: bool = False
    # The variable, made when it is first needed: a device is asked about by many selectors.
    _made: dict[bool, "dict[str, Value] | ErrorValue"] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )


class DeviceSelector:
    """A compiled selector."""

    __slots__ = ("_changes_quantities", "_dynamic", "_expression")

    def __init__(self, expression: Expression, dynamic: bool, changes_quantities: bool) -> None:
        """`changes_quantities`: capacities of a device may be others after an evaluation, or during it."""
        self._expression = expression
        self._dynamic = dynamic
        self._changes_quantities = changes_quantities

    def matches(self, device: DeviceView) -> bool:
        """Whether the device matches; raises EvaluationError."""
        return self.evaluate(device)[0]

    def evaluate(self, device: DeviceView, limit: int = COST_LIMIT) -> tuple[bool, int]:
        """Whether the device matches, and what it cost to find out; raises EvaluationError."""
        if self._changes_quantities:
            variables = _make_variables(device, self._dynamic)
        else:
            variables = _variables(device, self._dynamic)
        if isinstance(variables, ErrorValue):
            raise EvaluationError(variables.message)
        value, cost = self._expression.evaluate(variables, limit)
        if value is True or value is False:
            return value, cost
        raise EvaluationError(_not_a_bool(value), cost)


def compile_selector(expression: str, *, dynamic_attributes: bool = False) -> DeviceSelector:
    """Raises CompileError. With dynamic attributes (Kubernetes 1.37) an attribute may be a list."""

    def refuse(result: CelType) -> str | None:
        if result in (BOOL, ANY) or (dynamic_attributes and result == DYN):
            return None
        return f"must evaluate to bool or the unknown type, not {result}"

    compiled = compile_expression(expression, device_environment(dynamic_attributes), refuse)
    return DeviceSelector(compiled, dynamic_attributes, _CHANGED_OR_SEEN.search(expression) is not None)


@cache
def device_environment(dynamic_attributes: bool) -> Environment:
    device = struct("kubernetes.DRADevice")
    attribute: CelType = DYN if dynamic_attributes else ANY
    fields = {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    libraries = (*LIBRARIES, _bindings_and_includes(dynamic_attributes))
    return make_environment(libraries, {"device": device}, {device.name: fields})


def _bindings_and_includes(dynamic_attributes: bool) -> Library:
    """`cel.bind`, and `x.includes(y)`, which in Kubernetes 1.37 costs nothing."""
    cost = (lambda args, result, overload_id: 0) if dynamic_attributes else None
    includes = Function("includes", (member("dra_includes_dyn_dyn", (DYN, DYN), BOOL, _includes, cost=cost),))
    return Library((includes,), macros=BINDING_MACROS)


def _includes(target: Value, wanted: Value) -> Value:
    if not isinstance(target, list):
        return equal(target, wanted) is True
    for index, value in enumerate(target):
        if index >= MAX_INCLUDES:
            return ErrorValue(f"'includes' function cannot be applied to lists longer than {MAX_INCLUDES} values")
        if equal(value, wanted) is True:
            return True
    return False


def _variables(device: DeviceView, dynamic: bool) -> dict[str, Value] | ErrorValue:
    made = device._made.get(dynamic)
    if made is None:
        made = device._made[dynamic] = _make_variables(device, dynamic)
    return made


def _make_variables(device: DeviceView, dynamic: bool) -> dict[str, Value] | ErrorValue:
    attributes: dict[str, dict[str, Value]] = {}
    for full_name, given in device.attributes.items():
        value = _attribute(given, dynamic)
        if isinstance(value, ErrorValue):
            return ErrorValue(f"attribute {full_name}: {value.message}")
        domain, name = _split(full_name, device.driver)
        attributes.setdefault(domain, {})[name] = value
    capacity: dict[str, dict[str, Value]] = {}
    for full_name, quantity in device.capacity.items():
        domain, name = _split(full_name, device.driver)
        capacity.setdefault(domain, {})[name] = quantity.copy()
    fields: dict[str, Value] = {
        "driver": device.driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": _by_domain(attributes),
        "capacity": _by_domain(capacity),
    }
    return {"device": StringMap(fields)}


def _split(name: str, driver: str) -> tuple[str, str]:
    domain, slash, rest = name.partition("/")
    return (domain, rest) if slash else (driver, name)


def _by_domain(values: dict[str, dict[str, Value]]) -> MapValue:
    """An unknown domain is an empty map, not an error."""
    return StringMap({domain: StringMap(inner) for domain, inner in values.items()}, EMPTY_MAP)


def _attribute(given: AttributeValue, dynamic: bool) -> Value:
    if isinstance(given, (tuple, list)):
        if not dynamic:
            return ErrorValue("unsupported attribute value")
        values: list[Value] = []
        for one in given:
            value = _attribute(one, dynamic)
            if isinstance(value, ErrorValue):
                return value
            values.append(value)
        return values
    if isinstance(given, Version):
        try:
            return Semver(parse_semver(str(given)))
        except SemverError as error:
            return ErrorValue(f"parse semantic version: {error}")
    return given


def _not_a_bool(value: Value) -> str:
    kind = type_name(value)
    reason = {
        "string": "unsupported native conversion from string to 'bool'",
        "int": "unsupported type conversion from 'int' to bool",
        "uint": "unsupported type conversion from 'uint' to bool",
        "double": "type conversion error from Double to 'bool'",
        "bytes": "type conversion error from Bytes to 'bool'",
        "list": "type conversion error from list to 'bool'",
        "map": "type conversion error from map to 'bool'",
        "null_type": "type conversion error from 'null_type' to 'bool'",
        "type": "type conversion not supported for 'type'",
        "google.protobuf.Duration": "type conversion error from 'Duration' to 'bool'",
        "google.protobuf.Timestamp": "type conversion error from 'Timestamp' to 'bool'",
    }.get(kind, f"type conversion error from '{type(value).__name__}' to 'bool'")
    if isinstance(value, OptionalValue):
        reason = "optional.none() dereference"
    return f"CEL result of type {kind} could not be converted to bool: {reason}"
