"""Variables and values with a path of fields and indices: `device.attributes["d"].model`.

A path is resolved in one go, as cel-go does it: each step costs one, and the whole costs one more where it is evaluated
as a value of its own (a branch of `?:` or an index is only resolved).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from situate.core.cel.errors import ErrorValue, needed, no_such_overload
from situate.core.cel.formatting import go_print
from situate.core.cel.meter import Evaluation, Run
from situate.core.cel.values import (
    INT64_MAX,
    INT64_MIN,
    MISSING,
    NONE,
    DurationValue,
    MapValue,
    OptionalValue,
    TimestampValue,
    TypeValue,
    UInt,
    Value,
    type_name,
)

_KEY_KINDS = (str, int, UInt, bool, float)
_GO_KINDS: dict[type, str] = {
    type(None): "types.Null", bytes: "types.Bytes", DurationValue: "types.Duration", TimestampValue: "types.Timestamp",
    TypeValue: "*types.Type", OptionalValue: "*types.Optional",
}  # fmt: skip

Lookup = Callable[[Value, Value], object]


def invalid_key(key: Value) -> str:
    if isinstance(key, list):
        kind = "*types.baseList"
    elif isinstance(key, MapValue):
        kind = "*types.baseMap"
    else:
        kind = _GO_KINDS.get(type(key)) or f"cel.{type(key).__name__}"
    return f"invalid qualifier type: {kind}"


def is_key(value: Value) -> bool:
    return type(value) in _KEY_KINDS


def look_up(target: Value, key: Value) -> object:
    """The value under a key or index; MISSING where there is none, or why it cannot be asked for."""
    if isinstance(target, MapValue):
        return target.find(key)
    if isinstance(target, list):
        index = list_index(key)
        if isinstance(index, ErrorValue):
            return index
        return target[index] if 0 <= index < len(target) else MISSING
    if isinstance(target, ErrorValue):
        return target
    return MISSING


def list_index(key: Value) -> int | ErrorValue:
    kind = type(key)
    if kind is int:
        return key  # type: ignore[return-value]
    if kind in (UInt, float):
        if key == key and INT64_MIN <= key <= INT64_MAX and key == int(key):  # type: ignore[operator,arg-type]
            return int(key)
        return ErrorValue(f"unsupported index value {go_print(key)} in list")
    return ErrorValue(f"unsupported index type '{type_name(key)}' in list")


def missing(target: Value, key: Value) -> ErrorValue:
    problem = "index out of bounds" if isinstance(target, list) else "no such key"
    return ErrorValue(f"{problem}: {go_print(key)}")


NO_WAY_BACK: Final = "unsupported conversion to ref.Val: {}"


@dataclass(slots=True)
class Qualifier:
    """One step of a path: a constant key, or one that is computed."""

    id: int
    optional: bool = False
    key: Value = None
    computed: "Attribute | None" = None
    resolve: Run | None = None
    is_operand: bool = False  # computed by something that is no path itself
    test_only: bool = False

    def get(self, frame: Evaluation, target: Value) -> object:
        """The value under the key, or a ErrorValue; as a test, whether there is one."""
        key = self.key
        found: object
        if self.resolve is not None:
            key = self.resolve(frame)
            found = key if isinstance(key, ErrorValue) else self._find(target, key)
        else:
            found = look_up(target, key)
        if self.test_only:
            found = found if isinstance(found, ErrorValue) else found is not MISSING
        elif found is MISSING:
            found = missing(target, key)
        self._observe(frame, found)
        return found

    def get_if_present(self, frame: Evaluation, target: Value) -> object:
        """The value under the key, MISSING, or a ErrorValue. What is missing costs nothing."""
        key = self.key
        found: object
        if self.resolve is not None:
            key = self.resolve(frame)
            found = key if isinstance(key, ErrorValue) else self._find(target, key)
        else:
            found = look_up(target, key)
        if found is not MISSING and not isinstance(found, ErrorValue):
            self._observe(frame, found)
        return found

    def _find(self, target: Value, key: Value) -> object:
        return look_up(target, key) if is_key(key) else ErrorValue(invalid_key(key))

    def _observe(self, frame: Evaluation, found: object) -> None:
        frame.cost += 1


class WatchedQualifier(Qualifier):
    """The same, in an expression with loops."""

    __slots__ = ()

    def _observe(self, frame: Evaluation, found: object) -> None:
        if self.is_operand:
            frame.drop(self.id)
        frame.cost += 1
        frame.push(self.id, found)  # type: ignore[arg-type]


@dataclass(slots=True)
class Attribute:
    """A path: where it starts (a variable, an operand, or one of two paths) and its steps."""

    base_id: int
    base: Run | None = None
    condition: Run | None = None
    condition_id: int = 0
    truthy: "Attribute | None" = None
    falsy: "Attribute | None" = None
    qualifiers: list[Qualifier] = field(default_factory=list)

    @property
    def is_conditional(self) -> bool:
        return self.truthy is not None

    @property
    def id(self) -> int:
        if self.truthy is not None and self.falsy is not None:
            one, other = self.truthy.id, self.falsy.id
            return one if one == other else self.base_id
        return self.qualifiers[-1].id if self.qualifiers else self.base_id

    def add(self, qualifier: Qualifier) -> None:
        if self.truthy is not None and self.falsy is not None:
            self.truthy.add(qualifier)
            self.falsy.add(qualifier)
        else:
            self.qualifiers.append(qualifier)

    def resolver(self) -> Run:
        """The path as one function. No step may be added afterwards."""
        if self.truthy is not None and self.falsy is not None and self.condition is not None:
            return _choose(self.condition, self.truthy.resolver(), self.falsy.resolver())
        base = needed(self.base)
        for qualifier in self.qualifiers:
            if qualifier.computed is not None and qualifier.resolve is None:
                qualifier.resolve = qualifier.computed.resolver()
        return _follow(base, self.qualifiers) if self.qualifiers else _taken_out(base)


def _taken_out(base: Run) -> Run:
    """A path without steps. cel-go takes what an optional holds out as Go's own value and puts it in again; it does not
    know the way back from all of them, and the error is then what the optional holds."""

    def take_out(frame: Evaluation) -> object:
        value = base(frame)
        if isinstance(value, OptionalValue) and value.has_value and (native := getattr(value.value, "go_native", "")):
            return OptionalValue(ErrorValue(NO_WAY_BACK.format(native)))
        return value

    return take_out


def _choose(condition: Run, truthy: Run, falsy: Run) -> Run:
    def choose(frame: Evaluation) -> object:
        chosen = condition(frame)
        if chosen is True:
            return truthy(frame)
        if chosen is False:
            return falsy(frame)
        return chosen if isinstance(chosen, ErrorValue) else no_such_overload()

    return choose


def _follow(base: Run, qualifiers: list[Qualifier]) -> Run:
    if all(
        type(qualifier) is Qualifier
        and qualifier.resolve is None
        and not qualifier.optional
        and not qualifier.test_only
        for qualifier in qualifiers
    ):
        return _follow_constants(base, [qualifier.key for qualifier in qualifiers], qualifiers)

    def follow(frame: Evaluation) -> object:
        return follow_path(frame, base(frame), qualifiers)

    return follow


def _follow_constants(base: Run, keys: list[Value], qualifiers: list[Qualifier]) -> Run:
    """The common case, quickly: constant keys into maps."""

    def follow(frame: Evaluation) -> object:
        value = base(frame)
        if isinstance(value, (ErrorValue, OptionalValue)):
            return follow_path(frame, value, qualifiers)
        for key in keys:
            found = value.find(key) if isinstance(value, MapValue) else look_up(value, key)
            frame.cost += 1
            if found is MISSING:
                return missing(value, key)
            if isinstance(found, ErrorValue):
                return found
            value = found
        return value

    return follow


def follow_path(frame: Evaluation, value: object, qualifiers: list[Qualifier]) -> object:
    is_optional = isinstance(value, OptionalValue)
    if isinstance(value, ErrorValue):
        return value
    if isinstance(value, OptionalValue):
        if not value.has_value:
            return value
        value = value.value
        if native := getattr(value, "go_native", ""):
            # cel-go takes the value out as Go's own, and does not know the way back.
            return ErrorValue(NO_WAY_BACK.format(native))
    for qualifier in qualifiers:
        is_optional = is_optional or qualifier.optional
        if is_optional:
            value = qualifier.get_if_present(frame, value)  # type: ignore[arg-type]
            if value is MISSING:
                return NONE
        else:
            value = qualifier.get(frame, value)  # type: ignore[arg-type]
        if isinstance(value, ErrorValue):
            return value
    return OptionalValue(value) if is_optional else value  # type: ignore[arg-type]
