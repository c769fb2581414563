"""Services: defaults, addresses, validation and selectable fields."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.core.service.prepare import (
    ADDRESSES,
    NODE_PORTS,
    allocate,
    default,
    prepare_create,
    prepare_update,
)
from situate.server.kinds.core.service.validation import validate, validate_status, validate_update
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.server.tables.cells import NONE
from situate.server.tables.durations import UNKNOWN

__all__ = ["ADDRESSES", "NODE_PORTS", "KIND", "allocate"]


def _warnings(service: Object) -> list[str]:
    spec, found = service.get("spec", {}), []
    if spec.get("externalIPs"):
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _selectable(service: Object) -> Mapping[str, str]:
    spec = service.get("spec", {})
    return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def _cluster_ip(obj: Object) -> str:
    addresses = (obj.get("spec") or {}).get("clusterIPs")
    return addresses[0] if addresses else NONE


def _external_ip(obj: Object) -> str:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    kind, given = spec.get("type", ""), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(given) or NONE
    if kind == "LoadBalancer":
        ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
        found = sorted({one.get("ip") or one.get("hostname") or "" for one in ingress} - {""})
        return ",".join([*found, *given]) or "<pending>"
    return spec.get("externalName", "") if kind == "ExternalName" else UNKNOWN


def _ports(obj: Object) -> str:
    return ",".join([_port(one) for one in (obj.get("spec") or {}).get("ports") or ()]) or NONE


def _port(one: Mapping[str, Any]) -> str:
    number = f"{one.get('port', 0)}:{one['nodePort']}" if one.get("nodePort", 0) > 0 else one.get("port", 0)
    return f"{number}/{one.get('protocol', '')}"


KIND: Final = Kind(
    "v1 services Service N svc all | proxy status",
    strategy=Strategy(
        default=default,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        validate=validate,
        validate_update=validate_update,
        validate_status=validate_status,
        selectable=_selectable,
        warnings=_warnings,
        name_rule=dns_label,
        creates_on_update=True,
    ),
    columns="""
        Name!, Type = spec.type, Cluster-IP, External-IP, Port(s), Age, +Selector = labels(spec.selector)
        """,
    cells={"Cluster-IP": _cluster_ip, "External-IP": _external_ip, "Port(s)": _ports},
    description="Service is one address for a set of pods.",
    words={
        "ServiceSpec.ports": "Ports of the service and their targets.",
        "ServiceSpec.selector": "The labels of the pods behind it.",
    },
)
