"""Translates a pod's security context into rights of a container's processes. Pure, except for the user database.

Every field is applied, refused with ContainerConfigError, or has no effect on a process: docs/guides/nodes.md has the
table. A field that this module does not know is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from situate.agent.environment import ContainerConfigError
from situate.agent.runtime import ProcessSecurity

ContainerUsers: TypeAlias = Literal["default", "unprivileged", "any"]
"""Which users a pod may name: only the node's user for containers; all but root and system accounts; or any."""

CANNOT: Final = "this node does not support {}: {}"
NOT_ROOT: Final = "its agent is not root"
ROOT: Final = 0
LAST_SYSTEM_ID: Final = 999
"""Users and groups up to this number are system accounts, if they exist."""
DEFAULT_CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
    "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
)  # fmt: skip
"""The default capabilities of a root container in containerd."""
CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip
"""In the kernel's order."""
KNOWN_FIELDS: Final = frozenset({
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "fsGroupChangePolicy", "privileged",
    "procMount", "readOnlyRootFilesystem", "runAsGroup", "runAsNonRoot", "runAsUser", "seLinuxChangePolicy",
    "seLinuxOptions", "seccompProfile", "supplementalGroups", "supplementalGroupsPolicy", "sysctls", "windowsOptions",
})  # fmt: skip
APPARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class NodeSecurity:
    """Which rights this node's agent can give to containers, and which users pods may name."""

    user: int
    """Of containers whose pods name none."""
    group: int
    is_root: bool = False
    """Whether the agent can change users, groups and capabilities."""
    users: ContainerUsers = "any"
    groups: frozenset[int] = frozenset()
    """The agent's own groups: all that its containers can have, if it is not root."""
    capabilities: frozenset[int] = frozenset()
    has_landlock: bool = False
    has_seccomp: bool = False
    group_of: Callable[[int], int | None] = lambda _user: None
    """The primary group of a user of this machine."""
    is_group: Callable[[int], bool] = lambda _group: False
    """Whether this machine has such a group."""


def process_security(pod: Mapping[str, Any], container: Mapping[str, Any], node: NodeSecurity) -> ProcessSecurity:
    """The rights of a container's processes; `writable` is empty if its root is read-only. Raises
    ContainerConfigError."""
    asked = _Asked(pod, container)
    _refuse_unsupported(asked)
    user = _user(asked, node)
    _check_non_root(asked, user)
    escalates = bool(asked.own("allowPrivilegeEscalation") or asked.own("privileged"))
    _check_privileged(asked, node)
    seccomp = _seccomp(asked, node)
    read_only = bool(asked.own("readOnlyRootFilesystem"))
    if read_only and not node.has_landlock:
        raise _refusal("readOnlyRootFilesystem", "it needs Landlock, which Linux has since 6.2, if it is on")
    if (read_only or seccomp) and escalates and not node.is_root:
        field = "readOnlyRootFilesystem" if read_only else "seccompProfile"
        raise _refusal(f"{field} together with allowPrivilegeEscalation", NOT_ROOT)
    group, groups = _groups(asked, user, node)
    return ProcessSecurity(
        user=user if node.is_root else None,
        group=group if node.is_root else None,
        groups=groups if node.is_root else None,
        capabilities=_capabilities(asked, node, escalates=escalates),
        no_new_privileges=not escalates,
        writable=() if read_only else None,
        seccomp=seccomp,
    )


def fs_group(pod: Mapping[str, Any]) -> int | None:
    found: int | None = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    return found


class _Asked:
    """The security context of a container: its own fields, then the pod's."""

    def __init__(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> None:
        self.pod = pod
        self.name: str = container["name"]
        self.pods: Mapping[str, Any] = pod["spec"].get("securityContext") or {}
        self.containers: Mapping[str, Any] = container.get("securityContext") or {}

    def own(self, field: str) -> Any:
        return self.containers.get(field)

    def either(self, field: str) -> Any:
        found = self.containers.get(field)
        return self.pods.get(field) if found is None else found

    @property
    def named(self) -> str:
        meta = self.pod["metadata"]
        return f'(pod: "{meta["name"]}_{meta["namespace"]}({meta["uid"]})", container: {self.name})'


def _refusal(field: str, why: str) -> ContainerConfigError:
    return ContainerConfigError(CANNOT.format(field, why))


def _refuse_unsupported(asked: _Asked) -> None:
    """Refuse what no process of this machine can have."""
    for field in sorted({*asked.pods, *asked.containers} - KNOWN_FIELDS):
        raise _refusal(f"securityContext.{field}", "it is an unknown field")
    spec = asked.pod["spec"]
    if asked.either("seLinuxOptions"):
        raise _refusal("seLinuxOptions", "it sets no SELinux labels")
    if asked.pods.get("sysctls"):
        raise _refusal("sysctls", "sysctls affect the whole machine")
    if (asked.own("procMount") or "Default") != "Default":
        raise _refusal(f"procMount {asked.own('procMount')}", "it mounts nothing")
    if (asked.either("appArmorProfile") or {}).get("type", "Unconfined") != "Unconfined":
        raise _refusal("appArmorProfile", "it sets no AppArmor profiles")
    annotated = (asked.pod["metadata"].get("annotations") or {}).get(f"{APPARMOR_ANNOTATION}{asked.name}", "unconfined")
    if annotated != "unconfined":
        raise _refusal(f"the AppArmor profile {annotated}", "it sets no AppArmor profiles")
    if spec.get("hostUsers") is False:
        raise _refusal("hostUsers: false", "it has no user namespaces")
    if spec.get("runtimeClassName"):
        raise _refusal(f"runtimeClassName {spec['runtimeClassName']}", "its only runtime is the process runtime")


# -- users and groups ------------------------------------------------------------------------------------------------


def _user(asked: _Asked, node: NodeSecurity) -> int:
    wanted: int | None = asked.either("runAsUser")
    if wanted is None or wanted == node.user:
        return node.user
    if asked.either("runAsNonRoot") and wanted == ROOT:
        return ROOT  # refused below, in the kubelet's words
    if not node.is_root:
        raise _refusal(f"runAsUser {wanted}", f"{NOT_ROOT}, so its containers run as user {node.user}")
    if node.users == "default":
        raise _refusal(f"runAsUser {wanted}", f"its containers run as user {node.user} (--container-users default)")
    if node.users == "unprivileged" and _is_system(wanted, node.group_of(wanted) is not None):
        raise _refusal(f"runAsUser {wanted}", "it runs no container as root or as a system account (--container-users)")
    return wanted


def _check_non_root(asked: _Asked, user: int) -> None:
    if not asked.either("runAsNonRoot") or user != ROOT:
        return
    if asked.either("runAsUser") is not None:
        raise ContainerConfigError(f"container's runAsUser breaks non-root policy {asked.named}")
    raise ContainerConfigError(f"container has runAsNonRoot and image will run as root {asked.named}")


def _groups(asked: _Asked, user: int, node: NodeSecurity) -> tuple[int, tuple[int, ...]]:
    """The group of a container's processes and their supplementary groups: never the agent's own.

    Without runAsGroup, it is the user's group on this machine, or the one with the user's number.
    """
    named = node.group_of(user)
    primary = node.group if user == node.user else user if named is None else named
    wanted: int | None = asked.either("runAsGroup")
    more = [*(asked.pods.get("supplementalGroups") or ())]
    if (volumes := asked.pods.get("fsGroup")) is not None:
        more.append(volumes)
    for field, group in [("runAsGroup", wanted), *(("supplementalGroups or fsGroup", one) for one in more)]:
        if group is not None and group != primary:
            _check_group(field, group, node)
    return primary if wanted is None else wanted, tuple(dict.fromkeys(more))


def _check_group(field: str, group: int, node: NodeSecurity) -> None:
    if not node.is_root:
        if field == "runAsGroup" or group not in node.groups:
            raise _refusal(f"{field} {group}", f"{NOT_ROOT}, so its containers have its own groups")
    elif node.users == "default":
        raise _refusal(f"{field} {group}", f"its containers have group {node.group} (--container-users default)")
    elif node.users == "unprivileged" and _is_system(group, node.is_group(group)):
        raise _refusal(f"{field} {group}", "no container gets root's group or a system group (--container-users)")


def _is_system(number: int, exists: bool) -> bool:
    return number == ROOT or (number <= LAST_SYSTEM_ID and exists)


# -- capabilities and system calls -----------------------------------------------------------------------------------


def _check_privileged(asked: _Asked, node: NodeSecurity) -> None:
    if asked.own("privileged") and not (node.is_root and node.users == "any"):
        raise _refusal("privileged: true", NOT_ROOT if not node.is_root else "it needs --container-users any")


def _capabilities(asked: _Asked, node: NodeSecurity, *, escalates: bool) -> tuple[int, ...] | None:
    """As in Kubernetes, a user other than root gets none of them: they only limit what a program can add."""
    said = asked.own("capabilities") or {}
    added, dropped = _numbers(said.get("add") or (), node), _numbers(said.get("drop") or (), node)
    for missing in sorted(added - node.capabilities):
        raise _refusal(f"capabilities.add {CAPABILITIES[missing]}", "its agent does not have it")
    if not node.is_root:
        if dropped and escalates:
            raise _refusal("capabilities.drop together with allowPrivilegeEscalation", NOT_ROOT)
        return None  # it has none, and can gain none
    if asked.own("privileged"):
        return tuple(sorted(node.capabilities))
    if "ALL" in _names(said.get("drop") or ()):
        return tuple(sorted(added))
    default = _numbers(DEFAULT_CAPABILITIES, node) & node.capabilities
    return tuple(sorted((default | added) - dropped))


def _names(capabilities: Iterable[str]) -> list[str]:
    return [one.upper().removeprefix("CAP_") for one in capabilities]


def _numbers(capabilities: Sequence[str], node: NodeSecurity) -> set[int]:
    found: set[int] = set()
    for name in _names(capabilities):
        if name == "ALL":
            found |= node.capabilities
        elif name in CAPABILITIES:
            found.add(CAPABILITIES.index(name))
        else:
            raise _refusal(f"the capability {name}", "no capability has this name")
    return found


def _seccomp(asked: _Asked, node: NodeSecurity) -> bool:
    profile = (asked.either("seccompProfile") or {}).get("type", "Unconfined")
    if profile == "Unconfined":
        return False
    if profile == "RuntimeDefault" and node.has_seccomp:
        return True
    raise _refusal(
        f"seccompProfile {profile}", "it has no profiles of its own" if node.has_seccomp else "no seccomp here"
    )
