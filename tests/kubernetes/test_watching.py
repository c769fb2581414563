"""Seeing a real cluster: every kind, through restarts, compaction, cuts, and with fewer rights than needed."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import pytest

from kubernetes.cluster import Cluster
from kubernetes.objects import GROUPS_API, pod, pod_group
from kubernetes.proxy import FaultProxy, Faults
from situate.core.changes import Change, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodSeen
from situate.kube.client import Client
from situate.kube.informers import Informers
from situate.kube.kinds import ALL_KINDS, CUSTOM_POD_GROUPS, NODES, POD_GROUPS, PODS, SERVICES, WatchedKind
from situate.kube.kubeconfig import find_access
from situate.wire.objects import decode

LIMIT_S = 60.0
FEW = (NODES, SERVICES, PODS)
VERSIONS = {POD_GROUPS: GROUPS_API.rpartition("/")[2]}

Known = dict[tuple[str, str, str], Any]


class Folded:
    """The state that what was told comes to. Nothing goes back, and nothing goes that was not there."""

    def __init__(self) -> None:
        self.known: Known = {}
        self._last: dict[tuple[str, str, str], int] = {}

    def tell(self, changes: list[Change]) -> None:
        for change in changes:
            match change:
                case PodSeen(item) | NodeSeen(item) | ObjectSeen(item):
                    key, version = key_of(item), int(item.metadata.resource_version)
                    assert version > self._last.get(key, 0), f"{key} went from {self._last[key]} to {version}"
                    self._last[key], self.known[key] = version, item
                case PodGone(ref):
                    assert self.known.pop(("Pod", ref.namespace, ref.name)).metadata.uid == ref.uid
                case NodeGone(name):
                    del self.known["Node", "", name]
                case ObjectGone(item):
                    del self.known[key_of(item)]
                case _:
                    raise AssertionError(change)


def key_of(item: Any) -> tuple[str, str, str]:
    return type(item).__name__, item.metadata.namespace, item.metadata.name


def served(cluster: Cluster, kinds: tuple[WatchedKind, ...]) -> list[WatchedKind]:
    """Of these kinds, those that the server has."""
    found = []
    for kind in kinds:
        version = VERSIONS.get(kind, "v1")
        # PodGroups of a definition: the cluster has none, unless a test makes it.
        if kind not in CUSTOM_POD_GROUPS and (
            not kind.optional
            or kind.resource in (one["name"] for one in cluster.api.get(kind.group_path(version))["resources"])
        ):
            found.append(kind)
    return found


def on_the_server(cluster: Cluster, kinds: tuple[WatchedKind, ...]) -> Known:
    """What the API server has now, read by the other way: as files are."""
    found: Known = {}
    for kind in served(cluster, kinds):
        for one in cluster.api.items(kind.path(VERSIONS.get(kind, "v1"))):
            item = decode(kind.model, json.dumps(one).encode())
            if kind is not PODS or one["status"]["phase"] not in ("Succeeded", "Failed"):
                found[key_of(item)] = item
    return found


class Scene:
    def __init__(self, cluster: Cluster, watching: Informers, folded: Folded, kinds: tuple[WatchedKind, ...]) -> None:
        self.cluster, self.watching, self.folded, self._kinds = cluster, watching, folded, kinds

    async def do(self, what: Callable[..., object], *arguments: object) -> Any:
        return await asyncio.to_thread(what, *arguments)

    async def until(self, holds: Callable[[], object], what: str) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not holds():
                await asyncio.sleep(0.02)

    async def until_the_same(self) -> None:
        """Both ways of looking agree, on every field that scheduling reads."""
        there: Known = {}
        try:
            async with asyncio.timeout(LIMIT_S):
                while self.folded.known != (there := await self.do(on_the_server, self.cluster, self._kinds)):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            known = self.folded.known
            differ = [key for key in {*there, *known} if there.get(key) != known.get(key)]
            raise AssertionError(f"not the same: {differ[:5]}") from None

    def lists(self) -> int:
        return sum(one.lists for one in self.watching.reflectors)


def seen(
    cluster: Cluster,
    script: Callable[[Scene], Awaitable[None]],
    *,
    kinds: tuple[WatchedKind, ...] = FEW,
    kubeconfig: str = "",
    synced: bool = True,
) -> None:
    async def play() -> None:
        async with _scene(cluster, kinds, kubeconfig) as scene:
            if synced:
                async with asyncio.timeout(LIMIT_S):
                    await scene.watching.until_synced()
            await script(scene)

    asyncio.run(play())


@asynccontextmanager
async def _scene(cluster: Cluster, kinds: tuple[WatchedKind, ...], kubeconfig: str) -> Any:
    folded = Folded()
    async with Client(find_access(kubeconfig or str(cluster.kubeconfig)), qps=-1) as client:
        watching = Informers(client, kinds, folded.tell, dice=Random(1))
        running = asyncio.create_task(watching.run())
        try:
            yield Scene(cluster, watching, folded, kinds)
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    await asyncio.sleep(0.1)  # connections that were being opened are closed a few turns of the loop later


def churn(cluster: Cluster, dice: Random, count: int) -> None:
    """Pods and nodes come, change and go."""
    pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
    names = [f"p{number}" for number in range(8)]
    there: set[str] = {one["metadata"]["name"] for one in cluster.pods()}
    for _ in range(count):
        name = dice.choice(names)
        if name not in there:
            cluster.create(pod(name))
            there.add(name)
        elif dice.random() < 0.3:
            cluster.api.delete(f"{pods}/{name}?gracePeriodSeconds=0")
            there.discard(name)
        else:
            cluster.api.patch(f"{pods}/{name}", {"metadata": {"labels": {"turn": str(dice.randrange(10**6))}}})


OTHERS: tuple[Mapping[str, Any], ...] = (
    {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
    {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "spec": {
            "replicas": 0,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 1}},
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "storageClassName": "fast",
        "capacity": "10Gi",
    },
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/csi"},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "spec": {"storageCapacity": True}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": {"drivers": []}},
)


def test_every_kind_is_seen_as_it_is_on_the_server(cluster: Cluster) -> None:
    cluster.hollow_nodes(3, zones=2)
    cluster.create(*({**one, "metadata": {"name": "one"}} for one in OTHERS))
    cluster.create(pod_group("gang", 2), pod("a", group="gang"), pod("b"))

    async def script(scene: Scene) -> None:
        await scene.until_the_same()
        kinds = {kind for kind, _, _ in scene.folded.known}
        assert {"Node", "Pod", "Namespace", "PodGroup", *(one["kind"] for one in OTHERS)} <= kinds
        await scene.do(cluster.create, pod("c"))
        await scene.do(churn, cluster, Random(1), 20)
        await scene.until_the_same()
        shown = {one.name: one for one in scene.watching.shown()}
        assert all(one.synced and not one.problem for one in shown.values())
        assert [shown[kind.name].objects for kind in CUSTOM_POD_GROUPS] == [0, 0, 0]
        assert scene.lists() == len(served(cluster, ALL_KINDS))
        assert all(one.watches == 1 for one in scene.watching.reflectors if one.lists), "not one list by watch each"

    seen(cluster, script, kinds=ALL_KINDS)


def test_a_pod_that_finishes_is_gone(cluster: Cluster) -> None:
    cluster.create(pod("job"), pod("done"))
    path = f"/api/v1/namespaces/{cluster.namespace}/pods"
    cluster.api.patch(f"{path}/done/status", {"status": {"phase": "Failed"}})

    async def script(scene: Scene) -> None:
        await scene.until_the_same()
        assert ("Pod", cluster.namespace, "job") in scene.folded.known
        assert ("Pod", cluster.namespace, "done") not in scene.folded.known
        await scene.do(cluster.api.patch, f"{path}/job/status", {"status": {"phase": "Succeeded"}})
        await scene.until(lambda: ("Pod", cluster.namespace, "job") not in scene.folded.known, "the pod is gone")

    seen(cluster, script)


def test_lists_come_in_pages_where_the_server_cannot_begin_a_watch_with_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situate.kube.reflector.PAGE", 4)
    cluster.hollow_nodes(10)

    async def script(scene: Scene) -> None:
        for one in scene.watching.reflectors:
            one._streams_lists = False
        await scene.watching.until_synced()
        await scene.do(churn, cluster, Random(2), 10)
        await scene.until_the_same()
        assert all(one.watches == 1 for one in scene.watching.reflectors)

    seen(cluster, script, synced=False)


def test_watches_go_on_when_the_api_server_was_killed(cluster: Cluster) -> None:
    cluster.hollow_nodes(3)

    async def script(scene: Scene) -> None:
        await scene.do(churn, cluster, Random(3), 20)
        await scene.do(cluster.kill_apiserver)
        await scene.until(lambda: any(one.problem for one in scene.watching.shown()), "somebody notices")
        cluster.start_apiserver()  # by the thread that lives as long as it must
        await scene.do(churn, cluster, Random(4), 20)
        await scene.until_the_same()
        await scene.until(lambda: not any(one.problem for one in scene.watching.shown()), "no problem is left")

    seen(cluster, script)


def test_what_was_missed_while_history_was_compacted_is_listed(cluster: Cluster) -> None:
    cluster.hollow_nodes(3)
    with FaultProxy(cluster, seed=1) as proxy:
        kubeconfig = str(cluster.kubeconfig_for(cluster.tokens["admin"], server=proxy.url))

        async def script(scene: Scene) -> None:
            await scene.do(churn, cluster, Random(5), 20)
            await scene.until_the_same()
            lists = scene.lists()
            proxy.set(Faults(refuse=True))
            await scene.do(churn, cluster, Random(6), 20)
            await scene.do(cluster.compact_etcd)
            cluster.restart_apiserver()
            proxy.set(Faults())
            await scene.until_the_same()
            assert scene.lists() > lists
            await scene.do(churn, cluster, Random(7), 10)
            await scene.until_the_same()

        seen(cluster, script, kubeconfig=kubeconfig)


def test_watches_that_are_cut_all_the_time_miss_nothing(cluster: Cluster) -> None:
    cluster.hollow_nodes(2)
    with FaultProxy(cluster, seed=2) as proxy:
        kubeconfig = str(cluster.kubeconfig_for(cluster.tokens["admin"], server=proxy.url))
        proxy.set(Faults(cut_watches_after_s=0.2))

        async def script(scene: Scene) -> None:
            seed = 0
            while min(one.watches for one in scene.watching.reflectors) < 3:
                seed += 1
                await scene.do(churn, cluster, Random(seed), 25)
                await scene.until_the_same()
                assert not any(one.problem for one in scene.watching.shown())
            assert scene.lists() == len(FEW), "cuts led to lists"

        seen(cluster, script, kubeconfig=kubeconfig)


def test_without_rights_it_says_which_are_missing(cluster: Cluster) -> None:
    kubeconfig = str(cluster.kubeconfig_for(cluster.token_for("nobody")))

    async def script(scene: Scene) -> None:
        await scene.until(lambda: scene.watching.shown()[0].problem, "a problem")
        problem = scene.watching.shown()[0].problem
        assert problem.startswith("cannot list nodes: nodes is forbidden: User ")
        assert problem.endswith('grant "list" and "watch" on nodes in API group ""')
        assert not scene.watching.synced

    seen(cluster, script, kubeconfig=kubeconfig, synced=False)


def test_the_rights_that_kube_scheduler_has_suffice(cluster: Cluster) -> None:
    cluster.hollow_nodes(1)
    cluster.create(pod_group("gang", 2), pod("a", group="gang"))

    async def script(scene: Scene) -> None:
        await scene.until_the_same()
        assert [one.problem for one in scene.watching.shown() if one.problem] == []

    seen(cluster, script, kinds=ALL_KINDS, kubeconfig=str(cluster.scheduler_kubeconfig))


def groups_definition(kind: WatchedKind) -> dict[str, Any]:
    """As their schedulers install it, but for the schema, which allows anything."""
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    approved = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name, "annotations": {"api-approved.kubernetes.io": approved}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
            "versions": [{"name": kind.versions[0], "served": True, "storage": True, "schema": anything}],
        },
    }


def test_kinds_that_the_cluster_gets_later_are_seen_then_and_gone_when_they_are_taken_away(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situate.kube.reflector.LOOK_AGAIN_S", 0.2)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def define(kind: WatchedKind) -> None:
        cluster.api.post(definitions, groups_definition(kind))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{kind.name}")
        for name, count in (("g", 3), ("odd", "many")):
            group = {"kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": count}}
            path = f"{kind.group_path(kind.versions[0])}/namespaces/{cluster.namespace}/podgroups"
            cluster.api.post(path, {"apiVersion": f"{kind.group}/{kind.versions[0]}", **group})

    def key(kind: WatchedKind) -> tuple[str, str, str]:
        return kind.model.__name__, cluster.namespace, "g"

    async def script(scene: Scene) -> None:
        assert scene.watching.synced
        for kind in CUSTOM_POD_GROUPS:
            await scene.do(define, kind)
            await scene.until(partial(is_known, scene, key(kind)), f"the group of {kind.name} is seen")
            assert scene.folded.known[key(kind)].spec == {"minMember": 3}
            await scene.until(partial(has_odd_one, scene, kind), "the odd group is not")
        for kind in CUSTOM_POD_GROUPS:
            await scene.do(cluster.api.delete, f"{definitions}/{kind.name}")
            await scene.until(partial(is_gone, scene, key(kind)), f"the group of {kind.name} is gone")

    seen(cluster, script, kinds=(*CUSTOM_POD_GROUPS, PODS))


def is_known(scene: Scene, key: tuple[str, str, str]) -> bool:
    return key in scene.folded.known


def is_gone(scene: Scene, key: tuple[str, str, str]) -> bool:
    return key not in scene.folded.known


def has_odd_one(scene: Scene, kind: WatchedKind) -> bool:
    return [one.unreadable for one in scene.watching.shown() if one.name == kind.name] == [1]
