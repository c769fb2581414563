"""Which sort of Service a spec describes, and what that needs. `spec` has its defaults."""

from collections.abc import Mapping
from typing import Any, Final

NONE: Final = "None"
"""The clusterIP of a headless Service."""


def type_of(spec: Mapping[str, Any]) -> str:
    found: str = spec.get("type", "")
    return found


def is_headless(spec: Mapping[str, Any]) -> bool:
    return spec.get("clusterIPs") == [NONE]


def needs_address(spec: Mapping[str, Any]) -> bool:
    return type_of(spec) != "ExternalName"


def may_have_node_ports(spec: Mapping[str, Any]) -> bool:
    return type_of(spec) in ("NodePort", "LoadBalancer")


def needs_node_ports(spec: Mapping[str, Any]) -> bool:
    kind = type_of(spec)
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True))


def is_external(spec: Mapping[str, Any]) -> bool:
    kind = type_of(spec)
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_port(spec: Mapping[str, Any]) -> bool:
    return type_of(spec) == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
