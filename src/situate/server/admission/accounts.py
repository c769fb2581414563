"""ServiceAccounts: gives a new pod its account, the account's pull secrets, and a volume with the account's token.

The volume is the one of Kubernetes: a token that the node asks for, the certificates of the server, and the namespace.
Its name has a suffix that depends on the account alone, so that pods of one template stay equal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from situate.core.reconcile.naming import suffix
from situate.core.reconcile.root_certificates import CERTIFICATES, ROOT_CERTIFICATES
from situate.server.errors import StatusError, forbidden
from situate.server.objects import shown_name
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

ACCOUNT: Final = BY_KIND["v1", "ServiceAccount"]
POD: Final = BY_KIND["v1", "Pod"]
DEFAULT: Final = "default"
ATTEMPTS: Final = 10
"""How often to look for the account `default`, which a controller creates in every new namespace."""
WAIT_S: Final = 0.1
"""Between two of them."""
VOLUME: Final = "kube-api-access-"
MOUNTED_AT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_S: Final = 3_607
"""A life that marks tokens that are mounted by default: they may live longer (identity/tokens)."""
MIRROR: Final = "kubernetes.io/config.mirror"
ENFORCED: Final = "kubernetes.io/enforce-mountable-secrets"
MISSING: Final = 'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
NOT_IN_MIRRORS: Final = "a mirror pod may not {}"


class ServiceAccounts:
    """`required`: a controller creates the account `default` of each namespace; a pod waits for it, and is refused
    without it. Otherwise, as where no controllers run, a pod may go without."""

    def __init__(self, cache: Cache, *, required: bool) -> None:
        self._cache = cache
        self._required = required

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or old is not None or target.resource is not POD or target.subresource:
            return
        spec = new.setdefault("spec", {})
        if MIRROR in (new["metadata"].get("annotations") or {}):
            _check_mirror(new, spec)
            return
        name = spec.get("serviceAccountName") or DEFAULT
        account = await self._find(target.namespace, name)
        if account is None:
            if name == DEFAULT and not self._required:
                return
            raise _refused(new, MISSING.format(namespace=target.namespace, name=name))
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        if _is_mounted(spec, account):
            _mount_token(spec, account["metadata"].get("uid", ""))
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(one) for one in account["imagePullSecrets"]]
        if (account["metadata"].get("annotations") or {}).get(ENFORCED) == "true":
            _check_secrets(new, spec, account)

    def version(self, target: Target) -> int | None:
        return self._cache.of(ACCOUNT).last_change if target.resource is POD else None

    async def _find(self, namespace: str, name: str) -> Object | None:
        for _ in range(ATTEMPTS if name == DEFAULT and self._required else 1):
            found = self._cache.get(ACCOUNT, namespace, name)
            if found is not None:
                return found.object(ACCOUNT)
            if name == DEFAULT and self._required:
                await asyncio.sleep(WAIT_S)
        return None


def _refused(pod: Object, why: str) -> StatusError:
    return forbidden("pods", "", shown_name(pod), why)


def _is_mounted(spec: Mapping[str, Any], account: Object) -> bool:
    asked = spec.get("automountServiceAccountToken")
    return bool(asked if asked is not None else account.get("automountServiceAccountToken", True))


def _mount_token(spec: dict[str, Any], account_uid: str) -> None:
    """Mount the token in every container that mounts nothing at its path."""
    names = [volume.get("name", "") for volume in spec.get("volumes", ())]
    known = next((name for name in names if name.startswith(VOLUME)), "")
    name, counter = known, 0
    while not name or (not known and name in names):
        name, counter = VOLUME + suffix(account_uid, counter), counter + 1
    needed = False
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        mounts = container.get("volumeMounts", [])
        if all(mount.get("mountPath") != MOUNTED_AT for mount in mounts):
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNTED_AT}]
            needed = True
    if needed and not known:
        spec["volumes"] = [*spec.get("volumes", ()), {"name": name, "projected": _token_volume()}]


def _token_volume() -> dict[str, Any]:
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_S, "path": "token"}},
            {
                "configMap": {
                    "name": ROOT_CERTIFICATES,
                    "items": [{"key": CERTIFICATES, "path": CERTIFICATES}],
                }
            },
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 0o644,
    }


def _check_mirror(pod: Object, spec: Mapping[str, Any]) -> None:
    """A mirror pod stands for one that a node runs on its own: the API may give it no rights."""
    if spec.get("serviceAccountName"):
        raise _refused(pod, NOT_IN_MIRRORS.format("reference service accounts"))
    if any(_secrets_of(spec)):
        raise _refused(pod, NOT_IN_MIRRORS.format("reference secrets"))
    for volume in spec.get("volumes", ()):
        if any("serviceAccountToken" in one for one in (volume.get("projected") or {}).get("sources", ())):
            raise _refused(pod, NOT_IN_MIRRORS.format("use ServiceAccountToken volume projections"))


def _check_secrets(pod: Object, spec: Mapping[str, Any], account: Object) -> None:
    """Only the secrets that the account lists."""
    mountable = [one.get("name", "") for one in account.get("secrets") or ()]
    name = account["metadata"]["name"]
    for volume in spec.get("volumes", ()):
        secret = (volume.get("secret") or {}).get("secretName")
        if secret is not None and secret not in mountable:
            why = f'volume with secret.secretName="{secret}" is not allowed because service account {name} does not '
            raise _refused(pod, f"{why}reference that secret")
    for kind, containers in (("init container", "initContainers"), ("container", "containers")):
        for container in spec.get(containers, ()):
            for variable in container.get("env", ()):
                secret = ((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
                if secret is not None and secret not in mountable:
                    why = (
                        f"{kind} {container.get('name', '')} with envVar {variable.get('name', '')} referencing "
                        f'secret.secretName="{secret}" is not allowed because service account {name} does not '
                    )
                    raise _refused(pod, f"{why}reference that secret")
    pulls = [one.get("name", "") for one in account.get("imagePullSecrets") or ()]
    for index, one in enumerate(spec.get("imagePullSecrets", ())):
        if one.get("name", "") not in pulls:
            why = f'imagePullSecrets[{index}].name="{one.get("name", "")}" is not allowed because service account '
            raise _refused(pod, f"{why}{name} does not reference that imagePullSecret")


def _secrets_of(spec: Mapping[str, Any]) -> Iterator[str]:
    for volume in spec.get("volumes", ()):
        if "secret" in volume:
            yield volume["secret"].get("secretName", "")
        for source in (volume.get("projected") or {}).get("sources", ()):
            if "secret" in source:
                yield source["secret"].get("name", "")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind, ()):
            for variable in container.get("env", ()):
                if found := (variable.get("valueFrom") or {}).get("secretKeyRef"):
                    yield found.get("name", "")
            for source in container.get("envFrom", ()):
                if found := source.get("secretRef"):
                    yield found.get("name", "")
    for one in spec.get("imagePullSecrets", ()):
        yield one.get("name", "")
