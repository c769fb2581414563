"""Validation of containers, init containers and ephemeral containers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from situate.server.kinds.core.pod.environment import environment, environment_from
from situate.server.kinds.core.pod.probes import lifecycle, probes
from situate.server.kinds.core.pod.security import container_security
from situate.server.kinds.core.pod.volumes import Volumes, devices, mounts
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes, forbidden, invalid
from situate.server.kinds.names import dns_label, port_name, port_number
from situate.server.kinds.quantities import resources

_CONTAINER: Final = FieldChecks("core.v1.Container")
_PORT: Final = FieldChecks("core.v1.ContainerPort")
RESTARTS: Final = ("Always", "Never", "OnFailure")
_ACTIONS: Final = ("Restart", "RestartAllContainers")
_MAX_RULES, _MAX_CODES = 20, 255
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL: Final = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
]
_WHITESPACE: Final = "must not have leading or trailing whitespace"


@dataclass(frozen=True, slots=True)
class ContainerContext:
    """What the validation of a container depends on besides the container."""

    volumes: Volumes
    claims: Collection[str]
    grace_s: int
    restart: str
    host_users: bool


def containers(found: Sequence[Mapping[str, Any]], context: ContainerContext, path: str, causes: Causes) -> None:
    if not found:
        causes.required(path)
        return
    names: set[str] = set()
    host_ports: set[str] = set()
    for index, container in enumerate(found):
        at = f"{path}[{index}]"
        _common(container, context, at, causes)
        name = container.get("name", "")
        causes.unique(name, names, f"{at}.name")
        if "lifecycle" in container:
            lifecycle(container["lifecycle"], context.grace_s, f"{at}.lifecycle", causes)
        probes(container, context.grace_s, at, causes)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            _restarts(container, at, causes)
    for index, container in enumerate(found):
        if "ports" in container:
            _host_ports(container["ports"], host_ports, f"{path}[{index}].ports", causes)


def init_containers(
    found: Sequence[Mapping[str, Any]], others: Collection[str], context: ContainerContext, path: str, causes: Causes
) -> None:
    names = set(others)
    for index, container in enumerate(found):
        at = f"{path}[{index}]"
        _common(container, context, at, causes)
        sidecar = container.get("restartPolicy") == "Always"
        if "restartPolicy" in container or "restartPolicyRules" in container:
            _restarts(container, at, causes)
        name = container.get("name", "")
        if name in names:
            causes.duplicate(f"{at}.name", name)
        elif name:
            names.add(name)
        # kube-apiserver checks one init container at a time here, and gives each of them the index 0.
        _host_ports(container.get("ports", ()), set(), f"{path}[0].ports", causes)
        if sidecar:
            if "lifecycle" in container:
                lifecycle(container["lifecycle"], context.grace_s, f"{at}.lifecycle", causes)
            probes(container, context.grace_s, at, causes)
            continue
        for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if key in container:
                causes.forbidden(f"{at}.{key}", _ONLY_SIDECARS)
        for place, policy in enumerate(container.get("resizePolicy", ())):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                where = f"{at}.resizePolicy[{place}].restartPolicy"
                causes.invalid(where, "RestartContainer", detail)


def ephemeral_containers(
    found: Sequence[Mapping[str, Any]], others: Collection[str], context: ContainerContext, path: str, causes: Causes
) -> None:
    names = set(others)
    for index, container in enumerate(found):
        at, name = f"{path}[{index}]", container.get("name", "")
        _common(container, context, at, causes)
        _check_image_trimmed(container, at, causes)
        causes.unique(name, names, f"{at}.name")
        target = container.get("targetContainerName", "")
        if target and target not in others:
            causes.not_found(f"{at}.targetContainerName", target)
        detail = "cannot be set for an Ephemeral Container"
        causes.extend(forbidden(f"{at}.{key}", detail) for key in _NOT_EPHEMERAL if container.get(key))
        for place, mount in enumerate(container.get("volumeMounts", ())):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    causes.forbidden(f"{at}.volumeMounts[{place}].{key}", detail)


def check_images_trimmed(found: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    for index, container in enumerate(found):
        _check_image_trimmed(container, f"{path}[{index}]", causes)


def _check_image_trimmed(container: Mapping[str, Any], path: str, causes: Causes) -> None:
    image = container.get("image", "")
    if image != image.strip():
        causes.invalid(f"{path}.image", image, _WHITESPACE)


def _common(container: Mapping[str, Any], context: ContainerContext, path: str, causes: Causes) -> None:
    name = container.get("name", "")
    if not name:
        causes.required(f"{path}.name")
    elif problems := dns_label(name):
        causes.extend(invalid(f"{path}.name", name, problem) for problem in problems)
    causes.require(container.get("image"), f"{path}.image")
    _CONTAINER.check(container, path, causes, "terminationMessagePolicy")
    if "ports" in container:
        _ports(container["ports"], f"{path}.ports", causes)
    if "env" in container:
        environment(container["env"], f"{path}.env", causes)
    if "envFrom" in container:
        environment_from(container["envFrom"], f"{path}.envFrom", causes)
    if "volumeMounts" in container:
        mounts(container, context.volumes, f"{path}.volumeMounts", causes)
    if "volumeDevices" in container:
        devices(container, context.volumes, f"{path}.volumeDevices", causes)
    _CONTAINER.check(container, path, causes, "imagePullPolicy")
    if asked := container.get("resources"):
        resources(asked, f"{path}.resources", causes, context.claims)
    if "resizePolicy" in container:
        _resizing(container["resizePolicy"], context.restart, f"{path}.resizePolicy", causes)
    if "securityContext" in container:
        container_security(container["securityContext"], context.host_users, f"{path}.securityContext", causes)


def _ports(ports: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        if name := port.get("name"):
            if problems := port_name(name):
                causes.extend(invalid(f"{path}[{index}].name", name, problem) for problem in problems)
            elif name in names:
                causes.duplicate(f"{path}[{index}].name", name)
            else:
                names.add(name)
        number = port.get("containerPort", 0)
        if not number:
            causes.required(f"{path}[{index}].containerPort")
        elif problems := port_number(number):
            causes.invalid(f"{path}[{index}].containerPort", number, problems[0])
        if host := port.get("hostPort"):
            causes.check(port_number, host, f"{path}[{index}].hostPort")
        _PORT.check(port, f"{path}[{index}]", causes)


def _host_ports(ports: Sequence[Mapping[str, Any]], taken: set[str], path: str, causes: Causes) -> None:
    for index, port in enumerate(ports):
        if number := port.get("hostPort"):
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
            causes.unique(key, taken, f"{path}[{index}].hostPort")


def _resizing(policies: Sequence[Mapping[str, Any]], restart: str, path: str, causes: Causes) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, how = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        causes.unique(name, seen, f"{path}[{index}]")
        causes.require_one_of(name, ("cpu", "memory"), path)
        causes.require_one_of(how, ("NotRequired", "RestartContainer"), path)
        if restart == "Never" and how != "NotRequired":
            causes.invalid(path, how, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _restarts(container: Mapping[str, Any], path: str, causes: Causes) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules", ())
    if policy is None:
        causes.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in RESTARTS:
        causes.not_supported(f"{path}.restartPolicy", policy, RESTARTS)
    causes.at_most(_MAX_RULES, rules, f"{path}.restartPolicyRules")
    for index, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{index}]"
        causes.one_of(rule.get("action", ""), _ACTIONS, f"{at}.action")
        codes = rule.get("exitCodes")
        if codes is None:
            causes.required(f"{at}.exitCodes", "must be specified")
            continue
        causes.one_of(codes.get("operator", ""), ("In", "NotIn"), f"{at}.exitCodes.operator")
        if len(codes.get("values", ())) > _MAX_CODES:
            causes.too_many(f"{at}.exitCodes.values", len(codes["values"]), _MAX_CODES)
