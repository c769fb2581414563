"""Discovery: the documents that list groups, versions and resources, which clients read first.

It has the old form (a document for the groups, and one for each version) and the aggregated one (one document with an
ETag). Documents are encoded once.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from situate.server.aggregation.apis import AggregatedApi
from situate.server.resources import RESOURCES, Resource

AGGREGATED: Final = ("v2", "v2beta1")
GROUPS: Final = (
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
"""In kube-apiserver's order, which resolves short names. Other groups follow in the order of the table."""
_STABLE: Final = {"": 0, "beta": 1, "alpha": 2}
_HASH_BYTES: Final = 8
_CONNECT: Final = ("create", "get")
_PROXY: Final = ("create", "delete", "get", "patch", "update")
_SUBRESOURCES: Final[Mapping[str, tuple[str, str, str, tuple[str, ...]]]] = {
    "approval": ("", "", "", ("get", "patch", "update")),
    "attach": ("", "", "PodAttachOptions", _CONNECT),
    "binding": ("", "", "Binding", ("create",)),
    "ephemeralcontainers": ("", "", "", ("get", "patch", "update")),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "exec": ("", "", "PodExecOptions", _CONNECT),
    "finalize": ("", "", "", ("update",)),
    "log": ("", "", "", ("get",)),
    "portforward": ("", "", "PodPortForwardOptions", _CONNECT),
    "proxy": ("", "", "{}ProxyOptions", _PROXY),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "status": ("", "", "", ("get", "patch", "update")),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}
"""Group, version and kind, where they differ from the resource's, and verbs. `{}` is the resource's kind."""


@dataclass(frozen=True, slots=True)
class Document:
    body: bytes
    etag: str
    """In quotes, as in the header."""


def document(value: Any) -> Document:
    body = msgspec.json.encode(value) + b"\n"
    return Document(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def subresource_kind(resource: Resource, name: str) -> tuple[str, str, str]:
    """Group, version and kind of a subresource's body. Empty group and version mean the resource's own."""
    group, version, kind, _ = _SUBRESOURCES[name]
    return group, version, kind.format(resource.kind) or resource.kind


def subresource_verbs(name: str) -> tuple[str, ...]:
    return _SUBRESOURCES[name][3]


_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", re.ASCII)


def _version_order(version: str) -> tuple[int, int, int, str]:
    """v2 before v1, both before v1beta1, that before v1alpha2."""
    found = _VERSION.fullmatch(version)
    if found is None:  # of a custom kind, after all others, in the order of the alphabet
        return len(_STABLE), 0, 0, version
    return _STABLE[found[2] or ""], -int(found[1]), -int(found[3] or 0), ""


class Discovery:
    """The documents of a table of resources."""

    def __init__(self, resources: Sequence[Resource] = RESOURCES, others: Sequence[AggregatedApi] = ()) -> None:
        """`others` are what other servers serve, in the order of discovery. Their groups follow this server's own."""
        found: dict[str, dict[str, list[Resource]]] = {}
        for one in resources:
            found.setdefault(one.group, {}).setdefault(one.version, []).append(one)
        self._versions = {
            group: {version: versions[version] for version in sorted(versions, key=_version_order)}
            for group, versions in found.items()
        }
        self._others = {(one.group, one.version): one for one in others}
        for other in others:
            self._versions.setdefault(other.group, {})[other.version] = []
        known = [group for group in GROUPS if group in found]
        self._groups = [*known, *(group for group in self._versions if group and group not in GROUPS)]
        self._legacy_api = self._versions.get("", {})
        self._documents: dict[str, Document] = {}
        self._aggregated: dict[tuple[str, str], Document] = {}
        self._make()

    def _make(self) -> None:
        self._documents["/apis"] = document({"kind": "APIGroupList", "apiVersion": "v1", "groups": self._group_list()})
        for group in self._groups:
            whole = {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            self._documents[f"/apis/{group}"] = document(whole)
        for group, versions in self._versions.items():
            for version, resources in versions.items():
                path = f"/apis/{group}/{version}" if group else f"/api/{version}"
                other = self._others.get((group, version))
                if other is None:
                    self._documents[path] = document(_resource_list(resources))
                elif not other.problem:
                    self._documents[path] = document(_other_list(other))
        for version in AGGREGATED:
            core = [self._group_discovery("")] if self._legacy_api else []
            others = [self._group_discovery(group) for group in self._groups]
            self._aggregated["/api", version] = _discovery_list(version, core)
            self._aggregated["/apis", version] = _discovery_list(version, others)

    def _group_discovery(self, group: str) -> dict[str, Any]:
        metadata = {"name": group} if group else {}
        return {
            "metadata": metadata,
            "versions": [self._version_discovery(group, one) for one in self._versions[group]],
        }

    def _version_discovery(self, group: str, version: str) -> dict[str, Any]:
        other = self._others.get((group, version))
        if other is None:
            resources = sorted(self._versions[group][version], key=lambda one: one.plural)
            return {"version": version, "resources": list(map(_resource_discovery, resources)), "freshness": "Current"}
        if other.problem:
            return {"version": version, "freshness": "Stale"}
        return {"version": version, "resources": other.discovered.aggregated(), "freshness": "Current"}

    def _group_list(self) -> list[dict[str, Any]]:
        return [self._group(group) for group in self._groups]

    def _group(self, group: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{group}/{one}", "version": one} for one in self._versions[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    @property
    def paths(self) -> list[str]:
        """All paths, for GET `/`."""
        return sorted(["/api", *self._documents])

    def plain(self, path: str, address: str) -> Document | None:
        """`address` is the address by which the client reached the server. /api includes it."""
        if path == "/api":
            reached = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
            versions = list(self._legacy_api)
            return document({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": reached})
        return self._documents.get(path)

    def aggregated(self, path: str, version: str) -> Document | None:
        """`path` is /api or /apis."""
        return self._aggregated.get((path, version))


# -- the old way -------------------------------------------------------------------------------------------------------


def _resource_list(resources: Iterable[Resource]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for one in resources:
        rows.append(_row(one))
        rows.extend(_subresource_row(one, name) for name in sorted(one.subresources))
    rows.sort(key=lambda row: row["name"])
    version = next(iter(resources)).api_version
    # kube-apiserver leaves out the apiVersion in the core group.
    start = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if "/" in version else {})
    return start | {"groupVersion": version, "resources": rows}


def _other_list(other: AggregatedApi) -> dict[str, Any]:
    version = f"{other.group}/{other.version}"
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": other.discovered.plain(),
    }


def _row(one: Resource) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": one.plural,
        "singularName": one.singular,
        "namespaced": one.namespaced,
        "kind": one.kind,
        "verbs": sorted(one.verbs),
    }
    if one.short_names:
        row["shortNames"] = one.short_names
    if one.categories:
        row["categories"] = one.categories
    if one.stored:
        row["storageVersionHash"] = _storage_version_hash(one)
    return row


def _storage_version_hash(one: Resource) -> str:
    """Equal for resources that are stored in the same form."""
    stored = f"{one.stored_as.partition('/')[0]}/{one.storage_version}/{one.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:_HASH_BYTES]).decode()


def _subresource_row(one: Resource, name: str) -> dict[str, Any]:
    group, version, kind = subresource_kind(one, name)
    row: dict[str, Any] = {"name": f"{one.plural}/{name}", "singularName": "", "namespaced": one.namespaced}
    if group:
        row |= {"group": group, "version": version}
    return row | {"kind": kind, "verbs": subresource_verbs(name)}


# -- everything at once ------------------------------------------------------------------------------------------------


def _discovery_list(version: str, items: list[dict[str, Any]]) -> Document:
    kind, api = "APIGroupDiscoveryList", f"apidiscovery.k8s.io/{version}"
    return document({"kind": kind, "apiVersion": api, "metadata": {}, "items": items})


def _response_kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _resource_discovery(one: Resource) -> dict[str, Any]:
    found: dict[str, Any] = {
        "resource": one.plural,
        "responseKind": _response_kind("", "", one.kind),
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.singular,
        "verbs": sorted(one.verbs),
    }
    if one.short_names:
        found["shortNames"] = one.short_names
    if one.categories:
        found["categories"] = one.categories
    if one.subresources:
        found["subresources"] = [
            {
                "subresource": name,
                "responseKind": _response_kind(*subresource_kind(one, name)),
                "verbs": subresource_verbs(name),
            }
            for name in sorted(one.subresources)
        ]
    return found
