"""The steps of a program: small functions of a Evaluation. Each comes in two forms, see `meter`."""

from collections.abc import Callable, Sequence
from typing import Any

from situate.core.cel.attributes import Attribute
from situate.core.cel.comparison import equal
from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.functions import Cost
from situate.core.cel.meter import Evaluation, Run, call_cost, ceil_of, size_of
from situate.core.cel.regex import CompiledRegex
from situate.core.cel.values import (
    ExtensionValue,
    OptionalValue,
    Value,
)

CostRule = Callable[[Sequence[Any], Any], int]


def constant(number: int, value: Any, watched: bool) -> Run:
    if not watched:
        return lambda frame: value

    def run(frame: Evaluation) -> Any:
        frame.push(number, value)
        return value

    return run


def variable(name: str) -> Run:
    return lambda frame: frame.variables[name]


def slot(index: int) -> Run:
    return lambda frame: frame.slots[index]


def path(attribute: Attribute, number: int, test_only: bool, resolve: Run, watched: bool) -> Run:
    charge = (0 if attribute.is_conditional else 1) - (1 if test_only else 0)
    if not watched:

        def run(frame: Evaluation) -> Any:
            value = resolve(frame)
            frame.cost += charge
            return value.has_value if test_only and isinstance(value, OptionalValue) else value

        return run
    if attribute.truthy is not None and attribute.falsy is not None:
        dropped = [attribute.falsy.id, attribute.truthy.id, attribute.condition_id]
    else:
        dropped = [attribute.id]
    seen = number if test_only else attribute.id

    def run_watched(frame: Evaluation) -> Any:
        value = resolve(frame)
        if test_only and isinstance(value, OptionalValue):
            value = value.has_value
        for one in dropped:
            frame.drop(one)
        frame.cost += charge
        frame.push(seen, value)
        return value

    return run_watched


def logical(number: int, decisive: bool, runs: list[Run], numbers: list[int], watched: bool) -> Run:
    """`||` (True decides) and `&&` (False decides); an error counts only if nothing decides."""
    left, right = runs

    def run(frame: Evaluation) -> Any:
        first = left(frame)
        if first is decisive:
            return decisive
        second = right(frame)
        if second is decisive:
            return decisive
        for value in (first, second):
            if value is not True and value is not False:
                return value if isinstance(value, ErrorValue) else no_such_overload()
        return not decisive

    if not watched:
        return run

    def run_watched(frame: Evaluation) -> Any:
        value = run(frame)
        for one in numbers:
            frame.drop(one)
        frame.push(number, value)
        return value

    return run_watched


def _equality_cost(args: Sequence[Any]) -> int:
    return ceil_of(min(size_of(args[0]), size_of(args[1])))


def equality(number: int, is_equal: bool, runs: list[Run], numbers: list[int], watched: bool) -> Run:
    left, right = runs

    def compare(first: Any, second: Any) -> Any:
        if isinstance(first, ErrorValue):
            return first
        if isinstance(second, ErrorValue):
            return second
        same = equal(first, second)
        return same if is_equal else same is not True

    def cost(args: Sequence[Any]) -> int:
        if is_equal and isinstance(args[0], ExtensionValue):
            return 1
        return _equality_cost(args)

    if not watched:

        def run(frame: Evaluation) -> Any:
            first, second = left(frame), right(frame)
            frame.cost += cost((first, second))
            return compare(first, second)

        return run

    def run_watched(frame: Evaluation) -> Any:
        value = compare(left(frame), right(frame))
        args = frame.drop_args(numbers)
        if args is not None:
            frame.cost += cost(args)
        frame.push(number, value)
        return value

    return run_watched


def not_strictly_false(number: int, runs: list[Run], numbers: list[int], watched: bool) -> Run:
    (operand,) = runs

    def run(frame: Evaluation) -> Any:
        value = operand(frame)
        value = value if isinstance(value, bool) else True
        if not watched:
            frame.cost += 1
            return value
        if frame.drop_args(numbers) is not None:
            frame.cost += 1
        frame.push(number, value)
        return value

    return run


def optional_or(number: int, unwraps: bool, runs: list[Run], watched: bool) -> Run:
    """`a.or(b)` and `a.orValue(b)`: b is evaluated only if a has no value. The call itself costs nothing."""
    left, right = runs

    def run(frame: Evaluation) -> Any:
        value = left(frame)
        if isinstance(value, OptionalValue):
            if not value.has_value:
                value = right(frame)
            elif unwraps:
                value = value.value
        if watched:
            frame.push(number, value)
        return value

    return run


def cost_rule(function: Cost | None, overload: Cost | None, overload_id: str) -> CostRule | None:
    """None where every call costs one."""
    if function is None and overload is None:
        return None
    return lambda args, result: call_cost(function, overload, args, result, overload_id)


def call(
    number: int, code: Callable[..., Any], at_once: bool, cost: CostRule | None, runs: list[Run], numbers: list[int],
    watched: bool,
) -> Run:  # fmt: skip
    evaluate = _evaluate_at_once(code, runs) if at_once else _evaluate(code, runs)
    if watched:

        def run_watched(frame: Evaluation) -> Any:
            _, value = evaluate(frame)
            args = frame.drop_args(numbers)
            if args is not None:
                frame.cost += 1 if cost is None else cost(args, value)
            frame.push(number, value)
            return value

        return run_watched

    def run(frame: Evaluation) -> Any:
        args, value = evaluate(frame)
        if args is not None:
            frame.cost += 1 if cost is None else cost(args, value)
        return value

    return run


def _evaluate(code: Callable[..., Any], runs: list[Run]) -> Callable[[Evaluation], tuple[Sequence[Any] | None, Any]]:
    """All arguments first; the first that failed is the result."""
    if len(runs) == 1:
        (single,) = runs

        def unary(frame: Evaluation) -> tuple[Sequence[Any] | None, Any]:
            arg = single(frame)
            return (arg,), arg if isinstance(arg, ErrorValue) else code(arg)

        return unary

    def evaluate(frame: Evaluation) -> tuple[Sequence[Any] | None, Any]:
        args = [run(frame) for run in runs]
        for arg in args:
            if isinstance(arg, ErrorValue):
                return args, arg
        return args, code(*args)

    return evaluate


def _evaluate_at_once(
    code: Callable[..., Any], runs: list[Run]
) -> Callable[[Evaluation], tuple[Sequence[Any] | None, Any]]:
    def evaluate(frame: Evaluation) -> tuple[Sequence[Any] | None, Any]:
        args: list[Any] = []
        for run in runs:
            arg = run(frame)
            args.append(arg)
            if isinstance(arg, ErrorValue):
                # The arguments that were not evaluated are not there to be counted.
                return (args if len(args) == len(runs) else None), arg
        return args, code(*args)

    return evaluate


def matches(compiled: CompiledRegex) -> Callable[..., Any]:
    def run(text: Value, pattern: Value) -> Any:
        return compiled.matches(text) if isinstance(text, str) else no_such_overload()

    return run
