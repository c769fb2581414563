"""Controllers, scheduler and hollow nodes on one registry, without HTTP: what is asked for comes about, and goes."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from situate.agent.control_plane_local import LocalControlPlane
from situate.agent.hollow_nodes import HollowNodes
from situate.agent.node_devices import DevicePublisher, DeviceSet
from situate.agent.node_objects import NodeShape, hollow_shapes
from situate.server.admission.chain import chain
from situate.server.controllers.registry_controllers import RegistryControllers
from situate.server.default_class import ensure_default_class
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.binding import Binder
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.scheduler import SchedulerSettings, open_scheduler
from situate.store.memory import MemoryStore

WITHIN_S = 20.0
DEPLOYMENT, JOB = BY_KIND["apps/v1", "Deployment"], BY_KIND["batch/v1", "Job"]
POD, NAMESPACE, EVENT = BY_KIND["v1", "Pod"], BY_KIND["v1", "Namespace"], BY_KIND["v1", "Event"]
REPLICA_SET, CONFIG_MAP = BY_KIND["apps/v1", "ReplicaSet"], BY_KIND["v1", "ConfigMap"]
LEASE = BY_KIND["coordination.k8s.io/v1", "Lease"]
NODE, SLICE = BY_KIND["v1", "Node"], BY_KIND["resource.k8s.io/v1", "ResourceSlice"]
DEVICE_CLASS, RULE = (BY_KIND["resource.k8s.io/v1", kind] for kind in ("DeviceClass", "DeviceTaintRule"))
STATEFUL_SET = BY_KIND["apps/v1", "StatefulSet"]
VOLUME_CLAIM, VOLUME = BY_KIND["v1", "PersistentVolumeClaim"], BY_KIND["v1", "PersistentVolume"]
CLAIM, CLAIM_TEMPLATE = (BY_KIND["resource.k8s.io/v1", kind] for kind in ("ResourceClaim", "ResourceClaimTemplate"))


class World:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    async def create(self, resource: Any, body: Object, namespace: str = "default") -> None:
        space = namespace if resource.namespaced else ""
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        await self.registry.create(Target(resource, space), whole, SYSTEM)

    def all(self, resource: Any, namespace: str = "default") -> list[Object]:
        return [held.object(resource) for held in self.registry.cache.all(resource, namespace)]

    def one(self, resource: Any, name: str, namespace: str = "default") -> Object | None:
        held = self.registry.cache.get(resource, namespace if resource.namespaced else "", name)
        return None if held is None else held.object(resource)

    async def until(self, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not holds():
            assert time.monotonic() < deadline, "it never came about"
            await asyncio.sleep(0.01)


@asynccontextmanager
async def world(nodes: int = 3, *, moves_drifted: bool = False) -> AsyncIterator[World]:
    store = MemoryStore()
    cache, transactions = Cache(store), BindTransactions(time.time_ns, lambda: str(uuid.uuid4()))
    registry = Registry(
        store,
        wall_ns=time.time_ns,
        new_uid=lambda: str(uuid.uuid4()),
        cache=cache,
        admission=chain(cache),
        extension=transactions,
    )
    await registry.start()
    made = World(registry)
    for name in ("default", "kube-system", "kube-node-lease"):
        await made.create(NAMESPACE, {"metadata": {"name": name}})
    binder = Binder(registry, time.time_ns, transactions.node_locks)
    plane = LocalControlPlane(registry)
    publisher = DevicePublisher(plane, [DeviceSet(nodes="node-1", driver="d.io", devices=[{"name": "a"}])])
    fleet = HollowNodes(plane, hollow_shapes(nodes, 1, NodeShape()), publish=publisher.publish, batching=plane)
    async with open_scheduler(store, registry, binder, SchedulerSettings()) as scheduler:
        controllers = RegistryControllers(registry, moves_drifted=moves_drifted)
        parts = (fleet.run(), controllers.run(), scheduler.run())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            yield made
            assert [task for task in tasks if task.done()] == []
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    await registry.aclose()


def story(told: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with world() as made:
            await told(made)

    asyncio.run(run())


def template(**labels: str) -> Object:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def deployment(replicas: int = 3) -> Object:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(app="web")}
    return {"metadata": {"name": "web"}, "spec": spec}


def running(made: World, image: str = "i:1") -> int:
    return len(
        [
            pod
            for pod in made.all(POD)
            if pod["status"]["phase"] == "Running" and pod["spec"]["containers"][0]["image"] == image
        ]
    )


def test_a_deployment_runs_rolls_and_goes_with_all_that_is_its() -> None:
    async def told(made: World) -> None:
        await made.create(DEPLOYMENT, deployment())
        await made.until(lambda: running(made) == 3)
        await made.until(lambda: (made.one(DEPLOYMENT, "web") or {})["status"].get("availableReplicas") == 3)

        image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}
        await made.registry.patch(Target(DEPLOYMENT, "default", "web"), "strategic", image, SYSTEM)
        await made.until(lambda: running(made, "i:2") == 3 and len(made.all(POD)) == 3)
        assert len(made.all(REPLICA_SET)) == 2

        await made.registry.delete(
            Target(DEPLOYMENT, "default", "web"), SYSTEM, DeleteOptions(propagation="Background")
        )
        await made.until(lambda: made.all(POD) == made.all(REPLICA_SET) == [])

    story(told)


def test_a_job_ends_and_is_counted() -> None:
    async def told(made: World) -> None:
        pods = template()
        pods["spec"]["restartPolicy"] = "Never"
        pods["metadata"]["annotations"] = {"hollow.situate.dev/run-for": "10ms"}
        await made.create(
            JOB, {"metadata": {"name": "sum"}, "spec": {"completions": 4, "parallelism": 2, "template": pods}}
        )
        await made.until(lambda: (made.one(JOB, "sum") or {})["status"].get("succeeded") == 4)
        await made.until(lambda: (made.one(JOB, "sum") or {})["status"].get("completionTime"))
        assert len(made.all(POD)) == 4

    story(told)


def test_a_namespace_goes_with_everything_in_it_and_nothing_can_be_put_there() -> None:
    async def told(made: World) -> None:
        await made.create(NAMESPACE, {"metadata": {"name": "brief"}})
        await made.create(DEPLOYMENT, deployment(2), "brief")
        await made.create(CONFIG_MAP, {"metadata": {"name": "c"}}, "brief")
        await made.create(LEASE, {"metadata": {"name": "l"}, "spec": {}}, "brief")
        await made.until(lambda: len(made.all(POD, "brief")) == 2)
        await made.registry.delete(Target(NAMESPACE, "", "brief"), SYSTEM)
        with pytest.raises(StatusError, match=r"being terminated|not found"):
            await made.create(CONFIG_MAP, {"metadata": {"name": "late"}}, "brief")
        await made.until(lambda: made.one(NAMESPACE, "brief") is None)
        for resource in (DEPLOYMENT, REPLICA_SET, POD, CONFIG_MAP, LEASE, EVENT):
            assert made.all(resource, "brief") == [], resource.plural

    story(told)


def test_pods_of_a_deployment_that_is_orphaned_stay() -> None:
    async def told(made: World) -> None:
        await made.create(DEPLOYMENT, deployment(1))
        await made.until(lambda: running(made) == 1)
        await made.registry.delete(Target(DEPLOYMENT, "default", "web"), SYSTEM, DeleteOptions(propagation="Orphan"))
        await made.until(lambda: made.one(DEPLOYMENT, "web") is None)
        await asyncio.sleep(0.1)
        assert running(made) == 1
        assert "ownerReferences" not in made.all(REPLICA_SET)[0]["metadata"]

    story(told)


def test_what_happens_again_is_counted_and_not_told_anew() -> None:
    async def told(made: World) -> None:
        body = deployment(1)
        body["spec"]["template"]["spec"]["priorityClassName"] = "nobody-made-it"
        await made.create(DEPLOYMENT, body)

        def refused() -> list[Object]:
            return [one for one in made.all(EVENT) if one["reason"] == "FailedCreate"]

        await made.until(lambda: refused() and refused()[0]["count"] >= 3)
        assert len({one["metadata"]["name"] for one in refused()}) < refused()[0]["count"]

    story(told)


def test_a_pod_gets_its_claim_from_a_template_and_the_claim_goes_with_it() -> None:
    devices = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    spec = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": claims}

    async def told(made: World) -> None:
        await made.create(POD, {"metadata": {"name": "p"}, "spec": spec})
        await made.until(lambda: any(one["reason"] == "FailedResourceClaimCreation" for one in made.all(EVENT)))
        await made.create(CLAIM_TEMPLATE, {"metadata": {"name": "one-gpu"}, "spec": {"spec": devices}})
        await made.until(lambda: (made.one(POD, "p") or {})["status"].get("resourceClaimStatuses"))
        (claim,) = made.all(CLAIM)
        assert claim["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
        await made.registry.delete(Target(POD, "default", "p"), SYSTEM)
        await made.until(lambda: not made.all(CLAIM))

    story(told)


def test_a_hollow_node_has_devices_and_starts_a_pod_when_its_claim_is_reserved() -> None:
    devices = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}], "resourceClaims": claims}

    async def told(made: World) -> None:
        await made.until(lambda: [one["spec"]["nodeName"] for one in made.all(SLICE, "")] == ["node-1"])
        await made.create(CLAIM, {"metadata": {"name": "c"}, "spec": devices})
        await made.create(POD, {"metadata": {"name": "p"}, "spec": spec})
        await made.until(lambda: any(one["reason"] == "FailedPrepareDynamicResources" for one in made.all(EVENT)))
        assert (made.one(POD, "p") or {})["status"]["phase"] == "Pending"
        claim = made.one(CLAIM, "c") or {}
        results = [{"request": "r", "driver": "d.io", "pool": "node-1", "device": "a"}]
        claim["status"] = {"allocation": {"devices": {"results": results}}}
        await made.registry.update(Target(CLAIM, "default", "c", "status"), claim, SYSTEM)
        await made.until(lambda: (made.one(POD, "p") or {})["status"]["phase"] == "Running")
        held = (made.one(CLAIM, "c") or {})["status"]["reservedFor"]
        assert [one["name"] for one in held] == ["p"], "the controller reserves the claim of a pod that has a node"
        await made.registry.delete(Target(NODE, "", "node-1"), SYSTEM)
        await made.until(lambda: not made.all(SLICE, ""))

    story(told)


def test_a_pod_leaves_a_device_that_a_rule_taints() -> None:
    devices = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    spec = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": claims}
    taint = {"key": "broken", "effect": "NoExecute"}

    async def told(made: World) -> None:
        await made.create(DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}})
        await made.create(CLAIM_TEMPLATE, {"metadata": {"name": "one-gpu"}, "spec": {"spec": devices}})
        await made.create(POD, {"metadata": {"name": "p"}, "spec": spec})
        await made.until(lambda: (made.one(POD, "p") or {}).get("status", {}).get("phase") == "Running")
        await made.create(RULE, {"metadata": {"name": "r"}, "spec": {"deviceSelector": {}, "taint": taint}})
        await made.until(lambda: made.one(POD, "p") is None and not made.all(CLAIM))
        await made.until(lambda: any(one["reason"] == "DeviceTaintManagerEviction" for one in made.all(EVENT)))
        (condition,) = (made.one(RULE, "r", "") or {})["status"]["conditions"]
        assert condition["type"] == "EvictionInProgress"

    story(told)


def test_a_stateful_set_gets_volumes_that_outlive_its_pods_and_go_with_its_claims() -> None:
    async def told(made: World) -> None:
        await ensure_default_class(made.registry)
        space = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        whole = template(app="db")
        whole["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        spec = {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "db"}},
            "template": whole,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": space}],
        }
        await made.create(STATEFUL_SET, {"metadata": {"name": "db"}, "spec": spec})
        await made.until(lambda: running(made) == 2)
        await made.until(lambda: [one["status"]["phase"] for one in made.all(VOLUME, "")] == ["Bound", "Bound"])
        pods = {pod["metadata"]["name"]: pod for pod in made.all(POD)}
        for claim in made.all(VOLUME_CLAIM):
            volume = made.one(VOLUME, claim["spec"]["volumeName"]) or {}
            (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
            name = claim["metadata"]["name"].removeprefix("data-")
            assert term["matchExpressions"][0]["values"] == [pods[name]["spec"]["nodeName"]]
            assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]

        uid = pods["db-0"]["metadata"]["uid"]
        await made.registry.delete(Target(POD, "default", "db-0"), SYSTEM, DeleteOptions())
        await made.until(lambda: running(made) == 2 and (made.one(POD, "db-0") or {})["metadata"]["uid"] != uid)
        again = made.one(POD, "db-0") or {}
        assert again["spec"]["nodeName"] == pods["db-0"]["spec"]["nodeName"]

        await made.registry.delete(Target(STATEFUL_SET, "default", "db"), SYSTEM, DeleteOptions())
        await made.until(lambda: not made.all(POD))
        assert len(made.all(VOLUME_CLAIM)) == 2
        for claim in made.all(VOLUME_CLAIM):
            await made.registry.delete(
                Target(VOLUME_CLAIM, "default", claim["metadata"]["name"]), SYSTEM, DeleteOptions()
            )
        await made.until(lambda: made.all(VOLUME_CLAIM) == made.all(VOLUME, "") == [])

    story(told)
