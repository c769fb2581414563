"""Endpoints: the addresses and ports behind a Service."""

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.addresses import endpoint_ip, ip
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, port_number, subdomain
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.server.tables.cells import NONE, shortened

_PORT: Final = FieldChecks("core.v1.EndpointPort")


def _default(endpoints: Object) -> None:
    for subset in endpoints.get("subsets", ()):
        for port in subset.get("ports", ()):
            port.setdefault("protocol", "TCP")


def _validate(endpoints: Object, causes: Causes) -> None:
    for index, subset in enumerate(endpoints.get("subsets", ())):
        at = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            causes.required(at, "must specify `addresses` or `notReadyAddresses`")
        for key in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(subset.get(key, ())):
                _address(address, f"{at}.{key}[{place}]", causes)
        ports = subset.get("ports", ())
        for place, port in enumerate(ports):
            _port(port, len(ports) > 1, f"{at}.ports[{place}]", causes)


def _address(address: Mapping[str, Any], path: str, causes: Causes) -> None:
    ip(address.get("ip", ""), f"{path}.ip", causes)
    if name := address.get("hostname"):
        causes.check(dns_label, name, f"{path}.hostname")
    if "nodeName" in address:
        causes.check(subdomain, address["nodeName"], f"{path}.nodeName")
    endpoint_ip(address.get("ip", ""), f"{path}.ip", causes)


def _port(port: Mapping[str, Any], named: bool, path: str, causes: Causes) -> None:
    name = port.get("name", "")
    if named and not name:
        causes.required(f"{path}.name")
    elif name:
        causes.check(dns_label, name, f"{path}.name")
    causes.check(port_number, port.get("port", 0), f"{path}.port")
    _PORT.check(port, path, causes, "protocol")
    if "appProtocol" in port:
        causes.check(qualified_name_problems, port["appProtocol"], f"{path}.appProtocol")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    if new.get("subsets") != old.get("subsets"):
        _validate(new, causes)


def _warnings(_: Object) -> list[str]:
    return ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]


def _addresses_shown(obj: Object) -> str:
    subsets = obj.get("subsets") or ()
    found: list[str] = []
    for subset in subsets:
        addresses = [one.get("ip", "") for one in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [_joined(address, port.get("port", 0)) for port in ports for address in addresses]
        if not ports:
            found += addresses
    return shortened(found, "") if subsets else NONE


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


KIND: Final = Kind(
    "v1 endpoints Endpoints N ep -",
    strategy=Strategy(
        default=_default,
        validate=_validate,
        validate_update=_validate_update,
        warnings=_warnings,
        creates_on_update=True,
    ),
    columns="Name!, Endpoints, Age",
    cells={"Endpoints": _addresses_shown},
    description="Endpoints are the addresses behind a Service.",
)
