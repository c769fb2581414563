"""podFailurePolicy and successPolicy of a Job."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.field_errors import quoted
from situate.core.model.names import qualified_name_problems
from situate.server.kinds.batch.indexes import IndexesError, count_indexes
from situate.server.kinds.field_errors import Causes

MAX_RULES: Final = 20
MAX_EXIT_CODES: Final = 255
MAX_CONDITIONS: Final = 20
MAX_INDEXES: Final = 64 * 1024
FAIL_INDEX: Final = "FailIndex"
_ACTIONS: Final = ("Count", FAIL_INDEX, "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_STATUSES: Final = ("False", "True", "Unknown")


def _listed(values: Sequence[str]) -> str:
    return f"valid values: [{' '.join(map(quoted, values))}]"


def failure_policy(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    rules = spec["podFailurePolicy"].get("rules", ())
    causes.at_most(MAX_RULES, rules, f"{path}.rules")
    pod = spec.get("template", {}).get("spec", {})
    names = [one.get("name", "") for one in (*pod.get("containers", ()), *pod.get("initContainers", ()))]
    for index, rule in enumerate(rules):
        _failure_rule(spec, rule, f"{path}.rules[{index}]", names, causes)


def _failure_rule(
    spec: Mapping[str, Any], rule: Mapping[str, Any], path: str, names: Sequence[str], causes: Causes
) -> None:
    action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions")
    if not action:
        causes.required(f"{path}.action", _listed(_ACTIONS))
    elif action == FAIL_INDEX:
        if "backoffLimitPerIndex" not in spec:
            causes.invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    elif action not in _ACTIONS:
        causes.not_supported(f"{path}.action", action, _ACTIONS)
    if codes is not None:
        _exit_codes(codes, f"{path}.onExitCodes", names, causes)
    if conditions:
        _pod_conditions(conditions, f"{path}.onPodConditions", causes)
    if codes is not None and conditions:
        causes.invalid_struct(path, "specifying both OnExitCodes and OnPodConditions is not supported")
    if codes is None and not conditions:
        causes.invalid_struct(path, "specifying one of OnExitCodes and OnPodConditions is required")


def _exit_codes(codes: Mapping[str, Any], path: str, names: Sequence[str], causes: Causes) -> None:
    operator, values = codes.get("operator", ""), codes.get("values", [])
    if not operator:
        causes.required(f"{path}.operator", _listed(_OPERATORS))
    elif operator not in _OPERATORS:
        causes.not_supported(f"{path}.operator", operator, _OPERATORS)
    if "containerName" in codes and codes["containerName"] not in names:
        text = "must be one of the container or initContainer names in the pod template"
        causes.invalid(f"{path}.containerName", codes["containerName"], text)
    if not values:
        causes.invalid(f"{path}.values", values, "at least one value is required")
    elif len(values) > MAX_EXIT_CODES:
        causes.too_many(f"{path}.values", len(values), MAX_EXIT_CODES)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            causes.invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            causes.duplicate(f"{path}.values[{index}]", value)
        seen.add(value)
    if sorted(values) != values:
        causes.invalid(f"{path}.values", values, "must be ordered")


def _pod_conditions(patterns: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    causes.at_most(MAX_CONDITIONS, patterns, path)
    for index, pattern in enumerate(patterns):
        causes.check(qualified_name_problems, pattern.get("type", ""), f"{path}[{index}].type")
        status = pattern.get("status", "")
        if not status:
            causes.required(f"{path}[{index}].status", _listed(_STATUSES))
        elif status not in _STATUSES:
            causes.not_supported(f"{path}[{index}].status", status, _STATUSES)


def success_policy(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Of an Indexed Job."""
    rules = spec["successPolicy"].get("rules", ())
    if not rules:
        causes.required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
    causes.at_most(MAX_RULES, rules, f"{path}.rules")
    for index, rule in enumerate(rules):
        _success_rule(rule, spec.get("completions", 0), f"{path}.rules[{index}]", causes)


def _success_rule(rule: Mapping[str, Any], completions: int, path: str, causes: Causes) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        causes.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        if len(indexes) > MAX_INDEXES:
            causes.too_long(f"{path}.succeededIndexes", MAX_INDEXES)
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            causes.invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    at = f"{path}.succeededCount"
    causes.at_least_zero(count, at)
    if count > completions:
        causes.invalid(at, count, f"must be less than or equal to {completions} (the number of specified completions)")
    if indexes is not None and count > total:
        text = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        causes.invalid(at, count, text)
