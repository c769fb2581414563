"""Control groups, on a copy of the files that the kernel shows."""

from pathlib import Path

import pytest

from situate.agent.cgroups import find
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
