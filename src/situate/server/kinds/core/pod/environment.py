"""Validation of environment variables and of references to fields, resources and keys."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.core.pod.paths import check_no_backsteps
from situate.server.kinds.field_errors import Causes, invalid
from situate.server.kinds.names import config_key, dns_label, env_name, prefix_problems, subdomain
from situate.server.kinds.quantities import nanos, text_of

ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_FIELDS: Final = frozenset((*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"))
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE: Final = ("limits.hugepages-", "requests.hugepages-")
_SIZES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SIZES_TEXT: Final = ", ".join(_SIZES)
_DIVISORS: Final = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (_SIZES, f"only divisor's values {_SIZES_TEXT} are supported with the memory resource"),
    "ephemeral-storage": (
        _SIZES,
        f"only divisor's values {_SIZES_TEXT} are supported with the local ephemeral storage resource",
    ),
}
_HUGE_DIVISORS: Final = f"only divisor's values {_SIZES_TEXT} are supported with the hugepages resource"
_SOURCES: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)


def environment(variables: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            causes.required(f"{path}[{index}].name")
        elif problems := env_name(name):
            causes.extend(invalid(f"{path}[{index}].name", name, problem) for problem in problems)
        if "valueFrom" in variable:
            _source(variable, f"{path}[{index}].valueFrom", causes)


def _source(variable: Mapping[str, Any], path: str, causes: Causes) -> None:
    source = variable["valueFrom"]
    count = len(source)
    if "fieldRef" in source:
        field_ref(source["fieldRef"], ENV_FIELDS, f"{path}.fieldRef", causes)
    if "resourceFieldRef" in source:
        resource_ref(source["resourceFieldRef"], f"{path}.resourceFieldRef", causes)
    for key in ("configMapKeyRef", "secretKeyRef"):
        if key in source:
            _key_ref(source[key], f"{path}.{key}", causes)
    if "fileKeyRef" in source:
        _file_ref(source["fileKeyRef"], f"{path}.fileKeyRef", causes)
    if count == 0:
        causes.invalid(path, "", _SOURCES)
    elif variable.get("value"):
        causes.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        causes.invalid(path, "", "may not have more than one field specified at a time")


def _key_ref(ref: Mapping[str, Any], path: str, causes: Causes) -> None:
    causes.check(subdomain, ref.get("name", ""), f"{path}.name")
    if key := ref.get("key", ""):
        causes.check(config_key, key, f"{path}.key")
    else:
        causes.required(f"{path}.key")


def _file_ref(ref: Mapping[str, Any], path: str, causes: Causes) -> None:
    for key, rule in (("key", env_name), ("volumeName", dns_label)):
        if value := ref.get(key, ""):
            causes.check(rule, value, f"{path}.{key}")
        else:
            causes.required(f"{path}.{key}")
    if file := ref.get("path", ""):
        check_no_backsteps(file, f"{path}.path", causes)
    else:
        causes.required(f"{path}.path")


def field_ref(ref: Mapping[str, Any], allowed: Sequence[str], path: str, causes: Causes) -> None:
    """A reference to a field of the pod, or to one label or annotation, as `metadata.labels['app']`."""
    version, field = ref.get("apiVersion", ""), ref.get("fieldPath", "")
    if not version:
        causes.required(f"{path}.apiVersion")
        return
    if not field:
        causes.required(f"{path}.fieldPath")
        return
    where = f"{path}.fieldPath"
    if version != "v1":
        causes.invalid(where, field, f"error converting fieldPath: unsupported pod version: {version}")
        return
    base, bracket, key = field.partition("['")
    if bracket and key.endswith("']"):
        _subscripted(field, base, key[:-2], path, causes)
        return
    if field == "spec.host":
        field = "spec.nodeName"
    if field not in _FIELDS:
        causes.invalid(where, field, f"error converting fieldPath: field label not supported: {field}")
    elif field not in allowed:
        causes.not_supported(where, field, allowed)


def _subscripted(field: str, base: str, key: str, path: str, causes: Causes) -> None:
    if base == "metadata.annotations":
        causes.check(qualified_name_problems, key.lower(), path)
    elif base == "metadata.labels":
        causes.check(qualified_name_problems, key, path)
    else:
        detail = f"error converting fieldPath: field label does not support subscript: {field}"
        causes.invalid(f"{path}.fieldPath", field, detail)


def resource_ref(ref: Mapping[str, Any], path: str, causes: Causes, *, volume: bool = False) -> None:
    name = ref.get("resource", "")
    if volume and not ref.get("containerName"):
        causes.required(f"{path}.containerName")
    elif not name:
        causes.required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE):
        causes.not_supported(f"{path}.resource", name, _RESOURCES)
    divisor = ref.get("divisor")
    if divisor is None or not nanos(divisor):
        return
    if name.startswith(_HUGE):
        if text_of(divisor) not in _SIZES:
            causes.invalid(f"{path}.divisor", name, _HUGE_DIVISORS)
    elif name in _RESOURCES:
        supported, detail = _DIVISORS[name.partition(".")[2]]
        if text_of(divisor) not in supported:
            causes.invalid(f"{path}.divisor", name, detail)


def environment_from(sources: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    for index, source in enumerate(sources):
        if prefix := source.get("prefix", ""):
            causes.check(env_name, prefix, f"{path}[{index}].prefix")
        count = 0
        for key in ("configMapRef", "secretRef"):
            if key not in source:
                continue
            count += 1
            name = source[key].get("name", "")
            causes.require(name, f"{path}[{index}].{key}.name")
            for problem in prefix_problems(subdomain, name) if name else ():
                causes.invalid(f"{path}[{index}].{key}.name", name, problem)
        if count == 0:
            causes.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif count > 1:
            causes.invalid(path, "", "may not have more than one field specified at a time")
