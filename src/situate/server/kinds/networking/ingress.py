"""Ingress: rules that lead requests from outside to services."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.addresses import ip, parse_ip
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, path_segment, port_name, port_number, subdomain, wildcard_subdomain
from situate.server.kinds.networking.kept import kept
from situate.server.kinds.strategy import Strategy, drop_status, keep_status
from situate.server.objects import Object

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_ENDINGS: Final = ("/..", "/.")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_NOT_A_NAME: Final = "must be a DNS name, not an IP address"
_OTHER_CLASS: Final = "must match `ingressClassName` when both are specified"
_RESOLVE: Final = "either `defaultBackend` or `rules` must be specified"


def _prepare_create(ingress: Object) -> None:
    drop_status(ingress)
    ingress["status"] = {"loadBalancer": {}}


def _validate(ingress: Object, causes: Causes) -> None:
    annotations, spec = ingress["metadata"].get("annotations") or {}, ingress.get("spec", {})
    told, named = annotations.get(CLASS_ANNOTATION), spec.get("ingressClassName")
    if told is not None and named is not None and told != named:
        causes.invalid(f"annotations.{CLASS_ANNOTATION}", told, _OTHER_CLASS)
    _spec(spec, causes)


def _validate_update(new: Object, _old: Object, causes: Causes) -> None:
    _spec(new.get("spec", {}), causes)


def _spec(spec: Mapping[str, Any], causes: Causes) -> None:
    if not spec.get("rules") and "defaultBackend" not in spec:
        causes.invalid("spec", spec.get("rules"), _RESOLVE)
    if "defaultBackend" in spec:
        _backend(spec["defaultBackend"], "spec.defaultBackend", causes)
    for index, rule in enumerate(spec.get("rules", ())):
        path = f"spec.rules[{index}]"
        if rule.get("host"):
            _host(rule["host"], f"{path}.host", causes)
            if parse_ip(rule["host"]) is not None:
                causes.invalid(f"{path}.host", rule["host"], _NOT_A_NAME)
        if "http" in rule:
            _http(rule["http"], f"{path}.http", causes)
    for index, one in enumerate(spec.get("tls", ())):
        for at, host in enumerate(one.get("hosts", ())):
            _host(host, f"spec.tls[{index}].hosts[{at}]", causes)
        if one.get("secretName"):
            causes.check(subdomain, one["secretName"], f"spec.tls[{index}].secretName")
    if "ingressClassName" in spec:
        causes.check(subdomain, spec["ingressClassName"], "spec.ingressClassName")


def _host(host: str, path: str, causes: Causes) -> None:
    causes.check(wildcard_subdomain if "*" in host else subdomain, host, path)


def _http(http: Mapping[str, Any], path: str, causes: Causes) -> None:
    if not http.get("paths"):
        causes.required(f"{path}.paths")
    for index, one in enumerate(http.get("paths", ())):
        at = f"{path}.paths[{index}]"
        _path(one, at, causes)
        _backend(one.get("backend", {}), f"{at}.backend", causes)


def _path(one: Mapping[str, Any], at: str, causes: Causes) -> None:
    kind, path = one.get("pathType"), one.get("path", "")
    if kind is None:
        causes.required(f"{at}.pathType", "pathType must be specified")
        return
    if kind in ("Exact", "Prefix"):
        if not path.startswith("/"):
            causes.invalid(f"{at}.path", path, "must be an absolute path")
        if path:
            for sequence in _SEQUENCES:
                if sequence in path:
                    causes.invalid(f"{at}.path", path, f"must not contain '{sequence}'")
            for ending in _ENDINGS:
                if path.endswith(ending):
                    causes.invalid(f"{at}.path", path, f"cannot end with '{ending}'")
    elif kind == "ImplementationSpecific":
        if path and not path.startswith("/"):
            causes.invalid(f"{at}.path", path, "must be an absolute path")
    else:
        causes.not_supported(f"{at}.pathType", kind, PATH_TYPES)


def _backend(backend: Mapping[str, Any], path: str, causes: Causes) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        causes.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        reference(resource, f"{path}.resource", causes)
    elif service is None:
        causes.invalid(path, "", "resource or service backend is required")
    else:
        if service.get("name"):
            causes.check(dns_label, service["name"], f"{path}.service.name")
        else:
            causes.required(f"{path}.service.name")
        _port(service.get("port", {}), path, causes)


def _port(port: Mapping[str, Any], path: str, causes: Causes) -> None:
    name, number = port.get("name"), port.get("number")
    if name and number:
        causes.invalid(path, "", "cannot set both port name & port number")
    elif name:
        causes.check(port_name, name, f"{path}.service.port.name")
    elif number:
        causes.check(port_number, number, f"{path}.service.port.number")
    else:
        causes.required(path, "port name or number is required")


def reference(found: Mapping[str, Any], path: str, causes: Causes) -> None:
    """An object of any kind in the same namespace."""
    if found.get("apiGroup") is not None:
        causes.check(subdomain, found["apiGroup"], f"{path}.apiGroup")
    for field in ("kind", "name"):
        if not found.get(field):
            causes.required(f"{path}.{field}")
        else:
            causes.check(path_segment, found[field], f"{path}.{field}")


def _validate_status(new: Object, old: Object, causes: Causes) -> None:
    known = [one.get("ip", "") for one in _ingresses(old)]
    for index, one in enumerate(_ingresses(new)):
        path = f"status.loadBalancer.ingress[{index}]"
        if one.get("ip"):
            ip(one["ip"], f"{path}.ip", causes, known)
        if one.get("hostname"):
            causes.check(subdomain, one["hostname"], f"{path}.hostname")
            if parse_ip(one["hostname"]) is not None:
                causes.invalid(f"{path}.hostname", one["hostname"], _NOT_A_NAME)
        for at, port in enumerate(one.get("ports", ())):
            causes.check(port_number, port.get("port", 0), f"{path}.ports[{at}].port")
            causes.one_of(port.get("protocol", ""), _PROTOCOLS, f"{path}.ports[{at}].protocol")


def _ingresses(obj: Object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj.get("status", {}).get("loadBalancer", {}).get("ingress") or []
    return found


def _class(obj: Object) -> str:
    spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
    return spec.get("ingressClassName") or annotations.get(CLASS_ANNOTATION) or "<none>"


def _hosts(obj: Object) -> str:
    hosts = [one["host"] for one in (obj.get("spec") or {}).get("rules") or () if one.get("host")]
    shown = ",".join(hosts[:3])
    return (f"{shown} + {len(hosts) - 3} more..." if len(hosts) > 3 else shown) or "*"


def _address(obj: Object) -> str:
    return ",".join(one.get("ip") or one.get("hostname") or "" for one in _ingresses(obj))


def _ports(obj: Object) -> str:
    return "80, 443" if (obj.get("spec") or {}).get("tls") else "80"


KIND: Final = Kind(
    "networking.k8s.io/v1 ingresses Ingress N ing - | status",
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        warnings=kept("Ingress"),
        counts_generation=True,
        creates_on_update=False,
    ),
    columns="Name!, Class, Hosts, Address, Ports, Age",
    cells={"Class": _class, "Hosts": _hosts, "Address": _address, "Ports": _ports},
    description="Ingress leads requests from outside of the cluster to services.",
)
