"""Answers SubjectAccessReviews, SelfSubjectReviews, rules reviews and TokenReviews. None is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from situate.server.errors import Cause, bad_request, invalid
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.node_authorizer import node_name_of
from situate.server.identity.tokens.service_account_tokens import TokenError
from situate.server.requests import Caller, Object

AUTHORIZATION = "authorization.k8s.io"
BOTH = "cannot be specified in combination with resourceAttributes"
NEITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


class Reviews:
    """Each method returns the review with its status."""

    def __init__(self, authorization: Authorization, authentication: Authentication) -> None:
        self._authorization = authorization
        self._authentication = authentication

    def self_access(self, review: Object, caller: Caller) -> Object:
        spec = review.get("spec", {})
        _check("SelfSubjectAccessReview", review, _wrong_attributes(spec))
        return {**review, "status": self._access(caller, spec)}

    def access(self, review: Object) -> Object:
        spec = review.get("spec", {})
        _check("SubjectAccessReview", review, [*_wrong_attributes(spec), *_wrong_subject(spec)])
        return {**review, "status": self._access(_subject(spec), spec)}

    def local_access(self, review: Object, namespace: str) -> Object:
        spec = review.get("spec", {})
        wrong = [*_wrong_attributes(spec), *_wrong_subject(spec)]
        if "resourceAttributes" in spec and spec["resourceAttributes"].get("namespace", "") != namespace:
            named = spec["resourceAttributes"].get("namespace", "")
            why = f'Invalid value: "{named}": must match metadata.namespace'
            wrong.append(Cause("spec.resourceAttributes.namespace", why))
        if "nonResourceAttributes" in spec:
            wrong.append(Cause("spec.nonResourceAttributes", "Invalid value: disallowed on this kind of request"))
        given = review.get("metadata", {}).get("namespace", "")
        if given not in ("", namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        _check("LocalSubjectAccessReview", review, wrong)
        return {**review, "status": self._access(_subject(spec), spec)}

    def self_rules(self, review: Object, caller: Caller) -> Object:
        namespace = review.get("spec", {}).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        granted, wrong = self._authorization.rbac.rules_for(caller, namespace)
        shown = [one.rule.shown() for one in granted]
        status: Object = {
            "resourceRules": [rule for rule in shown if "resources" in rule],
            "nonResourceRules": [rule for rule in shown if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        if node_name_of(caller) is not None:
            status["incomplete"] = True
            wrong.append("node authorizer does not support user rule resolution")
        if wrong:
            status["evaluationError"] = ", ".join(wrong)
        return {**review, "metadata": review.get("metadata", {}), "spec": {}, "status": status}

    def self_subject(self, review: Object, caller: Caller) -> Object:
        return {**review, "metadata": review.get("metadata", {}), "status": {"userInfo": _user(caller)}}

    def token(self, review: Object) -> Object:
        spec = review.get("spec", {})
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        try:
            verified = self._authentication.review(spec["token"], spec.get("audiences") or ())
        except TokenError as error:
            return {**review, "status": {"user": {}, "error": str(error)}}
        status: Object = {"authenticated": True, "user": _user(verified.caller)}
        if verified.audiences:
            status["audiences"] = list(verified.audiences)
        return {**review, "status": status}

    def _access(self, caller: Caller, spec: Mapping[str, Any]) -> Object:
        decision = self._authorization.allows(caller, _attributes(spec))
        return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _user(caller: Caller) -> Object:
    shown: Object = {"username": caller.name, "uid": caller.uid, "groups": list(caller.groups)}
    if caller.extra:
        shown["extra"] = {key: list(values) for key, values in caller.extra.items()}
    return {key: value for key, value in shown.items() if value}


def _subject(spec: Mapping[str, Any]) -> Caller:
    return Caller(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))


def _attributes(spec: Mapping[str, Any]) -> Attributes:
    asked = spec.get("resourceAttributes")
    if asked is None:
        path = spec.get("nonResourceAttributes", {})
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    return Attributes(
        asked.get("verb", ""),
        asked.get("group", ""),
        asked.get("resource", ""),
        asked.get("subresource", ""),
        asked.get("namespace", ""),
        asked.get("name", ""),
        "",
        _fields(asked.get("fieldSelector") or {}),
    )


def _fields(selector: Mapping[str, Any]) -> str:
    """A field selector as text, without terms that text cannot express: they would only restrict further."""
    if selector.get("rawSelector"):
        return str(selector["rawSelector"])
    operators = {"In": "=", "NotIn": "!="}
    terms = []
    for term in selector.get("requirements") or ():
        values: list[str] = term.get("values") or []
        if len(values) == 1 and term.get("operator") in operators:
            terms.append(f"{term.get('key', '')}{operators[term['operator']]}{values[0]}")
    return ",".join(terms)


def _wrong_attributes(spec: Mapping[str, Any]) -> list[Cause]:
    resource, path = "resourceAttributes" in spec, "nonResourceAttributes" in spec
    if resource and path:
        return [Cause("spec.nonResourceAttributes", f"Invalid value: {BOTH}")]
    if not resource and not path:
        return [Cause("spec.resourceAttributes", f"Invalid value: null: {NEITHER}")]
    return []


def _wrong_subject(spec: Mapping[str, Any]) -> list[Cause]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [Cause("spec.user", 'Invalid value: "": at least one of user or group must be specified')]


def _check(kind: str, review: Object, wrong: list[Cause]) -> None:
    extra = set(review.get("metadata", {})) - {"managedFields", "namespace", "creationTimestamp"}
    if extra or (kind != "LocalSubjectAccessReview" and "namespace" in review.get("metadata", {})):
        wrong.append(Cause("metadata", "Invalid value: must be empty"))
    if wrong:
        raise invalid(kind, AUTHORIZATION, "", wrong)
