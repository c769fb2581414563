"""MutatingAdmissionPolicy, which changes objects by expressions in CEL, and its binding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from situate.core.cel.policies import CONFIGURATION, PATCH
from situate.server.kinds.admissionregistration.policy_rules import (
    PolicyCheck,
    check_binding,
    check_resources,
    default_binding,
    default_policy,
    shown_kind,
    shown_reference,
)
from situate.server.kinds.admissionregistration.rules import name_warnings
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
REINVOCATIONS: Final = ("IfNeeded", "Never")
CONFIGURATION_FIELD: Final = "applyConfiguration"
PATCH_FIELD: Final = "jsonPatch"
TYPES: Final = {"ApplyConfiguration": CONFIGURATION_FIELD, "JSONPatch": PATCH_FIELD}
"""The field of a mutation that each type of patch needs."""


def _expressions(spec: Mapping[str, Any]) -> Iterator[str]:
    for one in spec.get("mutations") or ():
        for name in TYPES.values():
            yield (one.get(name) or {}).get("expression", "")


def _validate(obj: Object, causes: Causes) -> None:
    _check(obj, None, causes)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _check(new, old, causes)


def _check(obj: Object, old: Object | None, causes: Causes) -> None:
    spec = obj.get("spec") or {}
    check = PolicyCheck(obj, old, causes, composes=True)
    if not check.fits(_expressions(spec)):
        return
    check.check_common()
    path = "spec.matchConstraints"
    check_resources(spec.get("matchConstraints"), path, causes, required=True, operations=OPERATIONS)
    check.check_conditions()
    check.check_variables()
    mutations = spec.get("mutations") or ()
    causes.require(mutations, "spec.mutations", "mutations must contain at least one item")
    for index, one in enumerate(mutations):
        _check_mutation(check, one, f"spec.mutations[{index}]")
    causes.require_one_of(spec.get("reinvocationPolicy"), REINVOCATIONS, "spec.reinvocationPolicy")


def _check_mutation(check: PolicyCheck, one: Mapping[str, Any], path: str) -> None:
    causes, kind = check.causes, one.get("patchType", "")
    causes.require_one_of(kind, tuple(TYPES), f"{path}.patchType")
    if kind not in TYPES:
        return
    own = TYPES[kind]
    (other,) = (name for name in TYPES.values() if name != own)
    given = one.get(own)
    if given is None:
        causes.required(f"{path}.{own}", f"must be specified when patchType is {kind}")
    else:
        text = given.get("expression", "").strip()
        if not text:
            causes.required(f"{path}.{own}.expression")
        else:
            kinds = CONFIGURATION if own == CONFIGURATION_FIELD else PATCH
            compiled = check.compiler.compile(text, kinds, makes_objects=True)
            check.report(compiled, f"{path}.{own}.expression")
    if one.get(other) is not None:
        causes.invalid(f"{path}.{other}", f"{{{other}}}", f"must not be specified when patchType is {kind}")


def _validate_binding(obj: Object, causes: Causes) -> None:
    check_binding(obj.get("spec") or {}, causes, OPERATIONS)


POLICY: Final = Kind(
    "admissionregistration.k8s.io/v1 mutatingadmissionpolicies MutatingAdmissionPolicy C - api-extensions",
    strategy=Strategy(
        default=default_policy,
        validate=_validate,
        validate_update=_validate_update,
        warnings=name_warnings,
        counts_generation=True,
        unconditional_update=False,
    ),
    columns="Name!, Mutations, ParamKind, Age",
    cells={"Mutations": lambda obj: len(obj["spec"].get("mutations") or ()), "ParamKind": shown_kind},
    description="MutatingAdmissionPolicy changes objects by expressions in CEL. A binding puts it into effect.",
    words={
        "MutatingAdmissionPolicySpec.mutations": "The changes, in this order.",
        "MutatingAdmissionPolicySpec.matchConstraints": "The operations on resources that the policy is about.",
        "MutatingAdmissionPolicySpec.reinvocationPolicy": "Whether it is asked again after others changed the object.",
        "Mutation.applyConfiguration": "An expression for an Object, which is merged as by server-side apply.",
        "Mutation.jsonPatch": "An expression for a list of JSONPatch.",
    },
)
BINDING: Final = Kind(
    "admissionregistration.k8s.io/v1 mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding C - api-extensions",
    strategy=Strategy(
        default=default_binding,
        validate=_validate_binding,
        validate_update=again(_validate_binding),
        warnings=name_warnings,
        counts_generation=True,
        unconditional_update=False,
    ),
    columns="Name!, PolicyName = spec.policyName, ParamRef, Age",
    cells={"ParamRef": shown_reference},
    description="MutatingAdmissionPolicyBinding puts a policy into effect, with parameters, where its selectors match.",
)
