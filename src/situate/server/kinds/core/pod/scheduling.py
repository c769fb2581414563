"""Validation of affinity, topology spread, tolerations and scheduling gates."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import dns_label
from situate.server.kinds.node_selectors import node_selector, preferred_terms

_SPREAD: Final = FieldChecks("core.v1.TopologySpreadConstraint")
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
_ANY_KEY: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def affinity(found: Mapping[str, Any], path: str, causes: Causes) -> None:
    if node := found.get("nodeAffinity"):
        if REQUIRED in node:
            node_selector(node[REQUIRED], f"{path}.nodeAffinity.{REQUIRED}", causes)
        if PREFERRED in node:
            preferred_terms(node[PREFERRED], f"{path}.nodeAffinity.{PREFERRED}", causes)
    for key in ("podAffinity", "podAntiAffinity"):
        if pods := found.get(key):
            for index, term in enumerate(pods.get(REQUIRED, ())):
                _term(term, f"{path}.{key}.{REQUIRED}[{index}]", causes)
            for index, weighted in enumerate(pods.get(PREFERRED, ())):
                _weighted(weighted, f"{path}.{key}.{PREFERRED}[{index}]", causes)


def _weighted(weighted: Mapping[str, Any], path: str, causes: Causes) -> None:
    weight = weighted.get("weight", 0)
    if not 0 < weight <= 100:
        causes.invalid(f"{path}.weight", weight, "must be in the range 1-100")
    _term(weighted.get("podAffinityTerm", {}), f"{path}.podAffinityTerm", causes)


def _term(term: Mapping[str, Any], path: str, causes: Causes) -> None:
    causes.label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    causes.label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces", ()):
        causes.check(dns_label, name, f"{path}.namespace")
    _label_keys(term, path, causes)
    key = term.get("topologyKey", "")
    causes.require(key, f"{path}.topologyKey", "can not be empty")
    causes.check(qualified_name_problems, key, f"{path}.topologyKey")


def _label_keys(term: Mapping[str, Any], path: str, causes: Causes) -> None:
    match, mismatch = term.get("matchLabelKeys", ()), term.get("mismatchLabelKeys", ())
    if not match and not mismatch:
        return
    selector = term.get("labelSelector")
    for key, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            causes.forbidden(f"{path}.{key}", _NO_SELECTOR)
        elif keys:
            for index, one in enumerate(keys):
                causes.check(qualified_name_problems, one, f"{path}.{key}[{index}]")
    if selector is not None:
        places = {key: index for index, key in enumerate(match)}
        asked = set(selector.get("matchLabels", ()))
        for expression in selector.get("matchExpressions", ()):
            key = expression.get("key", "")
            if key in places and key in asked:
                causes.invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector")
            asked.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            causes.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def spread(constraints: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    last = {(one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")): at for at, one in enumerate(constraints)}
    for index, one in enumerate(constraints):
        at = f"{path}[{index}]"
        _SPREAD.check(one, at, causes, "maxSkew")
        key, action = one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")
        causes.require(key, f"{at}.topologyKey", "can not be empty")
        _SPREAD.check(one, at, causes, "whenUnsatisfiable")
        if last[key, action] > index:
            causes.duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        _SPREAD.check(one, at, causes, "minDomains")
        if "minDomains" in one and action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            causes.invalid(f"{at}.minDomains", one["minDomains"], detail)
        _SPREAD.check(one, at, causes, "nodeAffinityPolicy nodeTaintsPolicy")
        _label_keys({**one, "mismatchLabelKeys": ()}, at, causes)
        causes.label_selector(one.get("labelSelector"), f"{at}.labelSelector")


def tolerations(found: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    for index, one in enumerate(found):
        key, operator, value = one.get("key", ""), one.get("operator", ""), one.get("value", "")
        effect = one.get("effect", "")
        if key and qualified_name_problems(key):
            causes.check(qualified_name_problems, key, f"{path}[{index}].key")
        if not key and operator != "Exists":
            causes.invalid(f"{path}[{index}].operator", operator, _ANY_KEY)
        if "tolerationSeconds" in one and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.invalid(f"{path}[{index}].effect", effect, detail)
        _toleration_value(operator, value, f"{path}[{index}]", causes)
        if effect and effect not in EFFECTS:
            causes.not_supported(f"{path}[{index}].effect", effect, EFFECTS)


def _toleration_value(operator: str, value: str, path: str, causes: Causes) -> None:
    if operator in ("Equal", ""):
        if problems := label_value_problems(value):
            causes.invalid(f"{path}.operator", value, ";".join(problems))
    elif operator == "Exists":
        if value:
            causes.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        # Known operators, whose feature gate is off by default.
        causes.not_supported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        causes.not_supported(f"{path}.operator", operator, ("Equal", "Exists"))


def gates(found: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(found):
        name = gate.get("name", "")
        causes.check(qualified_name_problems, name, f"{path}[{index}]")
        causes.unique(name, seen, f"{path}[{index}]")
