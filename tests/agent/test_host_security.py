"""What a node's own process does to its machine and to itself: as root, as root of a container, and as a user."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from situate.agent import host_security
from situate.agent.host_security import NEEDED, NOBODY_ID, SecurityError, node_security, own_security, trust_statement
from situate.agent.security import CAPABILITIES

HIDDEN = """
import ctypes
from situate.agent.host_security import hide_process

hide_process()
print(ctypes.CDLL(None).prctl(3))  # PR_GET_DUMPABLE
"""
USER = 54_321
"""Who has no account here."""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "Process":
    return Process(monkeypatch, tmp_path / "status")


class Process:
    """What the kernel says of this process."""

    def __init__(self, patch: pytest.MonkeyPatch, status: Path) -> None:
        self._patch = patch
        self._status = status
        patch.setattr(host_security, "OWN_CAPABILITIES", status)

    def runs(self, user: int, without: tuple[str, ...] = ()) -> None:
        held = sum(1 << number for number, name in enumerate(CAPABILITIES) if name not in without)
        self._status.write_text(f"Name:\tpython\nCapPrm:\t0\nCapEff:\t{held:016x}\nCapBnd:\t0\n")
        for name in ("getuid", "geteuid"):
            self._patch.setattr(os, name, lambda: user)


def test_a_process_hides_its_memory_and_environment_from_others_of_its_user() -> None:
    said = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "0\n"


def test_root_runs_containers_as_nobody_and_another_user_as_itself(process: Process) -> None:
    process.runs(0)
    found = node_security()
    assert (found.is_root, found.user, found.users) == (True, NOBODY_ID, "unprivileged")
    process.runs(USER)
    found = node_security()
    assert (found.is_root, found.user, found.users) == (False, USER, "any")


@pytest.mark.parametrize("missing", NEEDED)
def test_root_of_a_container_without_a_needed_capability_is_no_root(process: Process, missing: str) -> None:
    process.runs(0, without=(missing,))
    assert not node_security().is_root


def test_root_does_not_need_every_capability(process: Process) -> None:
    process.runs(0, without=("SYS_BOOT", "NET_ADMIN"))
    assert node_security().is_root


def test_only_root_runs_containers_as_somebody_else(process: Process) -> None:
    process.runs(USER)
    assert node_security(str(USER)).user == USER
    with pytest.raises(SecurityError, match="--run-as-user 12345: only root can run containers as another user"):
        node_security("12345")
    process.runs(0)
    assert node_security("12345").user == 12345


def test_a_user_is_a_name_or_a_number(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.runs(0)
    account = pwd.struct_passwd(("web", "x", 33, 34, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwnam", {"web": account}.__getitem__)
    monkeypatch.setattr(pwd, "getpwuid", {33: account}.__getitem__)
    for said in ("web", "33"):
        assert (node_security(said).user, node_security(said).group) == (33, 34)
    assert (node_security("1001").user, node_security("1001").group) == (1001, 1001)
    assert (node_security().user, node_security().group) == (NOBODY_ID, NOBODY_ID)
    largest = (1 << 31) - 1
    assert node_security(str(largest)).user == largest
    for said in ("no-such-user", str(1 << 31), "9" * 30):
        with pytest.raises(SecurityError, match=f"--run-as-user {said}: this machine has no such user"):
            node_security(said)


def test_containers_may_be_root_only_if_the_node_says_so(process: Process) -> None:
    process.runs(0)
    assert node_security("0").users == "any"
    assert node_security("1001").users == "unprivileged"
    assert node_security("1001", "any").users == "any"


def test_accounts_of_this_machine_are_known(process: Process) -> None:
    process.runs(0)
    found = own_security()
    assert found.group_of(0) == 0
    assert found.group_of(USER) is None
    assert found.group_of(1 << 70) is None
    assert found.is_group(0)
    assert not found.is_group(USER)
    assert not found.is_group(1 << 70)


def test_the_warning_says_whether_containers_can_read_the_nodes_keys(process: Process) -> None:
    process.runs(0)
    assert trust_statement(node_security("54321")).endswith("on this machine as user 54321")
    assert trust_statement(node_security("0")).endswith("as user root (0), who can also read this node's keys")
    process.runs(USER)
    assert trust_statement(node_security()).endswith(f"as user {USER}, who can also read this node's keys")
