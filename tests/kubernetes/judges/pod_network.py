"""A machine of its own for a kubelet: network, mounts and processes that end with it, and nothing that leaves it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

NODE_ADDRESS = "10.89.0.1"
NODE_NETWORK = "10.89.0.0/24"
PODS = "10.88.0.0/16"
SERVICES = "10.96.0.0/16"
LINK = "node0"
SYSCTLS = {"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"}


def alone(command: Sequence[str | Path]) -> list[str | Path]:
    """The command, in namespaces of its own. The shell is there to wait for orphans."""
    spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"]
    return ["unshare", *spaces, "sh", "-c", '"$@"; exit $?', "sh", *command]


def prepare() -> None:
    """Run it inside: loopback, an address for the node, and a route, without which nothing is sent to a Service."""
    Path("/run/netns").mkdir(exist_ok=True)
    _run("mount", "--make-rshared", "/")
    _run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", LINK, "type", "bridge")
    _run("ip", "address", "add", f"{NODE_ADDRESS}/24", "dev", LINK)
    _run("ip", "link", "set", LINK, "up")
    _run("ip", "route", "add", "default", "dev", LINK)
    for name, value in SYSCTLS.items():
        (Path("/proc/sys") / name).write_text(value)


def network(home: Path) -> dict[str, object]:
    """The plugins of pods' network: a bridge, and ports of the host."""
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": PODS}]],
        "dataDir": str(home / "ipam"),
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipMasq": False, "ipam": ipam}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=10)
