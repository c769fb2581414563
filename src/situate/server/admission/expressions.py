"""The variables of admission's expressions, and match conditions. core/cel/admission.py declares the variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from situate.core.cel.admission import FIELDS, compile_condition
from situate.core.cel.compiler import Expression
from situate.core.cel.errors import CompileError, ErrorValue
from situate.core.cel.libraries.authorization import (
    AccessCheck,
    AccessDecision,
    AuthorizerValue,
    ResourceCheckValue,
    ServiceAccount,
)
from situate.core.cel.libraries.times import parse_timestamp
from situate.core.cel.meter import TOO_EXPENSIVE
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
    return {name: value for name, value in body.items() if value != ""}


def _kind(api_version: str, kind: str) -> dict[str, str]:
    group, _, version = api_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}


def _resource(group: str, version: str, plural: str) -> dict[str, str]:
    return {"group": group, "version": version, "resource": plural}


async def request_variables(
    request: AdmissionRequest,
    matched: MatchedAs,
    authorizer: Authorizer | None,
    namespace: Object | None = None,
) -> dict[str, Value]:
    """The variables of an expression. `namespace`: of the object, if the expression may see it. Raises StatusError if
    the object cannot be converted."""
    resource = request.target.resource
    body = {"name": "", **request_body(request, matched)}
    shown = {name: cel_value(value) for name, value in body.items()}
    found: dict[str, Value] = {
        "object": cel_value(await in_version(request.object, resource, matched.resource)),
        "oldObject": cel_value(await in_version(request.old, resource, matched.resource)),
        "request": StringMap({**shown, "options": cel_value(request.options or None)}),
        "namespaceObject": None if namespace is None else _namespace_value(namespace),
    }
    if authorizer is not None:
        found |= _authorizers(request, authorizer)
    return found


def _namespace_value(namespace: Object) -> Value:
    given = namespace["metadata"]
    metadata: dict[str, Value] = {
        name: cel_value(given[name]) for name in FIELDS["kubernetes.NamespaceMetadata"] if name in given
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


class ConditionsTooExpensiveError(ConditionError):
    """They cost more than they may."""


def compile_conditions(conditions: Sequence[Mapping[str, Any]], *, has_params: bool = False) -> list[MatchCondition]:
    made: list[MatchCondition] = []
    for one in conditions:
        name, text = one.get("name", ""), one.get("expression", "")
        try:
            made.append(MatchCondition(name, text, compile_condition(text, has_params=has_params)))
        except CompileError as error:
            made.append(MatchCondition(name, text, None, str(error)))
    return made


def unmet_condition(
    conditions: Sequence[MatchCondition], variables: dict[str, Value], budget: int = CONDITIONS_BUDGET
) -> str | None:
    """The name of the first condition that is false; None if all are true. A false one counts more than errors: raises
    ConditionError only if no condition is false."""
    errors: list[str] = []
    for one in conditions:
        if one.expression is None:
            errors.append(UNCOMPILED.format(why=one.error))
            continue
        value, cost = one.expression.outcome(variables, min(CALL_LIMIT, budget))
        budget -= cost
        if isinstance(value, ErrorValue):
            if value.message.startswith(TOO_EXPENSIVE) and budget <= 0:
                raise ConditionsTooExpensiveError(OUT_OF_BUDGET)
            errors.append(FAILED.format(text=one.text, why=value.message))
        elif value is False:
            return one.name
    if errors:
        raise ConditionError(errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]")
    return None
