"""How things stand: worked out from what is stored, and the same as if counted by hand, whatever has happened."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.placing.world import World, tell
from situate.server.errors import StatusError
from situate.server.requests import SYSTEM, DeleteOptions, ListOptions, Object, Target
from situate.server.resources import BY_KIND
from situate.server.views import pod_counts
from situate.server.views.views import Views

GROUP = "situate.dev/v1alpha1"
WORKLOADS, NODES, NAMESPACES = (BY_KIND[GROUP, f"{kind}View"] for kind in ("Workload", "Node", "Namespace"))
PODS = BY_KIND["v1", "Pod"]


def story(work: Callable[[World, Views], Awaitable[None]]) -> None:
    async def run(world: World) -> None:
        views = Views(world.store, world.registry.cache)
        try:
            await work(world, views)
        finally:
            await views.aclose()

    tell(run)


async def shown(views: Views, resource: Any, namespace: str = "", **options: Any) -> dict[str, Object]:
    listing = await views.list(Target(resource, namespace), ListOptions(**options))
    return {one.name: one.object(resource)["status"] for one in listing.items}


def owned(kind: str, name: str, uid: str, api: str = "apps/v1") -> Object:
    reference = {"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}
    return {"ownerReferences": [reference]}


async def replica_set(world: World, name: str, owner: Object | None = None, replicas: int = 2) -> str:
    template = {"metadata": {"labels": {"a": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": name}}, "template": template}
    meta = {"name": name, "namespace": "default", **(owner or {})}
    held = await world.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec})
    return held.uid


async def deployment(world: World, name: str, replicas: int) -> str:
    template = {"metadata": {"labels": {"a": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": name}}, "template": template}
    meta = {"name": name, "namespace": "default"}
    held = await world.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    return held.uid


def test_the_pods_of_a_deployments_replica_sets_are_the_deployments() -> None:
    async def work(world: World, views: Views) -> None:
        await world.node()
        await world.node("n2")
        uid = await deployment(world, "web", 3)
        sets = [await replica_set(world, name, owned("Deployment", "web", uid)) for name in ("web-1", "web-2")]
        for name, of, node in (("a", 0, "n1"), ("b", 1, "n2"), ("c", 1, "")):
            await world.pod(name, metadata=owned("ReplicaSet", f"web-{of + 1}", sets[of]))
            if node:
                await world.binder.bind("default", name, node)
        await world.report("a", "Running", conditions=[{"type": "Ready", "status": "True"}])
        found = await shown(views, WORKLOADS)
        assert list(found) == ["deployment.web"]
        web = found["deployment.web"]
        assert (web["desired"], web["pods"], web["running"], web["readyPods"]) == (3, 3, 1, 1)
        assert (web["bound"], web["waiting"], web["nodes"]) == (1, 1, 2)
        assert web["requested"] == {"cpu": "2", "memory": "2147483648", "pods": "2"}

    story(work)


def test_a_workload_without_pods_and_a_pod_without_a_workload_are_shown_too() -> None:
    async def work(world: World, views: Views) -> None:
        await deployment(world, "none", 0)
        await replica_set(world, "alone")
        await world.pod("bare")
        found = await shown(views, WORKLOADS)
        assert {name: one["desired"] for name, one in found.items()} == {
            "deployment.none": 0,
            "pod.bare": 1,
            "replicaset.alone": 2,
        }

    story(work)


def test_a_node_shows_its_ledgers_sum_and_its_version() -> None:
    async def work(world: World, views: Views) -> None:
        await world.node(unschedulable=True)
        await world.pod("a", cpu="1500m", nodeName="n1")
        found = (await shown(views, NODES))["n1"]
        assert found["requested"] == {"cpu": "1500m", "memory": "1073741824", "pods": "1"}
        assert found["allocatable"]["cpu"] == "4"
        assert (found["schedulable"], found["pods"], found["bound"]) == (False, 1, 1)
        snapshot = world.registry.cache.get(BY_KIND[GROUP, "NodeSnapshot"], "", "n1")
        assert snapshot is not None
        assert found["snapshotVersion"] == str(snapshot.revision)

    story(work)


def test_a_namespace_shows_its_pods_and_workloads() -> None:
    async def work(world: World, views: Views) -> None:
        await world.node()
        await world.pod("a", nodeName="n1")
        await world.pod("b")
        found = await shown(views, NAMESPACES)
        assert (found["default"]["pods"], found["default"]["waiting"], found["default"]["workloads"]) == (2, 1, 2)
        assert found["kube-system"]["pods"] == 0

    story(work)


def test_one_is_got_by_its_name_and_one_that_is_not_there_is_not_found() -> None:
    async def work(world: World, views: Views) -> None:
        await world.pod("a")
        held = await views.get(Target(WORKLOADS, "default", "pod.a"))
        assert held.object(WORKLOADS)["status"]["waiting"] == 1
        for resource, namespace, name in ((WORKLOADS, "default", "pod.b"), (NODES, "", "n9"), (NAMESPACES, "", "x")):
            with pytest.raises(StatusError) as caught:
                await views.get(Target(resource, namespace, name))
            assert caught.value.code == 404

    story(work)


def test_selectors_choose_among_them() -> None:
    async def work(world: World, views: Views) -> None:
        await world.node("n1", labels={"zone": "a"})
        await world.node("n2", labels={"zone": "b"})
        assert list(await shown(views, NODES, labels="zone=b")) == ["n2"]
        assert list(await shown(views, NODES, fields="metadata.name=n1")) == ["n1"]

    story(work)


def test_they_cannot_be_watched() -> None:
    async def work(world: World, views: Views) -> None:
        from situate.server.requests import WatchOptions

        with pytest.raises(StatusError) as caught:
            await views.watch(Target(WORKLOADS), WatchOptions())
        assert caught.value.code == 405

    story(work)


def test_what_was_let_go_of_is_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_counts, "BACKLOG", 2)

    async def work(world: World, views: Views) -> None:
        await world.pod("p0")
        assert len(await shown(views, WORKLOADS)) == 1
        for number in range(1, 6):  # more than may wait
            await world.pod(f"p{number}")
        assert len(await shown(views, WORKLOADS)) == 6

    story(work)


STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "bind", "run", "fail", "delete", "look"]), st.integers(0, 4)), max_size=25
)


@given(STEPS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happened_the_counts_are_those_of_counting_all_pods(steps: list[tuple[str, int]]) -> None:
    async def work(world: World, views: Views) -> None:
        for number in range(2):
            await world.node(f"n{number}")
        for what, number in steps:
            try:
                await step(world, views, what, f"p{number}")
            except StatusError:
                continue  # nothing of that name, or not that way: as good
        await compare(world, views)

    story(work)


async def step(world: World, views: Views, what: str, name: str) -> None:
    match what:
        case "create":
            await world.pod(name)
        case "bind":
            await world.binder.bind("default", name, "n0" if name < "p3" else "n1")
        case "run":
            await world.report(name, "Running")
        case "fail":
            await world.report(name, "Failed")
        case "delete":
            await world.registry.delete(Target(PODS, "default", name), SYSTEM, DeleteOptions(grace_s=0))
        case "look":
            await compare(world, views)


async def compare(world: World, views: Views) -> None:
    pods = [held.object(PODS) for held in world.registry.cache.all(PODS)]

    def counted(chosen: list[Object]) -> dict[str, int]:
        states = [
            {"Failed": "failed", "Running": "running"}.get(
                one["status"]["phase"], "bound" if one["spec"].get("nodeName") else "waiting"
            )
            for one in chosen
        ]
        return {
            "pods": len(chosen),
            **{state: states.count(state) for state in ("waiting", "bound", "running", "failed")},
        }

    def seen(status: Object) -> dict[str, int]:
        return {key: status[key] for key in ("pods", "waiting", "bound", "running", "failed")}

    assert seen((await shown(views, NAMESPACES))["default"]) == counted(pods)
    for name, status in (await shown(views, NODES)).items():
        assert seen(status) == counted([one for one in pods if one["spec"].get("nodeName") == name])
    workloads = await shown(views, WORKLOADS)
    assert sorted(workloads) == sorted(f"pod.{one['metadata']['name']}" for one in pods)
    for one in pods:
        assert seen(workloads[f"pod.{one['metadata']['name']}"]) == counted([one])
