"""Field errors: a Cause with kube-apiserver's exact words for each kind of mistake, as Go's package `field` has them.

Paths are text, as `spec.containers[0].image`. Validation builds them only where something is wrong, or once a list.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sized
from typing import Any, Final

from situate.core.model.field_errors import quoted, shown
from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.errors import Cause

IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
POSITIVE: Final = "must be greater than zero"
MOST_CAUSES: Final = 1_000
"""Errors of one object. Without a bound, a list of 10,000 wrong values could be shown once for each of them."""
MOST_CHARACTERS: Final = 256 << 10
"""Of all errors of one object, but for the last one."""


def _detailed(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def invalid(path: str, value: object, detail: str) -> Cause:
    return Cause(path, _detailed(f"Invalid value: {shown(value)}", detail), "FieldValueInvalid")


def not_supported(path: str, value: object, supported: Iterable[str]) -> Cause:
    """The message lists `supported` in this order."""
    listed = ", ".join(map(quoted, supported))
    detail = f"supported values: {listed}" if listed else ""
    return Cause(path, _detailed(f"Unsupported value: {shown(value)}", detail), "FieldValueNotSupported")


def forbidden(path: str, detail: str) -> Cause:
    return Cause(path, _detailed("Forbidden", detail), "FieldValueForbidden")


class Causes(list[Cause]):
    """The field errors of one object, in the order in which they are found, as far as there is room."""

    __slots__ = ("_room",)

    def __init__(self) -> None:
        super().__init__()
        self._room = MOST_CHARACTERS

    @property
    def is_full(self) -> bool:
        return len(self) >= MOST_CAUSES or self._room <= 0

    def append(self, cause: Cause) -> None:
        if not self.is_full:
            self._room -= len(cause.field) + len(cause.message)
            super().append(cause)

    def extend(self, causes: Iterable[Cause]) -> None:
        for cause in causes:
            self.append(cause)

    def required(self, path: str, detail: str = "") -> None:
        self.append(Cause(path, _detailed("Required value", detail), "FieldValueRequired"))

    def invalid(self, path: str, value: object, detail: str) -> None:
        if not self.is_full:  # the value may be long
            self.append(invalid(path, value, detail))

    def type_invalid(self, path: str, value: object, detail: str) -> None:
        if not self.is_full:
            self.append(Cause(path, _detailed(f"Invalid value: {shown(value)}", detail), "FieldValueTypeInvalid"))

    def invalid_struct(self, path: str, detail: str) -> None:
        """The value is a struct that kube-apiserver does not show."""
        self.append(Cause(path, f"Invalid value: {detail}", "FieldValueInvalid"))

    def not_supported(self, path: str, value: object, supported: Iterable[str]) -> None:
        if not self.is_full:
            self.append(not_supported(path, value, supported))

    def forbidden(self, path: str, detail: str) -> None:
        self.append(forbidden(path, detail))

    def duplicate(self, path: str, value: object, detail: str = "") -> None:
        if not self.is_full:
            self.append(Cause(path, _detailed(f"Duplicate value: {shown(value)}", detail), "FieldValueDuplicate"))

    def not_found(self, path: str, value: object, detail: str = "") -> None:
        if not self.is_full:
            self.append(Cause(path, _detailed(f"Not found: {shown(value)}", detail), "FieldValueNotFound"))

    def too_long(self, path: str, limit: int) -> None:
        detail = f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}"
        self.append(Cause(path, f"Too long: {detail}", "FieldValueTooLong"))

    def too_many(self, path: str, actual: int, limit: int) -> None:
        detail = f"must have at most {limit} {'item' if limit == 1 else 'items'}"
        self.append(Cause(path, f"Too many: {actual}: {detail}", "FieldValueTooMany"))

    def immutable(self, new: Any, old: Any, path: str) -> None:
        """None is an absent value."""
        if new != old:
            self.invalid(path, new, IMMUTABLE)

    def check(self, problems: Callable[[Any], Iterable[str]], value: Any, path: str) -> None:
        """One error for each problem that a rule of `naming` finds with the value."""
        for problem in problems(value):
            self.invalid(path, value, problem)

    def require(self, value: object, path: str, detail: str = "") -> None:
        if not value:
            self.required(path, detail)

    def require_valid(self, problems: Callable[[Any], Iterable[str]], value: Any, path: str) -> None:
        if value:
            self.check(problems, value, path)
        else:
            self.required(path)

    def one_of(self, value: Any, supported: Collection[str], path: str) -> None:
        if value not in supported:
            self.not_supported(path, value, supported)

    def require_one_of(self, value: Any, supported: Collection[str], path: str) -> None:
        if value:
            self.one_of(value, supported, path)
        else:
            self.required(path)

    def unique(self, value: Any, seen: set[Any], path: str) -> None:
        if value in seen:
            self.duplicate(path, value)
        seen.add(value)

    def at_most(self, limit: int, items: Sized, path: str) -> None:
        if len(items) > limit:
            self.too_many(path, len(items), limit)

    def at_least_zero(self, value: int, path: str) -> None:
        if value < 0:
            self.invalid(path, value, NOT_NEGATIVE)

    def positive(self, value: int, path: str) -> None:
        if value <= 0:
            self.invalid(path, value, POSITIVE)

    def labels(self, found: Mapping[str, str], path: str) -> None:
        for key, value in found.items():
            for problem in qualified_name_problems(key):
                self.invalid(path, key, problem)
            for problem in label_value_problems(value):
                self.invalid(path, value, problem)

    def label_selector(self, selector: Mapping[str, Any] | None, path: str) -> None:
        """A metav1.LabelSelector: matchLabels and matchExpressions."""
        if not selector:
            return
        if asked := selector.get("matchLabels"):
            self.labels(asked, f"{path}.matchLabels")
        for index, expression in enumerate(selector.get("matchExpressions", ())):
            self._requirement(expression, f"{path}.matchExpressions[{index}]")

    def _requirement(self, expression: Mapping[str, Any], path: str) -> None:
        operator, values = expression.get("operator", ""), expression.get("values", ())
        if operator in ("In", "NotIn"):
            if not values:
                self.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                self.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        else:
            self.invalid(f"{path}.operator", operator, "not a valid selector operator")
        self.check(qualified_name_problems, expression.get("key", ""), f"{path}.key")
        for index, value in enumerate(values):
            self.check(label_value_problems, value, f"{path}.values[{index}]")
