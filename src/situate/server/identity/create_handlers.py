"""Which requests the reviews and tokens answer, for whoever routes requests."""

from __future__ import annotations

from situate.server.http.ports import CreateHandler, CreateHandlers, CreateRequest
from situate.server.identity.node_restriction import NodeRestriction
from situate.server.identity.reviews import Reviews
from situate.server.identity.token_requests import TokenRequests
from situate.server.requests import Object

__all__ = ["restricted", "create_handlers"]

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"


def restricted(handler: CreateHandler, restriction: NodeRestriction) -> CreateHandler:
    """The same, but a node is kept to its own: for what is written past the registry's admission, as evictions are."""

    async def call(request: CreateRequest) -> Object:
        await restriction.admit("create", request.target, request.body, None, request.caller)
        return await handler.call(request)

    return CreateHandler(call, handler.api_version, handler.kind)


def create_handlers(reviews: Reviews, tokens: TokenRequests) -> CreateHandlers:
    """By group, plural and subresource."""

    async def self_access(request: CreateRequest) -> Object:
        return reviews.self_access(request.body, request.caller)

    async def access(request: CreateRequest) -> Object:
        return reviews.access(request.body)

    async def local_access(request: CreateRequest) -> Object:
        return reviews.local_access(request.body, request.target.namespace)

    async def self_rules(request: CreateRequest) -> Object:
        return reviews.self_rules(request.body, request.caller)

    async def self_subject(request: CreateRequest) -> Object:
        return reviews.self_subject(request.body, request.caller)

    async def token_review(request: CreateRequest) -> Object:
        return reviews.token(request.body)

    async def token(request: CreateRequest) -> Object:
        return tokens.create(request.target, request.body, request.caller)

    may, who = f"{AUTHORIZATION}/v1", f"{AUTHENTICATION}/v1"
    return {
        (AUTHORIZATION, "selfsubjectaccessreviews", ""): CreateHandler(self_access, may, "SelfSubjectAccessReview"),
        (AUTHORIZATION, "subjectaccessreviews", ""): CreateHandler(access, may, "SubjectAccessReview"),
        (AUTHORIZATION, "localsubjectaccessreviews", ""): CreateHandler(local_access, may, "LocalSubjectAccessReview"),
        (AUTHORIZATION, "selfsubjectrulesreviews", ""): CreateHandler(self_rules, may, "SelfSubjectRulesReview"),
        (AUTHENTICATION, "selfsubjectreviews", ""): CreateHandler(self_subject, who, "SelfSubjectReview"),
        (AUTHENTICATION, "tokenreviews", ""): CreateHandler(token_review, who, "TokenReview"),
        ("", "serviceaccounts", "token"): CreateHandler(token, who, "TokenRequest"),
    }
