"""ValidatingAdmissionPolicy, which says in CEL what requests must keep to, and its binding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from situate.core.cel.policies import ANNOTATION, CONDITION, MESSAGE
from situate.core.model.names import qualified_name_problems
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
from situate.server.kinds.conditions import conditions
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again, drop_status, keep_status
from situate.server.objects import Object

MAX_ANNOTATIONS: Final = 20
MAX_VALUE_EXPRESSION: Final = 5 << 10
"""Bytes of an audit annotation's expression."""
REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
ACTIONS: Final = ("Audit", "Deny", "Warn")
NOTHING_TO_DO: Final = "validations or auditAnnotations must contain at least one item"
DENY_AND_WARN: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
_LINE_BREAK: Final = re.compile(r"[\n\r]")


def _expressions(spec: Mapping[str, Any]) -> Iterator[str]:
    for one in spec.get("validations") or ():
        yield one.get("expression", "")
        yield one.get("messageExpression", "")
    for one in spec.get("auditAnnotations") or ():
        yield one.get("valueExpression", "")


def _validate(obj: Object, causes: Causes) -> None:
    _check(obj, None, causes)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _check(new, old, causes)


def _check(obj: Object, old: Object | None, causes: Causes) -> None:
    spec = obj.get("spec") or {}
    check = PolicyCheck(obj, old, causes, composes=bool(spec.get("variables")))
    if not check.fits(_expressions(spec)):
        return
    check.check_common()
    check_resources(spec.get("matchConstraints"), "spec.matchConstraints", causes, required=True)
    check.check_conditions()
    check.check_variables()
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        causes.required("spec.validations", NOTHING_TO_DO)
        causes.required("spec.auditAnnotations", NOTHING_TO_DO)
    for index, one in enumerate(validations):
        _check_validation(check, one, f"spec.validations[{index}]")
    if len(annotations) > MAX_ANNOTATIONS:
        causes.invalid(
            "spec.auditAnnotations", annotations, f"must not have more than {MAX_ANNOTATIONS} auditAnnotations"
        )
    seen: set[str] = set()
    for index, one in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        _check_annotation(check, one, obj["metadata"].get("name", ""), path)
        causes.unique(one.get("key", ""), seen, f"{path}.key")


def _check_validation(check: PolicyCheck, one: Mapping[str, Any], path: str) -> None:
    causes = check.causes
    text, given, message = (one.get(name, "") for name in ("expression", "messageExpression", "message"))
    if not text.strip():
        causes.required(f"{path}.expression", "expression is not specified")
    else:
        check.report(check.compiler.compile(text, CONDITION), f"{path}.expression")
    if given and not given.strip():
        causes.invalid(f"{path}.messageExpression", given, "must be non-empty if specified")
    elif given:
        compiled = check.compiler.compile(given, MESSAGE, has_authorizer=False)
        check.report(compiled, f"{path}.messageExpression")
    if message and not message.strip():
        causes.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message.strip()):
        causes.invalid(f"{path}.message", message, "must not contain line breaks")
    if one.get("reason") is not None:
        causes.one_of(one["reason"], REASONS, f"{path}.reason")


def _check_annotation(check: PolicyCheck, one: Mapping[str, Any], name: str, path: str) -> None:
    causes = check.causes
    key, text = one.get("key", ""), one.get("valueExpression", "")
    if name:
        causes.check(qualified_name_problems, f"{name}/{key}", f"{path}.key")
    else:
        causes.invalid(f"{path}.key", key, "requires metadata.name be non-empty")
    trimmed = text.strip()
    if not trimmed:
        causes.required(f"{path}.valueExpression", "valueExpression is not specified")
    elif len(trimmed.encode()) > MAX_VALUE_EXPRESSION:
        causes.required(f"{path}.valueExpression", f"must not exceed {MAX_VALUE_EXPRESSION} bytes in length")
    else:
        compiled = check.compiler.compile(trimmed, ANNOTATION)
        if compiled.expression is None:
            causes.invalid(f"{path}.valueExpression", text, compiled.error)


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    status = new.get("status") or {}
    path = "status.typeChecking.expressionWarnings"
    for index, one in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        causes.require(one.get("warning"), f"{path}[{index}].warning")
        causes.require(one.get("fieldRef", "").strip(), f"{path}[{index}].fieldRef")
    conditions(status.get("conditions") or (), "status.conditions", causes)


def _validate_binding(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec") or {}
    check_binding(spec, causes)
    _check_actions(spec.get("validationActions") or (), "spec.validationActions", causes)


def _check_actions(actions: Sequence[str], path: str, causes: Causes) -> None:
    seen: set[str] = set()
    for index, one in enumerate(actions):
        causes.one_of(one, ACTIONS, f"{path}[{index}]")
        causes.unique(one, seen, f"{path}[{index}]")
    if "Deny" in seen and "Warn" in seen:
        causes.invalid(path, actions, DENY_AND_WARN)
    if not seen:
        causes.required(path, "at least one validation action is required")


POLICY: Final = Kind(
    "admissionregistration.k8s.io/v1 validatingadmissionpolicies ValidatingAdmissionPolicy C - api-extensions | status",
    strategy=Strategy(
        default=default_policy,
        prepare_create=drop_status,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        warnings=name_warnings,
        counts_generation=True,
        unconditional_update=False,
    ),
    columns="Name!, Validations, ParamKind, Age",
    cells={"Validations": lambda obj: len(obj["spec"].get("validations") or ()), "ParamKind": shown_kind},
    description="ValidatingAdmissionPolicy says in CEL what requests must keep to. A binding puts it into effect.",
    words={
        "ValidatingAdmissionPolicySpec.validations": "Expressions that must be true, with what to say if one is not.",
        "ValidatingAdmissionPolicySpec.auditAnnotations": "Expressions whose values go to the audit log.",
        "ValidatingAdmissionPolicySpec.matchConstraints": "The operations on resources that the policy is about.",
        "ValidatingAdmissionPolicySpec.matchConditions": "Expressions that must all be true of a request.",
        "ValidatingAdmissionPolicySpec.variables": "Expressions that others use as `variables.name`.",
        "ValidatingAdmissionPolicySpec.paramKind": "The kind of the objects that expressions see as `params`.",
        "ValidatingAdmissionPolicySpec.failurePolicy": "Whether an error refuses a request (Fail) or not (Ignore).",
        "ValidatingAdmissionPolicyStatus.typeChecking": "What does not fit the types of the policy's resources.",
    },
)
BINDING: Final = Kind(
    "admissionregistration.k8s.io/v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding C - "
    "api-extensions",
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
    description="ValidatingAdmissionPolicyBinding puts a policy into effect, with parameters, where selectors match.",
    words={
        "ValidatingAdmissionPolicyBindingSpec.validationActions": "What a failed validation does: Deny, Warn, Audit.",
        "ParamRef.parameterNotFoundAction": "Whether requests are denied (Deny) if there are no parameters.",
    },
)
