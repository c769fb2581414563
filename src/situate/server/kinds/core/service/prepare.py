"""Defaults of Services, and the cluster IPs and node ports that the server allocates. IPv4 only.

`allocate` is deterministic: a Service gets the same address if that is free. The caller passes what is taken;
`prepare_create` knows no other Service and takes the first choice.
"""

from collections.abc import Container, Mapping
from ipaddress import IPv4Network
from typing import Any, Final
from zlib import crc32

from situate.server.kinds.addresses import is_ipv6
from situate.server.kinds.core.service.service_type import (
    NONE,
    is_external,
    may_have_node_ports,
    needs_address,
    needs_health_port,
    needs_node_ports,
    type_of,
)
from situate.server.kinds.strategy import drop_status, keep_status
from situate.server.objects import Object

ADDRESSES: Final = IPv4Network("10.96.0.0/16")
NODE_PORTS: Final = range(30_000, 32_768)
_AFFINITY_S: Final = 10_800


def default(service: Object) -> None:
    spec = service.setdefault("spec", {})
    if "sessionAffinity" not in spec:
        spec["sessionAffinity"] = NONE
    if spec["sessionAffinity"] == NONE:
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        told = spec.get("sessionAffinityConfig", {}).get("clientIP", {})
        if "timeoutSeconds" not in told:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_S}}
    if "type" not in spec:
        spec["type"] = "ClusterIP"
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if is_external(spec) and "externalTrafficPolicy" not in spec:
        spec["externalTrafficPolicy"] = "Cluster"
    if "internalTrafficPolicy" not in spec and spec["type"] in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec["internalTrafficPolicy"] = "Cluster"
    elif spec["type"] == "ExternalName":
        spec.pop("internalTrafficPolicy", None)
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in service.get("status", {}).get("loadBalancer", {}).get("ingress", ()):
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def prepare_create(service: Object) -> None:
    drop_status(service)
    service["status"] = {"loadBalancer": {}}
    allocate(service)


def allocate(service: Object, taken: Container[str] = (), taken_ports: Container[int] = ()) -> None:
    """Allocate the cluster IP and the node ports that a Service needs and does not have. Idempotent."""
    spec = service["spec"]
    if not needs_address(spec):
        return
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    key = f"{service['metadata'].get('namespace', '')}/{service['metadata'].get('name', '')}"
    if not spec.get("clusterIP") and not spec.get("clusterIPs") and (found := _free_address(key, taken)):
        spec["clusterIP"], spec["clusterIPs"] = found, [found]
    _families(spec)
    if needs_node_ports(spec):
        used = {port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort")}
        for port in spec.get("ports", ()):
            if not port.get("nodePort"):
                _node_port(port, f"{key}/{port.get('name', '')}", used, taken_ports)
    if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        port = {}
        _node_port(port, f"{key}//", set(), taken_ports)
        spec["healthCheckNodePort"] = port.get("nodePort", 0)


def _free_address(key: str, taken: Container[str]) -> str:
    """Skips the network's address, the API server's, and the last one."""
    usable = ADDRESSES.num_addresses - 3
    first = crc32(key.encode("utf-8", "surrogatepass")) % usable
    for step in range(usable):
        found = str(ADDRESSES[2 + (first + step) % usable])
        if found not in taken:
            return found
    return ""


def _node_port(port: dict[str, Any], key: str, used: set[int], taken: Container[int]) -> None:
    first = crc32(key.encode("utf-8", "surrogatepass")) % len(NODE_PORTS)
    for step in range(len(NODE_PORTS)):
        found = NODE_PORTS[(first + step) % len(NODE_PORTS)]
        if found not in used and found not in taken:
            port["nodePort"] = found
            used.add(found)
            return


def _families(spec: dict[str, Any]) -> None:
    if "ipFamilies" in spec and "ipFamilyPolicy" in spec:
        return
    if spec.get("clusterIP") == NONE and not spec.get("selector"):
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        families = spec.setdefault("ipFamilies", ["IPv4"])
        if spec["ipFamilyPolicy"] != "SingleStack" and len(families) < 2:
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        return
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if "ipFamilies" not in spec:
        addresses = [one for one in spec.get("clusterIPs", ()) if one != NONE]
        spec["ipFamilies"] = ["IPv6" if is_ipv6(one) else "IPv4" for one in addresses] or ["IPv4"]


def prepare_update(new: Object, old: Object) -> None:
    """Keep allocated addresses and ports that the client does not repeat."""
    keep_status(new, old)
    spec, was = new["spec"], old["spec"]
    _keep_addresses(spec, was)
    _keep_node_ports(spec, was)
    if needs_health_port(spec) and needs_health_port(was):
        if not spec.get("healthCheckNodePort"):
            _copy(spec, was, ("healthCheckNodePort",))
    elif needs_health_port(was):
        _drop_same(spec, was, "healthCheckNodePort")
    if type_of(was) == "LoadBalancer" != type_of(spec):
        _drop_same(spec, was, "allocateLoadBalancerNodePorts")
        _drop_same(spec, was, "loadBalancerClass")
    if is_external(was) and not is_external(spec):
        _drop_same(spec, was, "externalTrafficPolicy")
    if type_of(spec) != "LoadBalancer":
        new["status"] = {**new.get("status", {}), "loadBalancer": {}}
    allocate(new)


def _keep_addresses(spec: dict[str, Any], was: Mapping[str, Any]) -> None:
    if needs_address(spec) and needs_address(was):
        same = spec.get("clusterIP", "") == was.get("clusterIP", "")
        if not spec.get("clusterIPs") and (same or not spec.get("clusterIP")):
            _copy(spec, was, ("clusterIP", "clusterIPs"))
        elif not same and spec.get("clusterIP") and spec.get("clusterIPs") == was.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        elif not spec.get("clusterIP"):
            _copy(spec, was, ("clusterIP",))
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if key not in spec:
                _copy(spec, was, (key,))
    elif needs_address(was):
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            _drop_same(spec, was, key)


def _copy(spec: dict[str, Any], was: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if key in was:
            spec[key] = was[key]


def _drop_same(spec: dict[str, Any], was: Mapping[str, Any], key: str) -> None:
    if key in spec and spec[key] == was.get(key):
        del spec[key]


def _keep_node_ports(spec: dict[str, Any], was: Mapping[str, Any]) -> None:
    ports, before = spec.get("ports", ()), was.get("ports", ())
    if not may_have_node_ports(was):
        return
    mine = {port.get("nodePort", 0) for port in ports}
    old = {port.get("nodePort", 0) for port in before}
    if not may_have_node_ports(spec):
        if mine - {0} == old - {0}:
            for port in ports:
                port.pop("nodePort", None)
        return
    by_name = {port.get("name", ""): port.get("nodePort", 0) for port in before}
    used = mine & old
    for port in ports:
        found = by_name.get(port.get("name", ""), 0)
        if not port.get("nodePort") and found and found not in used:
            port["nodePort"] = found
