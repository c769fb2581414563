"""Where a webhook is: the address in its URL, or a ready endpoint of its Service."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from situate.core.cel.libraries.go_urls import parse_url
from situate.server.registry.cache import Cache
from situate.server.resources import BY_KIND

HTTPS: Final = 443
SERVICE: Final = BY_KIND["v1", "Service"]
SLICES: Final = BY_KIND["discovery.k8s.io/v1", "EndpointSlice"]
SERVICE_NAME: Final = "kubernetes.io/service-name"
TYPES: Final = ("ClusterIP", "NodePort", "LoadBalancer")


class WebhookEndpoint(NamedTuple):
    host: str
    port: int
    server_name: str
    """For the certificate."""
    authority: str
    """For the Host header."""
    url: str
    """For messages, without the query."""
    path: str


class UnresolvedError(Exception):
    """There is no such endpoint; the message is Kubernetes'."""


def resolve(client: Mapping[str, Any], cache: Cache) -> WebhookEndpoint:
    """Raises UnresolvedError."""
    service = client.get("service")
    if service is None:
        return _of_url(client.get("url") or "")
    name, namespace = service.get("name", ""), service.get("namespace", "")
    port, path = service.get("port") or HTTPS, _absolute(service.get("path") or "")
    server_name = f"{name}.{namespace}.svc"
    host, number = _endpoint(cache, namespace, name, port)
    authority = f"{server_name}:{port}"
    return WebhookEndpoint(host, number, server_name, authority, f"https://{authority}{path}", path)


def shown_url(client: Mapping[str, Any]) -> str:
    """For a message about a webhook that cannot be resolved."""
    service = client.get("service")
    if service is None:
        return client.get("url") or ""
    where = f"{service.get('name', '')}.{service.get('namespace', '')}.svc:{service.get('port') or HTTPS}"
    return f"https://{where}{_absolute(service.get('path') or '')}"


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def _of_url(text: str) -> WebhookEndpoint:
    found = parse_url(text)  # validation has parsed it before
    authority, path = found.host, _absolute("/".join(text.split("/")[3:]))
    host, _, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
    if not host:
        host, port = authority, ""
    host = host.removeprefix("[").removesuffix("]")
    number = int(port) if port.isdecimal() else HTTPS
    return WebhookEndpoint(host, number, host, authority, f"https://{authority}{path}", path)


def _endpoint(cache: Cache, namespace: str, name: str, port: int) -> tuple[str, int]:
    stored = cache.get(SERVICE, namespace, name)
    if stored is None:
        raise UnresolvedError(f'service "{name}" not found')
    spec = stored.object(SERVICE).get("spec") or {}
    kind = spec.get("type", "ClusterIP")
    if kind not in TYPES:
        raise UnresolvedError(f'unsupported service type "{kind}"')
    named = next((one.get("name") or "" for one in spec.get("ports") or () if one.get("port") == port), None)
    if named is None:
        raise UnresolvedError(f'no service port {port} found for service "{name}"')
    ready: list[tuple[str, int]] = []
    for one in cache.all(SLICES, namespace):
        if one.labels.get(SERVICE_NAME) != name:
            continue
        found = one.object(SLICES)
        number = next(
            (each.get("port") for each in found.get("ports") or () if (each.get("name") or "") == named), None
        )
        for endpoint in found.get("endpoints") or ():
            if number and (endpoint.get("conditions") or {}).get("ready") is not False and endpoint.get("addresses"):
                ready.append((endpoint["addresses"][0], number))
    if not ready:
        raise UnresolvedError(f'no endpoints available for service "{name}"')
    return random.choice(ready)  # noqa: S311 - to spread calls, not to keep a secret
