"""Label selectors and node selectors."""

from situate.core.model.labels import DOES_NOT_EXIST, EXISTS, GT, IN, LT, NOT_IN, LabelSelector
from situate.core.model.names import label_value_problems
from situate.core.model.nodeselector import METADATA_NAME, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.validate.meta import key_problems, labels_problems
from situate.core.model.validate.problem import Problems, forbidden, invalid, required

VALUES_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
ONE_VALUE = "must be specified single value when `operator` is 'Lt' or 'Gt'"
ONE_FIELD_VALUE = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
BAD_OPERATOR = "not a valid selector operator"


def label_selector_problems(path: str, selector: LabelSelector | None) -> Problems:
    if selector is None:
        return
    yield from labels_problems(f"{path}.matchLabels", selector.match_labels)
    for index, one in enumerate(selector.match_expressions):
        here = f"{path}.matchExpressions[{index}]"
        yield from _operator_problems(here, one.operator, one.values, comparisons=False)
        yield from key_problems(f"{here}.key", one.key)
        yield from _value_problems(here, one.values)


def node_selector_problems(path: str, selector: NodeSelector | None) -> Problems:
    if selector is None:
        return
    if not selector.node_selector_terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        yield from term_problems(f"{path}.nodeSelectorTerms[{index}]", term, check_values=True)


def term_problems(path: str, term: NodeSelectorTerm, *, check_values: bool) -> Problems:
    """Kubernetes does not check the values of preferred terms, and never that `Gt` has a number."""
    for index, one in enumerate(term.match_expressions):
        here = f"{path}.matchExpressions[{index}]"
        yield from _operator_problems(here, one.operator, one.values, comparisons=True)
        yield from key_problems(f"{here}.key", one.key)
        if check_values:
            yield from _value_problems(here, one.values)
    for index, one in enumerate(term.match_fields):
        yield from _field_problems(f"{path}.matchFields[{index}]", one)


def _operator_problems(path: str, operator: str, values: tuple[str, ...], *, comparisons: bool) -> Problems:
    if operator in (IN, NOT_IN):
        if not values:
            yield required(f"{path}.values", VALUES_NEEDED)
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            yield forbidden(f"{path}.values", NO_VALUES)
    elif comparisons and operator in (GT, LT):
        if len(values) != 1:
            yield required(f"{path}.values", ONE_VALUE)
    else:
        yield invalid(f"{path}.operator", operator, BAD_OPERATOR)


def _value_problems(path: str, values: tuple[str, ...]) -> Problems:
    for index, value in enumerate(values):
        for text in label_value_problems(value):
            yield invalid(f"{path}.values[{index}]", value, text)


def _field_problems(path: str, one: NodeSelectorRequirement) -> Problems:
    if one.operator not in (IN, NOT_IN):
        yield invalid(f"{path}.operator", one.operator, BAD_OPERATOR)
    elif len(one.values) != 1:
        yield required(f"{path}.values", ONE_FIELD_VALUE)
    if one.key != METADATA_NAME:
        yield invalid(f"{path}.key", one.key, "not a valid field selector key")
