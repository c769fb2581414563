"""What one object uses, by the resource names of ResourceQuotas. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from situate.core.model.amounts import combined
from situate.core.model.quantity import NANO
from situate.server.kinds.quantities import is_extended, is_huge_pages, is_pod_level, nanos, text_of
from situate.server.requests import Object
from situate.server.resources import Resource


class Used(NamedTuple):
    """An amount in billionths."""

    amount: int
    binary: bool = False
    """Written with Ki, Mi and so on."""


Usage: TypeAlias = dict[str, Used]
ONE: Final = Used(NANO)
COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
COUNTED: Final = ("configmaps", "secrets", "replicationcontrollers", "resourcequotas")
"""Kinds of the core group that a quota may also name without `count/`."""
ENDED: Final = ("Succeeded", "Failed")
REQUESTS, LIMITS = "requests.", "limits."
REQUIRED: Final = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""What every container has to specify if a quota limits it."""


def usage_of(resource: Resource, obj: Object) -> Usage:
    """Whatever its scope."""
    of_kind = _OF_KIND.get((resource.group, resource.plural))
    used: Usage = {} if of_kind is None else of_kind(obj)
    used[f"count/{resource.plural}.{resource.group}" if resource.group else f"count/{resource.plural}"] = ONE
    if not resource.group and resource.plural in COUNTED:
        used[resource.plural] = ONE
    return used


def names_of(resource: Resource, hard: Iterable[str]) -> list[str]:
    """The names of a quota that objects of this kind can use."""
    plural = resource.plural
    counts = f"count/{plural}.{resource.group}" if resource.group else f"count/{plural}"
    core = not resource.group
    found = []
    for name in hard:
        if name == counts or (core and name == plural and plural in (*COUNTED, "services", "persistentvolumeclaims")):
            found.append(name)
        elif core and plural == "pods":
            if _is_of_pods(name):
                found.append(name)
        elif core and plural == "services":
            if name.startswith("services."):
                found.append(name)
        elif core and plural == "persistentvolumeclaims":
            if name == "requests.storage" or ".storageclass.storage.k8s.io/" in name:
                found.append(name)
        elif plural == "resourceclaims" and name.endswith(".deviceclass.resource.k8s.io/devices"):
            found.append(name)
    return found


def _is_of_pods(name: str) -> bool:
    if name == "pods" or name in COMPUTE or is_huge_pages(name):
        return True
    for side in (REQUESTS, LIMITS):
        rest = name.removeprefix(side)
        if rest != name:
            return rest in COMPUTE or (side == REQUESTS and (is_huge_pages(rest) or is_extended(rest)))
    return False


# -- pods ------------------------------------------------------------------------------------------------------------


def _of_pod(pod: Object) -> Usage:
    if pod.get("status", {}).get("phase") in ENDED:
        return {}
    spec = pod.get("spec", {})
    used: Usage = {"pods": ONE}
    for name, amount in _total(spec, "requests").items():
        if name in COMPUTE or is_huge_pages(name):
            used[name] = used[REQUESTS + name] = amount
        elif is_extended(name):
            used[REQUESTS + name] = amount
    for name, amount in _total(spec, "limits").items():
        if name in COMPUTE:
            used[LIMITS + name] = amount
    return used


def _total(spec: Mapping[str, Any], side: str) -> Usage:
    """Of all containers and of the pod as a whole, with its overhead."""
    inits = [(_listed(one, side), one.get("restartPolicy") == "Always") for one in spec.get("initContainers") or ()]
    found = combined([(_listed(one, side), False) for one in spec.get("containers") or ()], inits)
    own = _listed(spec, side)
    found.update({name: amount for name, amount in own.items() if is_pod_level(name)})
    for name, raw in (spec.get("overhead") or {}).items():
        if side == "requests" or found.get(name):
            found[name] = found.get(name, 0) + nanos(raw)
    every = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()), spec)
    binary = {name for one in every for name, raw in _raw(one, side).items() if text_of(raw).endswith("i")}
    return {name: Used(amount, name in binary) for name, amount in found.items()}


def _raw(holder: Mapping[str, Any], side: str) -> Mapping[str, Any]:
    return (holder.get("resources") or {}).get(side) or {}


def _listed(holder: Mapping[str, Any], side: str) -> dict[str, int]:
    return {name: nanos(raw) for name, raw in _raw(holder, side).items()}


def unspecified(pod: Object, names: Iterable[str]) -> str:
    """Which of these names which containers do not specify, in kube-apiserver's words; "" if none."""
    wanted = [name for name in names if name in REQUIRED]
    if not wanted:
        return ""
    spec = pod.get("spec", {})
    own = _specified(spec)
    missing: dict[str, list[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        given = _specified(container)
        for name in wanted:
            if name not in given and name not in own:
                missing.setdefault(name, []).append(container.get("name", ""))
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _specified(holder: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for name in _raw(holder, "requests"):
        found.update((name, REQUESTS + name))
    found.update(LIMITS + name for name in _raw(holder, "limits"))
    return found


# -- other kinds -----------------------------------------------------------------------------------------------------


def _of_service(service: Object) -> Usage:
    spec = service.get("spec", {})
    kind, ports = spec.get("type"), spec.get("ports") or ()
    node_ports = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        node_ports = sum(1 for port in ports if port.get("nodePort"))
    return {
        "services": ONE,
        "services.nodeports": Used(node_ports * NANO),
        "services.loadbalancers": Used(NANO if kind == "LoadBalancer" else 0),
    }


def _of_claim(claim: Object) -> Usage:
    spec = claim.get("spec", {})
    raw = _raw(spec, "requests").get("storage")
    granted = (claim.get("status", {}).get("allocatedResources") or {}).get("storage")
    if granted is not None and (raw is None or nanos(granted) > nanos(raw)):
        raw = granted
    used: Usage = {"persistentvolumeclaims": ONE}
    storage = None if raw is None else Used(nanos(raw), text_of(raw).endswith("i"))
    if storage is not None:
        used["requests.storage"] = storage
    if name := spec.get("storageClassName"):
        prefix = f"{name}.storageclass.storage.k8s.io/"
        used[f"{prefix}persistentvolumeclaims"] = ONE
        if storage is not None:
            used[f"{prefix}requests.storage"] = storage
    return used


def _of_resource_claim(claim: Object) -> Usage:
    """The devices that it asks for, by class; of alternatives, the most of each class."""
    counts: dict[str, int] = {}
    for request in (claim.get("spec", {}).get("devices") or {}).get("requests") or ():
        most: dict[str, int] = {}
        for one in (request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
            if name := one.get("deviceClassName"):
                most[name] = max(most.get(name, 0), one.get("count") or 1)
        for name, count in most.items():
            counts[name] = counts.get(name, 0) + count
    return {f"{name}.deviceclass.resource.k8s.io/devices": Used(count * NANO) for name, count in counts.items()}


_OF_KIND: Final[Mapping[tuple[str, str], Callable[[Object], Usage]]] = {
    ("", "pods"): _of_pod,
    ("", "services"): _of_service,
    ("", "persistentvolumeclaims"): _of_claim,
    ("resource.k8s.io", "resourceclaims"): _of_resource_claim,
}
