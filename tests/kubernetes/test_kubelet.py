"""A real kubelet with containerd as a node of situate's own control plane: it joins by TLS bootstrap, runs real
containers, and neither a killed server nor a killed kubelet restarts one of them."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubernetes import kubelet_node, parts
from kubernetes.kubelet_node import BUSYBOX
from kubernetes.parts import wait_until
from kubernetes.real_node import WITHIN_S, Node, joined

ABSENT = kubelet_node.missing() or parts.missing()
pytestmark = pytest.mark.skipif(ABSENT is not None, reason=f"a real node: {ABSENT}")
BACK_S = 5.0
"""How soon logs and exec work again after the server was killed, from its next start on."""
TEN = 10


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with joined(tmp_path_factory.mktemp("real")) as here:
        yield here


def workload(kind: str, name: str, replicas: int, script: str, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", script], **more}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


LOOP = "echo begun; while :; do echo tick; sleep 1; done"


def test_it_joins_with_a_token_and_both_its_certificates_are_signed(node: Node) -> None:
    def signed_requests() -> dict[str, Any]:
        return {one["spec"]["signerName"]: one for one in node.get("csr")["items"] if one["status"].get("certificate")}

    wait_until(lambda: len(signed_requests()) == 2, "both certificates", WITHIN_S)
    signed = signed_requests()
    assert signed.keys() == {"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"}
    client = signed["kubernetes.io/kube-apiserver-client-kubelet"]["spec"]
    assert client["username"].startswith("system:bootstrap:")
    assert signed["kubernetes.io/kubelet-serving"]["spec"]["username"] == "system:node:real"


def test_workloads_run_in_real_containers_and_can_be_entered(node: Node, tmp_path: Path) -> None:
    port = {"containerPort": 8080}
    script = "mkdir /tmp/w; echo page > /tmp/w/index.html; httpd -p 8080 -h /tmp/w; cat /run/key; " + LOOP
    web = workload("Deployment", "web", 2, script, ports=[port])
    web["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "conf"}}]
    web["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/run"}]
    job = {"restartPolicy": "Never", "containers": [{"name": "c", "image": BUSYBOX, "command": ["echo", "done"]}]}
    job["containers"][0]["imagePullPolicy"] = "Never"  # type: ignore[index]
    node.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"key": "of a map\n"}},
        web,
        workload("StatefulSet", "db", 1, LOOP),
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"template": {"spec": job}}},
    )
    node.kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=90s")
    node.kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=90s")
    wait_until(lambda: node.running("db", 1), "the StatefulSet's pod", WITHIN_S)
    pod = node.pods("web")[0]["metadata"]["name"]
    # The kubelet shows the server a certificate that the cluster has signed as soon as it has one.
    wait_until(lambda: node.kubectl("logs", "job/once", check=False), "logs", WITHIN_S)
    assert node.kubectl("logs", "job/once") == "done\n"
    assert node.kubectl("logs", pod).startswith("of a map\nbegun\n")
    assert node.kubectl("logs", pod, "--tail=1") == "tick\n"
    # WebSocket, and SPDY as kubectl asks for it where there is no WebSocket.
    assert node.kubectl("exec", "-i", "db-0", "--", "cat", stdin="hello") == "hello"
    os.environ["KUBECTL_REMOTE_COMMAND_WEBSOCKETS"] = "false"
    try:
        assert node.kubectl("exec", "db-0", "--", "hostname") == "db-0\n"
    finally:
        del os.environ["KUBECTL_REMOTE_COMMAND_WEBSOCKETS"]
    (tmp_path / "there").write_text("copied")
    node.kubectl("cp", str(tmp_path / "there"), "db-0:/tmp/there")
    node.kubectl("cp", "db-0:/tmp/there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "copied"
    assert node.kubectl("get", "--raw", "/api/v1/nodes/real/proxy/healthz") == "ok"
    assert f'pod="{pod}"' in node.kubectl("get", "--raw", "/api/v1/nodes/real/proxy/metrics/resource")
    path = f"/api/v1/namespaces/default/pods/{pod}:8080/proxy/index.html"
    assert node.kubectl("get", "--raw", path) == "page\n"
    assert _forwarded(node, pod) == "page\n"


def _forwarded(node: Node, pod: str) -> str:
    with node.forwarded(pod, 8080) as local:
        read = ["busybox", "wget", "-q", "-O", "-", f"http://127.0.0.1:{local}/index.html"]
        return subprocess.run(read, capture_output=True, text=True, check=True, timeout=30).stdout


def test_a_killed_server_restarts_no_container_and_is_soon_back(node: Node) -> None:
    node.apply(workload("Deployment", "ten", TEN, LOOP))
    wait_until(lambda: node.running("ten", TEN), "ten containers", WITHIN_S)
    before = node.containers("ten")
    node.cluster.apiserver.kill()
    node.cluster.start_apiserver()
    begun, pod = time.monotonic(), next(iter(before))
    while not (
        node.kubectl("logs", "--tail=1", pod, check=False) and node.kubectl("exec", pod, "--", "id", check=False)
    ):
        assert time.monotonic() - begun < BACK_S
    took = time.monotonic() - begun
    wait_until(lambda: node.running("ten", TEN), "all containers to be seen again", WITHIN_S)
    assert node.containers("ten") == before
    assert took < BACK_S


def test_a_killed_kubelet_finds_its_containers_again(node: Node) -> None:
    node.apply(workload("StatefulSet", "only", 1, LOOP))
    wait_until(lambda: node.running("only", 1), "the StatefulSet's pod", WITHIN_S)
    before, uid = node.containers("only"), node.pods("only")[0]["metadata"]["uid"]
    node.kubelet.part.kill()
    node.kubelet.part.start(None)
    wait_until(lambda: node.kubectl("exec", "only-0", "--", "hostname", check=False) == "only-0\n", "exec", WITHIN_S)
    wait_until(lambda: node.running("only", 1), "the pod to be ready", WITHIN_S)
    assert node.containers("only") == before
    assert [one["metadata"]["uid"] for one in node.pods("only")] == [uid]


def test_a_drained_node_runs_nothing_and_takes_nothing(node: Node) -> None:
    node.apply(workload("Deployment", "gone", 2, LOOP))
    wait_until(lambda: node.running("gone", 2), "the pods", WITHIN_S)
    node.kubectl("drain", "real", "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=90s")
    assert all(not one["spec"].get("nodeName") for one in node.pods("gone"))
    node.kubectl("uncordon", "real")
    wait_until(lambda: node.running("gone", 2), "the pods to be back", WITHIN_S)
