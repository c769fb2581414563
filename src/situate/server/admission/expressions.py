"""Expressions of admission: their environment, the variables of a request, and match conditions.

`object` and `oldObject` are of any type, `request` is an AdmissionRequest without them, `namespaceObject` the namespace
as far as Kubernetes shows it, and `authorizer` answers whether the user of the request may do something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from situate.core.cel.compiler import Expression, compile_expression
from situate.core.cel.environment import Environment, make_environment
from situate.core.cel.errors import CompileError, ErrorValue
from situate.core.cel.libraries.authorization import (
    AUTHORIZER,
    RESOURCE_CHECK,
    AccessCheck,
    AccessDecision,
    AuthorizerValue,
    ResourceCheckValue,
    ServiceAccount,
)
from situate.core.cel.libraries.kubernetes import LIBRARIES
from situate.core.cel.libraries.times import parse_timestamp
from situate.core.cel.meter import TOO_EXPENSIVE
from situate.core.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, CelType, list_of, map_of, struct
from situate.core.cel.values import StringMap, Value
from situate.server.admission.matching import MatchedAs, in_version
from situate.server.identity.authorization.attributes import Attributes, Authorizer
from situate.server.registry.user_admission import AdmissionRequest
from situate.server.requests import Caller, Object

CALL_LIMIT: Final = 1_000_000
"""What one evaluation may cost."""
CONDITIONS_BUDGET: Final = 1_000_000
"""What the match conditions of one webhook or policy may cost together, for one request. Kubernetes allows 2.5 times as
much, which here takes more than a second."""
OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
FAILED: Final = "expression '{text}' resulted in error: {why}"
UNCOMPILED: Final = "compilation error: {why}"
_REQUEST: Final = "kubernetes.AdmissionRequest"
_NAMESPACE: Final = "kubernetes.Namespace"
_KIND: Final = struct("kubernetes.GroupVersionKind")
_RESOURCE: Final = struct("kubernetes.GroupVersionResource")
_STRINGS: Final = list_of(STRING)
_TEXTS: Final = map_of(STRING, STRING)
_FIELDS: Final[Mapping[str, Mapping[str, CelType]]] = {
    _KIND.name: dict.fromkeys(("group", "version", "kind"), STRING),
    _RESOURCE.name: dict.fromkeys(("group", "version", "resource"), STRING),
    "kubernetes.UserInfo": {
        "username": STRING,
        "uid": STRING,
        "groups": _STRINGS,
        "extra": map_of(STRING, _STRINGS),
    },
    _REQUEST: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": BOOL,
        "options": DYN,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _STRINGS},
    "kubernetes.NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), STRING),
        "lastTransitionTime": TIMESTAMP,
    },
    "kubernetes.NamespaceStatus": {"conditions": list_of(struct("kubernetes.NamespaceCondition")), "phase": STRING},
    "kubernetes.NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
        "finalizers": _STRINGS,
    },
    _NAMESPACE: {
        "metadata": struct("kubernetes.NamespaceMetadata"),
        "spec": struct("kubernetes.NamespaceSpec"),
        "status": struct("kubernetes.NamespaceStatus"),
    },
}


@cache
def admission_environment(*, has_params: bool = False, has_authorizer: bool = True) -> Environment:
    variables: dict[str, CelType] = {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": struct(_NAMESPACE),
        "request": struct(_REQUEST),
    }
    if has_params:
        variables["params"] = DYN
    if has_authorizer:
        variables |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
    return make_environment(LIBRARIES, variables, _FIELDS)


# -- variables ---------------------------------------------------------------------------------------------------------


def cel_value(value: Any) -> Value:
    """JSON as a value of an expression."""
    if isinstance(value, dict):
        return StringMap({name: cel_value(inner) for name, inner in value.items()})
    return [cel_value(item) for item in value] if isinstance(value, list) else value


def request_body(request: AdmissionRequest, matched: MatchedAs) -> Object:
    """The request without its objects and options, as an AdmissionRequest has it."""
    target, caller = request.target, request.caller
    asked = target.resource
    api_version, kind = request.object_kind
    user: Object = {"username": caller.name}
    if caller.uid:
        user["uid"] = caller.uid
    if caller.groups:
        user["groups"] = list(caller.groups)
    if caller.extra:
        user["extra"] = {name: list(values) for name, values in caller.extra.items()}
    body: Object = {
        "kind": _kind(matched.api_version, matched.kind),
        "resource": _resource(matched.resource.group, matched.resource.version, matched.resource.plural),
        "requestKind": _kind(api_version, kind),
        "requestResource": _resource(asked.group, asked.version, asked.plural),
        "name": target.name,
        "namespace": request.namespace,
        "operation": request.operation,
        "userInfo": user,
        "dryRun": request.dry_run,
    }
    if target.subresource:
        body |= {"subResource": target.subresource, "requestSubResource": target.subresource}
    return body if body["namespace"] else {name: value for name, value in body.items() if name != "namespace"}


def _kind(api_version: str, kind: str) -> dict[str, str]:
    group, _, version = api_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}


def _resource(group: str, version: str, plural: str) -> dict[str, str]:
    return {"group": group, "version": version, "resource": plural}


def request_variables(
    request: AdmissionRequest,
    matched: MatchedAs,
    authorizer: Authorizer | None,
    namespace: Object | None = None,
) -> dict[str, Value]:
    """The variables of an expression. `namespace`: of the object, if the expression may see it."""
    resource = request.target.resource
    body = {"name": "", **request_body(request, matched)}
    shown = {name: cel_value(value) for name, value in body.items()}
    found: dict[str, Value] = {
        "object": cel_value(in_version(request.object, resource, matched.resource)),
        "oldObject": cel_value(in_version(request.old, resource, matched.resource)),
        "request": StringMap({**shown, "options": cel_value(request.options or None)}),
        "namespaceObject": None if namespace is None else _namespace_value(namespace),
    }
    if authorizer is not None:
        found |= _authorizers(request, authorizer)
    return found


def _namespace_value(namespace: Object) -> Value:
    given = namespace["metadata"]
    metadata: dict[str, Value] = {
        name: cel_value(given[name]) for name in _FIELDS["kubernetes.NamespaceMetadata"] if name in given
    }
    metadata["UID"] = given.get("uid", "")
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in given:
            metadata[name] = parse_timestamp(given[name])
    status = {name: value for name, value in (namespace.get("status") or {}).items() if name == "phase"}
    return StringMap(
        {
            "metadata": StringMap(metadata),
            "spec": cel_value({"finalizers": list((namespace.get("spec") or {}).get("finalizers") or ())}),
            "status": cel_value(status),
        }
    )


def _authorizers(request: AdmissionRequest, authorizer: Authorizer) -> dict[str, Value]:
    def decide(check: AccessCheck, account: ServiceAccount | None) -> AccessDecision:
        caller = request.caller if account is None else _service_account(*account)
        asked = Attributes(
            verb=check.verb,
            group=check.group,
            resource=check.resource,
            subresource=check.subresource,
            namespace=check.namespace,
            name=check.name,
            path=check.path,
            fields=check.field_selector,
        )
        return AccessDecision(*authorizer.allows(caller, asked))

    target = request.target
    own = AccessCheck(
        group=target.resource.group,
        resource=target.resource.plural,
        subresource=target.subresource,
        namespace=request.namespace,
        name=target.name,
    )
    value = AuthorizerValue(decide)
    return {"authorizer": value, "authorizer.requestResource": ResourceCheckValue(value, own)}


def _service_account(namespace: str, name: str) -> Caller:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return Caller(f"system:serviceaccount:{namespace}:{name}", groups)


# -- match conditions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchCondition:
    name: str
    text: str
    expression: Expression | None
    error: str = ""
    """Why there is no expression."""


class ConditionError(Exception):
    """A condition could not be evaluated; the message is Kubernetes'."""


def compile_condition(text: str, *, has_params: bool = False) -> Expression:
    """Raises CompileError."""
    return compile_expression(
        text,
        admission_environment(has_params=has_params),
        lambda found: None if found == BOOL else f"must evaluate to bool but got {found}",
    )


def compile_conditions(conditions: Sequence[Mapping[str, Any]], *, has_params: bool = False) -> list[MatchCondition]:
    made: list[MatchCondition] = []
    for one in conditions:
        name, text = one.get("name", ""), one.get("expression", "")
        try:
            made.append(MatchCondition(name, text, compile_condition(text, has_params=has_params)))
        except CompileError as error:
            made.append(MatchCondition(name, text, None, str(error)))
    return made


def unmet_condition(conditions: Sequence[MatchCondition], variables: dict[str, Value]) -> str | None:
    """The name of the first condition that is false; None if all are true. A false one counts more than errors: raises
    ConditionError only if no condition is false."""
    budget, errors = CONDITIONS_BUDGET, list[str]()
    for one in conditions:
        if one.expression is None:
            errors.append(UNCOMPILED.format(why=one.error))
            continue
        value, cost = one.expression.outcome(variables, min(CALL_LIMIT, budget))
        budget -= cost
        if isinstance(value, ErrorValue):
            if value.message.startswith(TOO_EXPENSIVE) and budget <= 0:
                raise ConditionError(OUT_OF_BUDGET)
            errors.append(FAILED.format(text=one.text, why=value.message))
        elif value is False:
            return one.name
    if errors:
        raise ConditionError(errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]")
    return None
