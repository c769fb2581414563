"""Which requests the reviews and tokens answer, for whoever routes requests."""

from __future__ import annotations

from situate.server.http.ports import Asked, Special, Specials
from situate.server.identity.node_restriction import NodeRestriction
from situate.server.identity.reviews import Reviews
from situate.server.identity.token_requests import TokenRequests
from situate.server.requests import Object

__all__ = ["restricted", "specials"]

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"


def restricted(special: Special, restriction: NodeRestriction) -> Special:
    """The same, but a node is kept to its own: for what is written past the registry's admission, as evictions are."""

    async def call(asked: Asked) -> Object:
        await restriction.admit("create", asked.target, asked.body, None, asked.caller)
        return await special.call(asked)

    return Special(call, special.api_version, special.kind)


def specials(reviews: Reviews, tokens: TokenRequests) -> Specials:
    """By group, plural and subresource."""

    async def self_access(asked: Asked) -> Object:
        return reviews.self_access(asked.body, asked.caller)

    async def access(asked: Asked) -> Object:
        return reviews.access(asked.body)

    async def local_access(asked: Asked) -> Object:
        return reviews.local_access(asked.body, asked.target.namespace)

    async def self_rules(asked: Asked) -> Object:
        return reviews.self_rules(asked.body, asked.caller)

    async def self_subject(asked: Asked) -> Object:
        return reviews.self_subject(asked.body, asked.caller)

    async def token_review(asked: Asked) -> Object:
        return reviews.token(asked.body)

    async def token(asked: Asked) -> Object:
        return tokens.create(asked.target, asked.body, asked.caller)

    may, who = f"{AUTHORIZATION}/v1", f"{AUTHENTICATION}/v1"
    return {
        (AUTHORIZATION, "selfsubjectaccessreviews", ""): Special(self_access, may, "SelfSubjectAccessReview"),
        (AUTHORIZATION, "subjectaccessreviews", ""): Special(access, may, "SubjectAccessReview"),
        (AUTHORIZATION, "localsubjectaccessreviews", ""): Special(local_access, may, "LocalSubjectAccessReview"),
        (AUTHORIZATION, "selfsubjectrulesreviews", ""): Special(self_rules, may, "SelfSubjectRulesReview"),
        (AUTHENTICATION, "selfsubjectreviews", ""): Special(self_subject, who, "SelfSubjectReview"),
        (AUTHENTICATION, "tokenreviews", ""): Special(token_review, who, "TokenReview"),
        ("", "serviceaccounts", "token"): Special(token, who, "TokenRequest"),
    }
