"""Control groups, on a copy of the files that the kernel shows."""

import os
import signal
import time
from pathlib import Path

import pytest

from situate.agent import cgroups
from situate.agent.cgroups import KILL_ROUND_S, KILL_ROUNDS, MOST_US, Cgroups, find
from situate.agent.runtime import ResourceLimits


def kernel(tmp_path: Path, controllers: str) -> tuple[Path, Path]:
    own, root = tmp_path / "own", tmp_path / "root"
    own.write_text("1:name=systemd:/\n0::/slice/agent\n")
    group = root / "slice" / "agent"
    group.mkdir(parents=True)
    (group / "cgroup.controllers").write_text(controllers)
    return root, own


def test_a_container_gets_a_group_with_its_limits(tmp_path: Path) -> None:
    root, own = kernel(tmp_path, "cpuset cpu io memory pids")
    groups = find(root, own)
    assert groups is not None
    made = groups.make("u-1", "web", ResourceLimits(milli_cpu=250, memory_bytes=1 << 20), 64)
    assert made == root / "slice" / "agent" / "situate" / "u-1" / "web"
    for group in (made.parent, made.parent.parent, made.parent.parent.parent):
        assert (group / "cgroup.subtree_control").read_text() == "+cpu +memory +pids", "its children can be limited"
    written = {one.name: one.read_text() for one in made.iterdir()}
    assert written == {"cpu.max": "25000 100000", "memory.max": "1048576", "memory.oom.group": "1", "pids.max": "64"}


def test_what_is_not_limited_is_not_written(tmp_path: Path) -> None:
    root, own = kernel(tmp_path, "cpu memory pids")
    groups = find(root, own)
    assert groups is not None
    assert [one.name for one in groups.make("u", "c", ResourceLimits(), 0).iterdir()] == ["pids.max"]


@pytest.mark.parametrize("controllers", ["", "hugetlb", "cpu memory"], ids=["none", "another", "not all"])
def test_without_the_controllers_there_are_no_groups(controllers: str, tmp_path: Path) -> None:
    assert find(*kernel(tmp_path, controllers)) is None


def test_without_version_2_there_are_no_groups(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("4:memory:/x\n")
    assert find(tmp_path, tmp_path / "own") is None


# -- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits, expected",
    [
        pytest.param(ResourceLimits(milli_cpu=1), {"cpu.max": "1000 100000"}, id="the least that the kernel takes"),
        pytest.param(ResourceLimits(milli_cpu=11), {"cpu.max": "1100 100000"}, id="a little more"),
        pytest.param(ResourceLimits(milli_cpu=1 << 60), {"cpu.max": f"{MOST_US} 100000"}, id="the most processors"),
        pytest.param(
            ResourceLimits(memory_bytes=1 << 70),
            {"memory.max": str((1 << 63) - 1), "memory.oom.group": "1"},
            id="the most memory",
        ),
    ],
)
def test_limits_are_what_the_kernel_takes(limits: ResourceLimits, expected: dict[str, str], tmp_path: Path) -> None:
    made = Cgroups(tmp_path).make("u", "c", limits, 0)
    assert {one.name: one.read_text() for one in made.iterdir()} == {"pids.max": "max", **expected}


def test_groups_for_killing_only_have_no_limits(tmp_path: Path) -> None:
    made = Cgroups(tmp_path, limits=False).make("u", "c", ResourceLimits(milli_cpu=1, memory_bytes=1), 1)
    assert list(made.iterdir()) == []
    assert list(made.parent.iterdir()) == [made]


# -- which groups this process may use -------------------------------------------------------------------------------


def test_a_group_that_this_process_may_join_is_for_killing_only(tmp_path: Path) -> None:
    root, own = kernel(tmp_path, "hugetlb")
    group = root / "slice" / "agent"
    (group / "cgroup.procs").touch()
    assert find(root, own, "mine") is None, "it may not join the new one"
    (group / "mine" / "cgroup.procs").touch()
    groups = find(root, own, "mine")
    assert groups is not None
    assert not groups.limits
    assert not (group / "mine" / "cgroup.subtree_control").exists()
    (group / "cgroup.procs").unlink()
    assert find(root, own, "mine") is None, "it may not leave its own"


def test_a_group_with_processes_in_it_cannot_limit_others(tmp_path: Path) -> None:
    root, own = kernel(tmp_path, "cpu memory pids")
    group = root / "slice" / "agent"
    (group / "cgroup.subtree_control").mkdir()  # so that nobody can write to it
    assert find(root, own) is None
    for one in (group, group / "situate"):
        (one / "cgroup.procs").touch()
    groups = find(root, own)
    assert groups is not None
    assert not groups.limits


@pytest.mark.parametrize("both", [False, True])
def test_version_2_beside_version_1(both: bool, tmp_path: Path) -> None:
    root, own = kernel(tmp_path, "cpu memory pids")
    (root / "slice").rename(tmp_path / "slice")
    (root / "unified").mkdir()
    (tmp_path / "slice").rename(root / "slice" if both else root / "unified" / "slice")
    if both:
        (root / "cgroup.controllers").touch()
    groups = find(root, own)
    assert groups is not None
    assert groups.make("u", "c", ResourceLimits(), 0).is_relative_to(root / ("slice" if both else "unified"))


# -- the end of a group ----------------------------------------------------------------------------------------------


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The groups that were killed by their file."""
    found: list[Path] = []
    monkeypatch.setattr(cgroups, "kill_cgroup", lambda group: found.append(Path(group)))
    return found


def test_the_groups_of_a_pod_are_killed_and_removed(tmp_path: Path, killed: list[Path]) -> None:
    for pod, container in (("u", "a"), ("u", "b"), ("v", "c")):
        (tmp_path / pod / container).mkdir(parents=True)
    groups = Cgroups(tmp_path)
    groups.remove("u")
    assert sorted(killed) == [tmp_path / "u" / "a", tmp_path / "u" / "b"]
    assert [one.name for one in tmp_path.iterdir()] == ["v"]
    groups.remove("none")
    (tmp_path / "w" / "d").mkdir(parents=True)
    (tmp_path / "w" / "d" / "busy").touch()
    groups.remove("w")
    assert (tmp_path / "w" / "d").exists(), "a group with processes stays"


def test_groups_without_processes_are_pruned(tmp_path: Path) -> None:
    root = tmp_path / "situate"
    for pod, container in (("u", "a"), ("v", "b")):
        (root / pod / container).mkdir(parents=True)
    (root / "v" / "b" / "busy").touch()
    Cgroups(root).prune()
    assert [str(one.relative_to(root)) for one in sorted(root.rglob("*"))] == ["v", "v/b", "v/b/busy"]
    (root / "v" / "b" / "busy").unlink()
    Cgroups(root).prune()
    assert not root.exists()


def test_processes_that_outlive_the_file_are_killed_one_by_one(
    tmp_path: Path, killed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "u" / "c"
    (group / "below").mkdir(parents=True)
    signalled: list[tuple[int, int]] = []
    slept: list[float] = []

    def kill(pid: int, number: int) -> None:
        signalled.append((pid, number))
        raise ProcessLookupError

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            (group / "cgroup.procs").write_text("")

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(time, "sleep", sleep)
    (group / "cgroup.procs").write_text("11\n12\n")
    (group / "below" / "cgroup.procs").write_text("")
    Cgroups(tmp_path).kill("u", "c")
    assert killed == [group]
    assert signalled == [(11, signal.SIGKILL), (12, signal.SIGKILL)] * 2
    assert slept == [KILL_ROUND_S] * 2
    (group / "below" / "cgroup.procs").write_text("13\n")
    slept.clear()
    signalled.clear()
    Cgroups(tmp_path).kill("u", "c")
    assert signalled == [(13, signal.SIGKILL)] * KILL_ROUNDS, "it does not wait for ever"
