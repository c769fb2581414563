"""Service account tokens: JWTs that the server signs (ES256).

A token is valid for an audience, until it expires, and while the account and the object it is bound to exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import jwt

from situate.server.identity.pki.account_keys import AccountKeys
from situate.server.identity.ports import ObjectReader, resource_of, uid_of
from situate.server.requests import Caller, Object
from situate.server.resources import Resource

ISSUER: Final = "https://kubernetes.default.svc"
ALGORITHM: Final = "ES256"
JWT_DOTS: Final = 2
"""Between header, claims and signature."""
MAX_TOKEN_BYTES: Final = 16 * 1024
MAX_CACHED_TOKENS: Final = 10_000
"""Tokens with a verified signature. When the cache is full, it is cleared."""

ACCOUNTS: Final = resource_of("v1", "serviceaccounts")
_EXTRA: Final = "authentication.kubernetes.io/"
_KINDS: Final[Mapping[str, Resource]] = {name: resource_of("v1", f"{name}s") for name in ("pod", "secret", "node")}
INVALIDATED: Final = "service account token has been invalidated"


# A token is parsed before its signature is checked; thousands of brackets raise RecursionError.
_UNREADABLE: Final = (jwt.PyJWTError, ValueError, RecursionError)


class TokenError(Exception):
    """The token is invalid, or no longer valid."""


class BoundObject(NamedTuple):
    """The object that a token is bound to; for a pod, also its node."""

    kind: str
    """pod, secret or node; "" for none."""
    name: str = ""
    uid: str = ""
    node: str = ""
    node_uid: str = ""


class VerifiedToken(NamedTuple):
    caller: Caller
    audiences: tuple[str, ...]


class _Verified(NamedTuple):
    """A token with a correct signature."""

    key: str
    """The id of the key that signed it."""
    claims: Mapping[str, Any]


def account_user(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


class AccountTokens:
    def __init__(
        self,
        keys: AccountKeys,
        objects: ObjectReader,
        issuer: str = ISSUER,
        audiences: Sequence[str] = (),
    ) -> None:
        self.issuer: Final = issuer
        self.audiences: Final = tuple(audiences) or (issuer,)
        """The server's own."""
        self._keys = keys
        self._objects = objects
        self._verified: dict[str, _Verified] = {}

    def issue(
        self,
        account: Object,
        bound: BoundObject,
        audiences: Sequence[str],
        now: datetime,
        life_s: int,
        token_id: str,
        warn_s: int = 0,
    ) -> str:
        """`warn_s`: after how long its reader should have read another one; 0: it ends with its life."""
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
        if warn_s:
            ours["warnafter"] = issued + warn_s
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
        self._keys.refresh()
        return jwt.encode(claims, self._keys.key, algorithm=ALGORITHM, headers={"kid": self._keys.id})

    def claims_our_issuer(self, token: str) -> bool:
        """Whether its issuer is ours, so that no other authenticator need be asked. Does not verify it."""
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
        """The caller, and which of the audiences the token is valid for. Raises TokenError."""
        self._keys.refresh()
        verified = self._verified.get(token)
        if verified is None:
            verified = self._check(token, now)
        elif self._keys.public(verified.key, now) is None:
            raise TokenError("invalid bearer token")  # its key was replaced, a while ago
        claims = verified.claims
        _within_time(claims, now.timestamp())
        wanted = tuple(audiences) or self.audiences
        given = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        common = tuple(audience for audience in wanted if audience in given)
        if not common:
            raise TokenError(f"token audiences {_listed(given)} is invalid for the target audiences {_listed(wanted)}")
        return VerifiedToken(self._caller(claims), common)

    def _check(self, token: str, now: datetime) -> _Verified:
        try:
            name = str(jwt.get_unverified_header(token).get("kid", self._keys.id))
            public = self._keys.public(name, now)
            if public is None:
                raise TokenError("invalid bearer token")
            # Times are checked on each use, by the given clock; this checks the signature only.
            claims = jwt.decode(
                token,
                public,
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
        verified = self._verified[token] = _Verified(name, claims)
        return verified

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
            # The node of a token bound to a pod is informational.
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
"""How far the clock of another server with the same key may be ahead of ours."""


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
