"""Delegated authentication and authorization: the API server decides, by TokenReview and SubjectAccessReview.

Answers and refusals are cached for a while, up to a limit; no answer is a refusal. Tokens are cached as digests only.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Generic, TypeVar

import msgspec

from situate.kube.client import Client
from situate.kube.errors import ApiError

TTL_S: Final = 10.0
"""kube-scheduler's."""
KEPT: Final = 4_096
REVIEW_S: Final = 10.0
ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")
MASTERS: Final = "system:masters"

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class RequestUser:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ANONYMOUS: Final = RequestUser("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED: Final = "system:authenticated"


class ExpiringCache(Generic[V]):
    """A cache whose entries expire."""

    def __init__(self, limit: int = KEPT, clock: Callable[[], float] = monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._found: OrderedDict[object, tuple[float, V]] = OrderedDict()

    def get(self, key: object) -> V | None:
        found = self._found.get(key)
        if found is None or found[0] <= self._clock():
            return None
        return found[1]

    def put(self, key: object, value: V, ttl_s: float) -> V:
        self._found[key] = (self._clock() + ttl_s, value)
        self._found.move_to_end(key)
        while len(self._found) > self._limit:
            self._found.popitem(last=False)
        return value


class DelegatedAuthentication:
    """Who sent a request. An unknown token is None; no token is anonymous."""

    def __init__(self, client: Client, ttl_s: float = TTL_S, clock: Callable[[], float] = monotonic) -> None:
        self._client, self._ttl_s = client, ttl_s
        self._known: ExpiringCache[tuple[RequestUser | None]] = ExpiringCache(clock=clock)

    async def of(self, header: str, certificate: RequestUser | None) -> RequestUser | None:
        """By an Authorization header, or by a verified client certificate. Raises ApiError."""
        if certificate is not None:
            return certificate
        if not header:
            return ANONYMOUS
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS
        return await self._by_token(token.strip())

    async def _by_token(self, token: str) -> RequestUser | None:
        key = hashlib.sha256(token.encode()).digest()
        known = self._known.get(key)
        if known is not None:
            return known[0]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = await review(self._client, "/apis/authentication.k8s.io/v1/tokenreviews", body)
        user = status.get("user") or {}
        name = str(user.get("username") or "")
        found = None
        if status.get("authenticated") is True and name:
            groups = (*map(str, user.get("groups") or ()), AUTHENTICATED)
            found = RequestUser(name, tuple(dict.fromkeys(groups)), str(user.get("uid") or ""))
        return self._known.put(key, (found,), self._ttl_s)[0]


class DelegatedAuthorization:
    def __init__(
        self,
        client: Client,
        always_allowed: Sequence[str] = ALWAYS_ALLOWED,
        allow_ttl_s: float = TTL_S,
        deny_ttl_s: float = TTL_S,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._client = client
        self._paths = [path.strip() for path in always_allowed]
        self._allow_ttl_s, self._deny_ttl_s = allow_ttl_s, deny_ttl_s
        self._known: ExpiringCache[bool] = ExpiringCache(clock=clock)

    def always(self, path: str) -> bool:
        """A path that ends in `/*` covers all paths below it."""
        return any(path.startswith(one[:-1]) if one.endswith("/*") else path == one for one in self._paths)

    async def allows(self, user: RequestUser, verb: str, path: str) -> bool:
        """Raises ApiError if the API server does not answer."""
        if MASTERS in user.groups or self.always(path):
            return True
        key = (user, verb, path)
        known = self._known.get(key)
        if known is not None:
            return known
        spec = {
            "user": user.name,
            "groups": list(user.groups),
            "uid": user.uid,
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = await review(self._client, "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
        allowed = status.get("allowed") is True and status.get("denied") is not True
        return self._known.put(key, allowed, self._allow_ttl_s if allowed else self._deny_ttl_s)


async def review(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The status of a review. Raises ApiError."""
    answer = await client.request("POST", path, body=msgspec.json.encode(body), timeout_s=REVIEW_S)
    try:
        found: dict[str, Any] = msgspec.json.decode(answer, type=dict[str, Any]).get("status") or {}
    except msgspec.DecodeError as error:
        raise ApiError(0, "NotJSON", f"the review cannot be read: {error}") from None
    return found
