"""Ports of containers. All pods share the machine's ports, so the agent assigns each container port a free one.

A container finds its port in SITUATE_PORT_<NAME>, or in SITUATE_PORT_<containerPort> if the port has no name. It is the
containerPort itself if that is free; a hostPort is always kept. Probes use the assigned port.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from situate.agent.pod_lifecycle import containers_of

PORTS: Final = "ports"
"""The file in the pod's directory with its assigned ports."""
FIRST_PORT: Final = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")

Ports = dict[str, dict[str, int]]
"""Assigned ports, by container and containerPort."""


def known_ports(file: Path) -> Ports | None:
    """The ports assigned before; None: none yet."""
    try:
        found: Ports = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return found


def assign_ports(pod: Mapping[str, Any], taken: set[int], free: Callable[[int], int]) -> Ports:
    """`free` returns its argument if that port is free, else another; 0 asks for any."""
    made: Ports = {}
    for container, _ in containers_of(pod):
        for port in container.get("ports", ()):
            number = port["containerPort"]
            real = port.get("hostPort") or free(0 if number in taken else number)
            while real in taken and not port.get("hostPort"):
                real = free(0)
            taken.add(real)
            made.setdefault(container["name"], {})[str(number)] = real
    return made


def free_port(number: int, lowest: int = 0) -> int:
    """The port if nobody listens there and it is not below `lowest`, else a free one. Another process may take it a
    moment later."""
    number = number if number >= lowest else 0
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as asked:
        asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            asked.bind(("", number))
        except OSError:
            asked.bind(("", 0))
        found: int = asked.getsockname()[1]
    return found


def first_port_of(user: int) -> int:
    """The first port that a user may listen on."""
    try:
        return int(FIRST_PORT.read_text()) if user else 0
    except (OSError, ValueError):
        return 1_024


def port_variables(container: Mapping[str, Any], ports: Ports) -> dict[str, str]:
    own, found = ports.get(container["name"], {}), {}
    for port in container.get("ports", ()):
        label = port.get("name") or str(port["containerPort"])
        name = f"SITUATE_PORT_{label.upper().replace('-', '_')}"
        found[name] = str(own.get(str(port["containerPort"]), port["containerPort"]))
    return found


def ports_by_name(container: Mapping[str, Any], ports: Ports) -> dict[str | int, int]:
    own, found = ports.get(container["name"], {}), {}
    for port in container.get("ports", ()):
        real = own.get(str(port["containerPort"]), port["containerPort"])
        found[port["containerPort"]] = real
        if port.get("name"):
            found[port["name"]] = real
    return found
