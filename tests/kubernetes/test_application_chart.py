"""An application's chart is installed, upgraded, rolled back, tested and uninstalled with helm on hollow nodes."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import folder, wait_until

HELM = folder() / "helm"
CHART = Path(__file__).with_name("charts") / "shop"
WITHIN_S = 120.0
NODES = 3
SPACE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"

if not os.access(HELM, os.X_OK):
    pytest.skip(f"these tests need helm in {HELM.parent}: `make helm` builds it", allow_module_level=True)


class Release:
    """The chart's release `shop` on a cluster."""

    def __init__(self, cluster: OwnCluster, home: Path) -> None:
        self.api = cluster.api
        folders = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**os.environ, **folders, "KUBECONFIG": str(cluster.kubeconfig)}

    def helm(self, *words: str) -> str:
        command = [str(HELM), *words]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False, timeout=WITHIN_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def items(self, path: str) -> list[dict[str, Any]]:
        return list(self.api.items(path))

    def names(self, path: str) -> list[str]:
        return [one["metadata"]["name"] for one in self.items(path)]

    def greeting(self) -> str:
        return str(self.api.get(f"{SPACE}/configmaps/shop")["data"]["greeting"])


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    home = tmp_path_factory.mktemp("chart")
    with OwnCluster(home / "cluster", "--with", "controllers", "--with", "scheduler", "--nodes", str(NODES)) as cluster:
        cluster.wait_for_nodes(NODES)
        yield Release(cluster, home)


def test_a_chart_lives_from_its_installation_to_its_end(release: Release) -> None:
    said = release.helm("install", "shop", str(CHART), "--wait", "--timeout", "90s")
    assert "STATUS: deployed" in said
    assert "hello from https://shop.test/" in said
    assert "Ingress is stored and has no effect here" in said, "what does nothing says so"
    for kind, count in (("deployments/shop-web", 2), ("statefulsets/shop-database", 2)):
        assert release.api.get(f"{APPS}/{kind}")["status"]["readyReplicas"] == count
    phases = {
        one["metadata"]["name"]: one["status"]["phase"] for one in release.items(f"{SPACE}/persistentvolumeclaims")
    }
    assert phases == {"data-shop-database-0": "Bound", "data-shop-database-1": "Bound"}

    # Each pod has its account's token, and its Service leads to it.
    pods = [pod for pod in release.items(f"{SPACE}/pods") if pod["metadata"]["name"].startswith("shop-web")]
    for pod in pods:
        assert pod["spec"]["serviceAccountName"] == "shop"
        mounts = [one["mountPath"] for one in pod["spec"]["containers"][0]["volumeMounts"]]
        assert "/var/run/secrets/kubernetes.io/serviceaccount" in mounts
    (subset,) = release.api.get(f"{SPACE}/endpoints/shop-web")["subsets"]
    assert sorted(one["ip"] for one in subset["addresses"]) == sorted(pod["status"]["podIP"] for pod in pods)
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    budget = release.api.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/shop-web")
    assert budget["status"]["disruptionsAllowed"] == 1

    # A new version, with new values: the pods are new, the volumes are not.
    before = {one["spec"]["volumeName"] for one in release.items(f"{SPACE}/persistentvolumeclaims")}
    release.helm(
        "upgrade", "shop", str(CHART), "--set", "greeting=moin,replicas=3,image.tag=2.0", "--wait", "--timeout", "90s"
    )
    web = release.api.get(f"{APPS}/deployments/shop-web")
    assert (release.greeting(), web["status"]["readyReplicas"], web["status"]["updatedReplicas"]) == ("moin", 3, 3)
    assert web["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"

    release.helm("rollback", "shop", "1", "--wait", "--timeout", "90s")
    assert release.greeting() == "hello"
    images = {
        pod["spec"]["containers"][0]["image"]
        for pod in release.items(f"{SPACE}/pods")
        if pod["metadata"]["name"].startswith("shop-web")
    }
    assert images == {"registry.test/shop:1.0"}
    assert "Phase:          Succeeded" in release.helm("test", "shop", "--timeout", "60s")
    assert release.helm("history", "shop").count("superseded") == 2

    # Uninstalled: all goes but the claims, as on any cluster; with the claims go their volumes.
    release.helm("uninstall", "shop", "--wait", "--timeout", "90s")
    wait_until(
        lambda: not release.names(f"{APPS}/deployments") + release.names(f"{APPS}/statefulsets"), "nothing to run"
    )
    assert {one["spec"]["volumeName"] for one in release.items(f"{SPACE}/persistentvolumeclaims")} == before
    for name in release.names(f"{SPACE}/persistentvolumeclaims"):
        release.api.delete(f"{SPACE}/persistentvolumeclaims/{name}")
    wait_until(lambda: not release.names("/api/v1/persistentvolumes"), "the volumes to go")
