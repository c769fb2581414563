"""What this process can give to containers on this machine, and who they run as."""

from __future__ import annotations

import ctypes
import grp
import os
import pwd
from pathlib import Path
from typing import Final

from situate.agent.confinement import LANDLOCK_ABI, has_system_call_filter, held_capabilities, landlock_version
from situate.agent.security import CAPABILITIES, ContainerUsers, NodeSecurity

NOBODY: Final = "nobody"
"""The user that containers run as if the agent is root, unless --run-as-user names another."""
NOBODY_ID: Final = 65_534
PR_SET_DUMPABLE: Final = 4
OWN_CAPABILITIES: Final = Path("/proc/self/status")
NEEDED: Final = ("SETUID", "SETGID", "SETPCAP", "CHOWN", "KILL")
"""The capabilities without which root cannot change users."""


TRUST: Final = "anyone who may create pods in this cluster can run commands on this machine as user {}"
OWNER: Final = ", who can also read this node's keys"


class SecurityError(Exception):
    """The settings cannot be applied; the message is one line."""


def own_security() -> NodeSecurity:
    """Containers run as this process does, unless their pods say otherwise."""
    return _security(os.getuid(), os.getgid(), "any")


def node_security(run_as_user: str = "", users: ContainerUsers = "unprivileged") -> NodeSecurity:
    """Containers run as an unprivileged user if this process is root, and as this process otherwise.

    `run_as_user`: a name or a number; empty: the default. Raises SecurityError.
    """
    if not _is_root():
        if run_as_user and _account(run_as_user)[0] != os.getuid():
            raise SecurityError(f"--run-as-user {run_as_user}: only root can run containers as another user")
        return own_security()
    user, group = _account(run_as_user or NOBODY)
    return _security(user, group, "any" if user == 0 else users)


def user_name(user: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name} ({user})"
    except KeyError:
        return str(user)


def trust_statement(security: NodeSecurity) -> str:
    """A warning: who can run commands on this machine once it is a node."""
    return TRUST.format(user_name(security.user)) + (OWNER if security.user == os.geteuid() else "")


def hide_process() -> None:
    """Prevent other processes of this user from reading this one's memory and environment."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)


def _security(user: int, group: int, users: ContainerUsers) -> NodeSecurity:
    return NodeSecurity(
        user=user,
        group=group,
        is_root=_is_root(),
        users=users,
        groups=frozenset({os.getgid(), *os.getgroups()}),
        capabilities=frozenset(one for one in held_capabilities() if one < len(CAPABILITIES)),
        has_landlock=landlock_version() >= LANDLOCK_ABI,
        has_seccomp=has_system_call_filter(),
        group_of=_group_of,
        is_group=_is_group,
    )


def _is_root() -> bool:
    """Root of a restricted container may lack the rights of root."""
    if os.geteuid():
        return False
    lines = OWN_CAPABILITIES.read_text().splitlines()
    held = int(next(line.split()[1] for line in lines if line.startswith("CapEff:")), 16)
    return all(held >> CAPABILITIES.index(one) & 1 for one in NEEDED)


def _account(said: str) -> tuple[int, int]:
    """The user and group of a name or number."""
    try:
        found = pwd.getpwuid(int(said)) if said.isdecimal() else pwd.getpwnam(said)
    except (KeyError, OverflowError):
        if said.isdecimal() and int(said) < 1 << 31:
            return int(said), int(said)
        if said == NOBODY:
            return NOBODY_ID, NOBODY_ID
        raise SecurityError(f"--run-as-user {said}: this machine has no such user") from None
    return found.pw_uid, found.pw_gid


def _group_of(user: int) -> int | None:
    try:
        return pwd.getpwuid(user).pw_gid
    except (KeyError, OverflowError):
        return None


def _is_group(group: int) -> bool:
    try:
        grp.getgrgid(group)
    except (KeyError, OverflowError):
        return False
    return True
