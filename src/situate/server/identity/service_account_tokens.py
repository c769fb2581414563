"""Tokens of service accounts: JWTs that the server signs (ES256).

One is good for an audience, for a time, and as long as the account and whatever it is bound to are still there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from situate.server.identity.ports import ObjectReader, resource_of, uid_of
from situate.server.requests import Caller, Object
from situate.server.resources import Resource

__all__ = ["ISSUER", "AccountTokens", "BoundObject", "VerifiedToken", "TokenError", "account_groups", "account_user"]

ISSUER: Final = "https://kubernetes.default.svc"
ALGORITHM: Final = "ES256"
JWT_DOTS: Final = 2
"""Between header, claims and signature."""
MAX_TOKEN_BYTES: Final = 16 * 1024
MAX_CACHED_TOKENS: Final = 10_000
"""Tokens whose signature was checked and need not be again."""

ACCOUNTS: Final = resource_of("v1", "serviceaccounts")
_EXTRA: Final = "authentication.kubernetes.io/"
_KINDS: Final[Mapping[str, Resource]] = {name: resource_of("v1", f"{name}s") for name in ("pod", "secret", "node")}
INVALIDATED: Final = "service account token has been invalidated"


# What anybody sends is parsed before its signature can be looked at; thousands of brackets are a RecursionError.
_UNREADABLE: Final = (jwt.PyJWTError, ValueError, RecursionError)


class TokenError(Exception):
    """A token of ours that is no longer good, or one that never was."""


class BoundObject(NamedTuple):
    """The object with which a token ends; of a pod, also the node it is on."""

    kind: str
    """pod, secret or node; "" for none."""
    name: str = ""
    uid: str = ""
    node: str = ""
    node_uid: str = ""


class VerifiedToken(NamedTuple):
    caller: Caller
    audiences: tuple[str, ...]


def account_user(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


class AccountTokens:
    def __init__(
        self,
        key: ec.EllipticCurvePrivateKey,
        objects: ObjectReader,
        issuer: str = ISSUER,
        audiences: Sequence[str] = (),
    ) -> None:
        self.issuer: Final = issuer
        self.audiences: Final = tuple(audiences) or (issuer,)
        """Those of the server itself."""
        self._key = key
        self._public = key.public_key()
        self._objects = objects
        self._id = _key_id(self._public)
        self._verified: dict[str, Mapping[str, Any]] = {}

    def issue(
        self, account: Object, bound: BoundObject, audiences: Sequence[str], now: datetime, life_s: int, token_id: str
    ) -> str:
        namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
        issued = int(now.timestamp())
        ours: dict[str, Any] = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": uid_of(account)},
        }
        if bound.kind:
            ours[bound.kind] = {"name": bound.name, "uid": bound.uid}
        if bound.node:
            ours["node"] = {"name": bound.node} | ({"uid": bound.node_uid} if bound.node_uid else {})
        claims = {
            "aud": list(audiences),
            "exp": issued + life_s,
            "iat": issued,
            "iss": self.issuer,
            "jti": token_id,
            "kubernetes.io": ours,
            "nbf": issued,
            "sub": account_user(namespace, name),
        }
        return jwt.encode(claims, self._key, algorithm=ALGORITHM, headers={"kid": self._id})

    def claims_our_issuer(self, token: str) -> bool:
        """Whether it claims to be by our issuer: then nobody else need be asked."""
        if token.count(".") != JWT_DOTS or len(token) > MAX_TOKEN_BYTES or not token.isascii():
            return False
        if token in self._verified:
            return True
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except _UNREADABLE:
            return False
        return claims.get("iss") == self.issuer

    def verify(self, token: str, now: datetime, audiences: Sequence[str] = ()) -> VerifiedToken:
        """Whose token it is, and for which of the audiences asked for. Raises TokenError."""
        claims = self._verified.get(token)
        if claims is None:
            claims = self._check(token)
        _within_time(claims, now.timestamp())
        wanted = tuple(audiences) or self.audiences
        given = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        common = tuple(audience for audience in wanted if audience in given)
        if not common:
            raise TokenError(f"token audiences {_listed(given)} is invalid for the target audiences {_listed(wanted)}")
        return VerifiedToken(self._caller(claims), common)

    def _check(self, token: str) -> Mapping[str, Any]:
        try:
            # The times are looked at on each use, by the clock that is handed in; here it is about the signature.
            claims = jwt.decode(
                token,
                self._public,
                algorithms=[ALGORITHM],
                issuer=self.issuer,
                options={
                    "require": ["aud", "exp", "iat", "iss", "nbf", "sub"],
                    "verify_aud": False,
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except _UNREADABLE as error:
            raise TokenError("invalid bearer token") from error
        if not isinstance(claims.get("kubernetes.io"), dict) or not _numbers(claims, "exp", "nbf", "iat"):
            raise TokenError("invalid bearer token")
        if len(self._verified) >= MAX_CACHED_TOKENS:
            self._verified.clear()
        self._verified[token] = claims
        return claims

    def _caller(self, claims: Mapping[str, Any]) -> Caller:
        ours = claims["kubernetes.io"]
        namespace, account = ours.get("namespace", ""), ours.get("serviceaccount", {})
        found = self._objects.get(ACCOUNTS, namespace, account.get("name", ""))
        if found is None:
            raise TokenError(f'serviceaccounts "{account.get("name", "")}" not found')
        uid = uid_of(found.object(ACCOUNTS))
        if uid != account.get("uid"):
            raise TokenError(f"service account UID ({uid}) does not match claim ({account.get('uid', '')})")
        user = account_user(namespace, found.name)
        if claims["sub"] != user:
            raise TokenError("invalid bearer token")
        for kind in ("pod", "secret", "node"):
            # The node of a token that is bound to a pod is told, not checked.
            if kind in ours and not (kind == "node" and "pod" in ours):
                self._check_bound_object(kind, namespace, ours[kind])
        groups = (*account_groups(namespace), "system:authenticated")
        return Caller(user, groups, uid, _extra(claims, ours))

    def _check_bound_object(self, kind: str, namespace: str, reference: Mapping[str, str]) -> None:
        resource, name = _KINDS[kind], reference.get("name", "")
        found = self._objects.get(resource, "" if kind == "node" else namespace, name)
        if found is None:
            raise TokenError(INVALIDATED)
        uid = uid_of(found.object(resource))
        if uid != reference.get("uid"):
            claim = reference.get("uid", "")
            raise TokenError(f"{kind} UID ({uid}) does not match service account {kind} ref claim ({claim})")


def _within_time(claims: Mapping[str, Any], now: float) -> None:
    if now >= claims["exp"]:
        raise TokenError("service account token has expired")
    if now < claims["nbf"] - LEEWAY_S:
        raise TokenError("service account token is not valid yet")
    if now < claims["iat"] - LEEWAY_S:
        raise TokenError("service account token is issued in the future")


LEEWAY_S: Final = 60
"""How far the clock of another server that signs with the same key may be ahead of ours."""


def _numbers(claims: Mapping[str, Any], *names: str) -> bool:
    return all(isinstance(claims[name], int | float) and not isinstance(claims[name], bool) for name in names)


def _extra(claims: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    if claims.get("jti"):
        found[f"{_EXTRA}credential-id"] = (f"JTI={claims['jti']}",)
    for kind in ("node", "pod"):
        if kind in ours:
            found[f"{_EXTRA}{kind}-name"] = (ours[kind].get("name", ""),)
            if ours[kind].get("uid"):
                found[f"{_EXTRA}{kind}-uid"] = (ours[kind]["uid"],)
    return found


def _listed(values: Sequence[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _key_id(key: ec.EllipticCurvePublicKey) -> str:
    encoded = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return jwt.utils.base64url_encode(hashlib.sha256(encoded).digest()).decode()
