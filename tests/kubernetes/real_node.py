"""A real kubelet as the node of situate's own control plane, and kubectl to speak to both.

with joined(folder) as node: node.kubectl(...)
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import parts
from kubernetes.kubelet_node import Containerd, Kubelet
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import free_ports, wait_until

WITHIN_S = 120.0


class Node:
    """The cluster with its node, and kubectl."""

    def __init__(self, cluster: OwnCluster, runtime: Containerd, kubelet: Kubelet) -> None:
        self.cluster, self.runtime, self.kubelet = cluster, runtime, kubelet

    def kubectl(self, *words: str, stdin: str = "", check: bool = True) -> str:
        command = [str(parts.folder() / "kubectl"), "--kubeconfig", str(self.cluster.home / "kubeconfig"), *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=WITHIN_S, check=False)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    @contextmanager
    def forwarded(self, to: str, port: int, *words: str) -> Iterator[int]:
        """A local port from which kubectl forwards to this one of a pod or a Service."""
        local = free_ports(1)[0]
        program, config = str(parts.folder() / "kubectl"), str(self.cluster.home / "kubeconfig")
        command = [program, "--kubeconfig", config, "port-forward", to, f"{local}:{port}", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as forwarding:
            try:
                assert forwarding.stdout is not None
                forwarding.stdout.readline()
                yield local
            finally:
                forwarding.terminate()

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def pods(self, app: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("pods", "-l", f"app={app}")["items"]
        return found

    def running(self, app: str, count: int) -> bool:
        ready = [one for one in self.pods(app) if one["status"].get("containerStatuses", [{}])[0].get("ready")]
        return len(ready) == count

    def containers(self, app: str) -> dict[str, tuple[str, int]]:
        """The id and the restarts of each pod's container."""
        found = {}
        for pod in self.pods(app):
            status = pod["status"]["containerStatuses"][0]
            found[pod["metadata"]["name"]] = (status["containerID"], status["restartCount"])
        return found

    def ready(self) -> bool:
        conditions = [each for one in self.get("nodes")["items"] for each in one["status"]["conditions"]]
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


@contextmanager
def joined(home: Path, *flags: str) -> Iterator[Node]:
    """`situate server` with these flags, and a kubelet that has joined it by TLS bootstrap and is Ready."""
    all_flags = ["--port", str(free_ports(1)[0]), "--with", "scheduler", "--with", "controllers", *flags]
    with OwnCluster(home / "server", *all_flags) as cluster, Containerd(home / "containerd") as runtime:
        command = [sys.executable, "-m", "situate", "token", "create", "--dir", str(cluster.home)]
        token = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        bootstrap = home / "bootstrap.kubeconfig"
        bootstrap.write_text(token)
        with Kubelet(home / "kubelet", runtime, cluster.certificate, bootstrap=bootstrap) as kubelet:
            node = Node(cluster, runtime, kubelet)
            wait_until(node.ready, "the node to be ready", WITHIN_S)
            yield node
