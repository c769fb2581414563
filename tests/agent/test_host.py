"""This machine as a node."""

from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from agent.world import container, pod
from situate.agent import host
from situate.agent.host import (
    MOST_IMAGES,
    RESERVED_BYTES,
    SHORT_DISK_BYTES,
    Facts,
    Pressure,
    images_of,
    node_name,
    node_object,
    pressure,
)
from situate.agent.kubelet_server import Endpoint
from situate.server.kubelet.connector import FINGERPRINT

INFO = {"operatingSystem": "linux", "architecture": "amd64"}
FACTS = Facts(4, RESERVED_BYTES + (8 << 10), 3 << 20, "10.0.0.1", INFO)
Usage = namedtuple("Usage", "total used free")


def conditions(short: Pressure, before: dict[str, Any] | None = None) -> dict[str, tuple[str, str]]:
    made = node_object("n", FACTS, short, 0, {}, before or {})
    return {one["type"]: (one["status"], one["reason"]) for one in made["status"]["conditions"]}


def test_a_machine_with_enough_of_everything_is_ready() -> None:
    assert conditions(Pressure()) == {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID"),
        "Ready": ("True", "KubeletReady"),
    }


@pytest.mark.parametrize(
    "short, kind, reason",
    [
        (Pressure(memory=True), "MemoryPressure", "KubeletHasInsufficientMemory"),
        (Pressure(disk=True), "DiskPressure", "KubeletHasDiskPressure"),
        (Pressure(pids=True), "PIDPressure", "KubeletHasInsufficientPID"),
    ],
)
def test_what_a_machine_is_short_of(short: Pressure, kind: str, reason: str) -> None:
    assert conditions(short) == {**conditions(Pressure()), kind: ("True", reason)}


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    first = node_object("n", FACTS, Pressure(), 0, {}, {})["status"]
    again = node_object("n", FACTS, Pressure(disk=True), 60 * 10**9, {}, first)["status"]
    times = {one["type"]: one["lastTransitionTime"] for one in again["conditions"]}
    assert times["Ready"] == "1970-01-01T00:00:00Z"
    assert times["DiskPressure"] == "1970-01-01T00:01:00Z"


def test_what_pods_can_have_of_a_machine() -> None:
    assert FACTS.capacity() == {"cpu": "4", "memory": "102408Ki", "ephemeral-storage": "3072Ki", "pods": "110"}
    assert FACTS.allocatable() == {**FACTS.capacity(), "memory": "8Ki"}
    assert Facts(1, 1, 1, "", INFO).allocatable()["memory"] == "0Ki"


def test_where_logs_are_served_is_in_the_node() -> None:
    made = node_object("n", FACTS, Pressure(), 0, {}, {}, endpoint=Endpoint(1_234, "ab"))
    assert made["metadata"]["annotations"] == {FINGERPRINT: "ab"}
    assert made["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 1_234}}
    without = node_object("n", FACTS, Pressure(), 0, {}, {})
    assert "daemonEndpoints" not in without["status"]
    assert "annotations" not in without["metadata"]


def test_images_are_named_once_and_not_without_end() -> None:
    assert images_of([]) == {}
    several = [pod(container("c"), {"name": "d", "image": "b"}), pod({"name": "e", "image": "a"}, {"name": "f"})]
    assert images_of(several) == {"images": [{"names": [name]} for name in ("a", "b", "none")]}
    many = [pod({"name": "c", "image": f"image-{number:03}"}) for number in range(2 * MOST_IMAGES)]
    assert len(images_of(many)["images"]) == MOST_IMAGES


@pytest.mark.parametrize(
    "said, name",
    [("Host_1.Example", "host-1.example"), ("-a.", "a"), ("___", "node"), ("x" * 99, "x" * 63), ("a b", "a-b")],
)
def test_the_name_of_a_node_is_one_that_kubernetes_takes(said: str, name: str) -> None:
    assert node_name(said) == name


@pytest.mark.parametrize(
    "memory, disk, tasks, short",
    [
        pytest.param(RESERVED_BYTES, SHORT_DISK_BYTES, 950, Pressure(), id="just enough"),
        pytest.param(RESERVED_BYTES - 1, SHORT_DISK_BYTES, 0, Pressure(memory=True), id="too little memory"),
        pytest.param(RESERVED_BYTES, SHORT_DISK_BYTES - 1, 0, Pressure(disk=True), id="too little disk"),
        pytest.param(RESERVED_BYTES, SHORT_DISK_BYTES, 951, Pressure(pids=True), id="too many processes"),
        pytest.param(None, SHORT_DISK_BYTES, None, Pressure(), id="a kernel that says nothing"),
    ],
)
def test_when_a_machine_is_short_of_something(
    memory: int | None, disk: int, tasks: int | None, short: Pressure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"/proc/loadavg": f"0 0 0 1/{tasks} 7", "/proc/sys/kernel/pid_max": "1000"} if tasks is not None else {}
    monkeypatch.setattr(host, "_line", lambda path: said.get(path, ""))
    monkeypatch.setattr(host, "_memory", lambda: {} if memory is None else {"MemAvailable": memory})
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(0, 0, disk))
    assert pressure(tmp_path) == short


def test_a_kernel_without_a_limit_of_processes_is_not_short_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_line", {"/proc/loadavg": "0 0 0 1/900 7", "/proc/sys/kernel/pid_max": ""}.__getitem__)
    assert not pressure(tmp_path).pids
