"""`situate why` on a real cluster: read-only rights are enough, and its one line is kube-scheduler's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubernetes.cluster import Cluster
from kubernetes.devices import claim, claiming, gpu_class, requests, slice_of, taken
from kubernetes.objects import Json, node, pod, priority_class
from kubernetes.parts import folder, wait_until
from situate.cli import main

WITHIN_S = 60.0
GPU = "example.com/gpu"
ZONE = "topology.kubernetes.io/zone"
READ_ONLY: Json = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}


def near(topology: str, **labels: str) -> list[Json]:
    return [{"labelSelector": {"matchLabels": labels}, "topologyKey": topology}]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}
NODES = [
    node("small-a", cpu="1", labels={ZONE: "a"}),
    node("small-b", cpu="1", labels={ZONE: "b"}),
    node("large-a", cpu="8", labels={ZONE: "a", "disk": "ssd"}),
    node("tainted-a", cpu="8", labels={ZONE: "a"}, taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]),
    node("cordoned-b", cpu="8", labels={ZONE: "b"}, unschedulable=True),
    node("gpu-c", cpu="4", labels={ZONE: "c"}, extended={GPU: "2"}),
]
RUNNING = [
    pod("holder", cpu="7", labels={"app": "web"}, nodeName="large-a"),
    pod("spread-0", labels={"app": "spread"}, nodeName="small-a"),
    pod(
        "port",
        nodeName="gpu-c",
        containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}],
    ),
]
WAITING = [
    pod("too-much-cpu", cpu="64"),
    pod("two-cpus", cpu="5"),
    pod("too-much-memory", memory="640Gi", tolerations=[{"operator": "Exists"}]),
    pod("gpus", containers=[{"name": "c", "image": "i", "resources": {"limits": {GPU: "3"}}}]),
    pod("labelled", nodeSelector={"disk": "nvme"}),
    pod("labelled-and-large", cpu="3", nodeSelector={"disk": "ssd"}),
    pod("near-nobody", affinity={"podAffinity": {REQUIRED: near(ZONE, app="nobody")}}),
    pod("away-from-web", nodeSelector={"disk": "ssd"}, affinity={"podAntiAffinity": {REQUIRED: near(ZONE, app="web")}}),
    pod("spread-1", cpu="2", labels={"app": "spread"}, nodeSelector={ZONE: "a"}, topologySpreadConstraints=[SPREAD]),
    pod(
        "same-port",
        nodeSelector={ZONE: "c"},
        containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}],
    ),
    pod("important", cpu="64", priorityClassName="high"),
    pod("claims", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}]),
]


def reader(cluster: Cluster) -> Path:
    """The kubeconfig of somebody who may get and list, and nothing else."""
    api = "/apis/rbac.authorization.k8s.io/v1"
    name = f"reader-{cluster.namespace}"
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": cluster.namespace}
    kubeconfig = cluster.kubeconfig_for(cluster.token_for("reader"), name=name)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    cluster.api.post(f"{api}/clusterroles", {"metadata": {"name": name}, "rules": [READ_ONLY]})
    cluster.api.post(f"{api}/clusterrolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": role})
    return kubeconfig


def conditions(cluster: Cluster) -> dict[str, str]:
    """What kube-scheduler has written on the pods that it could not place."""
    return {
        item["metadata"]["name"]: condition["message"]
        for item in cluster.pods()
        for condition in item["status"].get("conditions", ())
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    }


NO_SCHEDULER = "note: no scheduler publishes its configuration"
"""In the cluster of these tests, unless another test has left one."""


@pytest.fixture
def refused(cluster: Cluster) -> dict[str, str]:
    """kube-scheduler's message on each of the waiting pods."""
    cluster.create(priority_class("high", 1000), *NODES, *RUNNING)
    cluster.kube_scheduler()
    cluster.create(*WAITING)
    names = {item["metadata"]["name"] for item in WAITING}
    wait_until(lambda: conditions(cluster).keys() >= names, "kube-scheduler to speak of all of them", WITHIN_S)
    return conditions(cluster)


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NO_COLOR": "1", **environment}
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, timeout=WITHIN_S, env=env)


def situate(*words: str | Path) -> Result:
    """In this process: what is asked dozens of times need not start dozens of interpreters."""
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_one_line_is_kube_schedulers_for_somebody_who_may_only_read(
    cluster: Cluster, refused: dict[str, str]
) -> None:
    kubeconfig = reader(cluster)
    for name, message in refused.items():
        done = situate("why", name, "-n", cluster.namespace, "--kubeconfig", kubeconfig, "-o", "json")
        assert (done.exit_code, done.stderr) == (0, ""), name
        assert json.loads(done.stdout)["message"] == message, name


def test_it_is_a_plugin_of_kubectl(cluster: Cluster, refused: dict[str, str], tmp_path: Path) -> None:
    """kubectl finds it on the PATH by its name, and hands its words on."""
    plugin = tmp_path / "kubectl-situate"
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from situate.cli import main; main()" "$@"\n')
    plugin.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    kubeconfig = str(reader(cluster))
    words = ("situate", "why", "two-cpus", "-n", cluster.namespace)
    done = run(folder() / "kubectl", *words, PATH=path, KUBECONFIG=kubeconfig, HOME=str(tmp_path))
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if not line.startswith(NO_SCHEDULER)] == []
    assert refused["two-cpus"] in " ".join(done.stdout.split())


def test_a_dump_says_the_same_and_one_with_kinds_missing_says_which(
    cluster: Cluster, refused: dict[str, str], tmp_path: Path
) -> None:
    kinds = "nodes,pods,namespaces,services,replicationcontrollers,replicasets,statefulsets,persistentvolumes,"
    kinds += "persistentvolumeclaims,storageclasses,csinodes,csidrivers,csistoragecapacities,volumeattachments,"
    kinds += "poddisruptionbudgets"
    for output in ("json", "yaml"):
        dump = tmp_path / f"all.{output}"
        dump.write_text(cluster.kubectl("get", kinds, "--all-namespaces", "-o", output))
        for name, message in refused.items():
            done = situate("why", name, "-n", cluster.namespace, "-f", dump, "-o", "json")
            assert done.exit_code == 0, done.stderr
            assert json.loads(done.stdout)["message"] == message, (output, name)
    some = tmp_path / "some.json"
    some.write_text(cluster.kubectl("get", "nodes,pods", "--all-namespaces", "-o", "json"))
    done = situate("why", "claims", "-n", cluster.namespace, "-f", some)
    assert done.exit_code == 0
    for kind in ("PersistentVolumeClaim", "StorageClass"):
        assert kind in done.stderr
    no_nodes = tmp_path / "pods.json"
    no_nodes.write_text(cluster.kubectl("get", "pods", "--all-namespaces", "-o", "json"))
    done = situate("why", "gpus", "-n", cluster.namespace, "-f", no_nodes)
    assert "Node" in done.stderr + done.stdout


def test_who_may_not_list_nodes_is_told_so_in_one_line(cluster: Cluster) -> None:
    cluster.create(pod("alone"))
    kubeconfig = cluster.kubeconfig_for(cluster.token_for("nobody"))
    done = situate("why", "alone", "-n", cluster.namespace, "--kubeconfig", kubeconfig)
    assert done.exit_code == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "forbidden" in line


def test_of_devices_it_says_what_kube_scheduler_says_and_who_holds_them(cluster: Cluster) -> None:
    cluster.create(node("gpu-a"), gpu_class(), slice_of("gpu-a", 2), claim("held"))
    cluster.create({**claim("both"), "spec": requests(2)})
    cluster.kube_scheduler()
    cluster.create(claiming("holder", of_claim="held"))
    wait_until(lambda: bool(taken(cluster)), "kube-scheduler to give the holder its device", WITHIN_S)
    cluster.create(claiming("waits", of_claim="both"))
    wait_until(lambda: "waits" in conditions(cluster), "kube-scheduler to speak of the other", WITHIN_S)
    done = situate("why", "waits", "-n", cluster.namespace, "--kubeconfig", reader(cluster), "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["message"] == conditions(cluster)["waits"]
    [verdict] = told["verdicts"]
    space = cluster.namespace
    holder = {"pod": f"{space}/holder", "claim": f"{space}/held", "devices": 1}
    assert verdict["details"][0]["values"]["heldBy"] == [holder]
    assert [step["kind"] for way in told["ways"] for step in way["steps"]] == ["fewer_devices", "evict", "add_node"]
