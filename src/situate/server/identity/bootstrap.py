"""Creates the objects of a new cluster at start: namespaces, their default service accounts, roles and bindings.

Existing objects are completed and never cut back: a rule, a subject or a label that somebody added stays. As in
Kubernetes, roles and bindings with the autoupdate annotation set to false are left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from copy import deepcopy
from http import HTTPStatus
from typing import Any, Final, Protocol

from situate.core.reconcile.root_certificates import CERTIFICATES
from situate.server.aggregation.connector import CLIENT_NAME
from situate.server.errors import StatusError
from situate.server.identity.authorization.aggregation import Aggregation
from situate.server.identity.authorization.roles import AUTOUPDATE, BINDINGS, ROLES
from situate.server.identity.authorization.rules import rules_of, uncovered
from situate.server.identity.pki.kubeconfig import cluster_info
from situate.server.identity.ports import ObjectReader, resource_of
from situate.server.requests import SYSTEM, Caller, Object, Target
from situate.server.resources import BY_KIND

SYSTEM_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
DELEGATION: Final = "extension-apiserver-authentication"
REQUEST_HEADERS: Final = {
    "requestheader-allowed-names": f'["{CLIENT_NAME}"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-username-headers": '["X-Remote-User"]',
}
"""How other API servers learn for which user this one asks them."""
CLUSTER_INFO: Final = "cluster-info"
"""In kube-public, as kubeadm names it."""
CLUSTER_INFO_KEY: Final = "kubeconfig"
CLUSTER_ROLES: Final = resource_of("rbac.authorization.k8s.io/v1", "clusterroles")


class BootstrapRegistry(Protocol):
    """The part of the registry that bootstrapping needs."""

    @property
    def cache(self) -> ObjectReader: ...

    async def create(self, target: Target, obj: Object, caller: Caller) -> Any: ...

    async def update(self, target: Target, obj: Object, caller: Caller) -> Any: ...


async def bootstrap(registry: BootstrapRegistry, client_ca: str, more: Iterable[Object] = ()) -> int:
    """Create or complete all objects. Returns how many were written."""
    first = [one for one in bootstrap_objects(client_ca) if one["kind"] == "Namespace"]
    rest = [one for one in (*bootstrap_objects(client_ca), *more) if one["kind"] != "Namespace"]
    written = sum(await asyncio.gather(*(_ensure(registry, one) for one in first)))
    written += sum(await asyncio.gather(*(_ensure(registry, one) for one in rest)))
    return written + await aggregate_cluster_roles(registry)


async def publish_authorities(registry: BootstrapRegistry, client_ca: str) -> None:
    """Write the certificates of the authorities where servers and nodes look for them."""
    for one in bootstrap_objects(client_ca):
        if one["kind"] == "ConfigMap":
            await _ensure(registry, one)


async def aggregate_cluster_roles(registry: BootstrapRegistry) -> int:
    """Write the rules of aggregated ClusterRoles into them, for readers. Returns how many changed.

    RBAC does not depend on it: it aggregates for itself.
    """
    roles = {cached.name: cached.object(CLUSTER_ROLES) for cached in registry.cache.all(CLUSTER_ROLES)}
    aggregation, changed = Aggregation(roles), 0
    for name, role in roles.items():
        if not role.get("aggregationRule"):
            continue
        rules = [rule.shown() for rule in aggregation.rules(name) or ()]
        if rules != (role.get("rules") or []):
            await registry.update(Target(CLUSTER_ROLES, "", name), {**role, "rules": rules}, SYSTEM)
            changed += 1
    return changed


def bootstrap_objects(client_ca: str) -> list[Object]:
    return [
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SYSTEM_NAMESPACES),
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
            for namespace in SYSTEM_NAMESPACES
        ),
        *(role.object() for role in ROLES),
        *(binding.object() for binding in BINDINGS),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": DELEGATION, "namespace": "kube-system"},
            "data": {"client-ca-file": client_ca, "requestheader-client-ca-file": client_ca, **REQUEST_HEADERS},
        },
        # Anybody may read it: a joining node compares the authority with the hash from its join command.
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CLUSTER_INFO, "namespace": "kube-public"},
            "data": {CLUSTER_INFO_KEY: cluster_info(client_ca), CERTIFICATES: client_ca},
        },
    ]


async def _ensure(registry: BootstrapRegistry, wanted: Object) -> int:
    resource = BY_KIND[wanted["apiVersion"], wanted["kind"]]
    metadata = wanted["metadata"]
    target = Target(resource, metadata.get("namespace", ""), metadata["name"])
    found = registry.cache.get(resource, target.namespace, target.name)
    if found is None:
        try:
            await registry.create(Target(resource, target.namespace), deepcopy(wanted), SYSTEM)
        except StatusError as error:
            # Another server on the same store has created it.
            if error.code == HTTPStatus.CONFLICT and error.reason == "AlreadyExists":
                return 0
            raise
        return 1
    completed = _completed(found.object(resource), wanted)
    if completed is None:
        return 0
    await registry.update(target, completed, SYSTEM)
    return 1


def _completed(found: Object, wanted: Object) -> Object | None:
    """The object with what it lacks; None if it lacks nothing, or must be left alone."""
    made = deepcopy(found)
    kind, annotations = found["kind"], found["metadata"].get("annotations") or {}
    if kind == "ConfigMap":
        made.setdefault("data", {}).update(wanted["data"])
    elif not kind.startswith(("Role", "ClusterRole")) or annotations.get(AUTOUPDATE) == "false":
        return None
    else:
        for key in ("labels", "annotations"):
            made["metadata"][key] = {**wanted["metadata"].get(key, {}), **(found["metadata"].get(key) or {})}
        if wanted.get("aggregationRule"):
            made.setdefault("aggregationRule", wanted["aggregationRule"])
        elif not made.get("aggregationRule"):
            missing = uncovered(rules_of(found), rules_of(wanted))
            if missing:
                made["rules"] = (found.get("rules") or []) + [rule.shown() for rule in missing]
        if wanted.get("subjects") and found.get("roleRef") == wanted.get("roleRef"):
            present = found.get("subjects") or []
            made["subjects"] = present + [one for one in wanted["subjects"] if one not in present]
    return None if made == found else made
