"""The Service `default/kubernetes`, with the addresses of the servers that answer behind it.

It has the first address of the range, and its ports lead to the server's own. A server that shares its store keeps a
Lease in `kube-system`, as kube-apiserver does: the endpoints are the servers whose leases were renewed lately.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final

from situate.core.reconcile.naming import suffix
from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.kinds.core.service.prepare import ADDRESSES
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND, Resource
from situate.wire.bodies import micro_time

NAMESPACE, NAME = "default", "kubernetes"
SERVICE: Final = BY_KIND["v1", "Service"]
ENDPOINTS: Final = BY_KIND["v1", "Endpoints"]
SLICE: Final = BY_KIND["discovery.k8s.io/v1", "EndpointSlice"]
LEASE: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]
LEASES: Final = "kube-system"
LABELS: Final = {"component": "apiserver", "provider": "kubernetes"}
IDENTITY: Final = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
ADDRESS: Final = "situate.dev/server-address"
"""Annotation of a server's Lease: the address and port at which it answers."""
PORT: Final = "https"
CHECK_S: Final = 10.0
"""How often a server checks its Service, and renews its Lease."""
LEASE_S: Final = 60
"""A server that has not renewed its Lease for so long is left out."""

_log = Log(__name__)


class OwnService:
    """`run` it while the server serves."""

    def __init__(
        self,
        registry: Registry,
        address: str,
        port: int,
        identity: str,
        *,
        shared: bool,
        wall_ns: Callable[[], int] = time.time_ns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`address`: where clients on other machines reach this server. `shared`: other servers may use the store."""
        self._registry = registry
        self._address = address
        self._port = port
        self._lease = f"apiserver-{suffix(identity, 0)}{suffix(identity, 1)}"
        self._identity = identity
        self._shared = shared
        self._wall_ns = wall_ns
        self._clock = clock
        self._renewals: dict[str, tuple[str, float]] = {}
        """The renewal of each Lease that was seen last, and when, by our own clock."""

    async def run(self) -> None:
        while True:
            try:
                await self.publish()
            except StatusError as error:  # the store does not answer, or another server was faster
                _log.v(2).info("The Service kubernetes could not be written; trying again", err=error.message)
            await asyncio.sleep(CHECK_S)

    async def publish(self) -> None:
        """Write what is missing or wrong. Raises StatusError."""
        if self._shared:
            await self._renew()
        servers = self._servers() if self._shared else [(self._address, self._port)]
        reachable = [(address, port) for address, port in servers if not ip_address(address).is_loopback]
        await self._write(SERVICE, self._service(), _with_ports)
        await self._write(ENDPOINTS, _endpoints(reachable), _with_subsets)
        await self._write(SLICE, _slice(reachable), _with_endpoints)

    def _service(self) -> Object:
        address = str(ADDRESSES[1])
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": dict(LABELS)},
            "spec": {
                "clusterIP": address,
                "clusterIPs": [address],
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "ports": [{"name": PORT, "port": 443, "protocol": "TCP", "targetPort": self._port}],
                "sessionAffinity": "None",
                "type": "ClusterIP",
            },
        }

    async def _write(self, resource: Resource, wanted: Object, complete: Callable[[Object, Object], Object]) -> None:
        held = self._registry.cache.get(resource, NAMESPACE, NAME)
        if held is None:
            try:
                await self._registry.create(Target(resource, NAMESPACE), wanted, SYSTEM)
            except StatusError as error:
                if error.code != HTTPStatus.CONFLICT:
                    raise
            return
        found = held.object(resource)
        labels = {**found["metadata"].get("labels", {}), **wanted["metadata"]["labels"]}
        made = complete({**found, "metadata": {**found["metadata"], "labels": labels}}, wanted)
        if made != found:
            await self._registry.update(Target(resource, NAMESPACE, NAME), made, SYSTEM)

    # -- several servers ---------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        target, now = Target(LEASE, LEASES, self._lease), micro_time(self._wall_ns())
        own = {ADDRESS: f"{self._address} {self._port}"}
        held = self._registry.cache.get(LEASE, LEASES, self._lease)
        if held is None:
            body: Object = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.kind,
                "metadata": {"name": self._lease, "namespace": LEASES, "labels": dict(IDENTITY), "annotations": own},
                "spec": {"holderIdentity": self._identity, "leaseDurationSeconds": LEASE_S, "renewTime": now},
            }
            await self._registry.create(Target(LEASE, LEASES), body, SYSTEM)
            return

        def renewed(found: Object, _: object) -> Object:
            metadata = found["metadata"]
            annotations = {**metadata.get("annotations", {}), **own}
            return {
                **found,
                "metadata": {**metadata, "annotations": annotations},
                "spec": {**found.get("spec", {}), "renewTime": now},
            }

        await self._registry.modify(target, renewed, SYSTEM)

    def _servers(self) -> list[tuple[str, int]]:
        """Those whose Leases were renewed lately: by when we saw the renewal, not by their clocks."""
        found: list[tuple[str, int]] = [(self._address, self._port)]
        now, seen = self._clock(), dict[str, tuple[str, float]]()
        for held in self._registry.cache.all(LEASE, LEASES):
            if any(held.labels.get(key) != value for key, value in IDENTITY.items()):
                continue
            lease = held.object(LEASE)
            renewal = lease.get("spec", {}).get("renewTime", "")
            known = self._renewals.get(held.name)
            at = known[1] if known is not None and known[0] == renewal else now
            seen[held.name] = (renewal, at)
            server = _server_of(lease["metadata"].get("annotations", {}).get(ADDRESS, ""))
            if server is not None and now - at < LEASE_S:
                found.append(server)
        self._renewals = seen
        return sorted(set(found))


def _server_of(text: str) -> tuple[str, int] | None:
    address, _, port = text.partition(" ")
    try:
        return str(ip_address(address)), int(port)
    except ValueError:
        return None


def _with_ports(found: Object, wanted: Object) -> Object:
    """What others added to the Service stays; its port leads to a server."""
    return {**found, "spec": {**found["spec"], "ports": wanted["spec"]["ports"]}}


def _with_subsets(found: Object, wanted: Object) -> Object:
    rest = {name: value for name, value in found.items() if name != "subsets"}
    return {**rest, **({"subsets": wanted["subsets"]} if "subsets" in wanted else {})}


def _with_endpoints(found: Object, wanted: Object) -> Object:
    return {**found, "endpoints": wanted["endpoints"], "ports": wanted["ports"]}


def _endpoints(servers: list[tuple[str, int]]) -> Object:
    by_port: dict[int, list[dict[str, Any]]] = {}
    for address, port in servers:
        by_port.setdefault(port, []).append({"ip": address})
    subsets = [{"addresses": addresses, "ports": [_port(port)]} for port, addresses in by_port.items()]
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    made = _named("v1", "Endpoints", labels)
    return {**made, "subsets": subsets} if subsets else made


def _slice(servers: list[tuple[str, int]]) -> Object:
    """Servers of one store that listen on different ports cannot be in one slice: it has the first one's port."""
    port = servers[0][1] if servers else 443
    family = "IPv6" if servers and ":" in servers[0][0] else "IPv4"
    endpoints = [
        {"addresses": [address], "conditions": {"ready": True}}
        for address, number in servers
        if number == port and (":" in address) == (family == "IPv6")
    ]
    made = _named(SLICE.api_version, SLICE.kind, {"kubernetes.io/service-name": NAME})
    return {**made, "addressType": family, "endpoints": endpoints, "ports": [_port(port)]}


def _port(number: int) -> dict[str, Any]:
    return {"name": PORT, "port": number, "protocol": "TCP"}


def _named(api_version: str, kind: str, labels: Mapping[str, str]) -> Object:
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": dict(labels)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
