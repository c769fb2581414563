"""The expressions of x-kubernetes-validations must compile, and use `oldSelf` only where an old value can be found."""

from __future__ import annotations

from typing import Any

from situate.server.kinds.apiextensions.structural_rules import VALIDATIONS
from situate.server.kinds.field_errors import Causes
from situate.wire.structural.rules import CompiledRule, compile_rules
from situate.wire.structural.schema import Structural


def check_expressions(
    schema: Structural, path: str, causes: Causes, *, is_resource: bool = False, uncorrelated: str = ""
) -> None:
    """`uncorrelated`: the path of the list around, whose items cannot be compared with older ones."""
    for at, rule in enumerate(compile_rules(schema, is_resource=is_resource)):
        _check_rule(rule, f"{path}.{VALIDATIONS}[{at}]", uncorrelated, causes)
    for name, inner in schema.properties.items():
        there = f"{path}.properties[{name}]"
        check_expressions(inner, there, causes, is_resource=inner.embedded, uncorrelated=uncorrelated)
    if schema.additional is not None:
        check_expressions(schema.additional, f"{path}.additionalProperties", causes, uncorrelated=uncorrelated)
    if schema.items is not None:
        inside = uncorrelated or ("" if schema.list_type == "map" else path)
        check_expressions(schema.items, f"{path}.items", causes, is_resource=schema.items.embedded, uncorrelated=inside)


def _check_rule(rule: CompiledRule, path: str, uncorrelated: str, causes: Causes) -> None:
    if rule.error:
        causes.invalid(f"{path}.rule", _shown(rule), rule.error)
    if rule.message_error:
        causes.invalid(f"{path}.messageExpression", _shown(rule), rule.message_error)
    if rule.uses_old_self and uncorrelated:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
        causes.invalid(f"{path}.rule", rule.source["rule"], detail)
    elif not rule.uses_old_self and rule.source.get("optionalOldSelf") is not None:
        detail = "may not be set if oldSelf is not used in rule"
        causes.invalid(f"{path}.optionalOldSelf", rule.source["optionalOldSelf"], detail)


def _shown(rule: CompiledRule) -> dict[str, Any]:
    """As kube-apiserver prints the rule: the fields of a Go struct."""
    get = rule.source.get
    return {
        "Rule": get("rule", ""),
        "Message": get("message", ""),
        "MessageExpression": get("messageExpression", ""),
        "Reason": get("reason"),
        "FieldPath": get("fieldPath", ""),
        "OptionalOldSelf": get("optionalOldSelf"),
    }
