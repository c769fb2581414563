"""ServiceAddresses: gives every service an address and node ports of its own.

Two servers on one store that create services at the same moment may still allocate the same address twice.
"""

from __future__ import annotations

from typing import Final

from situate.server.errors import Cause, invalid
from situate.server.kinds.core.service.prepare import allocate
from situate.server.kinds.core.service.service_type import needs_node_ports
from situate.server.kinds.field_errors import invalid as invalid_value
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

SERVICE: Final = BY_KIND["v1", "Service"]
NO_ADDRESS: Final = ("", "None")
PORT_TAKEN: Final = "provided port is already allocated"
TAKEN: Final = "failed to allocate IP {ip}: provided IP is already allocated"


class ServiceAddresses:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or target.resource is not SERVICE or target.subresource or action == "delete":
            return
        addresses, ports = self._taken(new["metadata"].get("namespace", ""), new["metadata"].get("name", ""))
        asked = new.get("spec", {}).get("clusterIP", "")
        if action == "create" and asked not in NO_ADDRESS and asked in addresses:
            said = f'Invalid value: ["{asked}"]: {TAKEN.format(ip=asked)}'
            raise invalid("Service", "", new["metadata"].get("name", ""), [Cause("spec.clusterIPs", said)])
        _check_ports(new, old, ports)
        allocate(new, addresses, ports)

    def version(self, target: Target) -> int | None:
        """Every service needs its own allocation, so no template may be reused after a write."""
        return self._cache.revision if target.resource is SERVICE else None

    def _taken(self, namespace: str, name: str) -> tuple[set[str], set[int]]:
        """Addresses and ports of all other services."""
        addresses: set[str] = set()
        ports: set[int] = set()
        for stored in self._cache.all(SERVICE):
            if (stored.namespace, stored.name) == (namespace, name):
                continue
            spec = stored.object(SERVICE).get("spec", {})
            addresses.update(spec.get("clusterIPs", ()))
            ports.update(port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort"))
            if spec.get("healthCheckNodePort"):
                ports.add(spec["healthCheckNodePort"])
        return addresses, ports


def _check_ports(new: Object, old: Object | None, taken: set[int]) -> None:
    """Refuse node ports that another service has. One that the service had before stays."""
    spec = new.get("spec", {})
    if not needs_node_ports(spec):
        return
    own = {port.get("nodePort") for port in (old or {}).get("spec", {}).get("ports", ())}
    causes = [
        invalid_value(f"spec.ports[{index}].nodePort", port["nodePort"], PORT_TAKEN)
        for index, port in enumerate(spec.get("ports", ()))
        if port.get("nodePort") in taken - own
    ]
    if causes:
        raise invalid("Service", "", new["metadata"].get("name", ""), causes)
