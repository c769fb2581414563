"""Validation of a node affinity: operators, keys and values of its terms."""

from collections.abc import Sequence
from typing import Final

from situate.core.model.field_errors import child, distinct, index, invalid, unsupported
from situate.core.model.integers import parse_int64
from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.core.model.nodeselector import NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import NodeAffinitySpec

_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")

_EMPTY_VALUES: Final = "for 'in', 'notin' operators, values set can't be empty"
_NEEDLESS_VALUES: Final = "values set must be empty for exists and does not exist"
_ONE_VALUE: Final = "for 'Gt', 'Lt' operators, exactly one value is required"
_INTEGER: Final = "for 'Gt', 'Lt' operators, the value must be an integer"
_ONE_ELEMENT: Final = "must have one element"


def node_affinity_problems(path: str, affinity: NodeAffinitySpec) -> list[str]:
    """The required terms, then the preferred ones. Terms that select nothing or have weight 0 are skipped."""
    problems: list[str] = []
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        terms = child(path, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        for i, term in enumerate(required.node_selector_terms):
            problems += _term_problems(index(terms, i), term)
    preferred = child(path, "preferredDuringSchedulingIgnoredDuringExecution")
    for i, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if weighted.weight:
            problems += _term_problems(index(preferred, i), weighted.preference)
    return problems


def _term_problems(path: str, term: NodeSelectorTerm) -> list[str]:
    problems: list[str] = []
    for i, requirement in enumerate(term.match_expressions):
        problems += _label_problems(index(child(path, "matchExpressions"), i), requirement)
    for i, requirement in enumerate(term.match_fields):
        problems += _field_problems(index(child(path, "matchFields"), i), requirement)
    return problems


def _label_problems(path: str, requirement: NodeSelectorRequirement) -> list[str]:
    if requirement.operator not in _LABEL_OPERATORS:
        return [unsupported(child(path, "operator"), requirement.operator, _LABEL_OPERATORS)]
    problems: list[str] = []
    faults = qualified_name_problems(requirement.key)
    if faults:
        problems.append(invalid(child(path, "key"), requirement.key, "; ".join(faults)))
    values = child(path, "values")
    problems += _count_problems(values, requirement.operator, requirement.values)
    for i, value in enumerate(requirement.values):
        faults = label_value_problems(value)
        if faults:
            problems.append(invalid(f"{index(values, i)}[{requirement.key}]", value, "; ".join(faults)))
    return distinct(problems)


def _count_problems(path: str, operator: str, values: Sequence[str]) -> list[str]:
    match operator:
        case "In" | "NotIn":
            return [] if values else [invalid(path, _shown(values), _EMPTY_VALUES)]
        case "Exists" | "DoesNotExist":
            return [invalid(path, _shown(values), _NEEDLESS_VALUES)] if values else []
        case _:
            problems = [] if len(values) == 1 else [invalid(path, _shown(values), _ONE_VALUE)]
            wrong = ((i, value) for i, value in enumerate(values) if parse_int64(value) is None)
            return problems + [invalid(index(path, i), value, _INTEGER) for i, value in wrong]


def _field_problems(path: str, requirement: NodeSelectorRequirement) -> list[str]:
    if requirement.operator not in _FIELD_OPERATORS:
        return [unsupported(child(path, "operator"), requirement.operator, _FIELD_OPERATORS)]
    if len(requirement.values) != 1:
        return [invalid(child(path, "values"), _shown(requirement.values), _ONE_ELEMENT)]
    return []


def _shown(values: Sequence[str]) -> list[str] | None:
    # The model does not distinguish an absent list from an empty one; people write the absent one.
    return list(values) or None
