"""What an evaluation costs, counted as cel-go counts it.

cel-go observes every step and keeps the values seen on a stack, by the step's number; a call finds its arguments there.
In a loop a number appears more than once, and cel-go may then drop an argument that it needs: the call is not counted.
Such an expression is evaluated with a stack like cel-go's. Without loops each number appears once, the arguments are
always found, and no stack is needed.
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from situate.core.cel.functions import Cost
from situate.core.cel.values import MapValue, OptionalValue, Value

STRING_FACTOR = 0.1
REGEX_FACTOR = 0.25
LIST_COST = 10
MAP_COST = 30
STRUCT_COST = 40

TOO_EXPENSIVE = "operation cancelled: actual cost limit exceeded"


class CostExceededError(Exception):
    """The evaluation costs more than allowed and ends."""


class Evaluation:
    """The state of one evaluation."""

    __slots__ = ("cost", "limit", "slots", "stack", "variables")

    def __init__(self, variables: dict[str, Value], slots: int, limit: int) -> None:
        self.cost = 0
        self.limit = limit
        self.variables = variables
        self.slots: list[Any] = [None] * slots
        self.stack: list[tuple[int, Value]] = []

    def push(self, number: int, value: Value) -> None:
        self.stack.append((number, value))
        if self.cost > self.limit:
            raise CostExceededError

    def drop(self, number: int) -> None:
        """Removes the newest value of this number and all that came after it."""
        stack = self.stack
        for index in range(len(stack) - 1, -1, -1):
            if stack[index][0] == number:
                del stack[index:]
                return

    def drop_args(self, numbers: Sequence[int]) -> list[Value] | None:
        """The newest values of these numbers, the last first; None, with some dropped, if one is not there."""
        found: list[Value] = []
        stack = self.stack
        for number in reversed(numbers):
            for index in range(len(stack) - 1, -1, -1):
                if stack[index][0] == number:
                    found.append(stack[index][1])
                    del stack[index:]
                    break
            else:
                return None
        found.reverse()
        return found


Run = Callable[[Evaluation], Any]


def size_of(value: Value) -> int:
    """How big a value is for cel-go's own functions: an optional is as big as what it holds."""
    if isinstance(value, (str, bytes, list, MapValue)):
        return len(value)
    if isinstance(value, OptionalValue):
        return size_of(value.value) if value.has_value else 1
    size = getattr(value, "size", None)
    return size if size is not None else 1


def plain_size(value: Value) -> int:
    """How big a value is for Kubernetes' functions."""
    return 1 if isinstance(value, OptionalValue) else size_of(value)


def ceil_of(size: int, factor: float = STRING_FACTOR) -> int:
    return ceil(size * factor)


def call_cost(function: Cost | None, overload: Cost | None, args: Sequence[Any], result: Any, overload_id: str) -> int:
    for rule in (function, overload):
        if rule is not None and (cost := rule(args, result, overload_id)) is not None:
            return cost
    return 1


# Rules that functions share.


def traverse_first(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(size_of(args[0]))


def traverse_smaller(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(min(size_of(args[0]), size_of(args[1])))


def traverse_both(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(size_of(args[0]) + size_of(args[1]))


def match_regex(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil((1.0 + size_of(args[0])) * STRING_FACTOR) * ceil_of(size_of(args[1]), REGEX_FACTOR)


def search(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(size_of(args[0])) * ceil_of(size_of(args[1]))


def second_size(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return size_of(args[1])


def one(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return 1


def traversal(value: Value) -> int:
    """The cost of a walk through a value and all that it holds; text is counted in bytes, rounded down."""
    if isinstance(value, str):
        return int(len(value.encode()) * STRING_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list):
        return sum(traversal(element) for element in value)
    if isinstance(value, MapValue):
        return sum(traversal(key) + traversal(element) for key, element in value.items())
    return 1


def traverse_all(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return traversal(args[0])
