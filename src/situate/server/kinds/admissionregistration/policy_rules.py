"""What admission policies have alike, and their bindings: defaults, matching, parameters, variables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from situate.core.cel.policies import Compiled, PolicyCompiler
from situate.server.kinds.admissionregistration.rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    OPERATIONS,
    check_conditions,
    check_rule,
    default_matching,
    default_rules,
)
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import dns_1035_label, path_segment, subdomain
from situate.server.objects import Object

MAX_EXPRESSIONS: Final = 64 << 10
"""Characters of all expressions of a policy together. Kubernetes has no limit but that of the object."""
TOO_LONG: Final = f"must have at most {MAX_EXPRESSIONS} characters in all expressions together"
RULES: Final = ("resourceRules", "excludeResourceRules")
NOT_FOUND_ACTIONS: Final = ("Deny", "Allow")
EXCLUSIVE: Final = "name and selector are mutually exclusive"
KIND_CASE: Final = "may have mixed case, but should otherwise match: {why}"
RESERVED_WORDS: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)
_Part = Mapping[str, Any]


def default_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("failurePolicy") is None:
        spec["failurePolicy"] = "Fail"
    _default_resources(spec.get("matchConstraints"))


def default_binding(obj: Object) -> None:
    _default_resources(obj.setdefault("spec", {}).get("matchResources"))


def _default_resources(resources: dict[str, Any] | None) -> None:
    if resources is not None:
        default_matching(resources)
        for name in RULES:
            default_rules(resources.get(name) or ())


class PolicyCheck:
    """The checks of one policy. `old`: the policy before an update."""

    def __init__(self, obj: Object, old: Object | None, causes: Causes, *, composes: bool) -> None:
        self.spec: _Part = obj.get("spec") or {}
        self._old: _Part | None = None if old is None else old.get("spec") or {}
        self.causes = causes
        self.has_params = self.spec.get("paramKind") is not None
        self.compiler = PolicyCompiler(has_params=self.has_params, composes=composes)

    def fits(self, expressions: Iterable[str]) -> bool:
        """Whether the expressions are short enough to be compiled at all."""
        conditions = (one.get("expression", "") for one in self.spec.get("matchConditions") or ())
        variables = (one.get("expression", "") for one in self.spec.get("variables") or ())
        if sum(map(len, (*conditions, *variables, *expressions))) > MAX_EXPRESSIONS:
            self.causes.invalid_struct("spec", TOO_LONG)
            return False
        return True

    def check_common(self) -> None:
        spec, causes = self.spec, self.causes
        causes.require_one_of(spec.get("failurePolicy"), FAILURE_POLICIES, "spec.failurePolicy")
        if self.has_params:
            _check_kind(spec["paramKind"], "spec.paramKind", causes)

    def check_conditions(self) -> None:
        spec, old = self.spec, self._old
        if old is None or any(old.get(name) != spec.get(name) for name in ("paramKind", "matchConditions")):
            given = spec.get("matchConditions") or ()
            check_conditions(given, "spec.matchConditions", self.causes, has_params=self.has_params)

    def check_variables(self) -> None:
        causes = self.causes
        for index, one in enumerate(self.spec.get("variables") or ()):
            path, name, text = f"spec.variables[{index}]", one.get("name", ""), one.get("expression", "")
            if not name.strip():
                causes.required(f"{path}.name", "name is not specified")
            elif not _IDENTIFIER.fullmatch(name) or name in RESERVED_WORDS:
                causes.invalid(f"{path}.name", name, "must be a valid CEL identifier")
            if not text.strip():
                causes.required(f"{path}.expression", "expression is not specified")
            else:
                self.report(self.compiler.add_variable(name, text), f"{path}.expression")

    def report(self, compiled: Compiled, path: str) -> None:
        if compiled.expression is None:
            self.causes.invalid(path, compiled.text, compiled.error)


def check_resources(
    resources: _Part | None, path: str, causes: Causes, *, required: bool, operations: Collection[str] = OPERATIONS
) -> None:
    if resources is None:
        if required:
            causes.required(path)
        return
    causes.require_one_of(resources.get("matchPolicy"), MATCH_POLICIES, f"{path}.matchPolicy")
    for name in ("namespaceSelector", "objectSelector"):
        if resources.get(name) is None:
            causes.required(f"{path}.{name}")
        causes.label_selector(resources.get(name), f"{path}.{name}")
    for name in RULES:
        for index, rule in enumerate(resources.get(name) or ()):
            _check_named_rule(rule, f"{path}.{name}[{index}]", causes)
    if required and not resources.get("resourceRules"):
        causes.required(f"{path}.resourceRules")
    if operations is not OPERATIONS:
        for rule in resources.get("resourceRules") or ():
            for one in rule.get("operations") or ():
                causes.one_of(one, operations, f"{path}.resourceRules.operations")


def _check_named_rule(rule: _Part, path: str, causes: Causes) -> None:
    seen: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames") or ()):
        causes.check(path_segment, name, f"{path}.resourceNames[{index}]")
        causes.unique(name, seen, f"{path}.resourceNames[{index}]")
    check_rule(rule, path, causes)


def _check_kind(kind: _Part, path: str, causes: Causes) -> None:
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    _check_version(api_version, f"{path}.apiVersion", causes)
    if not name:
        causes.required(f"{path}.kind")
    elif problems := dns_1035_label(name.lower()):
        causes.invalid(f"{path}.kind", name, KIND_CASE.format(why=", ".join(problems)))


def _check_version(api_version: str, path: str, causes: Causes) -> None:
    if not api_version:
        causes.required(path)
        return
    if api_version.count("/") > 1:
        causes.invalid(path, api_version, f"unexpected GroupVersion string: {api_version}")
        return
    group, _, version = api_version.rpartition("/")
    if group and (problems := subdomain(group)):
        causes.invalid(path, group, ",".join(problems))
    if not version:
        causes.invalid(path, api_version, "version must be specified")
    elif problems := dns_1035_label(version):
        causes.invalid(path, version, ",".join(problems))


def check_binding(spec: _Part, causes: Causes, operations: Collection[str] = OPERATIONS) -> None:
    """What the bindings of all policies have."""
    causes.require_valid(subdomain, spec.get("policyName", ""), "spec.policyName")
    _check_reference(spec.get("paramRef"), "spec.paramRef", causes)
    path = "spec.matchResources"
    check_resources(spec.get("matchResources"), path, causes, required=False, operations=operations)


def _check_reference(reference: _Part | None, path: str, causes: Causes) -> None:
    if reference is None:
        return
    name, selector = reference.get("name", ""), reference.get("selector")
    if name:
        causes.check(path_segment, name, f"{path}.name")
        if selector is not None:
            causes.forbidden(f"{path}.name", EXCLUSIVE)
    if selector is not None:
        causes.label_selector(selector, f"{path}.selector")
        if name:
            causes.forbidden(f"{path}.selector", EXCLUSIVE)
    if not name and selector is None:
        causes.required(path, "one of name or selector must be specified")
    causes.require_one_of(
        reference.get("parameterNotFoundAction"), NOT_FOUND_ACTIONS, f"{path}.parameterNotFoundAction"
    )


# -- what kubectl prints -----------------------------------------------------------------------------------------------


def shown_kind(obj: Object) -> str:
    kind = obj["spec"].get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind is not None else "<unset>"


def shown_reference(obj: Object) -> str:
    reference = obj["spec"].get("paramRef")
    if reference is None:
        return "<unset>"
    if name := reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{name}"
    return _go_selector(reference["selector"]) if reference.get("selector") is not None else "<unset>"


def _go_selector(selector: _Part) -> str:
    """As Go's String method of a LabelSelector."""
    labels: Mapping[str, str] = selector.get("matchLabels") or {}
    shown = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions: Sequence[_Part] = selector.get("matchExpressions") or ()
    listed = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{shown}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{listed}}},}}"
    )
