"""EndpointSlice: a part of the addresses behind a Service."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.kinds.addresses import endpoint_ip, ip, is_ipv6
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import NameRule, dns_label, subdomain
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.server.tables.cells import UNSET, shortened

_FIELDS: Final = FieldChecks("discovery.v1.EndpointSlice")
_PORT: Final = FieldChecks("discovery.v1.EndpointPort")
IPV4, IPV6, FQDN = "IPv4", "IPv6", "FQDN"
MAX_ENDPOINTS: Final = 1_000
MAX_ADDRESSES: Final = 100
MAX_PORTS: Final = 20_000
MAX_HINTS: Final = 8
MAX_TOPOLOGY: Final = 16


def _default(obj: Object) -> None:
    for one in obj.get("endpoints") or ():
        one.setdefault("conditions", {})
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _prepare_update(new: Object, old: Object) -> None:
    """Clients find slices by their labels, so a change of labels counts as a new generation."""
    meta, was = new.setdefault("metadata", {}), old.get("metadata", {})
    if meta.get("labels") != was.get("labels"):
        meta["generation"] = was.get("generation", 0) + 1


def _validate(obj: Object, causes: Causes) -> None:
    _all_but_endpoints(obj, causes)
    _endpoints(obj, causes)


def _all_but_endpoints(obj: Object, causes: Causes) -> None:
    _FIELDS.check(obj, "", causes)
    ports = obj.get("ports") or ()
    if len(ports) > MAX_PORTS:
        causes.too_many("ports", len(ports), MAX_PORTS)
    else:
        _ports(ports, causes)


def _ports(ports: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"ports[{index}]", port.get("name", "")
        if name:
            causes.check(dns_label, name, f"{at}.name")
        causes.unique(name, seen, f"{at}.name")
        _PORT.check(port, at, causes)
        if "appProtocol" in port:
            causes.check(qualified_name_problems, port["appProtocol"], f"{at}.appProtocol")


def _endpoints(obj: Object, causes: Causes) -> None:
    these, kind = obj.get("endpoints") or (), obj.get("addressType", "")
    if len(these) > MAX_ENDPOINTS:
        causes.too_many("endpoints", len(these), MAX_ENDPOINTS)
        return
    for index, one in enumerate(these):
        _endpoint(one, kind, f"endpoints[{index}]", causes)


def _endpoint(one: Mapping[str, Any], kind: str, path: str, causes: Causes) -> None:
    addresses, at = one.get("addresses") or (), f"{path}.addresses"
    if not addresses:
        causes.required(at, "must contain at least 1 address")
    elif len(addresses) > MAX_ADDRESSES:
        causes.too_many(at, len(addresses), MAX_ADDRESSES)
    for index, address in enumerate(addresses):
        if kind == FQDN:
            _domain(address, f"{at}[{index}]", causes)
        elif kind in (IPV4, IPV6):
            _address(address, kind, at, index, causes)
    if "nodeName" in one:
        causes.check(subdomain, one["nodeName"], f"{path}.nodeName")
    topology = one.get("deprecatedTopology", {})
    causes.at_most(MAX_TOPOLOGY, topology, f"{path}.deprecatedTopology")
    causes.labels(topology, f"{path}.deprecatedTopology")
    if "hostname" in one:
        causes.check(dns_label, one["hostname"], f"{path}.hostname")
    if "hints" in one:
        _hints(one["hints"], f"{path}.hints", causes)


def _address(address: str, kind: str, path: str, index: int, causes: Causes) -> None:
    before = len(causes)
    ip(address, f"{path}[{index}]", causes)
    if len(causes) > before:
        return
    if is_ipv6(address) != (kind == IPV6):
        causes.invalid(path, address, f"must be an {kind} address")
    endpoint_ip(address, f"{path}[{index}]", causes)


def _domain(name: str, path: str, causes: Causes) -> None:
    if not name:
        causes.required(path)
        return
    name = name.removesuffix(".")
    if problems := subdomain(name):
        causes.invalid(path, name, ",".join(problems))
    elif "." not in name:
        causes.invalid(path, name, "should be a domain with at least two segments separated by dots")
    else:
        for label in name.split("."):
            if problems := dns_label(label):
                causes.invalid(path, label, ",".join(problems))
                return


def _hints(hints: Mapping[str, Any], path: str, causes: Causes) -> None:
    kinds: tuple[tuple[str, NameRule], ...] = (("forZones", _zone), ("forNodes", subdomain))
    for kind, rule in kinds:
        these = hints.get(kind) or ()
        if len(these) > MAX_HINTS:
            causes.too_many(f"{path}.{kind}", len(these), MAX_HINTS)
            return
        seen: set[str] = set()
        for index, hint in enumerate(these):
            at, name = f"{path}.{kind}[{index}].name", hint.get("name", "")
            causes.unique(name, seen, at)
            causes.check(rule, name, at)


def _zone(name: str) -> tuple[str, ...]:
    return tuple(label_value_problems(name))


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _all_but_endpoints(new, causes)
    if new.get("endpoints") != old.get("endpoints"):
        _endpoints(new, causes)
    causes.immutable(new.get("addressType", ""), old.get("addressType", ""), "addressType")


def _ports_shown(obj: Object) -> str:
    return shortened([str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()], UNSET)


def _endpoints_shown(obj: Object) -> str:
    return shortened([one for each in obj.get("endpoints") or () for one in each.get("addresses") or ()], UNSET)


KIND: Final = Kind(
    "discovery.k8s.io/v1 endpointslices EndpointSlice N - -",
    strategy=Strategy(
        default=_default,
        prepare_update=_prepare_update,
        validate=_validate,
        validate_update=_validate_update,
        counts_generation=True,
    ),
    columns="Name!, AddressType = addressType, Ports, Endpoints, Age",
    cells={"Ports": _ports_shown, "Endpoints": _endpoints_shown},
    description="EndpointSlice is a part of the addresses behind a Service.",
)
