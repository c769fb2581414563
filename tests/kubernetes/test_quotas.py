"""ResourceQuotas refuse and count as kube-apiserver's do. The test writes the first status, as a controller would."""

from pathlib import Path
from typing import Any

from kubernetes.api import RefusedError
from kubernetes.cluster import Cluster
from kubernetes.objects import Json
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import wait_until

WITHIN_S = 20.0
QUOTAS: dict[str, Json] = {
    "amounts": {"hard": {"pods": "4", "requests.cpu": "2", "requests.memory": "1Gi", "limits.cpu": "3"}},
    "ending": {"hard": {"pods": "1"}, "scopes": ["Terminating"]},
    "objects": {
        "hard": {
            "configmaps": "1",
            "count/deployments.apps": "0",
            "services.nodeports": "1",
            "requests.storage": "10Gi",
            "gold.storageclass.storage.k8s.io/requests.storage": "5Gi",
        }
    },
}


def pod(name: str, *each: Json, **spec: Any) -> Json:
    containers = [{"name": f"c{at}", "image": "i", "resources": resources} for at, resources in enumerate(each)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**spec, "containers": containers}}


def asking(cpu: str, memory: str, limit: str) -> Json:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": limit}}


def claim(name: str, storage: str, **spec: Any) -> Json:
    resources = {"requests": {"storage": storage}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def service(name: str, *ports: int) -> Json:
    spec = {"type": "NodePort", "ports": [{"port": one, "name": f"p{one}"} for one in ports]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def config_map(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
}
OBJECTS = [
    pod("unspecified", {}, {"requests": {"cpu": "1"}}),
    pod("first", asking("500m", "256Mi", "1")),
    pod("too-much", asking("1600m", "1Gi", "2500m")),
    pod("two", asking("100m", "100M", "200m"), asking("0.15", "64Mi", "1")),
    pod("ending", asking("1m", "1Mi", "1m"), activeDeadlineSeconds=60),
    pod("ending-too", asking("1m", "1Mi", "1m"), activeDeadlineSeconds=60),
    pod("fourth", asking("1m", "1Mi", "1m")),
    pod("fifth", asking("1m", "1Mi", "1m")),
    config_map("one"),
    config_map("two"),
    DEPLOYMENT,
    service("two-ports", 80, 81),
    service("one-port", 80),
    service("another", 82),
    claim("plain", "4Gi", storageClassName="silver"),
    claim("golden", "6Gi", storageClassName="gold"),
    claim("golden-too", "5Gi", storageClassName="gold"),
    claim("last", "2Gi", storageClassName="silver"),
]


def answers(cluster: Cluster) -> tuple[dict[str, str], dict[str, Json]]:
    """What is said of each object, and what the quotas count at the end."""
    said: dict[str, str] = {}
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    for name, spec in QUOTAS.items():
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}
        made = cluster.api.post(path, quota)
        made["status"] = {"hard": spec["hard"], "used": dict.fromkeys(spec["hard"], "0")}
        cluster.api.put(f"{path}/{name}/status", made)
    wait_until(lambda: create(cluster, DEPLOYMENT) != "", "the quotas to be known", WITHIN_S)
    for one in OBJECTS:
        said[f"{one['kind']} {one['metadata']['name']}"] = create(cluster, one)
    return said, {one["metadata"]["name"]: one["status"]["used"] for one in cluster.api.items(path)}


def create(cluster: Cluster, obj: Json) -> str:
    try:
        cluster.api.create([obj], cluster.namespace)
    except RefusedError as refused:
        return str(refused)
    return ""


def test_quotas_refuse_and_count_as_kube_apiservers(cluster: Cluster, tmp_path: Path) -> None:
    theirs, counted = answers(cluster)
    assert sum(one != "" for one in theirs.values()) == 10
    with OwnCluster(tmp_path / "own") as own:
        own.namespace = own.new_namespace("quotas")
        said, used = answers(own)
    assert said == theirs
    assert used == counted
