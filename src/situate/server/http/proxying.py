"""Serves the subresource proxy: of a node (its kubelet), of a pod (a port of it), and of a service (one of its
endpoints).

Requests are passed on with their headers, but without the caller's credentials, and answers as they come. An upgrade
becomes a tunnel. As in Kubernetes, pods and services are reached over the network of the server, without checking the
certificate of one that speaks TLS; addresses that are the server's own or local to its links are refused.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from asyncio import open_connection
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from situate.server.errors import StatusError, bad_request
from situate.server.http import bodies
from situate.server.http.forwarding import forward, forwarded_headers, unreached
from situate.server.http.ports import NodeConnector
from situate.server.http.request import ApiRequest
from situate.server.http.responses import Response
from situate.server.http.settings import Limits
from situate.server.http.streams import OpenStreams
from situate.server.http.tunnels import Tunnel, upgrade_headers, wants_upgrade
from situate.server.http.urls import no_such_path
from situate.server.kubelet.connection import HEAD_BYTES, NodeConnection
from situate.server.registry.registry import Registry
from situate.server.requests import ListOptions, Target
from situate.server.resources import BY_KIND

CONNECT_S: Final = 5.0
DEFAULT_PORTS: Final = {"": "80", "http": "80", "https": "443"}
"""Of a pod that names no port."""
ENDPOINT_SLICES: Final = BY_KIND["discovery.k8s.io/v1", "EndpointSlice"]
SERVICE_NAME: Final = "kubernetes.io/service-name"
NOT_ALLOWED: Final = "address not allowed"
NO_ENDPOINTS: Final = 'no endpoints available for service "{0}"'
_METHODS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


class ProxyTarget(NamedTuple):
    """`[scheme:]name[:port]`, as in the path."""

    scheme: str
    name: str
    port: str


def parse_target(text: str) -> ProxyTarget:
    """Raises StatusError."""
    parts = text.split(":")
    if len(parts) == 1:
        parts = ["", text, ""]
    elif len(parts) == 2:
        parts = ["", *parts]
    scheme, name, port = parts if len(parts) == 3 else ("?", "", "")
    if scheme not in ("", "http", "https") or not name:
        raise bad_request(f'invalid proxy request "{text}"')
    return ProxyTarget(scheme, name, port)


class ProxyHandler:
    def __init__(self, registry: Registry, nodes: NodeConnector | None, streams: OpenStreams, limits: Limits) -> None:
        self._registry = registry
        self._nodes = nodes
        self._streams = streams
        self._limits = limits
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    async def handle(self, request: ApiRequest, headers: str) -> Response:
        wanted = parse_target(request.url.name)
        http = request.http
        connection = await self._connect(request, wanted)
        try:
            if wants_upgrade(http):
                tunnel = Tunnel(http, connection, self._limits)
                with self._streams.tracked(tunnel):
                    where = _path(request)
                    return await tunnel.run(wanted.name, http.method, where, upgrade_headers(http), headers)
            if http.method in ("GET", "HEAD") and not _parts(request):
                return _redirection(request)
            body = b""
            if request.verb in _METHODS:
                body = await bodies.read_body(http, request.max_body_bytes, request.state)
            given = forwarded_headers(http)
            where = _path(request)
            return await forward(self._streams, http, connection, where, given, body, headers, may_redirect=True)
        finally:
            connection.abort()

    # -- where to ---------------------------------------------------------------------------------------------------

    async def _connect(self, request: ApiRequest, wanted: ProxyTarget) -> NodeConnection:
        match request.resource.plural:
            case "nodes":
                return await self._to_node(wanted)
            case "pods":
                return await self._to_pod(request, wanted)
            case "services":
                return await self._to_service(request, wanted)
            case _:
                raise no_such_path()

    async def _to_node(self, wanted: ProxyTarget) -> NodeConnection:
        if self._nodes is None:
            raise no_such_path()
        connection = await self._nodes.connect(wanted.name, "be a proxy for")
        if wanted.port and not connection.host.endswith(f":{wanted.port}"):
            connection.abort()
            raise bad_request(f"only the kubelet's port of node {wanted.name} is served")
        return connection

    async def _to_pod(self, request: ApiRequest, wanted: ProxyTarget) -> NodeConnection:
        stored = await self._registry.get(Target(request.resource, request.target.namespace, wanted.name))
        pod = stored.object(request.resource)
        ports = [
            str(port["containerPort"]) for one in pod["spec"].get("containers", ()) for port in one.get("ports", ())
        ]
        port = wanted.port or (ports[0] if ports else DEFAULT_PORTS[wanted.scheme])
        return await self._dial(wanted.scheme, pod.get("status", {}).get("podIP", ""), port)

    async def _to_service(self, request: ApiRequest, wanted: ProxyTarget) -> NodeConnection:
        target = request.target
        service = (await self._registry.get(Target(request.resource, target.namespace, wanted.name))).object(
            request.resource
        )
        named = _port_name(service, wanted)
        selected = ListOptions(labels=f"{SERVICE_NAME}={wanted.name}")
        slices = await self._registry.list(Target(ENDPOINT_SLICES, target.namespace, ""), selected)
        for one in slices.items:
            found = one.object(ENDPOINT_SLICES)
            port = next((each for each in found.get("ports") or () if (each.get("name") or "") == named), None)
            for endpoint in found.get("endpoints") or ():
                if port is not None and endpoint.get("conditions", {}).get("ready") is not False:
                    return await self._dial(wanted.scheme, endpoint["addresses"][0], str(port.get("port", "")))
        text = NO_ENDPOINTS.format(wanted.name)
        raise StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text)

    async def _dial(self, scheme: str, address: str, port: str) -> NodeConnection:
        if not is_allowed(address):
            raise bad_request(NOT_ALLOWED)
        if not port.isdecimal() or not 0 < int(port) < 65_536:
            raise bad_request(f'"{port}" is not a port')
        tls = self._tls if scheme == "https" else None
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await open_connection(address, int(port), ssl=tls, limit=HEAD_BYTES)
        except (OSError, TimeoutError) as error:
            raise unreached(str(error) or "no answer in time") from None
        return NodeConnection(reader, writer, f"[{address}]:{port}" if ":" in address else f"{address}:{port}")


def is_allowed(address: str) -> bool:
    """Whether the server connects there for a user."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified)


def _port_name(service: Mapping[str, Any], wanted: ProxyTarget) -> str:
    """The name of the service's port that is meant. Raises StatusError."""
    for port in service.get("spec", {}).get("ports", ()):
        if wanted.port in ("", port.get("name", ""), str(port.get("port", ""))):
            return str(port.get("name", ""))
    raise StatusError(
        HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", f'no service port "{wanted.port}" found for service '
        f'"{wanted.name}"'
    )  # fmt: skip


def _path(request: ApiRequest) -> str:
    """The path behind the proxy, as the client wrote it, with its query."""
    _, mark, query = request.http.raw_path.partition("?")
    return "/" + "/".join(_parts(request)) + mark + query


def _parts(request: ApiRequest) -> list[str]:
    """What the client wrote behind the proxy, between slashes. Nothing if there is no slash."""
    leading = 5 if request.resource.namespaced else 3  # namespaces, its name, the plural, the name, proxy
    return request.http.raw_path.partition("?")[0].split("/")[1 + 2 + leading :]


def _redirection(request: ApiRequest) -> Response:
    """To the same path with a slash at its end, from where a page's relative links lead behind the proxy, too."""
    raw, mark, query = request.http.raw_path.partition("?")
    return Response(HTTPStatus.MOVED_PERMANENTLY, b"", "text/plain", f"Location: {raw}/{mark}{query}\r\n")
