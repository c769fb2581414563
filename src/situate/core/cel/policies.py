"""The expressions of an admission policy: its variables, which later expressions may use as `variables.name`, and what
each expression must be.

A variable is evaluated when it is first used, once for a request. Its cost counts for the policy's budget, not for the
expression that used it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from situate.core.cel.admission import admission_environment
from situate.core.cel.compiler import Expression, compile_expression
from situate.core.cel.environment import Environment, make_environment
from situate.core.cel.errors import CompileError, ErrorValue
from situate.core.cel.functions import Function
from situate.core.cel.libraries import json_patches
from situate.core.cel.libraries.kubernetes import LIBRARIES
from situate.core.cel.objects import JSON_PATCH, OBJECT, with_objects
from situate.core.cel.types import BOOL, DYN, NULL, STRING, CelType, is_exact, list_of, map_of, struct
from situate.core.cel.values import MISSING, MapValue, Value
from situate.core.cel.values import _Missing as Missing

VARIABLES: Final = "variables"
_STRUCT: Final = struct("kubernetes.variables")
CALL_LIMIT: Final = 1_000_000
"""What one evaluation may cost."""
CONDITION: Final = (BOOL,)
MESSAGE: Final = (STRING,)
ANNOTATION: Final = (STRING, NULL)
PATCH: Final = (list_of(JSON_PATCH),)
CONFIGURATION: Final = (OBJECT,)
ANYTHING: Final[tuple[CelType, ...]] = ()
UNCOMPILED: Final = 'composited variable "{name}" fails to compile: {why}'
FAILED: Final = 'composited variable "{name}" fails to evaluate: {why}'
Kinds = Sequence[CelType]


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression, or why there is none."""

    text: str
    expression: Expression | None
    error: str = ""


class PolicyCompiler:
    """Compiles the expressions of one policy, its variables first."""

    def __init__(self, *, has_params: bool, composes: bool = True) -> None:
        """`composes`: whether expressions may name `variables` at all."""
        self._has_params = has_params
        self._composes = composes
        self._fields: dict[str, CelType] = {}
        self._environments: dict[tuple[bool, bool], Environment] = {}
        self.variables: dict[str, Compiled] = {}

    def environment(self, *, has_authorizer: bool = True, makes_objects: bool = False) -> Environment:
        key = (has_authorizer, makes_objects)
        if key not in self._environments:
            self._environments[key] = self._environment(*key)
        return self._environments[key]

    def _environment(self, has_authorizer: bool, makes_objects: bool) -> Environment:
        base = admission_environment(has_params=self._has_params, has_authorizer=has_authorizer)
        if self._composes:
            base = replace(
                base,
                variables={**base.variables, VARIABLES: _STRUCT},
                types={**base.types, _STRUCT.name: _STRUCT},
                fields={**base.fields, _STRUCT.name: self._fields},
            )
        if not makes_objects:
            return base
        return with_objects(replace(base, functions=_functions_with_patches()))

    def add_variable(self, name: str, text: str) -> Compiled:
        found = self.compile(text, ANYTHING)
        self._fields[name] = DYN if found.expression is None else _declared(found.expression.type)
        self.variables[name] = found
        return found

    def compile(self, text: str, kinds: Kinds, *, has_authorizer: bool = True, makes_objects: bool = False) -> Compiled:
        environment = self.environment(has_authorizer=has_authorizer, makes_objects=makes_objects)
        try:
            return Compiled(text, compile_expression(text, environment, must_be(kinds)))
        except CompileError as error:
            return Compiled(text, None, str(error))


@cache
def _functions_with_patches() -> Mapping[str, Function]:
    return make_environment((*LIBRARIES, json_patches.LIBRARY), {}, {}).functions


def must_be(kinds: Kinds) -> Callable[[CelType], str | None]:
    def refuse(found: CelType) -> str | None:
        if not kinds or any(is_exact(found, one) for one in kinds):
            return None
        if len(kinds) == 1:
            return f"must evaluate to {kinds[0]} but got {found}"
        return f"must evaluate to one of [{' '.join(map(str, kinds))}] but got {found}"

    return refuse


_KEPT: Final = frozenset(
    ("any", "bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint", "dyn")
)


def _declared(kind: CelType) -> CelType:
    """The type of a variable: lists and maps keep what is inside; of objects, nothing is known any more."""
    if kind.kind == "list":
        return list_of(_declared(kind.parameters[0]))
    if kind.kind == "map":
        return map_of(_declared(kind.parameters[0]), _declared(kind.parameters[1]))
    return kind if kind.kind in _KEPT and not kind.nullable else DYN


class VariableValues(MapValue):
    """The variables of a policy for one request. `cost`: of those that were evaluated."""

    __slots__ = ("_compiled", "_context", "_found", "_limit", "cost")

    def __init__(self, compiled: Mapping[str, Compiled], context: dict[str, Value], limit: int) -> None:
        """`context`: what the variables may name; this is in it, too."""
        self._compiled = compiled
        self._context = context
        self._found: dict[str, Value] = {}
        self._limit = limit
        self.cost = 0

    @property
    def entries(self) -> dict[tuple[str, object], tuple[Value, Value]]:  # type: ignore[override]
        return {("string", name): (name, self._value(name)) for name in self._compiled}

    def __len__(self) -> int:
        return len(self._compiled)

    def find(self, key: Value) -> Value | Missing:
        return self._value(key) if isinstance(key, str) and key in self._compiled else MISSING

    def contains(self, key: Value) -> bool:
        return isinstance(key, str) and key in self._compiled

    def keys(self) -> Iterator[Value]:
        return iter(self._compiled)

    def items(self) -> Iterator[tuple[Value, Value]]:
        return iter([(name, self._value(name)) for name in self._compiled])

    def _value(self, name: str) -> Value:
        if name not in self._found:
            self._found[name] = self._evaluated(name)
        return self._found[name]

    def _evaluated(self, name: str) -> Value:
        compiled = self._compiled[name]
        if compiled.expression is None:
            return ErrorValue(UNCOMPILED.format(name=name, why=compiled.error))
        limit = max(min(CALL_LIMIT, self._limit - self.cost), 0)
        value, cost = compiled.expression.outcome(self._context, limit)
        self.cost += cost
        return ErrorValue(FAILED.format(name=name, why=value.message)) if isinstance(value, ErrorValue) else value
