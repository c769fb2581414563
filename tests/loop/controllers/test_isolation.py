"""A failure about one object affects no other: the rest is reconciled, and an event says what is wrong."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from loop.controllers.test_runner import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    SERVED,
    Cluster,
    replica_set,
    settled,
    story,
)
from situate.core.model.apps import Deployment, ManagedReplicaSet
from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.reconcile import table
from situate.core.reconcile.effects import DeleteObject, Effect, ObjectRef, ReconcileError, RecordEvent, UpdateObject
from situate.core.reconcile.nodes import zones
from situate.core.reconcile.nodes.fencing import KUBERNETES
from situate.loop.controllers import runner, surveys
from situate.loop.controllers.cache import Collect, ControllerCache, Reconcile, ServedKind, UnreadableError
from situate.loop.controllers.port import RefusedError, WriteResult
from situate.loop.controllers.runner import Runner

NODES = ServedKind("v1", "Node", "nodes")
LEASES = ServedKind("coordination.k8s.io/v1", "Lease", "leases")


def named(name: str, replicas: int = 1) -> dict[str, Any]:
    one = replica_set(replicas)
    labels = {"app": name}
    one["metadata"]["name"] = name
    one["spec"]["selector"]["matchLabels"] = one["spec"]["template"]["metadata"]["labels"] = labels
    return one


def failing(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception, times: int = 1_000_000) -> None:
    """The controller of objects of this name raises."""
    real, left = table.reconcile, iter(range(times))

    def reconcile(one: Any, *rest: Any, **more: Any) -> Any:
        if one.metadata.name == name and next(left, None) is not None:
            raise error
        return real(one, *rest, **more)

    monkeypatch.setattr(runner, "reconcile", reconcile)


def errors(cluster: Cluster, kind: str) -> float:
    return cluster.runner.metrics.errors.values.get((kind,), 0)


def pods_of(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    return [pod for pod in cluster.of("Pod") if pod["metadata"]["labels"]["app"] == name]


def poisoned_then_well(cluster: Cluster) -> Coroutine[Any, Any, None]:
    async def told() -> None:
        cluster.put(REPLICA_SETS, named("poison"))
        cluster.put(REPLICA_SETS, named("well", 2))
        while len(pods_of(cluster, "well")) < 2:
            await asyncio.sleep(0.001)
        while not errors(cluster, "ReplicaSet"):
            await asyncio.sleep(0.001)

    return told()


@pytest.mark.parametrize(
    "error",
    [OverflowError("date value out of range"), ValueError("odd"), RecursionError("deep"), KeyError("x")],
    ids=repr,
)
def test_a_failing_controller_puts_an_event_on_its_object_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    failing(monkeypatch, "poison", error)
    with caplog.at_level(logging.ERROR):
        cluster = story(poisoned_then_well)
    (said, *_) = [one for one in cluster.done if isinstance(one, RecordEvent) and one.reason == "FailedReconcile"]
    assert (said.type, said.ref.kind, said.ref.name) == ("Warning", "ReplicaSet", "poison")
    assert said.message == f"Error reconciling: {type(error).__name__}: {error}"
    keys = caplog.records[0].__dict__["keys"]
    assert (keys["kind"], keys["namespace"], keys["name"]) == ("ReplicaSet", "default", "poison")
    assert keys["err"].startswith(f"{type(error).__name__}: {error}")
    assert pods_of(cluster, "poison") == []


def test_what_a_user_has_to_correct_is_a_warning_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing(monkeypatch, "poison", ReconcileError("FailedThing", "there is no such thing"))
    with caplog.at_level(logging.WARNING):
        story(poisoned_then_well)
    found = [record for record in caplog.records if record.__dict__["keys"].get("name") == "poison"]
    assert {record.levelno for record in found} == {logging.WARNING}


def test_a_controller_that_raised_is_called_again_until_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "poison", ValueError("odd"), times=3)

    async def told(cluster: Cluster) -> None:
        cluster.put(REPLICA_SETS, named("poison"))
        while not pods_of(cluster, "poison"):
            await asyncio.sleep(0.001)

    assert errors(story(told), "ReplicaSet") == 3


def test_an_effect_that_raises_affects_only_its_object(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Cluster):
        async def perform(self, effect: Effect) -> WriteResult | None:
            if effect.ref.kind == "Pod" and effect.ref.name.startswith("poison"):
                raise ZeroDivisionError("in the server")
            return await super().perform(effect)

    monkeypatch.setitem(story.__globals__, "Cluster", Broken)
    cluster = story(poisoned_then_well)
    assert len(pods_of(cluster, "well")) == 2
    said = [one.message for one in cluster.done if isinstance(one, RecordEvent) and one.reason == "FailedCreate"]
    assert said[0] == "Error creating: in the server"


def test_an_object_without_readable_metadata_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def told(cluster: Cluster) -> None:
        for body in (b"", b"[]", b'{"metadata":{"labels":{"a":1}}}', b'{"metadata":'):
            cluster.runner.seen(REPLICA_SETS, body, "default", "poison")
        cluster.put(REPLICA_SETS, named("well"))
        while not pods_of(cluster, "well"):
            await asyncio.sleep(0.001)

    with caplog.at_level(logging.ERROR):
        cluster = story(told)
    assert errors(cluster, "ReplicaSet") == 4
    assert caplog.records[0].__dict__["keys"]["name"] == "poison"


def unreadable(name: str, spec: Any, owner: str = "") -> bytes:
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7"}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}"}
        meta["ownerReferences"] = [{**reference, "controller": True}]
    return msgspec.json.encode({"metadata": meta, "spec": spec})


def test_nobody_acts_on_an_object_that_cannot_be_read_nor_instead_of_it() -> None:
    view = ControllerCache(SERVED)
    view.put(
        REPLICA_SETS, msgspec.json.encode({**named("web"), "metadata": {**named("web")["metadata"], "uid": "uid-web"}})
    )
    tasks = view.put(PODS, unreadable("p", {"nodeName": 7}, owner="web"))
    assert tasks[:2] == [Reconcile(ManagedPod, "default", "p"), Reconcile(ManagedReplicaSet, "default", "web")]
    with pytest.raises(UnreadableError, match="it cannot be read: Expected `str`"):
        view.check_readable(ManagedPod, "default", "p")
    with pytest.raises(UnreadableError, match="its Pod default/p cannot be read"):
        view.check_readable(ManagedReplicaSet, "default", "web")
    view.check_readable(Deployment, "default", "web")
    view.put(PODS, unreadable("p", {"nodeName": "n"}, owner="web"))
    view.check_readable(ManagedReplicaSet, "default", "web")
    view.put(PODS, unreadable("p", {"nodeName": 7}, owner="web"))
    view.drop(PODS, "default", "p", 9)
    view.check_readable(ManagedReplicaSet, "default", "web")


def test_a_set_with_a_pod_that_cannot_be_read_makes_no_other_in_its_place() -> None:
    async def told(cluster: Cluster) -> None:
        cluster.runner.seen(PODS, unreadable("p", {"nodeName": 7}, owner="poison"))
        cluster.put(REPLICA_SETS, named("poison"))
        cluster.put(REPLICA_SETS, named("well"))
        while not pods_of(cluster, "well") or not errors(cluster, "ReplicaSet"):
            await asyncio.sleep(0.001)
        await settled(cluster)

    assert pods_of(story(told), "poison") == []


def test_an_object_that_cannot_be_read_still_goes_with_its_owner() -> None:
    view = ControllerCache(SERVED)
    assert Collect("uid-p") in view.put(PODS, unreadable("p", {"nodeName": 7}, owner="web"))
    item = view.graph.by_uid("uid-p")
    assert item is not None
    assert item.meta.owner_references[0].name == "web"
    view.drop(PODS, "default", "p", 9)
    assert view.graph.by_uid("uid-p") is None


def test_the_pods_of_a_node_that_cannot_be_read_are_not_without_a_node() -> None:
    view = ControllerCache([NODES, PODS], KUBERNETES)
    view.put(NODES, b'{"metadata":{"name":"n","uid":"u"},"spec":{"taints":"none"}}', 5)
    assert view.objects.get(ManagedNode, "", "n") is not None
    with pytest.raises(UnreadableError):
        view.check_readable(ManagedNode, "", "n")


def test_a_lease_that_cannot_be_read_is_left_out() -> None:
    async def run() -> None:
        one = Runner([NODES, LEASES], Cluster(), lambda: 0, KUBERNETES)
        one.renewed(b'{"metadata":{"name":"bad"},"spec":{"leaseDurationSeconds":"long"}}', "kube-node-lease", "bad")
        one.renewed(b'{"metadata":{"name":"good"},"spec":{"renewTime":"1"}}')
        assert one.view.heartbeats is not None
        assert [name for name, _ in one.view.heartbeats.leases()] == ["good"]
        assert one.metrics.errors.values == {("Lease",): 1}

    asyncio.run(run())


def ready(name: str, status: str) -> bytes:
    conditions = [{"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    meta = {"name": name, "uid": name, "resourceVersion": "1"}
    return msgspec.json.encode({"metadata": meta, "spec": {}, "status": {"conditions": conditions}})


class Written:
    """A port that takes everything but what is about one object."""

    def __init__(self, refused: str = "") -> None:
        self.done: list[Effect] = []
        self._refused = refused

    async def perform(self, effect: Effect) -> WriteResult | None:
        if effect.ref.name == self._refused:
            raise ZeroDivisionError("in the server")
        self.done.append(effect)
        return None

    async def is_gone(self, ref: ObjectRef) -> bool:
        raise AssertionError(f"nobody asks for {ref}")


def surveyed(port: Written) -> Runner:
    """A runner in the year after its nodes were lost, when it has surveyed them."""

    async def run() -> Runner:
        now = 1_000_000
        one = Runner([NODES], port, lambda: now, KUBERNETES)
        for name, status in (("bad", "False"), ("lost", "False"), ("up-1", "True"), ("up-2", "True"), ("up-3", "True")):
            body = msgspec.json.decode(ready(name, status))
            body["metadata"]["labels"] = {"topology.kubernetes.io/zone": name if status == "False" else "up"}
            one.seen(NODES, msgspec.json.encode(body))
        running = asyncio.create_task(one.run())
        await asyncio.sleep(0)
        now += 3_600_000
        one._awake_at = now
        for name in ("up-1", "up-2", "up-3"):
            one.renewed(msgspec.json.encode({"metadata": {"name": name}, "spec": {"renewTime": "2"}}))
        one.seen(NODES, ready("new", "True"))
        async with asyncio.timeout(5):
            while not any(isinstance(each, UpdateObject) and each.ref.name == "lost" for each in port.done):
                now += 10
                one._awake_at = now
                await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return one

    return asyncio.run(run())


def test_a_node_that_cannot_be_surveyed_does_not_keep_the_others_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = zones.taint_lost_nodes

    def survey(objects: Any, *rest: Any) -> Any:
        if objects.get(ManagedNode, "", "bad") is not None:
            raise OverflowError("about the node bad")
        return real(objects, *rest)

    monkeypatch.setattr(surveys, "taint_lost_nodes", survey)
    assert surveyed(Written()).metrics.errors.values[("Node",)] >= 1


def test_a_node_that_cannot_be_written_does_not_keep_the_others_from_it() -> None:
    surveyed(Written(refused="bad"))


def test_a_namespace_is_emptied_of_what_can_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Cluster):
        async def perform(self, effect: Effect) -> WriteResult | None:
            if isinstance(effect, DeleteObject) and effect.ref.name == "a":
                raise ZeroDivisionError("in the server")
            return await super().perform(effect)

    monkeypatch.setitem(story.__globals__, "Cluster", Broken)

    async def told(cluster: Cluster) -> None:
        for name in ("a", "b", "c"):
            cluster.put(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "going"}})
        going = {"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}
        cluster.put(NAMESPACES, {"metadata": going, "spec": {"finalizers": ["kubernetes"]}})
        while len(cluster.of("ConfigMap")) > 1:
            await asyncio.sleep(0.001)

    assert [one["metadata"]["name"] for one in story(told).of("ConfigMap")] == ["a"]


@pytest.mark.parametrize("answer", [False, RefusedError("it cannot be read")], ids=["there", "unreadable"])
def test_what_an_unseen_owner_owns_is_not_garbage(monkeypatch: pytest.MonkeyPatch, answer: bool | Exception) -> None:
    class Behind(Cluster):
        async def is_gone(self, ref: ObjectRef) -> bool:
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setitem(story.__globals__, "Cluster", Behind)

    async def told(cluster: Cluster) -> None:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "unseen", "uid": "uid-unseen"}
        cluster.put(CONFIG_MAPS, {"metadata": {"name": "owned", "namespace": "default", "ownerReferences": [owner]}})
        while cluster.runner.refused < 2:
            await asyncio.sleep(0.001)

    assert len(story(told).of("ConfigMap")) == 1


def test_a_call_that_takes_long_is_logged_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner, "SLOW_S", 0.01)
    real = table.reconcile

    def reconcile(one: Any, *rest: Any, **more: Any) -> Any:
        if one.metadata.name == "slow":
            until = time.perf_counter() + 0.02
            while time.perf_counter() < until:
                pass
        return real(one, *rest, **more)

    monkeypatch.setattr(runner, "reconcile", reconcile)

    async def told(cluster: Cluster) -> None:
        cluster.put(DEPLOYMENTS, {"metadata": {"name": "slow", "namespace": "default"}, "spec": {}})
        while not cluster.runner.metrics.slow_calls.values:
            await asyncio.sleep(0.001)

    with caplog.at_level(logging.WARNING):
        cluster = story(told)
    assert cluster.runner.metrics.slow_calls.values[("Deployment",)] >= 1
    assert "slow" in [record.__dict__["keys"].get("name") for record in caplog.records]
