"""The environment and the command line of a container. Pure.

As in Kubernetes: envFrom first, then env in order; `$(NAME)` expands to an earlier variable, `$$(NAME)` is literal; the
downward API; keys of ConfigMaps and Secrets.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from situate.core.model.quantity import milli_value, value

CONFIG_ERROR: Final = "CreateContainerConfigError"
NO_COMMAND: Final = "the process runtime runs no images: give the container a command"
NO_FIELD: Final = "the downward API has no field {}"

_REFERENCE: Final = re.compile(r"\$(\$|\([^()]*\))")
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)
_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


class ContainerConfigError(Exception):
    """The container cannot start as specified: `reason` and `str(error)` go into its status."""

    def __init__(self, message: str, reason: str = CONFIG_ERROR) -> None:
        super().__init__(message)
        self.reason = reason


class ConfigReference(NamedTuple):
    """A ConfigMap or a Secret."""

    kind: str
    name: str
    optional: bool = False


class TokenReference(NamedTuple):
    """A token of the pod's ServiceAccount in a projected volume."""

    audience: str
    life_s: int


@dataclass(frozen=True, slots=True)
class EnvironmentSources:
    """What the environment is built from besides the pod's own spec."""

    host_ip: str
    allocatable: Mapping[str, str]
    """Of the node; the default for limits that are not set."""
    objects: Mapping[tuple[str, str], Mapping[str, Any]]
    """By kind and name, in the pod's namespace; missing ones do not exist."""
    base: Mapping[str, str]
    """Variables of every container."""
    tokens: Mapping[TokenReference, str] = field(default_factory=dict)
    """Those of the pod's volumes."""
    claims: Mapping[str, Path] = field(default_factory=dict)
    """Where the volumes are that have a claim."""


def environment_references(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[ConfigReference]:
    """What to read before calling `variables`."""
    for source in container.get("envFrom", ()):
        yield from references_in(source, "configMapRef", "secretRef")
    for one in container.get("env", ()):
        yield from references_in(one.get("valueFrom", {}), "configMapKeyRef", "secretKeyRef")


def references_in(
    source: Mapping[str, Any], config_map: str, secret: str, name_field: str = "name"
) -> Iterator[ConfigReference]:
    """`name_field`: the field with the name of the Secret."""
    for key, kind, name in ((config_map, "ConfigMap", "name"), (secret, "Secret", name_field)):
        if found := source.get(key):
            yield ConfigReference(kind, found.get(name, ""), bool(found.get("optional")))


def variables(pod: Mapping[str, Any], container: Mapping[str, Any], around: EnvironmentSources) -> dict[str, str]:
    """Raises ConfigError."""
    found = dict(around.base)
    for source in container.get("envFrom", ()):
        found.update(_all_of(pod, source, around))
    for one in container.get("env", ()):
        if "valueFrom" in one:
            text = _valued(pod, container, one["valueFrom"], around)
            if text is None:
                continue
        else:
            text = expand(one.get("value", ""), found)
        found[one["name"]] = text
    return found


def command_line(container: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, ...]:
    """Raises ContainerConfigError if there is no command, because images are not read."""
    if not container.get("command"):
        raise ContainerConfigError(NO_COMMAND)
    return tuple(expand(word, env) for word in (*container["command"], *container.get("args", ())))


def expand(text: str, env: Mapping[str, str]) -> str:
    """Expand `$(NAME)`; an undefined name stays as written."""

    def one(found: re.Match[str]) -> str:
        inner = found[1]
        return "$" if inner == "$" else env.get(inner[1:-1], found[0])

    return _REFERENCE.sub(one, text)


# -- config maps and secrets -----------------------------------------------------------------------------------------


def _all_of(pod: Mapping[str, Any], source: Mapping[str, Any], around: EnvironmentSources) -> dict[str, str]:
    found: dict[str, str] = {}
    for reference in references_in(source, "configMapRef", "secretRef"):
        for key, text in data_of(pod, reference, around.objects).items():
            name = source.get("prefix", "") + key
            if _NAME.fullmatch(name):
                found[name] = text.decode(errors="surrogateescape")
    return found


def _key_of(pod: Mapping[str, Any], reference: ConfigReference, key: str, around: EnvironmentSources) -> str | None:
    data = data_of(pod, reference, around.objects)
    if key in data:
        return data[key].decode(errors="surrogateescape")
    if reference.optional:
        return None
    where = f"{pod['metadata']['namespace']}/{reference.name}"
    raise ContainerConfigError(f"couldn't find key {key} in {reference.kind} {where}")


def data_of(
    pod: Mapping[str, Any], reference: ConfigReference, objects: Mapping[tuple[str, str], Mapping[str, Any]]
) -> dict[str, bytes]:
    """All keys of a ConfigMap or Secret; none if it is optional and missing. Raises ContainerConfigError."""
    found = objects.get((reference.kind, reference.name))
    if found is None:
        if reference.optional:
            return {}
        raise ContainerConfigError(f'{reference.kind.lower()} "{reference.name}" not found')
    try:
        return _decoded(found, reference.kind)
    except (ValueError, AttributeError):
        raise ContainerConfigError(f'{reference.kind.lower()} "{reference.name}" has data that is not base64') from None


def _decoded(found: Mapping[str, Any], kind: str) -> dict[str, bytes]:
    if kind == "Secret":
        return {key: base64.b64decode(text) for key, text in (found.get("data") or {}).items()}
    data = {key: text.encode(errors="surrogateescape") for key, text in (found.get("data") or {}).items()}
    return data | {key: base64.b64decode(text) for key, text in (found.get("binaryData") or {}).items()}


# -- the downward API ------------------------------------------------------------------------------------------------


def _valued(
    pod: Mapping[str, Any], container: Mapping[str, Any], source: Mapping[str, Any], around: EnvironmentSources
) -> str | None:
    if "fieldRef" in source:
        return field_of(pod, source["fieldRef"].get("fieldPath", ""), around.host_ip)
    if "resourceFieldRef" in source:
        return resource_of(pod, container, source["resourceFieldRef"], around.allocatable)
    for reference in references_in(source, "configMapKeyRef", "secretKeyRef"):
        key = (source.get("configMapKeyRef") or source.get("secretKeyRef") or {}).get("key", "")
        return _key_of(pod, reference, key, around)
    raise ContainerConfigError("valueFrom has no supported source")


def field_of(pod: Mapping[str, Any], path: str, host_ip: str) -> str:
    """Raises ConfigError."""
    meta, spec = pod["metadata"], pod["spec"]
    if keyed := _KEYED.fullmatch(path):
        return str((meta.get(keyed[1]) or {}).get(keyed[2], ""))
    plain = {
        "metadata.name": meta.get("name", ""),
        "metadata.namespace": meta.get("namespace", ""),
        "metadata.uid": meta.get("uid", ""),
        "metadata.labels": _pairs(meta.get("labels") or {}),
        "metadata.annotations": _pairs(meta.get("annotations") or {}),
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": host_ip,
        "status.hostIPs": host_ip,
        "status.podIP": host_ip,
        "status.podIPs": host_ip,
    }
    if path not in plain:
        raise ContainerConfigError(NO_FIELD.format(path))
    return str(plain[path])


def _pairs(labels: Mapping[str, str]) -> str:
    quoted = {key: text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for key, text in labels.items()}
    return "\n".join(f'{key}="{text}"' for key, text in sorted(quoted.items()))


def resource_of(
    pod: Mapping[str, Any], container: Mapping[str, Any], reference: Mapping[str, Any], allocatable: Mapping[str, str]
) -> str:
    """In units of the divisor, rounded up. An unset limit is the node's allocatable. Raises ContainerConfigError."""
    named = reference.get("containerName")
    if named:
        every = (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
        container = next((one for one in every if one["name"] == named), container)
    side, _, name = reference.get("resource", "").partition(".")
    if side not in ("limits", "requests") or not name:
        raise ContainerConfigError(NO_FIELD.format(reference.get("resource", "")))
    resources = container.get("resources") or {}
    text = (resources.get(side) or {}).get(name)
    if text is None:
        text = (allocatable if side == "limits" else {}).get(name, "0")
    divisor = reference.get("divisor", "1")
    if name == "cpu":
        return str(-(-milli_value(text) // max(1, milli_value(divisor if divisor != "0" else "1"))))
    return str(-(-value(text) // max(1, value(divisor if divisor != "0" else "1"))))
