"""Rules and match conditions, which webhook configurations and admission policies have alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from situate.core.cel.admission import compile_condition
from situate.core.cel.errors import CompileError
from situate.core.model.names import qualified_name_problems
from situate.server.kinds.field_errors import Causes
from situate.server.objects import Object

ALL: Final = "*"
OPERATIONS: Final = (ALL, "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES: Final = (ALL, "Cluster", "Namespaced")
FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
MAX_CONDITIONS: Final = 64
MAX_EXPRESSION: Final = 64 << 10
"""Characters of an expression that is compiled."""
STATIC_SUFFIX: Final = ".static.k8s.io"
RESERVED: Final = (
    'names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed '
    "via the API"
)


def default_rules(rules: Sequence[dict[str, Any]]) -> None:
    for rule in rules:
        if rule.get("scope") is None:
            rule["scope"] = ALL


def default_matching(obj: dict[str, Any]) -> None:
    """The match policy and the selectors of a webhook, or of the resources that a policy is about."""
    if obj.get("matchPolicy") is None:
        obj["matchPolicy"] = "Equivalent"
    for name in ("namespaceSelector", "objectSelector"):
        if obj.get(name) is None:
            obj[name] = {}


def check_rule(rule: Mapping[str, Any], path: str, causes: Causes, operations: Collection[str] = OPERATIONS) -> None:
    given = rule.get("operations") or ()
    causes.require(given, f"{path}.operations")
    _check_lonely(given, f"{path}.operations", "operations", causes)
    for index, one in enumerate(given):
        causes.one_of(one, operations, f"{path}.operations[{index}]")
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    causes.require(groups, f"{path}.apiGroups")
    _check_lonely(groups, f"{path}.apiGroups", "API groups", causes)
    causes.require(versions, f"{path}.apiVersions")
    _check_lonely(versions, f"{path}.apiVersions", "API versions", causes)
    for index, one in enumerate(versions):
        causes.require(one, f"{path}.apiVersions[{index}]")
    _check_resources(rule.get("resources") or (), f"{path}.resources", causes)
    scope = rule.get("scope")
    if scope is not None:
        causes.one_of(scope, SCOPES, f"{path}.scope")


def _check_lonely(items: Sequence[str], path: str, what: str, causes: Causes) -> None:
    if len(items) > 1 and ALL in items:
        causes.invalid(path, items, f"if '*' is present, must not specify other {what}")


def _check_resources(resources: Sequence[str], path: str, causes: Causes) -> None:
    causes.require(resources, path)
    with_all_subresources: set[str] = set()
    of_all_resources: set[str] = set()
    has_plain = False
    for index, one in enumerate(resources):
        if not one:
            causes.required(f"{path}[{index}]")
            continue
        name, slash, sub = one.partition("/")
        if not slash:
            has_plain = one != ALL
            continue
        if name in with_all_subresources:
            causes.invalid(f"{path}[{index}]", one, f"if '{name}/*' is present, must not specify {one}")
        if sub in of_all_resources:
            causes.invalid(f"{path}[{index}]", one, f"if '*/{sub}' is present, must not specify {one}")
        if sub == ALL:
            with_all_subresources.add(name)
        if name == ALL:
            of_all_resources.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        causes.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if ALL in resources and has_plain:
        causes.invalid(path, resources, "if '*' is present, must not specify other resources without subresources")


def check_conditions(
    conditions: Sequence[Mapping[str, Any]], path: str, causes: Causes, *, has_params: bool = False
) -> None:
    causes.at_most(MAX_CONDITIONS, conditions, path)
    seen: set[str] = set()
    for index, one in enumerate(conditions[: 2 * MAX_CONDITIONS]):
        here, name, text = f"{path}[{index}]", one.get("name", ""), one.get("expression", "").strip()
        if not text:
            causes.required(f"{here}.expression")
        elif (problem := condition_problem(text, has_params=has_params)) is not None:
            causes.invalid(f"{here}.expression", text, problem)
        causes.require_valid(qualified_name_problems, name, f"{here}.name")
        if name:
            causes.unique(name, seen, f"{here}.name")


def condition_problem(text: str, *, has_params: bool) -> str | None:
    if len(text) > MAX_EXPRESSION:
        return f"must not be longer than {MAX_EXPRESSION} characters"
    try:
        compile_condition(text, has_params=has_params)
    except CompileError as error:
        return str(error)
    return None


def name_warnings(obj: Object) -> list[str]:
    name = obj["metadata"].get("name", "")
    return [f"metadata.name: {RESERVED}"] if name.endswith(STATIC_SUFFIX) else []
