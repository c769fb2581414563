"""Defaults of pods and pod templates. Functions change the object in place and are idempotent."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from situate.core.model.amounts import Amounts, combined
from situate.server.kinds.core.persistentvolumeclaim import default_claim_spec
from situate.server.kinds.quantities import (
    CPU,
    MEMORY,
    is_huge_pages,
    is_pod_level,
    nanos,
    round_amounts,
    written,
)
from situate.server.objects import Object

ALWAYS, IF_NOT_PRESENT = "Always", "IfNotPresent"
_FILE_MODE: Final = 0o644
_TOKEN_S: Final = 3600
_GRACE_S: Final = 30
_MAX_IMAGE, _MAX_NAME = 1_024, 255

# An image reference, by the grammar of container registries. Text that does not match has no tag.
_NAME = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?(?P<name>{_NAME}(?:/{_NAME})*)(?P<tag>:\w[\w.-]{{0,127}})?(?P<digest>@[A-Za-z][\w+.-]*:[0-9a-fA-F]{{32,}})?",
    re.ASCII,
)


def pull_policy(image: str) -> str:
    """`Always` for the tag latest, explicit or implied. Text too long for an image has no tag and is not cached."""
    return _pull_policy(image) if len(image) <= _MAX_IMAGE else IF_NOT_PRESENT


@lru_cache(maxsize=4_096)
def _pull_policy(image: str) -> str:
    found = _IMAGE.fullmatch(image)
    if found is None or len(found["name"]) > _MAX_NAME:
        return IF_NOT_PRESENT
    if found["tag"] is None:
        return ALWAYS if found["digest"] is None else IF_NOT_PRESENT
    return ALWAYS if found["tag"] == ":latest" else IF_NOT_PRESENT


def default_pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    default_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for container in spec.get("containers", ()):
        _requests_from_limits(container)
    for container in spec.get("initContainers", ()):
        _requests_from_limits(container)
    if "resources" in spec:
        _pod_level(spec, spec["resources"])
    if "status" in pod:
        _addresses(pod["status"])
    if "enableServiceLinks" not in spec:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _host_ports(spec.get("containers", ()))
        _host_ports(spec.get("initContainers", ()))


def default_spec(spec: dict[str, Any]) -> None:
    """Set the defaults of a pod's or a template's spec."""
    for container in spec.get("containers", ()):
        _container(container)
    for container in spec.get("initContainers", ()):
        _container(container)
    for container in spec.get("ephemeralContainers", ()):
        _container(container)
    for volume in spec.get("volumes", ()):
        _volume(volume)
    if "restartPolicy" not in spec:
        spec["restartPolicy"] = "Always"
    if "terminationGracePeriodSeconds" not in spec:
        spec["terminationGracePeriodSeconds"] = _GRACE_S
    if "dnsPolicy" not in spec:
        spec["dnsPolicy"] = "ClusterFirst"
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    if "schedulerName" not in spec:
        spec["schedulerName"] = "default-scheduler"
    # serviceAccount is the old name of serviceAccountName. Either sets both.
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if "overhead" in spec:
        round_amounts(spec["overhead"])


def _container(container: dict[str, Any]) -> None:
    if "terminationMessagePath" not in container:
        container["terminationMessagePath"] = "/dev/termination-log"
    if "terminationMessagePolicy" not in container:
        container["terminationMessagePolicy"] = "File"
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    for port in container.get("ports", ()):
        if "protocol" not in port:
            port["protocol"] = "TCP"
    if resources := container.get("resources"):
        round_amounts(resources.get("limits"))
        round_amounts(resources.get("requests"))
    for variable in container.get("env", ()):
        if "valueFrom" in variable:
            _variable(variable["valueFrom"])
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if key in container:
            _probe(container[key])
    for handler in container.get("lifecycle", {}).values():
        if isinstance(handler, dict):
            _http_get(handler)


def _variable(source: dict[str, Any]) -> None:
    _field_ref(source)
    if "fileKeyRef" in source:
        source["fileKeyRef"].setdefault("optional", False)


def _probe(probe: dict[str, Any]) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _http_get(probe)
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def _http_get(handler: dict[str, Any]) -> None:
    if "httpGet" in handler:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")


def _field_ref(source: dict[str, Any]) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")


# ── volumes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_MODES: Final = ("secret", "configMap", "downwardAPI", "projected")
_FILLED: Final[Mapping[str, Mapping[str, Any]]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def _volume(volume: dict[str, Any]) -> None:
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
        return
    for key in _MODES:
        if key in volume:
            volume[key].setdefault("defaultMode", _FILE_MODE)
    for key, values in _FILLED.items():
        if key in volume:
            for name, value in values.items():
                volume[key].setdefault(name, value)
    if "image" in volume:
        volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))
    for item in volume.get("downwardAPI", {}).get("items", ()):
        _field_ref(item)
    for source in volume.get("projected", {}).get("sources", ()):
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_S)
        for item in source.get("downwardAPI", {}).get("items", ()):
            _field_ref(item)
    template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if template is not None:
        default_claim_spec(template.setdefault("spec", {}))


# ── what only pods get ──────────────────────────────────────────────────────────────────────────────────────────────


def _addresses(status: dict[str, Any]) -> None:
    """podIP is the first of podIPs, and wins where they differ."""
    every = status.get("podIPs", [])
    if own := status.get("podIP"):
        if not every or every[0].get("ip") != own:
            status["podIPs"] = [{"ip": own}]
    elif every and every[0].get("ip"):
        status["podIP"] = every[0]["ip"]


def _requests_from_limits(container: dict[str, Any]) -> None:
    resources = container.get("resources")
    if not resources:
        return
    limits = resources.get("limits")
    if not limits:
        return
    requests = resources.get("requests")
    if requests is None:
        resources["requests"] = dict(limits)
        return
    for name, limit in limits.items():
        if name not in requests:
            requests[name] = limit


def _host_ports(containers: Iterable[dict[str, Any]]) -> None:
    for container in containers:
        for port in container.get("ports", ()):
            if not port.get("hostPort") and "containerPort" in port:
                port["hostPort"] = port["containerPort"]


def _pod_level(spec: Mapping[str, Any], own: dict[str, Any]) -> None:
    """Default the pod-level requests: the containers' requests, or else the pod's limits."""
    round_amounts(own.get("limits"))
    round_amounts(own.get("requests"))
    limits, requests = dict(own.get("limits", {})), dict(own.get("requests", {}))
    if not limits and not requests:
        return
    for name, total in _total(spec, "limits").items():
        if is_huge_pages(name) and name not in requests and name not in limits:
            limits[name] = written(total, binary=True)
    if limits:
        own["limits"] = limits
        for name, total in _total(spec, "requests").items():
            if name in (CPU, MEMORY) and name not in requests:
                requests[name] = written(total, binary=name == MEMORY)
        for name, limit in limits.items():
            if is_pod_level(name) and name not in requests:
                requests[name] = limit
    if requests:
        own["requests"] = requests


def _total(spec: Mapping[str, Any], which: str) -> Amounts:
    return total_of(spec.get("containers", ()), spec.get("initContainers", ()), which)


def total_of(containers: Iterable[Mapping[str, Any]], inits: Iterable[Mapping[str, Any]], which: str) -> Amounts:
    """The sum of all containers' requests or limits, in billionths."""
    return combined([_asked(one, which) for one in containers], [_asked(one, which) for one in inits])


def _asked(container: Mapping[str, Any], which: str) -> tuple[Amounts, bool]:
    listed = container.get("resources", {}).get(which, {})
    return {name: nanos(raw) for name, raw in listed.items()}, container.get("restartPolicy") == "Always"
