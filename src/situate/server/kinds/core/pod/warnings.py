"""Warnings to the client about valid settings that are hardly ever intended, in kube-apiserver's words."""

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.field_errors import quoted
from situate.server.kinds.core.pod.scheduling import PREFERRED, REQUIRED
from situate.server.kinds.core.pod.security import every_container
from situate.server.kinds.names import dns_label
from situate.server.kinds.quantities import fractions
from situate.server.objects import Object

_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
MOST_WARNINGS: Final = 1_000
"""Then no further pairs of ports are compared: a response has room for fewer, and 10,000 equal ports are 50 million
pairs."""
_NULL_SELECTOR: Final = "a null labelSelector results in matching no pod"
_NAME: Final = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
    "recommended: "
)


def pod_warnings(pod: Object) -> list[str]:
    meta = pod.get("metadata", {})
    found = []
    if problems := dns_label(meta.get("name", "")):
        found.append(f"{_NAME}[{' '.join(problems)}]")
    found.extend(_common(pod.get("spec", {}), meta, ""))
    return found


def template_warnings(template: Mapping[str, Any], path: str) -> list[str]:
    """Warnings about a pod template at `path`."""
    return _common(template.get("spec", {}), template.get("metadata", {}), f"{path}.")


def _common(spec: Mapping[str, Any], meta: Mapping[str, Any], at: str) -> list[str]:
    found: list[str] = []
    _deprecated(spec, meta, at, found)
    for index, one in enumerate(spec.get("topologySpreadConstraints", ())):
        if "labelSelector" not in one:
            found.append(f"{at}spec.topologySpreadConstraints[{index}].labelSelector: {_NULL_SELECTOR}")
    if "hostAliases" in spec:
        _twice(spec["hostAliases"], "ip", f"{at}spec.hostAliases", found)
    if "imagePullSecrets" in spec:
        _pull_secrets(spec["imagePullSecrets"], f"{at}spec.imagePullSecrets", found)
    ports: list[tuple[str, Mapping[str, Any]]] = []
    for where, container in every_container(spec):
        if "env" in container:
            _variables(container["env"], f"{at}spec.{where}", found)
        if "resources" in container:
            fractions(container["resources"], ("memory", "ephemeral-storage"), f"{at}spec.{where}.resources", found)
        for index, port in enumerate(container.get("ports", ())):
            ports.append((f"{at}spec.{where}.ports[{index}]", port))
    _ports(ports, found)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        detail = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{at}spec.terminationGracePeriodSeconds: {detail}")
    if "affinity" in spec:
        _terms(spec["affinity"], f"{at}spec.affinity", found)
    return found


def _deprecated(spec: Mapping[str, Any], meta: Mapping[str, Any], at: str, found: list[str]) -> None:
    for key in spec.get("nodeSelector", ()):
        if key in _NODE_LABELS:
            found.append(f"{at}spec.nodeSelector[{key}]: {_NODE_LABELS[key]}")
    for key in meta.get("annotations", ()):
        if key in _ANNOTATIONS:
            found.append(f"{at}metadata.annotations[{key}]: {_ANNOTATIONS[key]}")


def _pull_secrets(secrets: list[Mapping[str, Any]], path: str, found: list[str]) -> None:
    _twice(secrets, "name", path, found)
    for index, one in enumerate(secrets):
        if not one.get("name"):
            found.append(f'{path}[{index}].name: invalid empty name ""')


def _variables(variables: list[Mapping[str, Any]], path: str, found: list[str]) -> None:
    seen: set[str] = set()
    for index, one in enumerate(variables):
        name, value = one.get("name", ""), one.get("value", "")
        reference = f"$({name})"
        if name in seen and ("valueFrom" in one or value == reference or reference not in value):
            detail = f"hides previous definition of {quoted(name)}, which may be dropped when using apply"
            found.append(f"{path}.env[{index}]: {detail}")
        seen.add(name)


def _twice(items: list[Mapping[str, Any]], key: str, path: str, found: list[str]) -> None:
    seen: set[str] = set()
    for index, one in enumerate(items):
        value = one.get(key, "")
        if value in seen:
            found.append(f"{path}[{index}].{key}: duplicate {key} {quoted(value)}")
        seen.add(value)


def _ports(ports: list[tuple[str, Mapping[str, Any]]], found: list[str]) -> None:
    """Checks the ports of all containers together, because containers share an address."""
    named: dict[str, str] = {}
    seen: dict[tuple[int | None, str | None], _SamePort] = {}
    for index, (where, port) in enumerate(ports):
        host, address = port.get("hostPort", 0), port.get("hostIP", "")
        if address and not host:
            shown = f"{{Name:{port.get('name', '')} HostPort:0 ContainerPort:{port.get('containerPort', 0)} "
            found.append(
                f"{where}: hostIP set without hostPort: {shown}Protocol:{port.get('protocol', '')} HostIP:{address}}}"
            )
        same = seen.setdefault((port.get("containerPort"), port.get("protocol")), _SamePort())
        if len(found) < MOST_WARNINGS:
            for other_where, other_host, other_address in same.overlapping(host, address):
                how = _overlap(host, address, other_host, other_address)
                found.append(f"{where}: {how} port definition with {other_where}")
        same.add(index, where, host, address)
        name = port.get("name", "")
        if name in named:
            first = named[name]
            found.append(
                f"{where}: duplicate port name {quoted(name)} with {first}, services and probes that select ports by "
                f"name will use {first}"
            )
        elif name:
            named[name] = where


class _SamePort:
    """The definitions of one container port and protocol so far. It finds those that overlap without a look at the
    others."""

    __slots__ = ("_all", "_by_address", "_by_host")

    def __init__(self) -> None:
        self._all: list[tuple[int, str, int, str]] = []
        self._by_host: dict[int, list[tuple[int, str, int, str]]] = {}
        self._by_address: dict[tuple[int, str], list[tuple[int, str, int, str]]] = {}

    def add(self, index: int, where: str, host: int, address: str) -> None:
        entry = (index, where, host, address)
        self._all.append(entry)
        self._by_host.setdefault(host, []).append(entry)
        self._by_address.setdefault((host, address), []).append(entry)

    def overlapping(self, host: int, address: str) -> list[tuple[str, int, str]]:
        """Where, host port and address of each, in the order of the pod."""
        if not host:
            near = self._all
        else:
            near = list(self._by_host.get(0, ()))
            if address:
                near += self._by_address.get((host, address), [])
                near += self._by_address.get((host, ""), [])
            else:
                near += self._by_host.get(host, [])
            near.sort()
        return [(where, other, theirs) for _, where, other, theirs in near[:MOST_WARNINGS]]


def _overlap(port: int, address: str, other_port: int, other_address: str) -> str:
    if port == other_port and address == other_address:
        return "duplicate"
    return "overlapping" if not port or not other_port else "dangerously ambiguous"


def _terms(affinity: Mapping[str, Any], path: str, found: list[str]) -> None:
    for key in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(key, {})
        for index, term in enumerate(terms.get(REQUIRED, ())):
            if "labelSelector" not in term:
                found.append(f"{path}.{key}.{REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}")
        for index, term in enumerate(terms.get(PREFERRED, ())):
            if "labelSelector" not in term.get("podAffinityTerm", {}):
                where = f"{path}.{key}.{PREFERRED}[{index}].podAffinityTerm.labelSelector"
                found.append(f"{where}: {_NULL_SELECTOR}")
