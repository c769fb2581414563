"""Odd values in the store of a whole control plane: it starts, serves and reconciles the rest, and destroys nothing."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec

from cli.control_plane.running import Client, running, until
from situate.cli.control_plane.process import STORE_FILE
from situate.cli.control_plane.settings import ControlPlaneSettings
from situate.store.contract import Store
from situate.store.open import open_store
from situate.store.transactions import Put

CONTROL_S = 2.0
"""How soon a Deployment elsewhere must have its pods."""
DEFAULT = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/{namespace}"
ODD = (b"", b"not json", b"\xff\x00", b"[]", b"{}", b'{"metadata":{"name":7}}')


def deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "c", "image": "none"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


async def running_pods(client: Client, namespace: str, name: str) -> list[str]:
    pods = await client.items(f"/api/v1/namespaces/{namespace}/pods?labelSelector=app={name}")
    return sorted(pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") == "Running")


async def whole(client: Client, name: str, replicas: int) -> bool:
    return len(await running_pods(client, "default", name)) == replicas


async def ready(client: Client) -> bool:
    return await client.text("/readyz") == (200, "ok")


async def deploy(client: Client, namespace: str, name: str, replicas: int) -> float:
    """Until its pods run; how long that took."""
    begun = time.monotonic()
    path = f"{APPS.format(namespace=namespace)}/deployments"
    code, answer = await client.send("POST", path, deployment(name, replicas))
    assert code == 201, answer

    async def runs() -> bool:
        return len(await running_pods(client, namespace, name)) == replicas

    await until(runs)
    return time.monotonic() - begun


async def poison(store: Store, pods: list[str]) -> None:
    """Spoil one object of many kinds that there are, and add some that there were not."""
    prefix = "/objects"
    spoiled = [
        f"{prefix}/apps/deployments/default/web",  # it still owns a ReplicaSet and its pods
        f"{prefix}/core/pods/default/{pods[0]}",  # a running pod of another Deployment
        f"{prefix}/core/nodes/node-2",
        f"{prefix}/coordination.k8s.io/leases/kube-node-lease/node-3",
    ]
    await store.commit([], [Put(key, value) for key, value in zip(spoiled, ODD, strict=False)])
    groups = {
        "core": ("pods", "configmaps", "secrets", "services", "events", "serviceaccounts", "persistentvolumeclaims"),
        "apps": ("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"),
        "batch": ("jobs", "cronjobs"),
        "policy": ("poddisruptionbudgets",),
        "rbac.authorization.k8s.io": ("roles", "rolebindings"),
        "coordination.k8s.io": ("leases",),
        "situate.dev": ("placementdecisions", "nodesnapshots"),
    }
    for group, plurals in groups.items():
        for plural in plurals:
            for number, value in enumerate(ODD):
                await store.commit([], [Put(f"{prefix}/{group}/{plural}/default/odd-{number}", value)])
    for plural in ("clusterroles", "clusterrolebindings"):
        await store.commit([], [Put(f"{prefix}/rbac.authorization.k8s.io/{plural}/odd", b"{}")])
    for key in ("/objects/", "/objects/x", "/objects/core", "/objects/future.dev/things/default/a"):
        await store.commit([], [Put(key, b"{}")])
    # Objects that are of their kind, and hold what no validation would let pass.
    meta = {"namespace": "default", "uid": "by-hand", "creationTimestamp": "2026-01-01T00:00:00Z"}
    hollow: dict[str, Any] = {
        "apps/deployments": {},
        "apps/statefulsets": {"spec": {}},
        "apps/daemonsets": {"spec": {"selector": {"matchExpressions": [{"key": "", "operator": "Odd"}]}}},
        "batch/jobs": {"spec": {"completions": -7, "parallelism": -1}},
        "batch/cronjobs": {"spec": {"schedule": "every day"}},
        "core/pods": {"spec": {"containers": [], "nodeName": "nowhere"}},
        "policy/poddisruptionbudgets": {"spec": {"minAvailable": "9" * 5_000 + "%"}},
    }
    for number, (where, rest) in enumerate(hollow.items()):
        named = {"name": "hollow", **meta, "uid": f"by-hand-{number}"}
        await store.commit(
            [], [Put(f"{prefix}/{where}/default/hollow", msgspec.json.encode({"metadata": named, **rest}))]
        )


def test_a_store_with_odd_values_is_served_and_what_is_sound_in_it_stays(tmp_path: Path) -> None:
    settings = ControlPlaneSettings(directory=tmp_path, nodes=3)

    async def before() -> dict[str, list[str]]:
        async with running(settings) as client:
            await client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
            await deploy(client, "default", "web", 3)
            await deploy(client, "default", "api", 3)
            return {name: await running_pods(client, "default", name) for name in ("web", "api")}

    async def after(pods: dict[str, list[str]]) -> None:
        async with running(settings) as client:
            took_s = await deploy(client, "other", "control", 5)
            assert took_s < CONTROL_S, f"the control Deployment took {took_s:.1f} s"
            # What an unreadable object owns is not garbage, and what cannot be read is not replaced.
            assert await running_pods(client, "default", "web") == pods["web"]
            assert await running_pods(client, "default", "api") == pods["api"][1:]
            code, status = await client.send("GET", f"{APPS.format(namespace='default')}/deployments/web")
            assert (code, status["reason"]) == (500, "StorageReadError")
            for path in ("/api/v1/pods", "/apis/apps/v1/deployments", "/api/v1/nodes", "/api/v1/events"):
                await client.items(path)
            assert await ready(client)
            # DELETE removes what cannot be read, and then its owner has as many pods as it asks for.
            assert (await client.send("DELETE", f"{DEFAULT}/pods/{pods['api'][0]}"))[0] == 200
            assert (await client.send("DELETE", f"{DEFAULT}/configmaps/odd-1"))[0] == 200
            await until(lambda: whole(client, "api", 3))
            await until(lambda: ready(client))
            scraped = (await client.text("/metrics"))[1]
            assert " 0.0" not in next(
                line for line in scraped.splitlines() if line.startswith("situate_unreadable_objects")
            )
            assert not [
                line
                for line in scraped.splitlines()
                if line.startswith("situate_part_restarts_total") and not line.endswith(" 0.0")
            ]

    pods = asyncio.run(before())

    async def between() -> None:
        store = await open_store(str(tmp_path / STORE_FILE))
        await poison(store, pods["api"])
        await store.aclose()

    asyncio.run(between())
    asyncio.run(after(pods))
