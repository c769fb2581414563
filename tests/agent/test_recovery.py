"""Nodes that are lost, with `--fast-recovery`: what may move runs elsewhere, in time, and never twice.

The nodes are agents in processes of their own, on this machine. All are lost at once: one agent is killed, one hangs,
one is cut off from the server, and of two that hang or are killed the clocks are wrong by 20 %. Each has a pod of a
Deployment, one of a StatefulSet, and one without a controller that asks to be rebound. Then the nodes come back.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.test_journey import Cluster, _as_node, until
from agent.world import PYTHON, processes_with
from situate.core.reconcile.nodes.eviction import REBIND
from situate.core.reconcile.nodes.fencing import DRIFT, FAST

STAYS = "stays"
RECOVERED_S = 30.0
SLACK_S = 10.0
"""This machine may be busy."""
CHUNK = 1 << 16
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SKEWED = """
import time

def skewed(real):
    return lambda *clock: BASE + (real(*clock) - BASE) * RATE

time.monotonic, time.clock_gettime = skewed(time.monotonic), skewed(time.clock_gettime)
"""


class Proxy:
    """Between an agent and the server. Once it is cut, nothing passes, and nobody is told."""

    def __init__(self, port: int) -> None:
        self.cut = threading.Event()
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(CHUNK):
                if not self.cut.is_set():
                    far.sendall(data)
        for one in (near, far):
            one.close()

    def close(self) -> None:
        self._listener.close()


@dataclass
class LostNode:
    name: str
    rate: float = 1.0
    """Of its clocks."""
    proxy: Proxy | None = None
    marks: list[str] = field(default_factory=list)
    """In the command lines of its pods."""


@dataclass
class Agents:
    cluster: Cluster
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def begin(self, node: LostNode) -> None:
        config = self.cluster.directory / f"{node.name}.kubeconfig"
        if not config.exists():
            _as_node(self.cluster, node.name).rename(config)
            if node.proxy is not None:
                body = yaml.safe_load(config.read_text())
                body["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{node.proxy.port}"
                config.write_text(yaml.safe_dump(body))
        words = ["node", "--process", "--name", node.name, "--dir", node.name, "--kubeconfig", str(config)]
        env = {**os.environ, **({"PYTHONPATH": self._skewed(node)} if node.rate != 1.0 else {})}
        self.processes[node.name] = subprocess.Popen(
            [sys.executable, "-m", "situate", *words], cwd=self.cluster.directory, env=env
        )

    def _skewed(self, node: LostNode) -> str:
        """A directory with a sitecustomize: the clocks of the agent and of its shims agree, and are wrong."""
        directory = self.cluster.directory / f"{node.name}-clock"
        directory.mkdir(exist_ok=True)
        made = directory / "sitecustomize.py"
        if not made.exists():
            now = time.clock_gettime(time.CLOCK_BOOTTIME)
            made.write_text(f"BASE, RATE = {now}, {node.rate}\n{SKEWED}")
        return os.pathsep.join([str(directory), *filter(None, [os.environ.get("PYTHONPATH", "")])])

    def end(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            process.wait(30)


def pod(mark: str, node: str) -> dict[str, Any]:
    """It prefers this node, and may run on the one that stays."""

    def on(*names: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": list(names)}]}

    container = {
        "name": "c",
        "image": "none",
        "command": [PYTHON, "-c", "import time; time.sleep(1000)", mark],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on(node, STAYS)]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": on(node)}],
    }
    return {
        "containers": [container],
        "affinity": {"nodeAffinity": affinity},
        "terminationGracePeriodSeconds": 1,
    }


def workloads(cluster: Cluster, node: LostNode) -> None:
    for kind in ("Deployment", "StatefulSet", "Pod"):
        mark = f"mark-{uuid.uuid4().hex}"
        node.marks.append(mark)
        name, labels = f"{kind.lower()}-{node.name}", {"app": "web"}
        if kind == "Pod":
            meta: dict[str, Any] = {"name": name, "labels": labels, "annotations": {REBIND: "true"}}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod(mark, node.name)}
            cluster.api("POST", "/api/v1/namespaces/default/pods", body)
            continue
        labels |= {"of": node.name, "kind": kind}
        template = {"metadata": {"labels": labels}, "spec": pod(mark, node.name)}
        spec: dict[str, Any] = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        if kind == "StatefulSet":
            spec["serviceName"] = name
        body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        cluster.api("POST", f"/apis/apps/v1/namespaces/default/{kind.lower()}s", body)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.situate("up", "--nodes", "1", "--fast-recovery", "--port", "0")
    try:
        # Nothing is placed on the hollow node.
        made.patch("/api/v1/nodes/node-1", {"spec": {"unschedulable": True}})
        yield made
    finally:
        made.situate("down", "--delete")


@contextlib.contextmanager
def watched(marks: list[str]) -> Iterator[Callable[[], dict[str, int]]]:
    """Counts the processes of each mark all the time; the most there were at any time."""
    most, over = dict.fromkeys(marks, 0), threading.Event()

    def watch() -> None:
        while not over.is_set():
            for mark in marks:
                most[mark] = max(most[mark], len(processes_with(mark)))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: dict(most)
    finally:
        over.set()
        thread.join()


def test_what_may_move_leaves_nodes_that_are_lost_within_30_s_and_never_runs_twice(cluster: Cluster) -> None:
    config = yaml.safe_load((cluster.directory / ".situate" / "kubeconfig").read_text())
    proxy = Proxy(int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2]))
    killed, hangs, cut = LostNode("killed"), LostNode("hangs"), LostNode("cut", proxy=proxy)
    slow, fast = LostNode("slow", rate=1 - DRIFT), LostNode("fast", rate=1 + DRIFT)
    lost, agents = [killed, hangs, cut, slow, fast], Agents(cluster)
    try:
        for one in (*lost, LostNode(STAYS)):
            agents.begin(one)
        until(lambda: len(cluster.api("GET", "/api/v1/nodes")["items"]) == len(lost) + 2)
        for one in lost:  # so that they are given up at once
            cluster.patch(f"/api/v1/nodes/{one.name}", {"metadata": {"labels": {ZONE: one.name}}})
            workloads(cluster, one)
        marks = [mark for one in lost for mark in one.marks]
        until(lambda: len(cluster.ready()) == len(marks))
        assert {one["spec"]["nodeName"] for one in cluster.ready()} == {one.name for one in lost}
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        until(
            lambda: (
                {one["spec"]["leaseDurationSeconds"] for one in cluster.api("GET", leases)["items"]}
                == {FAST.lease_ms // 1_000}
            )
        )
        with watched(marks) as most:
            # 1. All are lost.
            for one in (killed, fast):
                agents.processes[one.name].kill()
            for one in (hangs, slow):
                agents.processes[one.name].send_signal(signal.SIGSTOP)
            proxy.cut.set()
            begun = time.monotonic()
            deadline = begun + RECOVERED_S + SLACK_S
            while (there := [one["spec"]["nodeName"] for one in cluster.ready()]) != [STAYS] * len(marks):
                assert time.monotonic() < deadline, (there, cluster.pods())
                time.sleep(0.1)
            print(f"all run again after {time.monotonic() - begun:.1f} s")
            assert [len(processes_with(mark)) for mark in marks] == [1] * len(marks)
            # 2. They come back.
            for one in (hangs, slow):
                agents.processes[one.name].send_signal(signal.SIGCONT)
            proxy.cut.clear()
            for one in (killed, fast):
                agents.processes[one.name].wait(30)
                agents.begin(one)
            until(lambda: all("taints" not in cluster.api("GET", f"/api/v1/nodes/{one.name}")["spec"] for one in lost))
            uids = {one["metadata"]["uid"] for one in cluster.ready()}
            time.sleep(FAST.renew_ms / 1_000)
            assert {one["metadata"]["uid"] for one in cluster.ready()} == uids
            assert most() == dict.fromkeys(marks, 1)
        # 3. Everything is deleted.
        for kind, path in (("Deployment", "apis/apps/v1"), ("StatefulSet", "apis/apps/v1"), ("Pod", "api/v1")):
            cluster.api("DELETE", f"/{path}/namespaces/default/{kind.lower()}s")
        until(lambda: not any(processes_with(mark) for mark in marks))
    finally:
        agents.end()
        proxy.close()
