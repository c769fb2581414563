"""Nodes that die, come back and go, with hollow agents on one registry, without HTTP and with short times."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from server.controllers.test_registry_controllers import DEPLOYMENT, LEASE, NAMESPACE, POD, World, template
from situate.agent.control_plane_local import LocalControlPlane
from situate.agent.desired_state import NodeConfiguration
from situate.agent.hollow_nodes import HollowNodes
from situate.agent.node_objects import NodeShape, hollow_shapes
from situate.core.reconcile.effects import DeleteObject, LeaseVersion, ObjectRef, PatchStatus, RebindPod
from situate.core.reconcile.nodes.eviction import REBIND
from situate.core.reconcile.nodes.fencing import FAST
from situate.loop.controllers.port import RefusedError
from situate.server.admission.chain import chain
from situate.server.controllers.registry_controllers import RegistryControllers
from situate.server.controllers.registry_port import RegistryPort
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.binding import Binder
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.scheduler import SchedulerSettings, open_scheduler
from situate.store.memory import MemoryStore

NODE, SNAPSHOT = BY_KIND["v1", "Node"], BY_KIND["situate.dev/v1alpha1", "NodeSnapshot"]
DECISION = BY_KIND["situate.dev/v1alpha1", "PlacementDecision"]
STATEFUL_SET = BY_KIND["apps/v1", "StatefulSet"]
UNREACHABLE = "node.kubernetes.io/unreachable"
SHAPES = hollow_shapes(3, 1, NodeShape())
DIES = SHAPES[2][0]
QUICK = replace(FAST, lease_ms=2_000, renew_ms=1_000, grace_ms=2_400, startup_ms=2_400, absent_ms=300, rate=10.0)
LEASED = NodeConfiguration(2, 1)


def hollow(registry: Registry, shapes: Sequence[tuple[str, NodeShape]]) -> HollowNodes:
    plane = LocalControlPlane(registry)
    return HollowNodes(plane, shapes, LEASED, batching=plane)


class Cluster(World):
    """Two agents that live, and one that can be killed and begun again."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self.tasks: list[asyncio.Task[None]] = []
        self.mortal: asyncio.Task[None] | None = None

    def begin(self, coroutine: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self.tasks.append(task)
        return task

    def live(self) -> None:
        self.mortal = self.begin(hollow(self.registry, SHAPES[2:]).run())

    async def die(self) -> None:
        assert self.mortal is not None
        self.mortal.cancel()
        await asyncio.gather(self.mortal, return_exceptions=True)
        self.tasks.remove(self.mortal)

    async def promise_nothing(self) -> None:
        """As if the node had a kubelet."""

        def change(found: Object, _held: StoredObject) -> Object:
            return {**found, "metadata": {**found["metadata"], "annotations": {}}}

        await self.registry.modify(Target(LEASE, "kube-node-lease", DIES), change, SYSTEM)

    def node(self) -> Object:
        return self.one(NODE, DIES) or {}

    def taints(self) -> list[tuple[str, str]]:
        return [(one["key"], one["effect"]) for one in self.node()["spec"].get("taints", [])]

    def on(self, *nodes: str) -> list[Object]:
        return [pod for pod in self.all(POD) if pod["spec"].get("nodeName") in nodes]

    def running_elsewhere(self) -> int:
        pods = self.on(*(name for name, _ in SHAPES[:2]))
        return len([pod for pod in pods if pod["status"]["phase"] == "Running"])


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    store = MemoryStore()
    cache, transactions = Cache(store), BindTransactions(time.time_ns, lambda: str(uuid.uuid4()), QUICK)
    registry = Registry(
        store,
        wall_ns=time.time_ns,
        new_uid=lambda: str(uuid.uuid4()),
        cache=cache,
        admission=chain(cache),
        extension=transactions,
    )
    await registry.start()
    made = Cluster(registry)
    for name in ("default", "kube-system", "kube-node-lease"):
        await made.create(NAMESPACE, {"metadata": {"name": name}})
    async with open_scheduler(
        store, registry, Binder(registry, time.time_ns, transactions.node_locks), SchedulerSettings()
    ) as scheduler:
        made.live()
        made.begin(hollow(registry, SHAPES[:2]).run())
        made.begin(RegistryControllers(registry, profile=QUICK).run())
        made.begin(scheduler.run())
        try:
            yield made
            assert [task for task in made.tasks if task.done()] == []
        finally:
            for task in made.tasks:
                task.cancel()
            await asyncio.gather(*made.tasks, return_exceptions=True)
    await registry.aclose()


@pytest.fixture
def story() -> Callable[[Callable[[Cluster], Awaitable[None]]], None]:
    def told(what: Callable[[Cluster], Awaitable[None]]) -> None:
        async def run() -> None:
            async with cluster() as made:
                await what(made)

        asyncio.run(run())

    return told


def spread(kind: str, replicas: int) -> Object:
    """A workload of which each node has a part, and that tolerates nothing for long."""
    made = template(app="web")
    keys = ("node.kubernetes.io/not-ready", UNREACHABLE)
    made["spec"]["tolerations"] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0} for key in keys
    ]
    made["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    spec: Object = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": made}
    if kind == "StatefulSet":
        spec |= {"serviceName": "web", "podManagementPolicy": "Parallel"}
    return {"metadata": {"name": "web"}, "spec": spec}


Story = Callable[[Callable[[Cluster], Awaitable[None]]], None]


def test_the_pods_of_a_node_whose_agent_dies_are_replaced_elsewhere_and_it_may_come_back(story: Story) -> None:
    async def told(made: Cluster) -> None:
        await made.create(DEPLOYMENT, spread("Deployment", 6))
        await made.until(lambda: len(made.on(DIES)) == 2 and made.running_elsewhere() == 4)
        await made.die()
        await made.until(lambda: (UNREACHABLE, "NoExecute") in made.taints())
        assert (UNREACHABLE, "NoSchedule") in made.taints()
        reports = {one["type"]: (one["status"], one["reason"]) for one in made.node()["status"]["conditions"]}
        assert reports["Ready"] == reports["MemoryPressure"] == ("Unknown", "NodeStatusUnknown")
        await made.until(lambda: made.running_elsewhere() == 6)
        await made.until(lambda: made.on(DIES) == [])  # its agent has promised that they have stopped
        made.live()
        await made.until(lambda: made.taints() == [] and made.on(DIES) == [])
        assert len(made.all(POD)) == 6

    story(told)


def test_all_that_is_left_of_a_node_that_is_deleted_goes(story: Story) -> None:
    async def told(made: Cluster) -> None:
        await made.create(STATEFUL_SET, spread("StatefulSet", 3))
        await made.until(lambda: len(made.on(DIES)) == 1 and made.running_elsewhere() == 2)
        await made.die()
        await made.promise_nothing()
        await made.until(lambda: made.on(DIES) and "deletionTimestamp" in made.on(DIES)[0]["metadata"])
        await asyncio.sleep(0.3)
        assert len(made.on(DIES)) == 1  # nobody knows whether it still runs
        assert made.one(LEASE, DIES, "kube-node-lease") is not None
        await made.registry.delete(Target(NODE, "", DIES), SYSTEM)
        await made.until(lambda: made.on(DIES) == [] and made.running_elsewhere() == 3)
        assert made.one(SNAPSHOT, DIES) is None

    story(told)


def test_a_pod_of_a_stateful_set_and_one_that_asks_for_it_are_bound_elsewhere_with_the_next_version(
    story: Story,
) -> None:
    async def told(made: Cluster) -> None:
        await made.create(STATEFUL_SET, spread("StatefulSet", 3))
        await made.until(lambda: len(made.on(DIES)) == 1 and made.running_elsewhere() == 2)
        (old,) = made.on(DIES)
        there = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [DIES]}]}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": there}]}
        spec = {**spread("Deployment", 1)["spec"]["template"]["spec"], "affinity": {"nodeAffinity": preferred}}
        await made.create(POD, {"metadata": {"name": "lone", "annotations": {REBIND: "true"}}, "spec": spec})
        await made.until(lambda: [one["status"]["phase"] for one in made.on(DIES)] == ["Running"] * 2)
        first = made.one(POD, "lone")
        await made.die()
        await made.until(lambda: made.on(DIES) == [] and made.running_elsewhere() == 4)
        second = made.one(POD, "lone")
        assert first is not None
        assert second is not None
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
        for name in ("lone", old["metadata"]["name"]):
            decision = made.one(DECISION, name)
            assert decision is not None
            assert decision["spec"]["bindingVersion"] == 2
            phases = [one["phase"] for one in decision["status"]["phases"]]
            assert phases[phases.index("evicted") :][:3] == ["evicted", "rebinding", "bound"]
        assert (made.one(SNAPSHOT, DIES) or {})["spec"].get("pods", []) == []

    story(told)


def test_a_cordon_is_a_taint_and_goes_with_it(story: Story) -> None:
    async def told(made: Cluster) -> None:
        await made.until(made.node)
        target = Target(NODE, "", DIES)
        await made.registry.patch(target, "merge", {"spec": {"unschedulable": True}}, SYSTEM)
        await made.until(lambda: made.taints() == [("node.kubernetes.io/unschedulable", "NoSchedule")])
        await made.registry.patch(target, "merge", {"spec": {"unschedulable": None}}, SYSTEM)
        await made.until(lambda: made.taints() == [])

    story(told)


def test_what_is_decided_by_an_expired_lease_is_refused_once_it_is_renewed(story: Story) -> None:
    async def told(made: Cluster) -> None:
        spec = {**template(app="web")["spec"], "nodeName": DIES}
        await made.until(lambda: made.one(NODE, DIES) is not None)
        await made.create(POD, {"metadata": {"name": "lone"}, "spec": spec})
        await made.until(lambda: (made.one(POD, "lone") or {}).get("status", {}).get("phase") == "Running")
        await made.die()
        port, lone = RegistryPort(made.registry, time.time_ns), made.one(POD, "lone") or {}
        meta = lone["metadata"]
        ref = ObjectRef("v1", "Pod", "default", "lone", meta["uid"])
        held = made.registry.cache.get(LEASE, "kube-node-lease", DIES)
        assert held is not None
        lease = LeaseVersion(DIES, str(held.revision))
        await made.promise_nothing()  # any write will do
        for effect in (
            PatchStatus(ref, meta["resourceVersion"], {"phase": "Failed"}, lease),
            DeleteObject(ref, grace_s=0, lease=lease),
            RebindPod(ref, meta["resourceVersion"], lease),
            RebindPod(ref, meta["resourceVersion"], LeaseVersion(DIES, "")),
        ):
            with pytest.raises(RefusedError, match="the lease has been written since"):
                await port.perform(effect)
        assert made.one(POD, "lone") == lone

    story(told)
