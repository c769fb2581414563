"""Which code a call runs: the overload that the checker found, or the first that fits the arguments."""

from collections.abc import Sequence
from typing import Any

from situate.core.cel.errors import ErrorValue, needed, no_such_overload
from situate.core.cel.functions import Code, Function, Overload
from situate.core.cel.values import DurationValue, TimestampValue, Value, type_name, value_accepts


class Binding:
    """A call's code. `at_once`: the arguments are evaluated in turn, and the first that failed ends the call."""

    __slots__ = ("at_once", "code", "overload")

    def __init__(self, code: Code, at_once: bool, overload: Overload | None) -> None:
        self.code = code
        self.at_once = at_once
        self.overload = overload


def bind(function: Function, overload_ids: Sequence[str], arity: int, number: int) -> Binding:
    chosen = None
    if len(overload_ids) == 1:
        chosen = next((one for one in function.overloads if one.id == overload_ids[0]), None)
    if chosen is not None and chosen.code is not None:
        return Binding(_guarded(function, chosen), chosen.variadic or arity > 2, chosen)
    if function.code is not None:
        at_once = function.any_arity or arity > 2
        return Binding(_singleton(function, number, at_once), at_once, chosen)
    coded = [one for one in function.overloads if one.code is not None]
    if len(coded) == 1:
        return Binding(_guarded(function, coded[0]), coded[0].variadic or arity > 2, chosen)
    if coded:
        return Binding(_dispatching(function, coded), True, chosen)
    return Binding(_absent(function, number, arity > 2), arity > 2, chosen)


def refused(function: str, args: Sequence[Value]) -> ErrorValue:
    return ErrorValue(f"no such overload: {function}({', '.join(map(type_name, args))})")


def _guarded(function: Function, overload: Overload) -> Code:
    code = needed(overload.code)
    if not function.guarded or all(arg.kind in ("dyn", "any", "param") for arg in overload.args):
        return code
    declared = overload.args

    def guarded(*args: Any) -> Any:
        for kind, arg in zip(declared, args, strict=True):
            if not value_accepts(kind, arg):
                return refused(function.name, args)
        return code(*args)

    return guarded


def _singleton(function: Function, number: int, at_once: bool) -> Code:
    code, takes = needed(function.code), function.takes
    if takes is None:
        return code
    absent = _absent(function, number, at_once)

    def singleton(*args: Any) -> Any:
        return code(*args) if takes(args[0]) else absent(*args)

    return singleton


def _dispatching(function: Function, coded: list[Overload]) -> Code:
    def dispatch(*args: Any) -> Any:
        for one in coded:
            if len(one.args) == len(args) and (not function.guarded or all(map(value_accepts, one.args, args))):
                return needed(one.code)(*args)
        return refused(function.name, args)

    return dispatch


def _absent(function: Function, number: int, at_once: bool) -> Code:
    message = f"no such overload: {function.name}" + (f" {number}" if at_once else "")

    def absent(*args: Any) -> Any:
        if isinstance(args[0], (str, DurationValue, TimestampValue)):
            return no_such_overload()
        return ErrorValue(message)

    return absent
