"""This machine as a node: its resources, its name, and its pressure conditions."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from situate import __version__
from situate.agent import node_objects
from situate.agent.kubelet_server import Endpoint
from situate.server.kubelet.connector import FINGERPRINT
from situate.wire.bodies import seconds_time

PODS: Final = 110
MOST_IMAGES: Final = 50
RESERVED_BYTES: Final = 100 << 20
"""Memory that is not given to pods. If less is available, the node is under memory pressure."""
SHORT_DISK_BYTES: Final = 1 << 30
SHORT_PIDS: Final = 0.05
"""Under PID pressure, less than this share of the process numbers is free."""
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
ANYWHERE: Final = ("192.0.2.1", 9)
"""An address from a documentation range; nothing is sent there."""

_PRESSURES: Final = (
    ("MemoryPressure", "KubeletHasInsufficientMemory", "KubeletHasSufficientMemory", "memory"),
    ("DiskPressure", "KubeletHasDiskPressure", "KubeletHasNoDiskPressure", "disk"),
    ("PIDPressure", "KubeletHasInsufficientPID", "KubeletHasSufficientPID", "pids"),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What does not change while the agent runs."""

    cpus: int
    memory_bytes: int
    disk_bytes: int
    address: str
    info: Mapping[str, str]

    def capacity(self) -> dict[str, str]:
        return {
            "cpu": str(self.cpus),
            "memory": f"{self.memory_bytes >> 10}Ki",
            "ephemeral-storage": f"{self.disk_bytes >> 10}Ki",
            "pods": str(PODS),
        }

    def allocatable(self) -> dict[str, str]:
        memory = max(0, self.memory_bytes - RESERVED_BYTES)
        return {**self.capacity(), "memory": f"{memory >> 10}Ki"}


@dataclass(frozen=True, slots=True)
class Pressure:
    memory: bool = False
    disk: bool = False
    pids: bool = False


def node_name(said: str = "") -> str:
    """The host name as a Kubernetes name."""
    name = re.sub(r"[^a-z0-9.-]+", "-", (said or socket.gethostname()).lower()).strip("-.")
    return name[:63] or "node"


def facts(directory: Path) -> Facts:
    return Facts(
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=_memory()["MemTotal"],
        disk_bytes=shutil.disk_usage(directory).total,
        address=own_address(),
        info={
            "architecture": _architecture(),
            "operatingSystem": "linux",
            "kubeletVersion": f"situate-{__version__}",
            "kubeProxyVersion": "",
            "osImage": _os_image(),
            "kernelVersion": platform.release(),
            "containerRuntimeVersion": f"process://{__version__}",
            "machineID": _line("/etc/machine-id"),
            "systemUUID": _line("/sys/class/dmi/id/product_uuid"),
            "bootID": _line("/proc/sys/kernel/random/boot_id"),
        },
    )


def pressure(directory: Path) -> Pressure:
    tasks = _line("/proc/loadavg").split()
    most = int(_line("/proc/sys/kernel/pid_max") or 0)
    busy = int(tasks[3].partition("/")[2]) if len(tasks) > 3 else 0
    return Pressure(
        memory=_memory().get("MemAvailable", RESERVED_BYTES) < RESERVED_BYTES,
        disk=shutil.disk_usage(directory).free < SHORT_DISK_BYTES,
        pids=bool(most) and busy > most * (1 - SHORT_PIDS),
    )


def node_object(
    name: str,
    known: Facts,
    short: Pressure,
    now_ns: int,
    labels: Mapping[str, str],
    before: Mapping[str, Any],
    *,
    pods: Iterable[Mapping[str, Any]] = (),
    endpoint: Endpoint | None = None,
) -> dict[str, Any]:
    """The Node of this machine. `before`: its status as last reported. `endpoint`: where the agent serves logs."""
    now = seconds_time(now_ns)
    held = {one["type"]: one for one in before.get("conditions", ())}
    conditions = [
        node_objects.node_condition(held, kind, getattr(short, what), bad if getattr(short, what) else good, "", now)
        for kind, bad, good, what in _PRESSURES
    ]
    ready = ("Ready", True, "KubeletReady", "the agent is ready to run pods", now)
    conditions.append(node_objects.node_condition(held, *ready))
    status = {"capacity": known.capacity(), "allocatable": known.allocatable(), "conditions": conditions}
    made = node_objects.node_object(name, known.address, known.info, labels, {**status, **images_of(pods)})
    if endpoint is not None:
        made["metadata"]["annotations"] = {FINGERPRINT: endpoint.fingerprint}
        made["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": endpoint.port}}
    return made


def images_of(pods: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The images that the pods name. Nothing is pulled, so none has a size."""
    named = sorted({one["image"] for pod in pods for one in pod["spec"].get("containers", ()) if one.get("image")})
    return {"images": [{"names": [name]} for name in named[:MOST_IMAGES]]} if named else {}


def _memory() -> dict[str, int]:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return {line.partition(":")[0]: int(line.split()[1]) << 10 for line in lines if line.endswith("kB")}


def own_address() -> str:
    """The address of the default interface, or the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(ANYWHERE)
            found: str = asked.getsockname()[0]
        except OSError:
            return "127.0.0.1"
    return found


def _architecture() -> str:
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


def _line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
