"""The creates that identity answers without storing an object: reviews and token requests."""

from __future__ import annotations

from collections.abc import Callable

from situate.server.http.ports import CreateHandler, CreateHandlers, CreateRequest
from situate.server.identity.authorization.node_restriction import NodeRestriction
from situate.server.identity.authorization.reviews import Reviews
from situate.server.identity.tokens.token_requests import TokenRequests
from situate.server.requests import Object

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"


def restricted(handler: CreateHandler, restriction: NodeRestriction) -> CreateHandler:
    """The handler behind NodeRestriction: for writes that do not pass the registry's admission, such as evictions."""

    async def call(request: CreateRequest) -> Object:
        await restriction.admit("create", request.target, request.body, None, request.caller)
        return await handler.call(request)

    return CreateHandler(call, handler.api_version, handler.kind)


def create_handlers(reviews: Reviews, tokens: TokenRequests) -> CreateHandlers:
    """By group, plural and subresource."""
    may, who = f"{AUTHORIZATION}/v1", f"{AUTHENTICATION}/v1"
    return {
        (AUTHORIZATION, "selfsubjectaccessreviews", ""): _handler(
            lambda request: reviews.self_access(request.body, request.caller), may, "SelfSubjectAccessReview"
        ),
        (AUTHORIZATION, "subjectaccessreviews", ""): _handler(
            lambda request: reviews.access(request.body), may, "SubjectAccessReview"
        ),
        (AUTHORIZATION, "localsubjectaccessreviews", ""): _handler(
            lambda request: reviews.local_access(request.body, request.target.namespace),
            may,
            "LocalSubjectAccessReview",
        ),
        (AUTHORIZATION, "selfsubjectrulesreviews", ""): _handler(
            lambda request: reviews.self_rules(request.body, request.caller), may, "SelfSubjectRulesReview"
        ),
        (AUTHENTICATION, "selfsubjectreviews", ""): _handler(
            lambda request: reviews.self_subject(request.body, request.caller), who, "SelfSubjectReview"
        ),
        (AUTHENTICATION, "tokenreviews", ""): _handler(lambda request: reviews.token(request.body), who, "TokenReview"),
        ("", "serviceaccounts", "token"): _handler(
            lambda request: tokens.create(request.target, request.body, request.caller), who, "TokenRequest"
        ),
    }


def _handler(answer: Callable[[CreateRequest], Object], api_version: str, kind: str) -> CreateHandler:
    async def call(request: CreateRequest) -> Object:
        return answer(request)

    return CreateHandler(call, api_version, kind)
