"""Validation of Services, their updates and their status."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.addresses import cidr, endpoint_ip, ip, is_dual_stack, is_ipv6, parse_ip
from situate.server.kinds.core.pod.probes import port_or_name
from situate.server.kinds.core.service.service_type import (
    NONE,
    is_external,
    is_headless,
    needs_address,
    needs_health_port,
    type_of,
)
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import dns_label, port_number, subdomain
from situate.server.objects import Object

_SPEC: Final = FieldChecks("core.v1.ServiceSpec")
_PORT: Final = FieldChecks("core.v1.ServicePort")
_MAX_AFFINITY_S: Final = 86_400
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_FIXED: Final = "may not change once set"


def validate(service: Object, causes: Causes) -> None:
    _check(service, None, causes)


def _check(service: Object, old: Object | None, causes: Causes) -> None:
    spec, was = service["spec"], {} if old is None else old["spec"]
    kind, ports = type_of(spec), spec.get("ports", ())
    if kind != "ExternalName":
        before = len(causes)
        _addresses(spec, was, causes)
        if len(causes) > before:
            return  # kube-apiserver reports nothing else while addresses are wrong
    if not ports and not is_headless(spec) and kind != "ExternalName":
        causes.required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        causes.invalid("spec.clusterIPs[0]", NONE, f"may not be set to 'None' for {kind} services")
    elif kind == "ExternalName":
        _external_name(spec, causes)
    names: set[str] = set()
    for index, port in enumerate(ports):
        _port(port, len(ports) > 1, names, f"spec.ports[{index}]", causes)
    if "selector" in spec:
        causes.labels(spec["selector"], "spec.selector")
    _affinity(spec, causes)
    for index, one in enumerate(spec.get("externalIPs", ())):
        before = len(causes)
        ip(one, f"spec.externalIPs[{index}]", causes, was.get("externalIPs", ()))
        if len(causes) == before:
            endpoint_ip(one, f"spec.externalIPs[{index}]", causes)
    _SPEC.check(spec, "spec", causes, "type")
    _port_numbers(kind, ports, causes)
    _balancer(service, spec, was, causes)
    _traffic(spec, causes)


def _external_name(spec: Mapping[str, Any], causes: Causes) -> None:
    for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(key):
            causes.forbidden(f"spec.{key}", "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    causes.require_valid(subdomain, name, "spec.externalName")


def _port(port: Mapping[str, Any], named: bool, names: set[str], path: str, causes: Causes) -> None:
    name = port.get("name", "")
    if named and not name:
        causes.required(f"{path}.name")
    elif name:
        causes.check(dns_label, name, f"{path}.name")
        causes.unique(name, names, f"{path}.name")
    causes.check(port_number, port.get("port", 0), f"{path}.port")
    _PORT.check(port, path, causes, "protocol")
    port_or_name(port.get("targetPort", 0), f"{path}.targetPort", causes)
    if "appProtocol" in port:
        causes.check(qualified_name_problems, port["appProtocol"], f"{path}.appProtocol")


def _port_numbers(kind: str, ports: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                causes.forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("nodePort", 0))
        if key[1] and key in seen:
            causes.duplicate(f"spec.ports[{index}].nodePort", key[1])
        seen.add(key)
    seen = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            causes.duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


def _affinity(spec: Mapping[str, Any], causes: Causes) -> None:
    how = spec.get("sessionAffinity", "")
    _SPEC.check(spec, "spec", causes, "sessionAffinity")
    if how == "ClientIP":
        seconds = spec.get("sessionAffinityConfig", {}).get("clientIP", {}).get("timeoutSeconds", 0)
        if not 0 < seconds <= _MAX_AFFINITY_S:
            where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            causes.invalid(where, seconds, f"must be greater than 0 and less than {_MAX_AFFINITY_S}")


def _addresses(spec: Mapping[str, Any], was: Mapping[str, Any], causes: Causes) -> None:
    own, every = spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    families = spec.get("ipFamilies", [])
    if own and not every:
        causes.required("spec.clusterIPs")
    elif own and every[0] != own:
        causes.invalid("spec.clusterIPs", every, "first value must match `clusterIP`")
    elif every and not own:
        causes.invalid("spec.clusterIPs", every, "must be empty when `clusterIP` is not specified")
    seen: set[str] = set()
    for index, family in enumerate(families):
        causes.one_of(family, ("IPv4", "IPv6"), f"spec.ipFamilies[{index}]")
        if family in seen:
            causes.duplicate(f"spec.ipFamilies[{index}]", family)
        seen.add(family)
    _SPEC.check(spec, "spec", causes, "ipFamilyPolicy")
    if _each_address(every, was.get("clusterIPs", ()), causes):
        _address_families(every, families, causes)


def _each_address(every: list[str], known: Sequence[str], causes: Causes) -> bool:
    """Returns whether all of them are addresses."""
    before = len(causes)
    for index, one in enumerate(every):
        if index == 0 and one == NONE:
            if len(every) > 1:
                causes.invalid("spec.clusterIPs", every, "'None' must be the first and only value")
            continue
        ip(one, f"spec.clusterIPs[{index}]", causes, known)
    right = len(causes) == before
    if len(every) > 2:
        causes.invalid("spec.clusterIPs", every, "may only hold up to 2 values")
    return right


def _address_families(every: list[str], families: Sequence[str], causes: Causes) -> None:
    if len(every) > 1 and not is_dual_stack(every):
        causes.invalid("spec.clusterIPs", every, "may specify no more than one IP for each IP family")
    if every == [NONE]:
        return
    for index, (one, family) in enumerate(zip(every, families, strict=False)):
        if family in ("IPv4", "IPv6") and is_ipv6(one) != (family == "IPv6"):
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            causes.invalid(f"spec.clusterIPs[{index}]", one, detail)


def _balancer(service: Object, spec: Mapping[str, Any], was: Mapping[str, Any], causes: Causes) -> None:
    balanced = type_of(spec) == "LoadBalancer"
    told = service["metadata"].get("annotations", {}).get(_RANGES)
    if spec.get("loadBalancerSourceRanges"):
        if not balanced:
            causes.forbidden("spec.LoadBalancerSourceRanges", _ONLY_BALANCED)
        known = [one.strip() for one in was.get("loadBalancerSourceRanges", ())]
        for index, one in enumerate(spec["loadBalancerSourceRanges"]):
            cidr(one.strip(), f"spec.LoadBalancerSourceRanges[{index}]", causes, known)
    elif told is not None:
        where = f"metadata.annotations[{_RANGES}]"
        if not balanced:
            causes.forbidden(where, _ONLY_BALANCED)
        for one in told.split(",") if told.strip() else ():
            cidr(one.strip(), where, causes)
    if "allocateLoadBalancerNodePorts" in spec and not balanced:
        causes.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED)
    if "loadBalancerClass" in spec:
        if balanced:
            causes.check(qualified_name_problems, spec["loadBalancerClass"], "spec.loadBalancerClass")
        else:
            causes.forbidden("spec.loadBalancerClass", _ONLY_BALANCED)


def _traffic(spec: Mapping[str, Any], causes: Causes) -> None:
    policy, where = spec.get("externalTrafficPolicy", ""), "spec.externalTrafficPolicy"
    if not is_external(spec):
        if policy:
            causes.invalid(where, policy, "may only be set for externally-accessible services")
    else:
        _SPEC.check(spec, "spec", causes, "externalTrafficPolicy")
    port, where = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if not needs_health_port(spec):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            causes.invalid(where, port, detail)
    elif not port:
        causes.required(where)
    else:
        causes.check(port_number, port, where)
    _SPEC.check(spec, "spec", causes, "internalTrafficPolicy")
    known = ("PreferClose", "PreferSameZone", "PreferSameNode")
    causes.one_of(spec.get("trafficDistribution", "PreferClose"), known, "spec.trafficDistribution")


def validate_update(new: Object, old: Object, causes: Causes) -> None:
    spec, was = new["spec"], old["spec"]
    before = len(causes)
    if needs_address(spec):
        _addresses(spec, was, causes)
    if len(causes) > before:
        return
    if needs_address(spec) and needs_address(was):
        _fixed(spec, was, causes)
    if type_of(spec) == type_of(was) == "LoadBalancer" and spec.get("loadBalancerClass") != was.get(
        "loadBalancerClass"
    ):
        causes.invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), _FIXED)
    moved = spec.get("healthCheckNodePort") != was.get("healthCheckNodePort")
    if moved and needs_health_port(spec) and needs_health_port(was):
        causes.forbidden("spec.healthCheckNodePort", "field is immutable")
    _check(new, old, causes)


def _fixed(spec: Mapping[str, Any], was: Mapping[str, Any], causes: Causes) -> None:
    """An allocated address must not change."""
    if is_headless(spec) and is_headless(was):
        return
    mine, before = spec.get("clusterIPs", []), was.get("clusterIPs", [])
    if before and not mine:
        causes.invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")
    elif before and mine[0] != before[0]:
        causes.invalid("spec.clusterIPs[0]", mine, _FIXED)
    if is_headless(spec) != is_headless(was):
        return
    mine, before = spec.get("ipFamilies", []), was.get("ipFamilies", [])
    if before and mine and mine[0] != before[0]:
        causes.invalid("spec.ipFamilies[0]", mine, _FIXED)


def validate_status(new: Object, old: Object, causes: Causes) -> None:
    where = "status.loadBalancer.ingress"
    found = new.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    if found and type_of(new["spec"]) != "LoadBalancer":
        causes.forbidden(where, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    known = [one.get("ip", "") for one in old.get("status", {}).get("loadBalancer", {}).get("ingress", ())]
    for index, one in enumerate(found):
        _ingress(one, known, f"{where}[{index}]", causes)


def _ingress(one: Mapping[str, Any], known: Sequence[str], path: str, causes: Causes) -> None:
    address, mode, name = one.get("ip", ""), one.get("ipMode"), one.get("hostname", "")
    if address:
        ip(address, f"{path}.ip", causes, known)
    if mode is None:
        if address:
            causes.required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif not address:
        causes.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    elif mode not in ("Proxy", "VIP"):
        causes.not_supported(f"{path}.ipMode", mode, ("Proxy", "VIP"))
    if name:
        causes.check(subdomain, name, f"{path}.hostname")
        if parse_ip(name) is not None:
            causes.invalid(f"{path}.hostname", name, "must be a DNS name, not an IP address")
