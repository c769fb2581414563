"""What the Pod Security Standards allow a pod: each check with the versions of Kubernetes in which it changed.

The texts are those of Kubernetes. `check` is pure; who asks, and what follows, is in `pod_security`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

from situate.core.model.field_errors import quoted

PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
NEWEST: Final = 35
"""The minor version in which a check changed last. Later versions, and `latest`, mean this one."""


class PolicyViolation(NamedTuple):
    """What a pod has that is not allowed."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Fields: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Fields, Fields], PolicyViolation | None]
"""Of a pod's metadata and spec."""
Containers: TypeAlias = list[str]
"""Names."""


class VersionedCheck(NamedTuple):
    since: tuple[tuple[int, Check], ...]
    """Each minor version from which on a check holds, ascending."""
    replaces: str = ""
    """The baseline check that `restricted` does without where this one holds."""

    def at(self, minor: int) -> Check | None:
        return next((check for since, check in reversed(self.since) if since <= minor), None)


def findings(level: str, minor: int, metadata: Fields, spec: Fields) -> list[PolicyViolation]:
    """What a level, as of a minor version of Kubernetes 1, does not allow of a pod."""
    checks = _checks(level, min(minor, NEWEST))
    return [found for check in checks if (found := check(metadata, spec)) is not None]


@lru_cache(maxsize=2 * (NEWEST + 1))
def _checks(level: str, minor: int) -> tuple[Check, ...]:
    """Those of baseline first; each group by name, as the message has them."""
    if level == PRIVILEGED:
        return ()
    restricted = _RESTRICTED if level == RESTRICTED else {}
    replaced = {one.replaces for one in restricted.values() if one.at(minor) is not None}
    kept = [one for name, one in sorted(_BASELINE.items()) if name not in replaced]
    kept += [one for _, one in sorted(restricted.items())]
    return tuple(check for one in kept if (check := one.at(minor)) is not None)


# -- parts of a pod, and of a message ----------------------------------------------------------------------------------


def _containers(spec: Fields) -> Iterator[Fields]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def _security(owner: Fields) -> Fields:
    return owner.get("securityContext") or {}


def _name(container: Fields) -> str:
    return str(container.get("name", ""))


def _in_quotes(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _some(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _named(names: Containers) -> str:
    return f"{_some('container', len(names))} {_in_quotes(names)}"


def _setters(pod: bool, names: Containers) -> str:
    """Who sets a value: the pod, containers, or both."""
    return " and ".join([*(["pod"] if pod else []), *([_named(names)] if names else [])])


def _unless_windows(check: Check, metadata: Fields, spec: Fields) -> PolicyViolation | None:
    """Containers of Windows do not have what the check asks for."""
    return None if (spec.get("os") or {}).get("name") == "windows" else check(metadata, spec)


def _unless_user_namespace(check: Check, metadata: Fields, spec: Fields) -> PolicyViolation | None:
    """Root in a user namespace is nobody outside."""
    return None if spec.get("hostUsers") is False else check(metadata, spec)


# -- baseline ----------------------------------------------------------------------------------------------------------

_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_SELINUX_TYPES: Final = ("", "container_t", "container_init_t", "container_kvm_t")
_SYSCTLS: Final = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
)
_SYSCTLS_27: Final = (*_SYSCTLS, "net.ipv4.ip_local_reserved_ports")
_SYSCTLS_29: Final = (
    *_SYSCTLS_27,
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
)
_SYSCTLS_32: Final = (*_SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
_PROFILES: Final = ("RuntimeDefault", "Localhost")


def _apparmor(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    def forbidden(owner: Fields) -> str | None:
        profile = _security(owner).get("appArmorProfile")
        return profile.get("type", "") if profile is not None and profile.get("type") not in _PROFILES else None

    of_pod = forbidden(spec)
    found = [(_name(one), kind) for one in _containers(spec) if (kind := forbidden(one)) is not None]
    annotations = sorted(
        f"{key}={quoted(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_APPARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    setters = [_setters(of_pod is not None, [name for name, _ in found])] if of_pod is not None or found else []
    setters += [_some("annotation", len(annotations))] if annotations else []
    if not setters:
        return None
    kinds = sorted({kind for _, kind in found} | ({of_pod} if of_pod is not None else set())) + annotations
    detail = f"{' and '.join(setters)} must not set AppArmor profile type to {_in_quotes(kinds)}"
    return PolicyViolation(_some("forbidden AppArmor profile", len(kinds)), detail)


def _added(spec: Fields, allowed: Iterable[str]) -> str:
    """What must not be said of capabilities that containers add, or nothing."""
    names, capabilities = [], set[str]()
    for container in _containers(spec):
        wrong = set((_security(container).get("capabilities") or {}).get("add") or ()).difference(allowed)
        if wrong:
            names.append(_name(container))
            capabilities |= wrong
    if not names:
        return ""
    return f"{_named(names)} must not include {_in_quotes(sorted(capabilities))} in securityContext.capabilities.add"


def _default_capabilities(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    said = _added(spec, _CAPABILITIES)
    return PolicyViolation("non-default capabilities", said) if said else None


def _host_namespaces(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    found = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return PolicyViolation("host namespaces", ", ".join(found)) if found else None


def _host_paths(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    names = [_name(volume) for volume in spec.get("volumes") or () if "hostPath" in volume]
    return PolicyViolation("hostPath volumes", f"{_some('volume', len(names))} {_in_quotes(names)}") if names else None


def _host_ports(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    names, ports = [], set[str]()
    for container in _containers(spec):
        used = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if used:
            names.append(_name(container))
            ports |= used
    if not names:
        return None
    verb = "uses" if len(names) == 1 else "use"
    return PolicyViolation(
        "hostPort", f"{_named(names)} {verb} {_some('hostPort', len(ports))} {', '.join(sorted(ports))}"
    )


def _hosts_asked(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    """A probe or hook with a host of its own makes the kubelet a proxy to wherever the pod likes."""
    names, hosts = set[str](), set[str]()
    for container in _containers(spec):
        asking = [container.get(field) for field in ("livenessProbe", "readinessProbe", "startupProbe")]
        asking += [(container.get("lifecycle") or {}).get(field) for field in ("postStart", "preStop")]
        for handler in asking:
            for way in ("httpGet", "tcpSocket"):
                host = ((handler or {}).get(way) or {}).get("host")
                if host:
                    names.add(_name(container))
                    hosts.add(host)
    if not names:
        return None
    what = _some("probe or lifecycle host", len(hosts))
    verb = "uses" if len(names) == 1 else "use"
    detail = f"{_named(sorted(names))} {verb} {what} {_in_quotes(sorted(hosts))}"
    return PolicyViolation("probe or lifecycle host", detail)


def _privileged(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    names = [_name(one) for one in _containers(spec) if _security(one).get("privileged")]
    return (
        PolicyViolation("privileged", f"{_named(names)} must not set securityContext.privileged=true")
        if names
        else None
    )


def _proc_mount(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    found = [(_name(one), mount) for one in _containers(spec) if (mount := _security(one).get("procMount"))]
    found = [(name, mount) for name, mount in found if mount != "Default"]
    if not found:
        return None
    mounts = _in_quotes(sorted({mount for _, mount in found}))
    names = [name for name, _ in found]
    return PolicyViolation("procMount", f"{_named(names)} must not set securityContext.procMount to {mounts}")


def _selinux(allowed: tuple[str, ...], metadata: Fields, spec: Fields) -> PolicyViolation | None:
    types, users, roles = set[str](), False, False

    def is_forbidden(owner: Fields) -> bool:
        nonlocal users, roles
        options = _security(owner).get("seLinuxOptions") or {}
        kind, user, role = options.get("type", ""), bool(options.get("user")), bool(options.get("role"))
        if kind not in allowed:
            types.add(kind)
        users, roles = users or user, roles or role
        return kind not in allowed or user or role

    of_pod = is_forbidden(spec)
    names = [_name(one) for one in _containers(spec) if is_forbidden(one)]
    if not of_pod and not names:
        return None
    data = [f"{_some('type', len(types))} {_in_quotes(sorted(types))}"] if types else []
    data += ["user may not be set"] if users else []
    data += ["role may not be set"] if roles else []
    said = f"{_setters(of_pod, names)} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return PolicyViolation("seLinuxOptions", said)


def _seccomp_annotations(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    annotations = metadata.get("annotations") or {}
    keys = {_SECCOMP_OF_POD, *(_SECCOMP_OF_CONTAINER + _name(one) for one in _containers(spec))}
    found = [
        f"{key}={quoted(annotations[key])}"
        for key in sorted(keys & annotations.keys())
        if annotations[key] not in ("runtime/default", "docker/default")
        and not annotations[key].startswith("localhost/")
    ]
    if not found:
        return None
    return PolicyViolation("seccompProfile", f"forbidden {_some('annotation', len(found))} {', '.join(sorted(found))}")


def _seccomp_type(owner: Fields) -> str | None:
    profile = _security(owner).get("seccompProfile")
    return None if profile is None else profile.get("type", "")


def _seccomp(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    of_pod = _seccomp_type(spec)
    found = [(_name(one), kind) for one in _containers(spec) if (kind := _seccomp_type(one)) is not None]
    found = [(name, kind) for name, kind in found if kind not in _PROFILES]
    pod_is_wrong = of_pod is not None and of_pod not in _PROFILES
    if not found and not pod_is_wrong:
        return None
    kinds = sorted({kind for _, kind in found} | ({of_pod} if pod_is_wrong and of_pod is not None else set()))
    who = _setters(pod_is_wrong, [name for name, _ in found])
    return PolicyViolation(
        "seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {_in_quotes(kinds)}"
    )


def _sysctls(allowed: tuple[str, ...], metadata: Fields, spec: Fields) -> PolicyViolation | None:
    names = [_name(one) for one in _security(spec).get("sysctls") or ()]
    found = [name for name in names if name not in allowed]
    return PolicyViolation("forbidden sysctls", ", ".join(found)) if found else None


def _host_process(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    def asks(owner: Fields) -> bool:
        return bool((_security(owner).get("windowsOptions") or {}).get("hostProcess"))

    who = _setters(asks(spec), [_name(one) for one in _containers(spec) if asks(one)])
    return (
        PolicyViolation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true")
        if who
        else None
    )


# -- restricted --------------------------------------------------------------------------------------------------------

_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_OTHER_VOLUMES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def _escalation(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    names = [_name(one) for one in _containers(spec) if _security(one).get("allowPrivilegeEscalation") is not False]
    if not names:
        return None
    detail = f"{_named(names)} must set securityContext.allowPrivilegeEscalation=false"
    return PolicyViolation("allowPrivilegeEscalation != false", detail)


def _dropped_capabilities(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    keeping = [
        _name(one)
        for one in _containers(spec)
        if "ALL" not in ((_security(one).get("capabilities") or {}).get("drop") or ())
    ]
    details = [f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if added := _added(spec, ("NET_BIND_SERVICE",)):
        details.append(added)
    return PolicyViolation("unrestricted capabilities", "; ".join(details)) if details else None


def _volume_types(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    names, types = [], set[str]()
    for volume in spec.get("volumes") or ():
        if not any(kind in volume for kind in _VOLUMES):
            names.append(_name(volume))
            types.add(next((kind for kind in _OTHER_VOLUMES if kind in volume), "unknown"))
    if not names:
        return None
    verb = "uses" if len(names) == 1 else "use"
    what = f"{_some('restricted volume type', len(types))} {_in_quotes(sorted(types))}"
    return PolicyViolation(
        "restricted volume types", f"{_some('volume', len(names))} {_in_quotes(names)} {verb} {what}"
    )


def _not_root(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    reason, field = "runAsNonRoot != true", "runAsNonRoot"
    of_pod = _security(spec).get(field)
    who = _setters(of_pod is False, [_name(one) for one in _containers(spec) if _security(one).get(field) is False])
    if who:
        return PolicyViolation(reason, f"{who} must not set securityContext.runAsNonRoot=false")
    silent = [_name(one) for one in _containers(spec) if _security(one).get(field) is None]
    if of_pod or not silent:
        return None
    return PolicyViolation(reason, f"pod or {_named(silent)} must set securityContext.runAsNonRoot=true")


def _not_user_0(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    names = [_name(one) for one in _containers(spec) if _security(one).get("runAsUser") == 0]
    who = _setters(_security(spec).get("runAsUser") == 0, names)
    return PolicyViolation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def _seccomp_required(metadata: Fields, spec: Fields) -> PolicyViolation | None:
    if (wrong := _seccomp(metadata, spec)) is not None:
        return wrong
    silent = [_name(one) for one in _containers(spec) if _seccomp_type(one) is None]
    if _seccomp_type(spec) is not None or not silent:
        return None
    wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return PolicyViolation("seccompProfile", f"pod or {_named(silent)} {wanted}")


_BASELINE: Final = {
    "appArmorProfile": VersionedCheck(((0, _apparmor),)),
    "capabilities_baseline": VersionedCheck(((0, _default_capabilities),)),
    "hostNamespaces": VersionedCheck(((0, _host_namespaces),)),
    "hostPathVolumes": VersionedCheck(((0, _host_paths),)),
    "hostPorts": VersionedCheck(((0, _host_ports),)),
    "hostProbesAndHostLifecycle": VersionedCheck(((34, _hosts_asked),)),
    "privileged": VersionedCheck(((0, _privileged),)),
    "procMount": VersionedCheck(((0, _proc_mount), (35, partial(_unless_user_namespace, _proc_mount)))),
    "seLinuxOptions": VersionedCheck(
        ((0, partial(_selinux, _SELINUX_TYPES)), (31, partial(_selinux, (*_SELINUX_TYPES, "container_engine_t"))))
    ),
    "seccompProfile_baseline": VersionedCheck(((0, _seccomp_annotations), (19, _seccomp))),
    "sysctls": VersionedCheck(
        (
            (0, partial(_sysctls, _SYSCTLS)),
            (27, partial(_sysctls, _SYSCTLS_27)),
            (29, partial(_sysctls, _SYSCTLS_29)),
            (32, partial(_sysctls, _SYSCTLS_32)),
        )
    ),
    "windowsHostProcess": VersionedCheck(((0, _host_process),)),
}
_RESTRICTED: Final = {
    "allowPrivilegeEscalation": VersionedCheck(((8, _escalation), (25, partial(_unless_windows, _escalation)))),
    "capabilities_restricted": VersionedCheck(
        ((22, _dropped_capabilities), (25, partial(_unless_windows, _dropped_capabilities))), "capabilities_baseline"
    ),
    "procMount_restricted": VersionedCheck(((35, _proc_mount),), "procMount"),
    "restrictedVolumes": VersionedCheck(((0, _volume_types),), "hostPathVolumes"),
    "runAsNonRoot": VersionedCheck(((0, _not_root), (35, partial(_unless_user_namespace, _not_root)))),
    "runAsUser": VersionedCheck(((23, _not_user_0), (35, partial(_unless_user_namespace, _not_user_0)))),
    "seccompProfile_restricted": VersionedCheck(
        ((19, _seccomp_required), (25, partial(_unless_windows, _seccomp_required))), "seccompProfile_baseline"
    ),
}
