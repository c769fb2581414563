"""This machine, as a node says of itself: what it has, what it is called, and whether it is short of something."""

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
from situate.agent.log_server import CERTIFICATE, Endpoint
from situate.agent.node_objects import HOSTNAME
from situate.wire.bodies import seconds_time

__all__ = ["Facts", "Pressure", "body_of", "facts", "images_of", "node_name", "pressure"]

PODS: Final = 110
MOST_IMAGES: Final = 50
RESERVED_BYTES: Final = 100 << 20
"""Of memory: below this it is short, and so much of it is not given to pods."""
SHORT_DISK_BYTES: Final = 1 << 30
SHORT_PIDS: Final = 0.05
"""Of all process numbers: when fewer are free, the machine is short of them."""
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
ANYWHERE: Final = ("192.0.2.1", 9)
"""An address for documentation: nothing is sent there."""

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
    """The machine's name as a name of Kubernetes."""
    name = re.sub(r"[^a-z0-9.-]+", "-", (said or socket.gethostname()).lower()).strip("-.")
    return name[:63] or "node"


def facts(directory: Path) -> Facts:
    return Facts(
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=_memory()["MemTotal"],
        disk_bytes=shutil.disk_usage(directory).total,
        address=_address(),
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


def body_of(
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
    """The Node. `before`: its status as it was last said. `pods`: what it runs. `endpoint`: where its logs are."""
    now = seconds_time(now_ns)
    held = {one["type"]: one for one in before.get("conditions", ())}
    conditions = [
        _condition(held, kind, getattr(short, what), bad if getattr(short, what) else good, "", now)
        for kind, bad, good, what in _PRESSURES
    ]
    conditions.append(_condition(held, "Ready", True, "KubeletReady", "the agent is ready to run pods", now))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                HOSTNAME: name,
                "kubernetes.io/os": known.info["operatingSystem"],
                "kubernetes.io/arch": known.info["architecture"],
                **labels,
            },
            **({} if endpoint is None else {"annotations": {CERTIFICATE: endpoint.fingerprint}}),
        },
        "spec": {},
        "status": {
            "capacity": known.capacity(),
            "allocatable": known.allocatable(),
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": known.address}, {"type": "Hostname", "address": name}],
            "nodeInfo": dict(known.info),
            **images_of(pods),
            **({} if endpoint is None else {"daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint.port}}}),
        },
    }


def images_of(pods: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the pods here name as their images. Nothing is pulled, so nothing has a size."""
    named = sorted({one["image"] for pod in pods for one in pod["spec"].get("containers", ()) if one.get("image")})
    return {"images": [{"names": [name]} for name in named[:MOST_IMAGES]]} if named else {}


def _condition(
    held: Mapping[str, Mapping[str, Any]], kind: str, value: bool, reason: str, message: str, now: str
) -> dict[str, Any]:
    status, old = "True" if value else "False", held.get(kind, {})
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message or reason,
        "lastHeartbeatTime": now,
        "lastTransitionTime": old.get("lastTransitionTime", now) if old.get("status") == status else now,
    }


def _memory() -> dict[str, int]:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return {line.partition(":")[0]: int(line.split()[1]) << 10 for line in lines if line.endswith("kB")}


def _address() -> str:
    """Of the interface that leads out, or the loopback if none does."""
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
