"""situate's agents on Kubernetes' own API server, which knows nothing of snapshots: nodes register, pods run."""

import sys
from pathlib import Path

from kubernetes.cluster import Cluster
from kubernetes.objects import pod
from kubernetes.parts import Part, wait_until
from situate.core.reconcile.nodes.fencing import PROMISE

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
WITHIN_S = 60.0


def agents(cluster: Cluster, folder: Path, *flags: str) -> Part:
    command = [sys.executable, "-m", "situate", "node", "--kubeconfig", str(cluster.kubeconfig), *flags]
    part = Part("situate node", command, folder / "node.log")
    cluster.beside(part)
    return part


def leases(cluster: Cluster, prefix: str) -> list[str]:
    names = [one["metadata"]["name"] for one in cluster.api.get(LEASES)["items"]]
    return [name for name in names if name.startswith(prefix)]


def test_hollow_nodes_run_pods_that_are_bound_to_them(cluster: Cluster, tmp_path: Path) -> None:
    agents(cluster, tmp_path, "--hollow", "3", "--prefix", "paper")
    wait_until(lambda: len(leases(cluster, "paper-")) == 3, "three leases", WITHIN_S)
    cluster.create(pod("on-paper", nodeName="paper-2"))
    cluster.wait_for_phase("on-paper", within_s=WITHIN_S)
    lease = cluster.api.get(f"{LEASES}/paper-2")
    assert lease["spec"]["leaseTransitions"] == 1
    # The promise to stop its pods, and no snapshot: this API server has none.
    assert lease["metadata"]["annotations"] == {PROMISE: lease["spec"]["renewTime"]}


def test_a_machine_runs_pods_that_are_bound_to_it(cluster: Cluster, tmp_path: Path) -> None:
    agents(cluster, tmp_path, "--process", "--name", "machine", "--dir", str(tmp_path / "machine"))
    wait_until(lambda: leases(cluster, "machine"), "its lease", WITHIN_S)
    body = pod("real", nodeName="machine", restartPolicy="Never", tolerations=[{"operator": "Exists"}])
    body["spec"]["containers"][0]["command"] = ["sh", "-c", "exit 0"]
    body["spec"]["containers"][0].pop("resources")
    cluster.create(body)
    cluster.wait_for_phase("real", phase="Succeeded", within_s=WITHIN_S)
    found = cluster.api.get(f"/api/v1/namespaces/{cluster.namespace}/pods/real")
    assert "situate.dev/binding-version" not in found["metadata"]["annotations"]
    assert found["metadata"]["annotations"]["situate.dev/report"].startswith("1.")
