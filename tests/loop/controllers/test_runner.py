"""The runner of controllers: whom it calls, when it waits, what it does with a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    ObjectRef,
    RecordEvent,
    UpdateObject,
    UpdateStatus,
)
from situate.loop.controllers.cache import Collect, ControllerCache, Empty, Reconcile, ServedKind
from situate.loop.controllers.event_limit import BURST
from situate.loop.controllers.performing import ALONE, EFFECTS
from situate.loop.controllers.port import RefusedError, WriteResult
from situate.loop.controllers.runner import WORKERS, Runner

DEPLOYMENTS = ServedKind("apps/v1", "Deployment", "deployments")
REPLICA_SETS = ServedKind("apps/v1", "ReplicaSet", "replicasets")
PODS = ServedKind("v1", "Pod", "pods")
NAMESPACES = ServedKind("v1", "Namespace", "namespaces")
CONFIG_MAPS = ServedKind("v1", "ConfigMap", "configmaps")
ACCOUNTS = ServedKind("v1", "ServiceAccount", "serviceaccounts")
SERVED = (DEPLOYMENTS, REPLICA_SETS, PODS, NAMESPACES, CONFIG_MAPS, ACCOUNTS)


class Cluster:
    """Objects, and a port that writes them; `slow` keeps what was written from being seen until it is let go."""

    def __init__(self) -> None:
        self.revision = 0
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.done: list[Effect] = []
        self.refuse: Callable[[Effect], str] = lambda _: ""
        self.slow = False
        self.held_back: list[Callable[[], None]] = []
        self.runner = Runner(SERVED, self, lambda: int(asyncio.get_event_loop().time() * 1_000))

    def put(self, served: ServedKind, body: dict[str, Any]) -> int:
        self.revision += 1
        meta = {"uid": f"uid-{body['metadata']['name']}", **body["metadata"], "resourceVersion": str(self.revision)}
        self.objects[served.kind, meta["name"]] = {**body, "metadata": meta}
        encoded = msgspec.json.encode(self.objects[served.kind, meta["name"]])
        self._tell(lambda: self.runner.seen(served, encoded))
        return self.revision

    def drop(self, served: ServedKind, name: str) -> None:
        self.revision += 1
        gone = self.objects.pop((served.kind, name))
        revision = self.revision
        self._tell(lambda: self.runner.gone(served, gone["metadata"].get("namespace", ""), name, revision))

    def _tell(self, how: Callable[[], None]) -> None:
        if self.slow:
            self.held_back.append(how)
        else:
            how()

    def let_go(self) -> None:
        self.slow = False
        for how in self.held_back:
            how()
        self.held_back.clear()

    async def perform(self, effect: Effect) -> WriteResult | None:
        self.done.append(effect)
        if problem := self.refuse(effect):
            raise RefusedError(problem)
        served = {one.kind: one for one in SERVED}
        match effect:
            case CreateObject(ref=ref, body=body):
                return WriteResult(ref, self.put(served[ref.kind], dict(body)))
            case UpdateStatus(ref=ref, status=status):
                body = {**self.objects[ref.kind, ref.name], "status": dict(status)}
                return WriteResult(ref, self.put(served[ref.kind], body))
            case UpdateObject(ref=ref, patch=patch):
                found = self.objects[ref.kind, ref.name]
                meta = {**found["metadata"], **patch.get("metadata", {})}
                body = {**found, **{key: value for key, value in patch.items() if key != "metadata"}, "metadata": meta}
                return WriteResult(ref, self.put(served[ref.kind], body))
            case DeleteObject(ref=ref):
                self.drop(served[ref.kind], ref.name)
                return WriteResult(ref, None)
            case _:
                return None

    async def is_gone(self, ref: ObjectRef) -> bool:
        return (ref.kind, ref.name) not in self.objects

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [body for (found, _), body in self.objects.items() if found == kind]


def replica_set(replicas: int = 3) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}},
        },
    }


def story(told: Callable[[Cluster], Coroutine[Any, Any, None]]) -> Cluster:
    async def run() -> Cluster:
        cluster = Cluster()
        cluster.put(NAMESPACES, {"metadata": {"name": "default"}, "spec": {"finalizers": ["kubernetes"]}})
        running = asyncio.create_task(cluster.runner.run())
        await asyncio.sleep(0)
        telling = asyncio.create_task(told(cluster))
        done, _ = await asyncio.wait([running, telling], timeout=10, return_when=asyncio.FIRST_COMPLETED)
        for task in (running, telling):
            task.cancel()
        await asyncio.gather(running, telling, return_exceptions=True)
        if not done:
            raise TimeoutError("the story did not come to its end")
        done.pop().result()
        return cluster

    return asyncio.run(run())


async def settled(cluster: Cluster) -> None:
    """Until nobody has anything to do; a few turns in a row, as work begets work."""
    quiet = 0
    while quiet < 20:
        await asyncio.sleep(0.001)
        quiet = quiet + 1 if cluster.runner.idle else 0


def test_what_is_asked_for_is_made_and_then_nothing_more() -> None:
    async def told(cluster: Cluster) -> None:
        cluster.put(REPLICA_SETS, replica_set())
        await settled(cluster)

    cluster = story(told)
    assert len(cluster.of("Pod")) == 3
    assert len([one for one in cluster.done if isinstance(one, CreateObject) and one.ref.kind == "Pod"]) == 3


def test_few_events_are_recorded_about_one_object() -> None:
    async def told(cluster: Cluster) -> None:
        cluster.put(REPLICA_SETS, replica_set(2 * BURST))
        await settled(cluster)

    cluster = story(told)
    assert len(cluster.of("Pod")) == 2 * BURST
    assert len([one for one in cluster.done if isinstance(one, RecordEvent)]) == BURST


def test_nobody_is_called_again_before_what_it_wrote_was_seen() -> None:
    async def told(cluster: Cluster) -> None:
        await settled(cluster)
        cluster.done.clear()
        cluster.put(REPLICA_SETS, replica_set(1))
        while not cluster.done:
            cluster.slow = True
            await asyncio.sleep(0.001)
        for _ in range(20):  # told of the set again and again, with a view in which its pod is missing
            cluster.runner.seen(REPLICA_SETS, msgspec.json.encode(cluster.objects["ReplicaSet", "web"]))
            await asyncio.sleep(0.001)
        assert len([one for one in cluster.done if isinstance(one, CreateObject)]) == 1
        cluster.let_go()
        await settled(cluster)

    assert len(story(told).of("Pod")) == 1


def many(number: int, replicas: int) -> dict[str, Any]:
    made = replica_set(replicas)
    made["metadata"] = {"name": f"many-{number}", "namespace": "greedy"}
    return made


def test_a_namespace_whose_writes_never_end_delays_no_other() -> None:
    """All its controllers hang in their writes, more than may run at once."""

    async def told(cluster: Cluster) -> None:
        hanging = asyncio.Event()
        perform = cluster.perform

        async def hang(effect: Effect) -> WriteResult | None:
            if effect.ref.namespace == "greedy":
                await hanging.wait()
            return await perform(effect)

        cluster.perform = hang  # type: ignore[method-assign]
        for number in range(2 * WORKERS):
            cluster.put(REPLICA_SETS, many(number, 1))
        await asyncio.sleep(0.05)
        cluster.put(REPLICA_SETS, replica_set(5))
        while len(cluster.of("Pod")) < 5:
            await asyncio.sleep(0.001)
        hanging.set()

    assert len(story(told).of("Pod")) >= 5


def test_few_writes_are_in_flight_at_once_and_namespaces_take_turns_with_them() -> None:
    async def told(cluster: Cluster) -> None:
        perform, order = cluster.perform, []
        flying = most = 0

        async def slow(effect: Effect) -> WriteResult | None:
            nonlocal flying, most
            order.append(effect.ref.namespace)
            flying += 1
            most = max(most, flying)
            await asyncio.sleep(0.001)
            flying -= 1
            return await perform(effect)

        cluster.perform = slow  # type: ignore[method-assign]
        for number in range(2 * WORKERS):
            cluster.put(REPLICA_SETS, many(number, 100))
        while len(order) < 1_000:
            await asyncio.sleep(0.001)
        assert most == ALONE
        begun = len(order)
        cluster.put(REPLICA_SETS, replica_set(2))
        while order.count("default") < 2:
            await asyncio.sleep(0.001)
        # Two rounds, because creates start slowly: one, then the rest.
        assert len(order) - begun < 10 * EFFECTS

    story(told)


def test_a_refused_create_is_told_to_its_owner_and_tried_again_until_it_is_not() -> None:
    async def told(cluster: Cluster) -> None:
        refusals = iter(["exceeded quota: pods=0"] * 3)
        cluster.refuse = lambda effect: (
            next(refusals, "") if isinstance(effect, CreateObject) and effect.ref.kind == "Pod" else ""
        )
        cluster.put(REPLICA_SETS, replica_set(1))
        while not cluster.of("Pod"):
            await asyncio.sleep(0.005)
        await settled(cluster)

    cluster = story(told)
    said = [one for one in cluster.done if isinstance(one, RecordEvent) and one.reason == "FailedCreate"]
    assert len(said) == 3
    assert said[0].message == "Error creating: exceeded quota: pods=0"
    failures = [
        condition
        for one in cluster.done
        if isinstance(one, UpdateStatus)
        for condition in one.status.get("conditions", ())
        if condition["type"] == "ReplicaFailure"
    ]
    assert failures[0]["message"] == "exceeded quota: pods=0"
    assert (
        "conditions" not in cluster.of("ReplicaSet")[0]["status"]
        or not cluster.of("ReplicaSet")[0]["status"]["conditions"]
    )


def test_what_nobody_owns_any_more_is_deleted() -> None:
    async def told(cluster: Cluster) -> None:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-owner"}
        cluster.put(CONFIG_MAPS, {"metadata": {"name": "owner", "namespace": "default"}})
        owned = {"name": "owned", "namespace": "default", "ownerReferences": [owner]}
        cluster.put(CONFIG_MAPS, {"metadata": owned})
        await settled(cluster)
        assert len(cluster.of("ConfigMap")) == 2
        cluster.drop(CONFIG_MAPS, "owner")
        await settled(cluster)

    assert story(told).of("ConfigMap") == []


def test_everybody_is_called_once_after_a_restart() -> None:
    async def run() -> list[Effect]:
        cluster = Cluster()
        cluster.put(REPLICA_SETS, replica_set(2))  # before it runs
        running = asyncio.create_task(cluster.runner.run())
        await settled(cluster)
        while len(cluster.of("Pod")) < 2:
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return cluster.done

    assert len([one for one in asyncio.run(run()) if isinstance(one, CreateObject)]) == 2


@pytest.mark.parametrize(
    "changed, called",
    [
        pytest.param(
            (PODS, {"metadata": {"name": "p", "namespace": "a", "uid": "1"}}), [], id="a pod that is nobody's"
        ),
        pytest.param(
            (CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "a", "uid": "2"}}),
            [],
            id="an object that owns nothing",
        ),
        pytest.param(
            (NAMESPACES, {"metadata": {"name": "a", "uid": "3", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            [Empty("a"), Collect("3")],
            id="a namespace that is being deleted",
        ),
    ],
)
def test_whom_a_change_concerns(changed: tuple[ServedKind, dict[str, Any]], called: list[Any]) -> None:
    served, body = changed
    tasks = [
        task
        for task in ControllerCache(SERVED).put(served, msgspec.json.encode(body))
        if not isinstance(task, Reconcile)
    ]
    assert tasks == called


def test_another_object_of_the_same_name_is_another() -> None:
    view = ControllerCache(SERVED)
    first = {"metadata": {"name": "c", "namespace": "a", "uid": "1", "resourceVersion": "1"}}
    owned = {
        "metadata": {
            "name": "d",
            "namespace": "a",
            "uid": "2",
            "resourceVersion": "2",
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"}],
        }
    }
    for body in (first, owned):
        view.put(CONFIG_MAPS, msgspec.json.encode(body))
    again = {"metadata": {"name": "c", "namespace": "a", "uid": "3", "resourceVersion": "3"}}
    assert Collect("2") in view.put(CONFIG_MAPS, msgspec.json.encode(again))
    assert view.graph.by_uid("1") is None
