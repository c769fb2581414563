"""How a function is declared: its name, its overloads with their types, what it does and what it costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from situate.core.cel.macros import Macros
from situate.core.cel.types import CelType
from situate.core.cel.values import Value

# A function's code takes and returns values; what it returns may be a ErrorValue.
Code = Callable[..., Any]
# From the arguments, the result and the overload's id to the cost; None leaves it to the next rule.
Cost = Callable[[Sequence[Any], Any, str], int | None]


@dataclass(frozen=True, slots=True)
class Overload:
    id: str
    args: tuple[CelType, ...]
    result: CelType
    code: Code | None = None
    is_member: bool = False
    cost: Cost | None = None
    variadic: bool = False  # the code takes all arguments at once: the first that failed ends the evaluation
    params: tuple[str, ...] = ()  # the names of type parameters in args and result

    def __post_init__(self) -> None:
        names: dict[str, None] = {}
        for part in (self.result, *self.args):
            _collect(part, names)
        object.__setattr__(self, "params", tuple(names))


def _collect(value: CelType, names: dict[str, None]) -> None:
    if value.kind == "param":
        names[value.name] = None
    for parameter in value.parameters:
        _collect(parameter, names)


def overload(
    overload_id: str, args: Sequence[CelType], result: CelType, code: Code | None = None, cost: Cost | None = None
) -> Overload:
    return Overload(overload_id, tuple(args), result, code, False, cost)


def member(
    overload_id: str, args: Sequence[CelType], result: CelType, code: Code | None = None, cost: Cost | None = None
) -> Overload:
    """An overload that is called on its first argument."""
    return Overload(overload_id, tuple(args), result, code, True, cost)


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    overloads: tuple[Overload, ...]
    # One piece of code for all overloads; it checks its arguments itself.
    code: Code | None = None
    # Whether the first argument is of a kind that the code above takes at all.
    takes: Callable[[Value], bool] | None = None
    guarded: bool = True  # whether overloads check the kinds of their arguments
    any_arity: bool = False  # as an overload's `variadic`
    cost: Cost | None = None

    def merged(self, other: "Function") -> "Function":
        known = {one.id: one for one in self.overloads}
        for one in other.overloads:
            known[one.id] = one
        return replace(
            self,
            overloads=tuple(known.values()),
            code=self.code or other.code,
            takes=self.takes or other.takes,
            any_arity=self.any_arity or other.any_arity,
            cost=self.cost or other.cost,
        )


@dataclass(frozen=True, slots=True)
class Library:
    """Functions, macros and types that belong together."""

    functions: tuple[Function, ...] = ()
    macros: Macros = field(default_factory=dict)
    types: tuple[CelType, ...] = ()
