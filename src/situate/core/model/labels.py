"""Label selectors: as objects write them, and parsed into a canonical value that matches labels.

Two selectors with the same requirements, in any order or spelling, parse to equal values, so that they share one count.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from situate.core.model.base import EMPTY, Labels, Model
from situate.core.model.integers import parse_int64
from situate.core.model.names import label_value_problems, qualified_name_problems

IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
LABEL_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
PARSED_REQUIREMENTS = 4_096
"""How many parsed requirements are cached: many pods have the same."""


class LabelSelectorRequirement(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Model, frozen=True, kw_only=True):
    match_labels: Labels = EMPTY
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class SelectorError(ValueError):
    """A requirement that Kubernetes would not parse."""


class Requirement(msgspec.Struct, frozen=True, gc=False, order=True, cache_hash=True):
    """One parsed requirement. `values` are sorted, without repetition."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        operator, value = self.operator, labels.get(self.key)
        if operator == IN:
            return value in self.values
        if operator == NOT_IN:
            return value not in self.values
        if operator == EXISTS:
            return value is not None
        if operator == DOES_NOT_EXIST:
            return value is None
        if value is None:
            return False
        have, bound = parse_int64(value), parse_int64(self.values[0])
        if have is None or bound is None:
            return False
        return have > bound if operator == GT else have < bound


class Selector(msgspec.Struct, frozen=True, gc=False, order=True, cache_hash=True):
    """Matches labels that meet every requirement: everything without requirements, nothing if `nothing` is set."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        # A loop, not all(...): it runs for every pod, and a generator costs more than the comparison.
        for one in self.requirements:
            if not one.matches(labels):
                return False
        return not self.nothing


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def requirement(key: str, operator: str, values: Iterable[str]) -> Requirement:
    """A parsed requirement of any operator, or SelectorError."""
    return _requirement(key, operator, tuple(values))


@lru_cache(maxsize=PARSED_REQUIREMENTS)
def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    canonical = tuple(sorted(set(values)))
    if problems := qualified_name_problems(key):
        raise SelectorError(f"key: Invalid value: {_quoted(key)}: {'; '.join(problems)}")
    if operator in (IN, NOT_IN):
        if not canonical:
            raise SelectorError("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if canonical:
            raise SelectorError("values: Invalid value: values set must be empty for exists and does not exist")
    elif operator in (GT, LT):
        if len(canonical) != 1:
            raise SelectorError("values: Invalid value: for 'Gt', 'Lt' operators, exactly one value is required")
        if parse_int64(canonical[0]) is None:
            raise SelectorError("values[0]: Invalid value: for 'Gt', 'Lt' operators, the value must be an integer")
    else:
        raise SelectorError(f"{_quoted(operator)} is not a valid label selector operator")
    for value in canonical:
        if problems := label_value_problems(value):
            raise SelectorError(f"values: Invalid value: {_quoted(value)}: {'; '.join(problems)}")
    return Requirement(key, operator, canonical)


def selector_or_nothing(selector: LabelSelector | None) -> Selector:
    """Like `parse_selector`; an invalid selector matches nothing."""
    try:
        return parse_selector(selector)
    except SelectorError:
        return NOTHING


def parse_selector(selector: LabelSelector | None) -> Selector:
    """Kubernetes' LabelSelectorAsSelector: None matches nothing, an empty selector everything."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    found = [requirement(key, IN, (value,)) for key, value in selector.match_labels.items()]
    for expression in selector.match_expressions:
        if expression.operator not in LABEL_OPERATORS:
            raise SelectorError(f"{_quoted(expression.operator)} is not a valid label selector operator")
        found.append(requirement(expression.key, expression.operator, expression.values))
    return selector_of(found)


def selector_of(requirements: Iterable[Requirement]) -> Selector:
    """All of these requirements, in canonical order, each once."""
    return Selector(tuple(sorted(set(requirements))))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
