"""Restricts a process to its container's rights: user, groups, capabilities, system calls, writable paths.

Called between fork and exec. Imports little, because every shim loads this.
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
from collections.abc import Sequence
from typing import Any, Final

PR_CAPBSET_READ: Final = 23
PR_CAPBSET_DROP: Final = 24
PR_SET_SECCOMP: Final = 22
PR_SET_NO_NEW_PRIVS: Final = 38
SECCOMP_MODE_FILTER: Final = 2
MOST_CAPABILITIES: Final = 64

LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_ABI: Final = 3
"""The first version that also covers truncation: Linux 6.2."""
LANDLOCK_WRITE_FILE: Final = 1 << 1
LANDLOCK_TRUNCATE: Final = 1 << 14
LANDLOCK_WRITES: Final = LANDLOCK_WRITE_FILE | sum(1 << bit for bit in range(4, 14)) | LANDLOCK_TRUNCATE
"""All rights that change a file system: write, remove, make, link and truncate."""
DEVICES: Final = ("/dev", "/proc")
"""Where a process may write although its root is read-only: devices, not files."""

CLONE_NAMESPACES: Final = 0x7E020000
X32: Final = 0x40000000
EPERM, ENOSYS = 1, 38
ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The audit number of each architecture, and its column in FORBIDDEN."""
CLONE: Final = (56, 220)
CLONE3: Final = (435, 435)
FORBIDDEN: Final = {
    "acct": (163, 89), "add_key": (248, 217), "bpf": (321, 280), "clock_adjtime": (305, 266),
    "clock_settime": (227, 112), "delete_module": (176, 106), "finit_module": (313, 273), "init_module": (175, 105),
    "iopl": (172, None), "ioperm": (173, None), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "keyctl": (250, 219),
    "lookup_dcookie": (212, 18), "mount": (165, 40), "move_mount": (429, 429), "open_tree": (428, 428),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "nfsservctl": (180, 42), "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241), "pivot_root": (155, 41), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "reboot": (169, 142), "request_key": (249, 218), "setns": (308, 268), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "swapon": (167, 224), "swapoff": (168, 225),
    "syslog": (103, 116), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282), "vhangup": (153, 58),
}  # fmt: skip
"""The system calls that RuntimeDefault refuses: nearly those of containerd's default profile."""

_libc = ctypes.CDLL(None, use_errno=True)


def confine(security: dict[str, Any]) -> None:
    """Change to the container's user, for good. Raises OSError.

    `groups`: the supplementary groups; None: as they are. `capabilities`: the only ones that the process and its
    children can ever have; None: as they are. `writable`: the only paths that it may write to; None: all.
    """
    if security["no_new_privileges"]:
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if security["writable"] is not None:
        restrict_writes((*DEVICES, *security["writable"]))
    if security["seccomp"]:
        filter_system_calls()
    kept: list[int] | None = security["capabilities"]
    if kept is not None:  # the exec that follows takes them from the process, too
        for capability in held_capabilities() - set(kept):
            _prctl(PR_CAPBSET_DROP, capability)
    if security["groups"] is not None:
        os.setgroups(security["groups"])
    if security["group"] is not None:
        os.setresgid(*[security["group"]] * 3)
    if security["user"] is not None:
        os.setresuid(*[security["user"]] * 3)  # clears the capabilities of a user other than root


# -- capabilities ----------------------------------------------------------------------------------------------------


def held_capabilities() -> set[int]:
    """The bounding set of this process."""
    return {one for one in range(MOST_CAPABILITIES) if _libc.prctl(PR_CAPBSET_READ, one, 0, 0, 0) == 1}


# -- a read-only root ------------------------------------------------------------------------------------------------


def landlock_version() -> int:
    """0: this kernel has no Landlock, or it is off."""
    return max(0, int(_libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)))


def restrict_writes(paths: Sequence[str]) -> None:
    """Let this process and its children write below these paths only. Paths that do not exist are left out."""
    wanted = struct.pack("<Q", LANDLOCK_WRITES)
    rules = int(_libc.syscall(LANDLOCK_CREATE_RULESET, wanted, ctypes.c_size_t(len(wanted)), 0))
    _check(rules, "landlock")
    for path in paths:
        try:
            below = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        is_directory = stat.S_ISDIR(os.fstat(below).st_mode)
        allowed = LANDLOCK_WRITES if is_directory else LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE
        rule = struct.pack("<Qi", allowed, below)
        _check(_libc.syscall(LANDLOCK_ADD_RULE, rules, 1, rule, 0), "landlock")
        os.close(below)
    _check(_libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0), "landlock")
    os.close(rules)


# -- system calls ----------------------------------------------------------------------------------------------------


def has_system_call_filter() -> bool:
    return platform.machine() in ARCHITECTURES and os.path.exists("/proc/sys/kernel/seccomp")  # noqa: PTH110


def filter_system_calls() -> None:
    """Refuse FORBIDDEN, new namespaces, and the calls of other architectures."""
    program = _program(platform.machine())
    kept = ctypes.create_string_buffer(program)
    described = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(kept))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(described))


def _program(machine: str) -> bytes:
    """As classic BPF. A jump is relative to the next instruction; the last three return."""
    load, equal, above, masked, back = 0x20, 0x15, 0x35, 0x45, 0x06
    audit, column = ARCHITECTURES[machine]
    numbers = [number for one in FORBIDDEN.values() if (number := one[column]) is not None]
    total = 4 + len(numbers) + 1 + 3 + 3
    allow, refuse, unknown = total - 3, total - 2, total - 1
    made = [_plain(load, 4), _jump(equal, 0, unknown - 2, audit), _plain(load, 0)]
    made.append(_jump(above, unknown - 4, 0, X32))
    for number in numbers:
        made.append(_jump(equal, refuse - len(made) - 1, 0, number))
    made.append(_jump(equal, unknown - len(made) - 1, 0, CLONE3[column]))  # its flags are in memory: libc uses clone
    made.append(_jump(equal, 0, allow - len(made) - 1, CLONE[column]))
    made.append(_plain(load, 16))
    made.append(_jump(masked, refuse - len(made) - 1, 0, CLONE_NAMESPACES))
    made += [_plain(back, 0x7FFF0000), _plain(back, 0x00050000 | EPERM), _plain(back, 0x00050000 | ENOSYS)]
    return b"".join(made)


def _plain(code: int, value: int) -> bytes:
    return struct.pack("<HxxI", code, value)


def _jump(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def _prctl(option: int, value: int, more: Any = 0) -> None:
    _check(_libc.prctl(option, value, more, 0, 0), "prctl")


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
