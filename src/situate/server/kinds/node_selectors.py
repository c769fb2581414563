"""Validation of node selectors and topology terms."""

from collections.abc import Mapping, Sequence
from typing import Any

from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import subdomain

BAD_OPERATOR = "not a valid selector operator"


def node_selector(selector: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Validate the required node affinity of a pod or a volume."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        causes.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]", causes)


def preferred_terms(terms: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    for index, term in enumerate(terms):
        weight = term.get("weight", 0)
        if not 0 < weight <= 100:
            causes.invalid(f"{path}[{index}].weight", weight, "must be in the range 1-100")
        node_selector_term(term.get("preference", {}), f"{path}[{index}].preference", causes, values=False)


def node_selector_term(term: Mapping[str, Any], path: str, causes: Causes, *, values: bool = True) -> None:
    """`values`: check the label values, too. kube-apiserver does not for preferred terms."""
    for index, one in enumerate(term.get("matchExpressions", ())):
        _expression(one, f"{path}.matchExpressions[{index}]", values, causes)
    for index, one in enumerate(term.get("matchFields", ())):
        _field(one, f"{path}.matchFields[{index}]", causes)


def _expression(one: Mapping[str, Any], path: str, check_values: bool, causes: Causes) -> None:
    operator, values = one.get("operator", ""), one.get("values", ())
    if operator in ("In", "NotIn"):
        causes.require(values, f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            causes.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            causes.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        causes.invalid(f"{path}.operator", operator, BAD_OPERATOR)
    causes.check(qualified_name_problems, one.get("key", ""), f"{path}.key")
    if check_values:
        for index, value in enumerate(values):
            causes.check(label_value_problems, value, f"{path}.values[{index}]")


def _field(one: Mapping[str, Any], path: str, causes: Causes) -> None:
    operator, values = one.get("operator", ""), one.get("values", ())
    if operator not in ("In", "NotIn"):
        causes.invalid(f"{path}.operator", operator, BAD_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.required(f"{path}.values", detail)
    key = one.get("key", "")
    if key != "metadata.name":
        causes.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        causes.check(subdomain, value, f"{path}.values[{index}]")


def topology_selector_term(term: Mapping[str, Any], path: str, causes: Causes) -> dict[str, frozenset[str]]:
    """Validate a term of allowedTopologies. Returns its values by key, to find duplicate terms."""
    asked: dict[str, frozenset[str]] = {}
    for index, one in enumerate(term.get("matchLabelExpressions", ())):
        at = f"{path}.matchLabelExpressions[{index}]"
        key, values = one.get("key", ""), one.get("values", ())
        causes.require(values, f"{at}.values")
        seen: set[str] = set()
        for place, value in enumerate(values):
            causes.unique(value, seen, f"{at}.values[{place}]")
        causes.check(qualified_name_problems, key, f"{at}.key")
        if key in asked:
            causes.duplicate(f"{at}.key", key)
        asked[key] = frozenset(seen)
    return asked
