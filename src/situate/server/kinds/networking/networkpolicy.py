"""NetworkPolicy: which traffic pods may send and receive."""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any, Final

from situate.server.kinds.addresses import cidr
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import port_name, port_number
from situate.server.kinds.networking.kept import kept
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
TYPES: Final = ("Ingress", "Egress")
MOST_TYPES: Final = 2


def _default(policy: Object) -> None:
    spec = policy.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            port.setdefault("protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _validate(policy: Object, causes: Causes) -> None:
    spec = policy.get("spec", {})
    causes.label_selector(spec.get("podSelector"), "spec.podSelector")
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(side, ())):
            path = f"spec.{side}[{index}]"
            for at, port in enumerate(rule.get("ports", ())):
                _port(port, f"{path}.ports[{at}]", causes)
            for at, peer in enumerate(rule.get(peers, ())):
                _peer(peer, f"{path}.{peers}[{at}]", causes)
    types = spec.get("policyTypes", ())
    if len(types) > MOST_TYPES:
        causes.invalid("spec.policyTypes", list(types), "may not specify more than two policyTypes")
        return
    for index, one in enumerate(types):
        causes.one_of(one, TYPES, f"spec.policyTypes[{index}]")


def _port(port: Mapping[str, Any], path: str, causes: Causes) -> None:
    if "protocol" in port:
        causes.one_of(port["protocol"], PROTOCOLS, f"{path}.protocol")
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, int):
        causes.check(port_number, number, f"{path}.port")
        if end is not None:
            if end < number:
                causes.invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
            causes.check(port_number, end, f"{path}.endPort")
    elif number is not None:
        if end is not None:
            causes.invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        causes.check(port_name, number, f"{path}.port")
    elif end is not None:
        causes.invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")


def _peer(peer: Mapping[str, Any], path: str, causes: Causes) -> None:
    sources = 0
    for field in ("podSelector", "namespaceSelector"):
        if field in peer:
            sources += 1
            causes.label_selector(peer[field], f"{path}.{field}")
    if "ipBlock" in peer:
        sources += 1
        _block(peer["ipBlock"], f"{path}.ipBlock", causes)
    if not sources:
        causes.required(path, "must specify a peer")
    elif sources > 1 and "ipBlock" in peer:
        causes.forbidden(path, "may not specify both ipBlock and another peer")


def _block(block: Mapping[str, Any], path: str, causes: Causes) -> None:
    own = block.get("cidr", "")
    if not own:
        causes.required(f"{path}.cidr")
        return
    before = len(causes)
    cidr(own, f"{path}.cidr", causes)
    if len(causes) > before:
        return
    whole = ip_network(own, strict=False)
    for index, one in enumerate(block.get("except", ())):
        at, known = f"{path}.except[{index}]", len(causes)
        cidr(one, at, causes)
        if len(causes) > known:
            continue
        part = ip_network(one, strict=False)
        inside = part.version == whole.version and part.network_address in whole and part.prefixlen > whole.prefixlen
        if not inside:
            causes.invalid(at, one, "must be a strict subset of `cidr`")


KIND: Final = Kind(
    "networking.k8s.io/v1 networkpolicies NetworkPolicy N netpol -",
    strategy=Strategy(
        default=_default,
        validate=_validate,
        validate_update=again(_validate),
        warnings=kept("NetworkPolicy"),
        counts_generation=True,
    ),
    columns="Name!, Pod-Selector = selector(spec.podSelector), Age",
    description="NetworkPolicy says which traffic pods may send and receive.",
)
