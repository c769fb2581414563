"""Checks before a scheduler starts: is the API server there, does it accept our credentials, may we schedule?

We wait for a server that cannot be reached; credentials that it does not accept are an error. Missing permissions are
logged once, with the RBAC rule to add: an administrator may add it later, so the scheduler goes on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from situate.core.config.defaults import BUILT_IN_POINTS
from situate.core.config.resolve import resolve
from situate.core.config.types import KubeSchedulerConfiguration
from situate.kube.access import Access
from situate.kube.client import Client
from situate.kube.delegated import review
from situate.kube.discovery import served_version
from situate.kube.errors import NO_CREDENTIALS, ApiError
from situate.kube.kinds import RESOURCE_CLAIMS, WatchedKind
from situate.loop.election import ElectionRules
from situate.loop.logs import Log
from situate.wire.errors import InputError

BACKOFF_S: Final = 1.0
BACKOFF_MAX_S: Final = 30.0
ANSWER_S: Final = 10.0
DEVICES: Final = RESOURCE_CLAIMS.group
VOLUME_VERBS: Final = ("get", "patch")
AT_ONCE: Final = 8
"""How many permissions to check at a time."""

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Right:
    """A permission, in all namespaces unless one is named."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def full(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def missing(self, user: str, verbs: Iterable[str]) -> str:
        """The advice for an administrator about all verbs that are missing for one resource."""
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        named = list(verbs)
        rule = (
            f'{{apiGroups: ["{self.group}"], resources: ["{self.full}"], verbs: {msgspec.json.encode(named).decode()}}}'
        )
        return (
            f'User "{user}" cannot {", ".join(named)} resource "{self.full}" in API group "{self.group}" {where}: '
            f"add the rule {rule} to a {'Role' if self.namespace else 'ClusterRole'} that is bound to it"
        )


def rights_of(
    config: KubeSchedulerConfiguration,
    kinds: Iterable[WatchedKind],
    rules: ElectionRules | None,
    *,
    writes: bool = True,
    others: Iterable[str] = (),
) -> list[Right]:
    """The permissions that a scheduler of this configuration needs. `writes` is False for one that only watches.

    Of the kinds for devices, those count that the server has: pass no others.
    """
    kinds = list(kinds)
    required = [kind for kind in kinds if not kind.optional or kind.group == DEVICES]
    found = [Right(verb, kind.resource, kind.group) for kind in required for verb in ("list", "watch")]
    if rules is not None:
        found.append(Right("create", "leases", "coordination.k8s.io", namespace=rules.namespace))
        for verb in ("get", "update", "watch"):
            found.append(Right(verb, "leases", "coordination.k8s.io", namespace=rules.namespace, name=rules.name))
    if not writes:
        return found
    found += [Right("create", "pods", subresource="binding"), Right("patch", "pods", subresource="status")]
    found += [Right("get", "pods"), *(Right(verb, "events", "events.k8s.io") for verb in ("create", "patch"))]
    known = {**BUILT_IN_POINTS, **{name: frozenset({"filter", "score"}) for name in others}}
    enabled = {name for profile in resolve(config, known) for names in profile.points.values() for name in names}
    if "DefaultPreemption" in enabled:
        found.append(Right("delete", "pods"))
    if "VolumeBinding" in enabled:
        found += [
            Right(verb, what) for what in ("persistentvolumes", "persistentvolumeclaims") for verb in VOLUME_VERBS
        ]
    if RESOURCE_CLAIMS in kinds:
        found += [Right(verb, "resourceclaims", DEVICES) for verb in ("get", "patch", "create", "delete")]
        found += [Right("patch", "resourceclaims", DEVICES, part) for part in ("status", "binding")]
    return found


async def served_devices(client: Client, kinds: Iterable[WatchedKind]) -> list[WatchedKind]:
    """These kinds, without those for devices that the server does not have, or that it does not tell of."""

    async def is_served(kind: WatchedKind) -> bool:
        if kind.group != DEVICES:
            return True
        try:
            return await served_version(client, kind) is not None
        except ApiError:
            return False

    return [kind for kind in kinds if await is_served(kind)]


async def reach(
    client: Client,
    access: Access,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    dice: Callable[[], float] = random.random,
) -> str:
    """The server's version, once it responds. Raises InputError if it does not accept our credentials."""
    backoff = BACKOFF_S
    while True:
        try:
            answer = await client.request("GET", "/version", timeout_s=ANSWER_S)
            return _version(answer, access)
        except ApiError as error:
            if error.unauthorized or error.reason == NO_CREDENTIALS:
                raise InputError(_not_accepted(access, error)) from None
            if not error.temporary and not error.forbidden:
                problem = f"{access.server} does not answer as an API server does: {error.message}"
                raise InputError(problem, file=access.where) from None
            if error.forbidden:
                return "unknown"  # it keeps its version secret, but it is there
            wait = max(error.retry_after_s or 0.0, backoff * (1 + dice()) / 2)
            _log.warning(
                "The API server cannot be reached, trying again",
                server=access.server,
                err=error.message,
                seconds=round(wait, 1),
            )
            await sleep(wait)
            backoff = min(2 * backoff, BACKOFF_MAX_S)


def _version(answer: bytes, access: Access) -> str:
    try:
        return str(msgspec.json.decode(answer, type=dict[str, Any]).get("gitVersion") or "unknown")
    except msgspec.DecodeError:
        raise InputError(f"{access.server} does not answer as an API server does", file=access.where) from None


def _not_accepted(access: Access, error: ApiError) -> str:
    where = "" if not access.where or access.where in error.message else f"{access.where}: "
    return (
        f"{where}{error.message}: wrong or expired credentials? Get new ones, or name another --kubeconfig or --context"
    )


async def missing_rights(client: Client, rights: Iterable[Right]) -> list[str]:
    """A line for each resource that we lack permissions for. A permission that nobody can check counts as granted."""
    wanted = list(rights)
    turns = asyncio.Semaphore(AT_ONCE)

    async def ask(right: Right) -> bool:
        async with turns:
            return await _allowed(client, right)

    allowed = await asyncio.gather(*map(ask, wanted))
    if all(allowed):
        return []
    user = await _whoami(client)
    lacking: dict[tuple[str, ...], list[Right]] = {}
    for right, ok in zip(wanted, allowed, strict=True):
        if not ok:
            lacking.setdefault((right.group, right.full, right.namespace), []).append(right)
    return [rights[0].missing(user, (right.verb for right in rights)) for rights in lacking.values()]


async def _allowed(client: Client, right: Right) -> bool:
    attributes = {
        "verb": right.verb,
        "resource": right.resource,
        "group": right.group,
        "subresource": right.subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    status = await _status(client, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    return status is None or status.get("allowed") is True


async def _whoami(client: Client) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    status = await _status(client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
    return str(((status or {}).get("userInfo") or {}).get("username") or "of these credentials")


async def _status(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return await review(client, path, body) or None
    except ApiError:
        return None
