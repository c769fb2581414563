"""Matching label selectors, and the checks of a controller's selector against its template."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.field_errors import Causes

DOES_NOT_MATCH: Final = "`selector` does not match template `labels`"

Selector = Mapping[str, Any] | None


def is_empty(selector: Selector) -> bool:
    """An empty selector matches everything. A missing one matches nothing."""
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """The selector must be valid."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    return all(_holds(one, labels) for one in selector.get("matchExpressions", ()))


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    within = labels.get(key) in requirement.get("values", ())
    return within if operator == "In" else not within


def validate_selector(selector: Selector, path: str, causes: Causes) -> bool:
    """Whether the selector is valid. If not, `causes` says why."""
    before = len(causes)
    causes.label_selector(selector, path)
    return len(causes) == before


def template_labels(template: Mapping[str, Any]) -> Mapping[str, str] | None:
    found: Mapping[str, str] | None = template.get("metadata", {}).get("labels")
    return found


def validate_own_selector(spec: Mapping[str, Any], path: str, kind: str, unusable: str, causes: Causes) -> bool:
    """Check that a controller's spec.selector is set, not empty, and matches the template.

    Returns whether kube-apiserver goes on to check the template.
    """
    selector, at = spec.get("selector"), f"{path}.selector"
    usable = True
    if selector is None:
        causes.required(at)
    else:
        usable = validate_selector(selector, at, causes)
        if is_empty(selector):
            causes.invalid(at, selector, f"empty selector is invalid for {kind}")
    if not usable:
        causes.invalid(at, selector, unusable)
        return False
    labels = template_labels(spec.get("template", {}))
    if not is_empty(selector) and not matches(selector, labels or {}):
        causes.invalid(f"{path}.template.metadata.labels", labels, DOES_NOT_MATCH)
    return True
