"""What a confined process can do: the system call filter, call by call, and the rest in a child process."""

import ctypes
import errno
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from situate.agent import confinement
from situate.agent.confinement import (
    ARCHITECTURES,
    CLONE,
    CLONE3,
    CLONE_NAMESPACES,
    DEVICES,
    FORBIDDEN,
    LANDLOCK_ABI,
    X32,
    confine,
    filter_system_calls,
    held_capabilities,
    landlock_version,
    restrict_writes,
)

AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
LANDLOCK = pytest.mark.skipif(landlock_version() < LANDLOCK_ABI, reason="this kernel has no Landlock")
ALLOWED, REFUSED, UNKNOWN = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
CLONE_NEWUSER, CLONE_VM_SIGCHLD = 0x10000000, 0x111


def verdict(machine: str, number: int, *, audit: int | None = None, flags: int = 0) -> int:
    """What the kernel would do with a system call: the filter, run as classic BPF."""
    program = confinement._program(machine)
    code: list[tuple[int, int, int, int]] = list(struct.iter_unpack("<HBBI", program))
    data = struct.pack("<IIQQ", number, ARCHITECTURES[machine][0] if audit is None else audit, 0, flags)
    at, loaded = 0, 0
    while True:
        operation, yes, no, value = code[at]
        match operation:
            case 0x20:
                (loaded,) = struct.unpack_from("<I", data, value)
                jump = 0
            case 0x15:
                jump = yes if loaded == value else no
            case 0x35:
                jump = yes if loaded >= value else no
            case 0x45:
                jump = yes if loaded & value else no
            case 0x06:
                return value
            case _:
                raise AssertionError(f"unknown instruction {operation:#x}")
        at += 1 + jump


@pytest.fixture(params=sorted(ARCHITECTURES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_filter_refuses_the_forbidden_calls_and_no_others(machine: str) -> None:
    column = ARCHITECTURES[machine][1]
    forbidden = {one[column] for one in FORBIDDEN.values()} - {None}
    refused = {number for number in range(500) if verdict(machine, number) == REFUSED}
    assert refused == forbidden
    others = set(range(500)) - forbidden - {CLONE3[column]}
    assert {verdict(machine, number) for number in others} == {ALLOWED}


def test_a_process_can_be_cloned_but_not_into_another_namespace(machine: str) -> None:
    column = ARCHITECTURES[machine][1]
    assert verdict(machine, CLONE[column], flags=CLONE_VM_SIGCHLD) == ALLOWED
    for bit in range(32):
        flag = 1 << bit
        expected = REFUSED if flag & CLONE_NAMESPACES else ALLOWED
        assert verdict(machine, CLONE[column], flags=flag) == expected
    assert CLONE_NEWUSER & CLONE_NAMESPACES
    assert verdict(machine, CLONE3[column]) == UNKNOWN, "its flags cannot be seen, so libc must use clone"


def test_calls_of_another_architecture_are_unknown(machine: str) -> None:
    for audit in {0x40000003, *(audit for audit, _ in ARCHITECTURES.values())} - {ARCHITECTURES[machine][0]}:
        assert verdict(machine, 0, audit=audit) == UNKNOWN
    assert verdict(machine, X32) == verdict(machine, X32 + 165) == UNKNOWN
    assert verdict(machine, X32 - 1) == ALLOWED


# -- in a child process ----------------------------------------------------------------------------------------------


def in_child(work: Callable[[], Any]) -> Any:
    """What a function returns in a child process, which may give up its rights."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            try:
                found = work()
            except OSError as error:
                found = errno.errorcode[error.errno or 0]
            os.write(writing, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read()
    os.waitpid(pid, 0)
    return json.loads(said)


def status_of() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def confined(**security: Any) -> dict[str, str]:
    given = {
        "no_new_privileges": False, "writable": None, "seccomp": False, "capabilities": None, "groups": None,
        "group": None, "user": None, **security,
    }  # fmt: skip

    def work() -> dict[str, str]:
        confine(given)
        return status_of()

    found: dict[str, str] = in_child(work)
    return found


def test_what_is_not_asked_for_stays_as_it_is() -> None:
    own, found = in_child(status_of), confined()
    for name in ("Uid", "Gid", "Groups", "CapBnd", "CapEff", "NoNewPrivs", "Seccomp"):
        assert found[name] == own[name]


def test_no_new_privileges() -> None:
    assert confined(no_new_privileges=True)["NoNewPrivs"] == "1"


@AS_ROOT
def test_the_user_the_group_and_the_groups_are_changed_for_good() -> None:
    found = confined(user=54321, group=54322, groups=[54323])
    assert (found["Uid"].split(), found["Gid"].split()) == (["54321"] * 4, ["54322"] * 4)
    assert found["Groups"] == "54323"
    assert int(found["CapEff"], 16) == 0
    assert confined(user=0, group=0, groups=[])["Groups"] == ""


@AS_ROOT
def test_only_the_named_capabilities_are_kept() -> None:
    kept = sorted(held_capabilities())[1:4]
    assert int(confined(capabilities=kept)["CapBnd"], 16) == sum(1 << one for one in kept)
    assert int(confined(capabilities=[])["CapBnd"], 16) == 0


def test_held_capabilities_are_those_of_the_bounding_set() -> None:
    held = sum(1 << one for one in held_capabilities())
    assert held == int(status_of()["CapBnd"], 16)


def test_the_filter_is_real() -> None:
    def work() -> list[int]:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(38, 1, 0, 0, 0)  # without new privileges, everybody may set a filter
        filter_system_calls()
        result = libc.syscall(FORBIDDEN["setns"][0 if os.uname().machine == "x86_64" else 1], -1, 0)
        return [result, ctypes.get_errno(), int(status_of()["Seccomp"])]

    assert in_child(work) == [-1, errno.EPERM, 2]


def attempts(tmp_path: Path, *writable: str) -> list[str]:
    """Which changes below the directory succeed after it was closed but for these paths."""

    def attempt(change: Callable[[], object]) -> str:
        try:
            change()
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        return "done"

    def work() -> list[str]:
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        restrict_writes(writable)
        left = len(os.listdir("/proc/self/fd")) - files  # noqa: PTH208
        top = tmp_path / "open"
        return [
            attempt(lambda: (tmp_path / "file").write_text("x")),
            attempt((tmp_path / "made").mkdir),
            attempt(lambda: os.truncate(tmp_path / "file", 0)),
            attempt((tmp_path / "file").read_bytes),
            attempt(lambda: (top / "file").write_text("x")),
            attempt((top / "made").mkdir),
            attempt(lambda: os.truncate(top / "file", 0)),
            attempt((top / "file").unlink),
            str(left),
        ]

    (tmp_path / "open").mkdir(exist_ok=True)
    (tmp_path / "file").write_text("kept")
    (tmp_path / "open" / "file").write_text("kept")
    found: list[str] = in_child(work)
    return found


@LANDLOCK
def test_writes_are_possible_below_the_named_directories_only(tmp_path: Path) -> None:
    closed, opened = ["EACCES"] * 3 + ["done"], ["done"] * 4
    assert attempts(tmp_path, str(tmp_path / "none"), str(tmp_path / "open")) == [*closed, *opened, "0"]


@LANDLOCK
def test_a_single_file_can_be_written_and_truncated_but_not_removed(tmp_path: Path) -> None:
    found = attempts(tmp_path, str(tmp_path / "open" / "file"))
    assert found == [*["EACCES"] * 3, "done", "done", "EACCES", "done", "EACCES", "0"]


@LANDLOCK
def test_a_process_with_a_read_only_root_can_write_to_devices_and_where_it_is_told(tmp_path: Path) -> None:
    given = {
        "no_new_privileges": True, "writable": [str(tmp_path)], "seccomp": False, "capabilities": None, "groups": None,
        "group": None, "user": None,
    }  # fmt: skip
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")

    def work() -> list[bool]:
        confine(given)
        Path("/dev/null").write_text("x")
        (tmp_path / "file").write_text("x")
        try:
            outside.write_text("x")
        except PermissionError:
            return [True]
        return [False]

    assert "/dev" in DEVICES
    assert in_child(work) == [True]
    assert not outside.exists()


def test_a_call_that_fails_says_what_and_why() -> None:
    with pytest.raises(OSError, match="prctl: Invalid argument") as raised:
        confinement._prctl(-1, 0)
    assert raised.value.errno == errno.EINVAL
