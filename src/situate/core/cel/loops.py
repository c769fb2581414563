"""The steps that make lists and maps, and that loop over them."""

from collections.abc import Callable
from typing import Any, Final

from situate.core.cel.errors import ErrorValue, GoPanicError
from situate.core.cel.formatting import go_print
from situate.core.cel.meter import LIST_COST, MAP_COST, STRUCT_COST, Evaluation, Run
from situate.core.cel.values import (
    INT64_MAX,
    INT64_MIN,
    UINT64_MAX,
    MapValue,
    MutableList,
    MutableMap,
    OptionalValue,
    UInt,
    map_key,
)
from situate.core.cel.values import make_map as map_of_pairs


class _Unset:
    __slots__ = ()


_UNSET: Final = _Unset()


def accumulator(index: int, start: Run) -> Run:
    """The variable that a loop computes. It is first computed when it is first needed."""

    def run(frame: Evaluation) -> Any:
        value = frame.slots[index]
        if value is _UNSET:
            value = start(frame)
            if isinstance(value, list) and not value:
                value = MutableList()
            elif isinstance(value, MapValue) and not len(value):
                value = MutableMap({})
            frame.slots[index] = value
        return value

    return run


def member_keys(elements: list[Any]) -> frozenset[tuple[str, object]] | None:
    """The keys of a constant list's elements, numbers under every kind that holds them; None if it has others."""
    keys: dict[tuple[str, object], None] = {}
    for element in elements:
        if type(element) not in (bool, int, UInt, float, str):
            return None
        keys[map_key(element)] = None
        if isinstance(element, (bool, str)):
            continue
        whole = not isinstance(element, float) or (
            element == element and abs(element) < 2.0**64 and element == int(element)
        )
        if isinstance(element, float):
            if whole and INT64_MIN < element < INT64_MAX:
                keys["int", int(element)] = None
            if whole and element >= 0:
                keys["uint", int(element)] = None
            continue
        keys["double", float(element)] = None
        if 0 <= element <= UINT64_MAX:
            keys["uint", int(element)] = None
        if INT64_MIN <= element <= INT64_MAX:
            keys["int", int(element)] = None
    return frozenset(keys)


def membership(number: int, operand: Run, members: frozenset[tuple[str, object]], watched: bool) -> Run:
    """`x in [constants]`: costs nothing."""

    def run(frame: Evaluation) -> Any:
        value = operand(frame)
        if not isinstance(value, ErrorValue):
            unhashable = "types.Bytes" if isinstance(value, bytes) else getattr(value, "unhashable", "")
            if unhashable:
                raise GoPanicError(f"runtime error: hash of unhashable type {unhashable}")
            value = map_key(value) in members
        if watched:
            frame.push(number, value)
        return value

    return run


def list_value(elements: list[Any], optional: frozenset[int]) -> Any:
    if not optional:
        return elements
    kept: list[Any] = []
    for index, element in enumerate(elements):
        if index not in optional:
            kept.append(element)
        elif not isinstance(element, OptionalValue):
            shown = go_print(element)
            return ErrorValue(f"cannot initialize optional list element from non-optional value {shown}")
        elif element.has_value:
            kept.append(element.value)
    return kept


def map_value(parts: list[Any], optional: frozenset[int]) -> Any:
    pairs: list[tuple[Any, Any]] = []
    for index in range(len(parts) // 2):
        key, value = parts[2 * index], parts[2 * index + 1]
        if index in optional:
            if not isinstance(value, OptionalValue):
                shown = f"'{go_print(key)}' from non-optional value {go_print(value)}"
                return ErrorValue(f"cannot initialize optional entry {shown}")
            if not value.has_value:
                pairs = [pair for pair in pairs if map_key(pair[0]) != map_key(key)]
                continue
            value = value.value
        pairs.append((key, value))
    return map_of_pairs(pairs)


def _construct(
    number: int, build: Callable[[list[Any], frozenset[int]], Any], cost: int, runs: list[Run], numbers: list[int],
    optional: frozenset[int], watched: bool,
) -> Run:  # fmt: skip
    def run(frame: Evaluation) -> Any:
        parts: list[Any] = []
        value: Any = None
        for part in runs:
            value = part(frame)
            if isinstance(value, ErrorValue):
                break
            parts.append(value)
        else:
            value = build(parts, optional)
        if watched:
            frame.drop_args(numbers)
            frame.cost += cost
            frame.push(number, value)
        else:
            frame.cost += cost
        return value

    return run


def make_list(number: int, runs: list[Run], numbers: list[int], optional: frozenset[int], watched: bool) -> Run:
    return _construct(number, list_value, LIST_COST, runs, numbers, optional, watched)


def make_map(number: int, runs: list[Run], numbers: list[int], optional: frozenset[int], watched: bool) -> Run:
    return _construct(number, map_value, MAP_COST, runs, numbers, optional, watched)


def make_wrapper(
    number: int, runs: list[Run], numbers: list[int], optional: frozenset[int], watched: bool, empty: Any
) -> Run:
    """A message that holds one value, and is that value."""

    def build(parts: list[Any], optional: frozenset[int]) -> Any:
        kept = list_value(parts, optional)
        return kept if isinstance(kept, ErrorValue) else kept[-1] if kept else empty

    return _construct(number, build, STRUCT_COST, runs, numbers, optional, watched)


def make_object(
    number: int, runs: list[Run], numbers: list[int], names: list[str], optional: frozenset[int], watched: bool,
    make: Callable[[MapValue], Any],
) -> Run:  # fmt: skip
    """An object with these fields."""

    def build(parts: list[Any], optional: frozenset[int]) -> Any:
        found = map_value([part for pair in zip(names, parts, strict=True) for part in pair], optional)
        return found if isinstance(found, ErrorValue) else make(found)

    return _construct(number, build, STRUCT_COST, runs, numbers, optional, watched)


class Fold:
    """A loop over a list or map. Slots: what it computes, and one or two variables."""

    __slots__ = ("condition", "number", "over", "result", "slot", "step", "two")

    def __init__(self, number: int, slot: int, two: bool, over: Run, condition: Run, step: Run, result: Run) -> None:
        self.number = number
        self.slot = slot
        self.two = two
        self.over = over
        self.condition = condition
        self.step = step
        self.result = result

    def run(self, frame: Evaluation) -> Any:
        slots, first = frame.slots, self.slot
        slots[first] = _UNSET
        over = self.over(frame)
        if isinstance(over, ErrorValue):
            return over
        items: Any
        if isinstance(over, list):
            items = enumerate(over) if self.two else over
        elif isinstance(over, MapValue):
            items = over.items() if self.two else over.keys()
        elif self.two:
            return ErrorValue(f"unsupported comprehension range type: {go_kind(over)}")
        else:
            return ErrorValue(f"got '{go_kind(over)}', expected iterable type")
        for item in items:
            if self.two:
                slots[first + 1], slots[first + 2] = item
            else:
                slots[first + 1] = item
            if self.condition(frame) is False:
                break
            slots[first] = self.step(frame)
        value = self.result(frame)
        if isinstance(value, MutableList):
            return list(value)
        return MapValue(value.entries) if isinstance(value, MutableMap) else value

    def watched(self, range_number: int) -> Run:
        def run(frame: Evaluation) -> Any:
            value = self.run(frame)
            frame.drop(range_number)
            frame.push(self.number, value)
            return value

        return run


def go_kind(value: Any) -> str:
    kinds: dict[type, str] = {
        bool: "types.Bool", int: "types.Int", UInt: "types.Uint", float: "types.Double", str: "types.String",
        bytes: "types.Bytes", type(None): "types.Null", OptionalValue: "*types.Optional",
    }  # fmt: skip
    known = kinds.get(type(value))
    return known if known is not None else f"cel.{type(value).__name__}"
