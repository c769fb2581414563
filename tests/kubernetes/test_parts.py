"""The real parts are what they claim to be, work together, and are cleaned up after."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kubernetes.cluster import KEPT_NAMESPACES, Cluster
from kubernetes.objects import pod, pod_group, priority_class
from kubernetes.parts import Part, PartFailedError, wait_until

VERSION = "v1.36.4"
TESTS = Path(__file__).resolve().parents[1]


def test_server_and_kubectl_say_which_release_they_are(cluster: Cluster) -> None:
    said = cluster.kubectl("version")
    assert f"Client Version: {VERSION}" in said
    assert f"Server Version: {VERSION}" in said
    assert cluster.api.get("/version")["minor"] == "36"


def test_kube_scheduler_binds_a_pod_and_kwok_runs_it(cluster: Cluster) -> None:
    cluster.hollow_nodes(2)
    cluster.kwok()
    scheduler = cluster.kube_scheduler()
    cluster.create(pod("a"))
    cluster.wait_for_phase("a")
    assert cluster.bound()["a"] in {"node-0", "node-1"}
    metrics = scheduler.get("/metrics", cluster.tokens["admin"])
    assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1' in metrics


def test_kwok_removes_a_pod_that_is_deleted_gracefully(cluster: Cluster) -> None:
    cluster.hollow_nodes(1)
    cluster.kwok()
    cluster.create(pod("a", nodeName="node-0"))
    cluster.wait_for_phase("a")
    cluster.kubectl("delete", "pod", "a", "--wait=false")
    wait_until(lambda: cluster.pod("a") is None, "kwok to let the pod go")


def test_kwok_leaves_a_node_without_its_annotation_alone(cluster: Cluster) -> None:
    cluster.hollow_nodes(1)
    cluster.hollow_nodes(1, "foreign", annotations={"kwok.x-k8s.io/node": "no"})
    cluster.kwok()
    cluster.create(pod("theirs", nodeName="foreign-0"), pod("ours", nodeName="node-0"))
    cluster.wait_for_phase("ours")
    theirs = cluster.pod("theirs")
    assert theirs is not None
    assert theirs["status"]["phase"] == "Pending"


def test_kube_scheduler_places_a_gang_whole_or_not_at_all(cluster: Cluster) -> None:
    cluster.hollow_nodes(2, cpu="2")
    cluster.kube_scheduler()
    small = [pod(f"small-{i}", cpu="1", group="small") for i in range(3)]
    large = [pod(f"large-{i}", cpu="1", group="large") for i in range(3)]
    cluster.create(pod_group("small", 3), pod_group("large", 3))
    cluster.create(*small)
    cluster.wait_for_bound("small-0", "small-1", "small-2")
    cluster.create(*large)
    wait_until(lambda: all(refused(cluster, f"large-{i}") for i in range(3)), "the large gang to be refused")
    assert sorted(cluster.bound()) == ["small-0", "small-1", "small-2"]


def refused(cluster: Cluster, name: str) -> bool:
    found = cluster.pod(name)
    conditions = found["status"].get("conditions", []) if found else []
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


def test_priority_classes_become_priorities(cluster: Cluster) -> None:
    cluster.create_priority_classes(high=1000)
    created = cluster.create(pod("a", priorityClassName="high"))
    assert created[0]["spec"]["priority"] == 1000


def test_rbac_refuses_an_account_without_rights(cluster: Cluster) -> None:
    account = cluster.kubeconfig_for(cluster.token_for("nobody"))
    with pytest.raises(subprocess.CalledProcessError) as caught:
        cluster.kubectl("--kubeconfig", str(account), "get", "nodes")
    assert 'cannot list resource "nodes"' in caught.value.stderr


def test_administrators_are_let_in_by_token_and_by_certificate(cluster: Cluster) -> None:
    for kubeconfig in (cluster.kubeconfig, cluster.certified_kubeconfig):
        said = cluster.kubectl("--kubeconfig", str(kubeconfig), "auth", "can-i", "delete", "nodes")
        assert said.strip() == "yes"


def test_what_was_there_is_there_after_the_server_was_killed(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    cluster.kill_apiserver()
    with pytest.raises(OSError, match=r"refused|reset|closed"):
        cluster.pod("a")
    cluster.start_apiserver()
    assert cluster.pod("a") is not None


def test_a_version_from_before_a_compaction_is_gone(cluster: Cluster) -> None:
    first = cluster.api.get("/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
    cluster.create(*(pod(f"p{i}") for i in range(3)))
    cluster.compact_etcd()
    cluster.restart_apiserver()
    watch = f"/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion={first}"
    event = cluster.api.get(watch)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_five_hundred_nodes_are_ready_at_once(cluster: Cluster) -> None:
    names = cluster.hollow_nodes(500, zones=3)
    nodes = cluster.api.items("/api/v1/nodes")
    assert {node["metadata"]["name"] for node in nodes} == set(names)
    assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes} == {
        "zone-0",
        "zone-1",
        "zone-2",
    }
    assert not any(node["spec"].get("taints") for node in nodes)


def test_nothing_is_left_after_a_test(cluster: Cluster) -> None:
    cluster.hollow_nodes(2)
    kwok = cluster.kwok()
    cluster.create(pod("a"), pod_group("g", 2), priority_class("high", 1))
    cluster.kill_apiserver()
    cluster.wipe()
    assert not kwok.running
    assert cluster.api.items("/api/v1/nodes") == []
    assert cluster.api.items("/api/v1/pods") == []
    left = {item["metadata"]["name"] for item in cluster.api.items("/api/v1/namespaces")}
    assert left <= KEPT_NAMESPACES


def test_a_part_that_does_not_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    part = Part("sick", ["/bin/sh", "-c", "echo it hurts; exit 3"], tmp_path / "sick.log")
    with pytest.raises(PartFailedError, match=r"(?s)sick ended with exit code 3.*it hurts"):
        part.start(lambda: False)
    part.stop()


def test_a_part_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = (
        "import os; from pathlib import Path; from kubernetes.parts import Part;"
        f"part = Part('child', ['/bin/sleep', '600'], Path({str(tmp_path)!r}) / 'log').start();"
        f"Path({str(child)!r}).write_text(str(part.pid)); os.kill(os.getpid(), 9)"
    )
    python = Part("parent", [sys.executable, "-c", script], tmp_path / "parent.log", {"PYTHONPATH": str(TESTS)})
    python.start()
    python.wait()
    python.stop()
    wait_until(lambda: gone(int(child.read_text())), "the child to be gone")


def test_a_part_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    part = Part("child", ["/bin/sh", "-c", "exec sleep 600"], tmp_path / "log")
    starter = threading.Thread(target=part.start)
    starter.start()
    starter.join()
    with pytest.raises(subprocess.TimeoutExpired):
        part.wait(0.3)
    part.kill()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
