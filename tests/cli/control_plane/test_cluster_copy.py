"""A copy of a cluster, from a dump: what is kept, what is left out, and what is said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from situate.cli.control_plane.cluster_copy import HOLLOW, CopyOutcome, copy_cluster, hollow_copies
from situate.cli.input.manifests import Manifest
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.registry.registry import Registry
from situate.server.requests import Object
from situate.server.resources import BY_KIND
from situate.server.uids import new_uid
from situate.store.memory import MemoryStore
from situate.wire.errors import InputError

CREATED = "2026-03-01T10:00:00Z"


def node(name: str = "n1", *, ready: str = "True", **metadata: Any) -> Object:
    status = {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10", "example.com/gpu": "2"},
        "allocatable": {"cpu": "3500m", "memory": "7Gi", "pods": "10", "example.com/gpu": "2"},
        "conditions": [{"type": "Ready", "status": ready}],
    }
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "77", "creationTimestamp": CREATED, **metadata}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def pod(name: str, at: str = "n1", *, phase: str = "Running", owner: str = "", cpu: str = "1", **spec: Any) -> Object:
    meta: dict[str, Any] = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "creationTimestamp": CREATED}
    if owner:
        kind = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
        meta["ownerReferences"] = [{**kind, "uid": owner, "controller": True}]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    bound = {"nodeName": at} if at else {}
    whole = {"containers": [container], "serviceAccountName": "cart", **bound, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole, "status": {"phase": phase}}


def replica_set() -> Object:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@asynccontextmanager
async def empty_cluster() -> AsyncIterator[tuple[MemoryStore, Registry]]:
    store, extension = MemoryStore(), BindTransactions(time.time_ns, new_uid)
    registry = Registry(store, wall_ns=time.time_ns, new_uid=new_uid, extension=extension)
    await registry.start()
    try:
        yield store, registry
    finally:
        await registry.aclose()
        await store.aclose()


def dumped(*bodies: Object) -> list[Manifest]:
    return [Manifest("dump", "", one) for one in bodies]


def copied(*bodies: Object, then: Callable[[Registry, CopyOutcome], None]) -> None:
    async def run() -> None:
        async with empty_cluster() as (store, registry):
            then(registry, await copy_cluster(store, registry, dumped(*bodies)))

    asyncio.run(run())


def held(registry: Registry, version: str, kind: str, name: str, namespace: str = "") -> Object | None:
    resource = BY_KIND[version, kind]
    found = registry.cache.get(resource, namespace, name)
    return None if found is None else found.object(resource)


def in_shop(registry: Registry, name: str) -> Object:
    found = held(registry, "v1", "Pod", name, "shop")
    assert found is not None
    return found


def test_a_pod_keeps_its_node_its_uid_its_age_its_status_and_its_owner() -> None:
    def then(registry: Registry, outcome: CopyOutcome) -> None:
        found = in_shop(registry, "web-1")
        meta = found["metadata"]
        assert (meta["uid"], meta["creationTimestamp"]) == ("uid-web-1", CREATED)
        assert meta["ownerReferences"][0]["uid"] == "uid-web"
        assert (found["spec"]["nodeName"], found["status"]["phase"]) == ("n1", "Running")
        snapshot = held(registry, "situate.dev/v1alpha1", "NodeSnapshot", "n1")
        assert snapshot is not None
        assert snapshot["status"]["allocated"]["cpu"] == "1"
        assert outcome.copied["Pod"] == 1
        assert outcome.notes() == []

    copied(pod("web-1", owner="uid-web"), node(), replica_set(), then=then)


def test_an_owner_that_is_not_in_the_dump_is_forgotten() -> None:
    def then(registry: Registry, outcome: CopyOutcome) -> None:
        assert "ownerReferences" not in in_shop(registry, "web-1")["metadata"]

    copied(pod("web-1", owner="uid-of-a-custom-resource"), node(), then=then)


def test_nodes_become_hollow_ones_of_their_size_unless_they_were_not_ready() -> None:
    def then(registry: Registry, outcome: CopyOutcome) -> None:
        ((name, shape),) = hollow_copies(registry)
        assert (name, shape.cpu, shape.memory, shape.pods) == ("n1", "3500m", "7Gi", 10)
        assert shape.extended == {"example.com/gpu": "2"}
        assert shape.labels == {"disk": "ssd"}
        lost = held(registry, "v1", "Node", "lost")
        assert lost is not None
        assert HOLLOW not in lost["metadata"].get("annotations", {})

    copied(node(labels={"disk": "ssd"}), node("lost", ready="Unknown"), then=then)


def test_what_a_dump_of_nodes_and_pods_lacks_is_made_up() -> None:
    def then(registry: Registry, outcome: CopyOutcome) -> None:
        assert held(registry, "v1", "Namespace", "shop") is not None
        assert held(registry, "v1", "ServiceAccount", "cart", "shop") is not None
        gold = held(registry, "scheduling.k8s.io/v1", "PriorityClass", "gold")
        assert gold is not None
        assert gold["value"] == 7
        assert in_shop(registry, "a")["spec"]["priority"] == 7

    copied(node(), pod("a", priorityClassName="gold", priority=7), then=then)


def test_pods_that_ended_and_kinds_of_no_use_are_left_out_and_said() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"}}

    def then(registry: Registry, outcome: CopyOutcome) -> None:
        assert held(registry, "v1", "Secret", "s", "shop") is None
        assert held(registry, "v1", "Pod", "done", "shop") is None
        assert outcome.notes() == [
            "not copied: 1 Secret, 1 Widget (example.com/v1)",
            "not copied: 1 pod that had ended or was being deleted",
        ]

    copied(node(), secret, widget, pod("done", phase="Succeeded"), then=then)


def test_a_pod_for_which_its_node_has_no_room_is_left_out_with_the_reason() -> None:
    def then(registry: Registry, outcome: CopyOutcome) -> None:
        ((what, why),) = outcome.refused
        assert what.startswith("Pod shop/")
        assert "cpu" in why, why
        assert outcome.copied["Pod"] == 1

    copied(node(), pod("a", cpu="2"), pod("b", cpu="2"), then=then)


def test_a_pod_that_would_end_one_day_runs_as_long_as_hollow_pods_can() -> None:
    def then(registry: Registry, outcome: CopyOutcome) -> None:
        assert in_shop(registry, "a")["metadata"]["annotations"]["hollow.situate.dev/run-for"] == "168h"

    copied(node(), pod("a", restartPolicy="Never"), then=then)


@pytest.mark.parametrize(
    "bodies, text",
    [
        pytest.param([pod("a")], "there are no nodes in the dump", id="a dump without nodes"),
        pytest.param([node(), node()], 'Duplicate value: "n1"', id="a node that is there twice"),
        pytest.param([node(labels=7)], "labels", id="a node whose labels are a number"),
    ],
)
def test_what_is_no_dump_is_refused_and_nothing_is_written(bodies: list[Object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        copied(*bodies, then=lambda _registry, _outcome: None)


def test_a_cluster_that_has_nodes_is_not_overwritten() -> None:
    async def run() -> None:
        async with empty_cluster() as (store, registry):
            await copy_cluster(store, registry, dumped(node()))
            with pytest.raises(InputError, match="has nodes already"):
                await copy_cluster(store, registry, dumped(node("n2")))
            assert held(registry, "v1", "Node", "n2") is None

    asyncio.run(run())
