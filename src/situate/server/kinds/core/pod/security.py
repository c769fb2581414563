"""Validation of security contexts of pods and containers.

Windows options are checked only where they exclude Linux options.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from situate.server.kinds.core.pod.paths import descending
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes, forbidden
from situate.server.kinds.names import user_or_group

_POD: Final = FieldChecks("core.v1.PodSecurityContext")
_CONTAINER: Final = FieldChecks("core.v1.SecurityContext")
_SYSCTL = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_TEXT: Final = rf"^({_SYSCTL}[\./])*{_SYSCTL}$"
_is_sysctl = re.compile(_SYSCTL_TEXT, re.ASCII).fullmatch
_MAX_SYSCTL: Final = 253
_MAX_APP_ARMOR: Final = 4095
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_CONTEXT: Final = [
    "capabilities",
    "privileged",
    "seLinuxOptions",
    "windowsOptions",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "readOnlyRootFilesystem",
    "allowPrivilegeEscalation",
    "procMount",
    "seccompProfile",
    "appArmorProfile",
]
_WINDOWS: Final = "cannot be set for a windows pod"
_WINDOWS_POD: Final = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
]
_WINDOWS_SPEC: Final = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_WINDOWS_CONTAINER: Final = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
]


def every_container(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each container with its path below the spec, in kube-apiserver's order."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key, ())):
            yield f"{key}[{index}]", container


def pod_security(context: Mapping[str, Any], spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        if key in context:
            causes.check(user_or_group, context[key], f"{path}.{key}")
    for index, group in enumerate(context.get("supplementalGroups", ())):
        causes.check(user_or_group, group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        causes.invalid(f"{path}.shareProcessNamespace", True, detail)
    if "sysctls" in context:
        _sysctls(context["sysctls"], spec, f"{path}.sysctls", causes)
    _POD.check(context, path, causes, "fsGroupChangePolicy")
    _seccomp(context, path, causes)
    _app_armor(context, path, causes)
    _POD.check(context, path, causes, "supplementalGroupsPolicy")
    causes.one_of(context.get("seLinuxChangePolicy", "Recursive"), ("Recursive",), f"{path}.seLinuxChangePolicy")


def _sysctls(found: list[Mapping[str, Any]], spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    names: set[str] = set()
    for index, one in enumerate(found):
        name, where = one.get("name", ""), f"{path}[{index}].name"
        if not name:
            causes.required(where)
        elif len(name) > _MAX_SYSCTL or not _is_sysctl(name):
            causes.invalid(where, name, f"must have at most {_MAX_SYSCTL} characters and match regex {_SYSCTL_TEXT}")
        elif name in names:
            causes.duplicate(where, name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            causes.invalid(where, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and dotted.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            causes.invalid(where, name, "may not be specified when 'hostIPC' is true")
        names.add(name)


def _seccomp(context: Mapping[str, Any], path: str, causes: Causes) -> None:
    profile = context.get("seccompProfile")
    if profile is None:
        return
    kind, where = profile.get("type", ""), f"{path}.seccompProfile"
    if not kind:
        causes.required(f"{where}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        causes.not_supported(f"{where}.type", kind, _PROFILES)
    local = profile.get("localhostProfile")
    if kind == "Localhost":
        if local is None:
            causes.required(f"{where}.localhostProfile", "must be set when seccomp type is Localhost")
        else:
            descending(local, f"{where}.localhostProfile", causes)
    elif local is not None:
        shown = {"Type": kind, "LocalhostProfile": local}
        causes.invalid(f"{where}.localhostProfile", shown, "can only be set when seccomp type is Localhost")


def _app_armor(context: Mapping[str, Any], path: str, causes: Causes) -> None:
    profile = context.get("appArmorProfile")
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    where = f"{path}.appArmorProfile"
    if kind == "Localhost":
        _app_armor_file(local, f"{where}.localhostProfile", causes)
    elif not kind:
        causes.required(f"{where}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        causes.not_supported(f"{where}.type", kind, _PROFILES)
    elif local is not None:
        causes.invalid(f"{where}.localhostProfile", local, "can only be set when AppArmor type is Localhost")


def _app_armor_file(local: str | None, path: str, causes: Causes) -> None:
    if local is None or not local:
        causes.required(path, "must be set when AppArmor type is Localhost")
        return
    if local.strip() != local:
        causes.invalid(path, local, "must not be padded with whitespace")
    if len(local.encode()) > _MAX_APP_ARMOR:
        causes.too_long(path, _MAX_APP_ARMOR)


def container_security(context: Mapping[str, Any], host_users: bool, path: str, causes: Causes) -> None:
    for key in ("runAsUser", "runAsGroup"):
        if key in context:
            causes.check(user_or_group, context[key], f"{path}.{key}")
    _CONTAINER.check(context, path, causes, "procMount")
    if host_users and context.get("procMount") == "Unmasked":
        causes.invalid(f"{path}.procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`")
    _seccomp(context, path, causes)
    if context.get("allowPrivilegeEscalation") is False:
        detail = "cannot set `allowPrivilegeEscalation` to false and "
        if context.get("privileged"):
            causes.invalid(path, _context_shown(context), detail + "`privileged` to true")
        for one in context.get("capabilities", {}).get("add", ()):
            if one == "CAP_SYS_ADMIN":
                causes.invalid(path, _context_shown(context), detail + "`capabilities.Add` CAP_SYS_ADMIN")
    _app_armor(context, path, causes)


def _context_shown(context: Mapping[str, Any]) -> dict[str, Any]:
    """The whole context, as kube-apiserver prints it: with the field names of its internal structs."""
    found: dict[str, Any] = {
        key[:1].upper() + key[1:] if key != "seLinuxOptions" else "SELinuxOptions": None for key in _CONTEXT
    }
    for key, value in context.items():
        name = key[:1].upper() + key[1:]
        if name in found:
            inside = {"Add": value.get("add"), "Drop": value.get("drop")} if key == "capabilities" else value
            found[name] = inside
    return found


def user_namespace(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    """A pod with its own user namespace must not share other namespaces with the host."""
    if spec.get("hostUsers", True):
        return
    detail = "when `hostUsers` is false"
    for key, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(key):
            causes.forbidden(f"{path}.{shown}", detail)
    for where, container in every_container(spec):
        if container.get("volumeDevices"):
            causes.forbidden(f"{path}.{where}.volumeDevices", detail)


def operating_system(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    name = spec["os"].get("name", "")
    if not name:
        causes.required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        causes.not_supported(f"{path}.os", name, ("linux", "windows"))
    elif name == "linux":
        _linux(spec, path, causes)
    else:
        _windows(spec, path, causes)


def _linux(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    detail = "windows options cannot be set for a linux pod"
    if "windowsOptions" in spec.get("securityContext", ()):
        causes.forbidden(f"{path}.securityContext.windowsOptions", detail)
    for where, container in every_container(spec):
        if "windowsOptions" in container.get("securityContext", ()):
            causes.forbidden(f"{path}.{where}.securityContext.windowsOptions", detail)


def _windows(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    context = spec.get("securityContext", {})
    causes.extend(forbidden(f"{path}.securityContext.{key}", _WINDOWS) for key in _WINDOWS_POD if key in context)
    causes.extend(forbidden(f"{path}.{key}", _WINDOWS) for key in _WINDOWS_SPEC if key in spec)
    for where, container in every_container(spec):
        inside = container.get("securityContext", {})
        for key in _WINDOWS_CONTAINER:
            if key in inside:
                causes.forbidden(f"{path}.{where}.securityContext.{key}", _WINDOWS)
