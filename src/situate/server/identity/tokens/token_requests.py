"""Answers serviceaccounts/token: issues tokens of service accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from situate.server.errors import Cause, bad_request, conflict, invalid, not_found
from situate.server.identity.authorization.node_restriction import NodeRestriction
from situate.server.identity.ports import ObjectReader, resource_of, uid_of
from situate.server.identity.tokens.service_account_tokens import ACCOUNTS, AccountTokens, BoundObject
from situate.server.requests import Caller, Object, Target

DEFAULT_S: Final = 3600
LEAST_S: Final = 600
MOST_S: Final = 1 << 32
MOUNTED_S: Final = 3_607
"""The life that marks tokens mounted by default (server/admission/accounts)."""
EXTENDED_S: Final = 365 * 24 * 3_600
"""How long those are valid: a program may read its token once. Nodes are told the shorter time, and renew them."""
GROUP: Final = "authentication.k8s.io"
KIND: Final = "TokenRequest"


class TokenRequests:
    def __init__(
        self,
        objects: ObjectReader,
        tokens: AccountTokens,
        restriction: NodeRestriction,
        *,
        clock: Callable[[], datetime],
        new_uid: Callable[[], str],
    ) -> None:
        self._objects = objects
        self._tokens = tokens
        self._restriction = restriction
        self._clock = clock
        self._new_uid = new_uid

    def create(self, target: Target, request: Object, caller: Caller) -> Object:
        """The request with its token. The caller must be authorized."""
        metadata, spec = request.get("metadata", {}), dict(request.get("spec", {}))
        for field, wanted in (("name", target.name), ("namespace", target.namespace)):
            given = metadata.get(field, "")
            if given not in ("", wanted):
                why = f'Invalid value: "{given}": must match the service account {field} if specified'
                raise invalid(KIND, GROUP, target.name, [Cause(f"metadata.{field}", why)])
        self._restriction.admit_token(target, request, caller)
        found = self._objects.get(ACCOUNTS, target.namespace, target.name)
        if found is None:
            raise not_found("serviceaccounts", "", target.name)
        account = found.object(ACCOUNTS)
        if metadata.get("uid", "") not in ("", uid_of(account)):
            why = f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account"
            raise conflict(KIND, GROUP, target.name, f"{why} ({uid_of(account)})")
        spec.setdefault("expirationSeconds", DEFAULT_S)
        spec["audiences"] = list(spec.get("audiences") or self._tokens.audiences)
        _check_life(spec["expirationSeconds"])
        bound = self._bound(target, spec.get("boundObjectRef") or {})
        now = self._clock()
        life_s: int = spec["expirationSeconds"]
        for_server = set(spec["audiences"]) <= set(self._tokens.audiences)
        warn_s = life_s if bound.kind == "pod" and life_s == MOUNTED_S and for_server else 0
        made = self._tokens.issue(
            account, bound, spec["audiences"], now, EXTENDED_S if warn_s else life_s, self._new_uid(), warn_s
        )
        return {
            **request,
            "metadata": {
                **metadata,
                "name": target.name,
                "namespace": target.namespace,
                "uid": uid_of(account),
                "creationTimestamp": _time(now),
            },
            "spec": spec,
            "status": {
                "token": made,
                "expirationTimestamp": _time(now + timedelta(seconds=spec["expirationSeconds"])),
            },
        }

    def _bound(self, target: Target, reference: Mapping[str, Any]) -> BoundObject:
        if not reference:
            return BoundObject("")
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        kind, name = reference.get("kind", ""), reference.get("name", "")
        if group or kind not in ("Pod", "Node", "Secret"):
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        resource = resource_of("v1", f"{kind.lower()}s")
        found = self._objects.get(resource, "" if kind == "Node" else target.namespace, name)
        if found is None:
            raise not_found(resource.plural, "", name)
        thing = found.object(resource)
        node = ""
        if kind == "Pod":
            spec = thing.get("spec", {})
            if spec.get("serviceAccountName", "") != target.name:
                raise bad_request(
                    f'cannot bind token for serviceaccount "{target.name}" to pod running with '
                    "different serviceaccount name."
                )
            node = spec.get("nodeName", "")
        uid = uid_of(thing)
        if reference.get("uid", "") not in ("", uid):
            why = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise conflict(kind, "", name, why)
        nodes = resource_of("v1", "nodes")
        host = self._objects.get(nodes, "", node) if node else None
        return BoundObject(kind.lower(), name, uid, node, uid_of(host.object(nodes)) if host else "")


def _check_life(seconds: int) -> None:
    if seconds < LEAST_S:
        bound = "less than 10 minutes"
    elif seconds > MOST_S:
        bound = "larger than 2^32 seconds"
    else:
        return
    why = f"Invalid value: {seconds}: may not specify a duration {bound}"
    raise invalid(KIND, GROUP, "", [Cause("spec.expirationSeconds", why)])


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
