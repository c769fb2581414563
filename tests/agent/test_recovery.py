"""A machine that hangs, with `--fast-recovery`: its pods end by themselves, and run elsewhere, in time, never twice."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.test_journey import Cluster, _as_node, until
from agent.world import PYTHON, processes_with
from situate.core.reconcile.nodes.fencing import FAST

NAMES = ("a", "b")
RECOVERED_S = 30.0
SLACK_S = 10.0
"""This machine may be busy."""


@contextlib.contextmanager
def agent(cluster: Cluster, name: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A node that is this machine, under that name."""
    config = _as_node(cluster, name).rename(cluster.directory / f"{name}.kubeconfig")
    words = ["node", "--process", "--name", name, "--dir", name, "--kubeconfig", str(config)]
    with subprocess.Popen([sys.executable, "-m", "situate", *words], cwd=cluster.directory) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()


def deployment(mark: str) -> dict[str, object]:
    container = {
        "name": "c",
        "image": "none",
        "command": [PYTHON, "-c", "import time; time.sleep(1000)", mark],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.situate("up", "--nodes", "1", "--fast-recovery", "--port", "0")
    try:
        # The hollow node is there so that not all nodes are lost at once; nothing is placed on it.
        made.patch("/api/v1/nodes/node-1", {"spec": {"unschedulable": True}})
        yield made
    finally:
        made.situate("down", "--delete")


def test_the_pod_of_a_machine_that_hangs_runs_elsewhere_within_30_s_and_never_twice(cluster: Cluster) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    with agent(cluster, NAMES[0]) as first, agent(cluster, NAMES[1]) as second:
        until(lambda: len(cluster.api("GET", "/api/v1/nodes")["items"]) == 3)
        cluster.api("POST", "/apis/apps/v1/namespaces/default/deployments", deployment(mark))
        until(lambda: len(cluster.ready()) == 1)
        (pod,) = cluster.ready()
        there = pod["spec"]["nodeName"]
        lost = {NAMES[0]: first, NAMES[1]: second}[there]
        lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{there}"
        until(lambda: cluster.api("GET", lease)["spec"]["leaseDurationSeconds"] == FAST.lease_ms // 1_000)
        os.kill(lost.pid, signal.SIGSTOP)
        begun, most, ready = time.monotonic(), 0, list[object]()
        while time.monotonic() < begun + RECOVERED_S + SLACK_S:
            most = max(most, len(processes_with(mark)))
            ready = [one for one in cluster.ready() if one["spec"]["nodeName"] != there]
            if ready:
                break
            time.sleep(0.05)
        took = time.monotonic() - begun
        assert ready, [cluster.pods(), cluster.api("GET", f"/api/v1/nodes/{there}")]
        assert took < RECOVERED_S + SLACK_S
        assert most <= 1
        assert len(processes_with(mark)) == 1
        os.kill(lost.pid, signal.SIGCONT)
        # It is back: what was there goes, and only the new one stays.
        until(lambda: {one["spec"]["nodeName"] for one in cluster.pods()} == set(NAMES) - {there})
        until(lambda: len(processes_with(mark)) == 1)
        cluster.api("DELETE", "/apis/apps/v1/namespaces/default/deployments/web")
        until(lambda: not processes_with(mark))
