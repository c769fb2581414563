"""Whatever comes, changes and goes: cached verdicts equal fresh ones, and every kept sum equals a recount."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from situate.core.engine.framework import default_framework
from situate.core.model.base import Model
from situate.core.model.defaults import defaulted
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import Namespace
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from situate.core.model.workloads import Service
from situate.core.place import verdict_cache as standing_module
from situate.core.place.filtering import run_filters
from situate.core.place.placer import Placer
from situate.core.place.scoring import run_scorers
from situate.core.place.selecting import NOWHERE
from situate.core.place.verdict_cache import VerdictCache
from situate.core.state import cluster as cluster_module
from situate.core.state import terms as terms_module
from situate.core.state import topology as topology_module
from situate.core.state import view as view_module
from situate.core.state.audit import audit
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

T = TypeVar("T", bound=Model)

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NODES = [f"n{at}" for at in range(6)]
PODS = [f"p{at}" for at in range(14)]
DECIDING = default_framework()


def _object(kind: type[T], **fields: Any) -> T:
    return defaulted(msgspec.convert(fields, kind))


nodes = st.fixed_dictionaries(
    {
        "zone": st.sampled_from(["a", "b", None]),
        "disk": st.sampled_from(["ssd", "hdd", None]),
        "cpu": st.sampled_from(["1", "2", "4"]),
        "pods": st.sampled_from(["2", "10"]),
        "gpu": st.sampled_from([None, "2"]),
        "taint": st.sampled_from([None, ("k", "NoSchedule"), ("k", "PreferNoSchedule"), ("m", "PreferNoSchedule")]),
        "unschedulable": st.booleans(),
        "image": st.booleans(),
    }
)


def make_node(name: str, shape: dict[str, Any]) -> Node:
    labels = {HOST: name, ZONE: shape["zone"], "disk": shape["disk"]}
    taints = [{"key": shape["taint"][0], "effect": shape["taint"][1]}] if shape["taint"] else []
    room = {"cpu": shape["cpu"], "memory": "4Gi", "pods": shape["pods"], "example.com/gpu": shape["gpu"]}
    return _object(
        Node,
        metadata={"name": name, "labels": {key: value for key, value in labels.items() if value is not None}},
        spec={"unschedulable": shape["unschedulable"], "taints": taints},
        status={
            "allocatable": {key: value for key, value in room.items() if value is not None},
            "images": [{"names": ["shop:v1"], "sizeBytes": 500 << 20}] if shape["image"] else [],
        },
    )


def _term(selects: dict[str, str], key: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": selects}, "topologyKey": key}


apps = st.sampled_from(["web", "db"])
keys = st.sampled_from([HOST, ZONE])
selected = st.sampled_from([{"app": "web"}, {"app": "db"}, {"app": "web"}, {"app": "db"}, {"index": "1"}])
terms = st.builds(_term, selected, keys)
namespaced_terms = st.builds(lambda term: {**term, "namespaceSelector": {"matchLabels": {"team": "red"}}}, terms)
affinities = st.one_of(
    st.none(),
    st.builds(lambda term: {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}, terms),
    st.builds(
        lambda term: {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        st.one_of(terms, namespaced_terms),
    ),
    st.builds(
        lambda weight, term, side: {
            side: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}
        },
        st.integers(1, 100),
        terms,
        st.sampled_from(["podAffinity", "podAntiAffinity"]),
    ),
    st.just(
        {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 7,
                        "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                    }
                ]
            }
        }
    ),
)
spreads = st.one_of(
    st.none(),
    st.builds(
        lambda selects, matching, key, skew, when: [
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": when,
                "labelSelector": {"matchLabels": selects},
                "matchLabelKeys": matching,
            }
        ],
        selected,
        st.sampled_from([[], [], [], ["index"]]),
        keys,
        st.integers(1, 2),
        st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    ),
)
shapes = st.fixed_dictionaries(
    {
        "app": apps,
        "index": st.sampled_from([None, "1", "2", "3"]),
        "namespace": st.sampled_from(["default", "other"]),
        "cpu": st.sampled_from([None, "100m", "1"]),
        "gpu": st.sampled_from([None, None, "1"]),
        "affinity": affinities,
        "spread": spreads,
        "selector": st.sampled_from([None, None, {"disk": "ssd"}]),
        "tolerates": st.booleans(),
        "port": st.sampled_from([None, None, 8080]),
        "claim": st.sampled_from([None, None, "data", "shared"]),
    }
)


def make_pod(name: str, shape: dict[str, Any], *, node: str = "", leaving: bool = False) -> Pod:
    asked = {"cpu": shape["cpu"], "example.com/gpu": shape["gpu"]}
    labels = {"app": shape["app"]} | ({"index": shape["index"]} if shape["index"] else {})
    metadata: dict[str, Any] = {"name": name, "namespace": shape["namespace"], "labels": labels}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    container = {
        "name": "c",
        "image": "shop:v1",
        "resources": {"requests": {key: value for key, value in asked.items() if value is not None}},
        "ports": [{"containerPort": shape["port"], "hostPort": shape["port"]}] if shape["port"] else [],
    }
    spec = {
        "containers": [container],
        "nodeName": node,
        "affinity": shape["affinity"],
        "topologySpreadConstraints": shape["spread"] or [],
        "nodeSelector": shape["selector"] or {},
        "tolerations": [{"key": "k", "operator": "Exists"}] if shape["tolerates"] else [],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": shape["claim"]}}] if shape["claim"] else [],
    }
    return _object(Pod, metadata=metadata, spec=spec, status={"phase": "Running" if node else "Pending"})


def _with_index(pod: Pod, index: str) -> Pod:
    labels = {**pod.metadata.labels, "index": index}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels))


def _storage() -> list[Any]:
    return [
        _object(StorageClass, metadata={"name": "local"}, provisioner="none", volumeBindingMode="WaitForFirstConsumer"),
        *(
            _object(
                PersistentVolumeClaim,
                metadata={"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
                spec={
                    "accessModes": [mode],
                    "storageClassName": "local",
                    "resources": {"requests": {"storage": "1Gi"}},
                    "volumeName": f"{namespace}-{name}",
                },
                status={"phase": "Bound"},
            )
            for namespace in ("default", "other")
            for name, mode in (("data", "ReadWriteOncePod"), ("shared", "ReadWriteMany"))
        ),
        *(
            _object(
                PersistentVolume,
                metadata={"name": f"{namespace}-{name}"},
                spec={
                    "accessModes": ["ReadWriteOncePod", "ReadWriteMany"],
                    "storageClassName": "local",
                    "capacity": {"storage": "1Gi"},
                    "csi": {"driver": "csi.example.com", "volumeHandle": f"{namespace}-{name}"},
                    "claimRef": {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}"},
                },
            )
            for namespace in ("default", "other")
            for name in ("data", "shared")
        ),
        *(
            _object(
                CSINode,
                metadata={"name": name},
                spec={"drivers": [{"name": "csi.example.com", "nodeID": name, "allocatable": {"count": 1}}]},
            )
            for name in NODES[:3]
        ),
    ]


class ClusterHistory(RuleBasedStateMachine):
    """Random histories of a small cluster. Every class that ever waited is asked about again after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.objects: dict[str, Any] = {}
        self.standings: dict[bytes, tuple[VerdictCache, Pod]] = {}
        for item in _storage():
            self._put(item)

    def _put(self, item: Any) -> None:
        self.objects[f"{type(item).__name__} {item.metadata.namespace}/{item.metadata.name}"] = item
        self.cluster.put_object(item)

    @rule(name=st.sampled_from(NODES), shape=nodes)
    def node_comes_or_changes(self, name: str, shape: dict[str, Any]) -> None:
        node = make_node(name, shape)
        self.objects[f"Node /{name}"] = node
        self.cluster.add_node(node)

    @rule(name=st.sampled_from(NODES))
    def node_goes(self, name: str) -> None:
        self.objects.pop(f"Node /{name}", None)
        self.cluster.remove_node(name)

    @rule(name=st.sampled_from(PODS), shape=shapes, node=st.sampled_from(NODES), leaving=st.booleans())
    def bound_pod_comes_or_changes(self, name: str, shape: dict[str, Any], node: str, leaving: bool) -> None:
        self._bind(make_pod(name, shape, node=node, leaving=leaving))

    def _bind(self, pod: Pod) -> None:
        self.objects[f"Pod {pod.metadata.namespace}/{pod.metadata.name}"] = pod
        self.cluster.add_pod(pod)

    @rule(name=st.sampled_from(PODS), namespace=st.sampled_from(["default", "other"]))
    def bound_pod_goes(self, name: str, namespace: str) -> None:
        self.objects.pop(f"Pod {namespace}/{name}", None)
        self.cluster.remove_pod(f"{namespace}/{name}")

    def _forget(self, item: Any) -> None:
        self.objects.pop(f"{type(item).__name__} {item.metadata.namespace}/{item.metadata.name}", None)
        self.cluster.forget_object(item)

    @rule(selects=selected)
    def service_comes_or_changes(self, selects: dict[str, str]) -> None:
        self._put(_object(Service, metadata={"name": "s", "namespace": "default"}, spec={"selector": selects}))

    @rule()
    def service_goes(self) -> None:
        self._forget(_object(Service, metadata={"name": "s", "namespace": "default"}))

    @rule(team=st.sampled_from(["red", "blue"]))
    def namespace_is_labelled(self, team: str) -> None:
        self._put(_object(Namespace, metadata={"name": "other", "labels": {"team": team}}))

    @rule(count=st.integers(0, 2))
    def volume_limit_changes(self, count: int) -> None:
        driver = {"name": "csi.example.com", "nodeID": "n0", "allocatable": {"count": count}}
        self._put(_object(CSINode, metadata={"name": "n0"}, spec={"drivers": [driver]}))

    @rule(name=st.sampled_from(["data", "shared"]))
    def claim_goes(self, name: str) -> None:
        self._forget(_object(PersistentVolumeClaim, metadata={"name": name, "namespace": "default"}))

    @rule()
    def storage_comes_back(self) -> None:
        for item in _storage():
            self._put(item)

    @rule(shape=shapes)
    def pod_waits(self, shape: dict[str, Any]) -> None:
        self._waiting(make_pod("waiting", shape))

    def _waiting(self, pod: Pod) -> VerdictCache:
        kind = self.cluster.class_of(pod)
        if kind.signature not in self.standings:
            self.standings[kind.signature] = (VerdictCache(self.cluster, DECIDING.profile, kind), pod)
        return self.standings[kind.signature][0]

    @rule(shape=shapes, names=st.lists(st.sampled_from(PODS), min_size=1, max_size=5, unique=True))
    def pods_of_a_class_are_placed(self, shape: dict[str, Any], names: list[str]) -> None:
        for name in names:
            self.cluster.remove_pod(f"{shape['namespace']}/{name}")
            self.objects.pop(f"Pod {shape['namespace']}/{name}", None)
            row = self._waiting(make_pod(name, shape)).choose()
            if row != NOWHERE:
                self._bind(make_pod(name, shape, node=self.cluster.nodes.names[row]))

    @invariant()
    def every_kept_sum_equals_a_recount(self) -> None:
        assert audit(self.cluster) == []

    @invariant()
    def every_standing_answer_equals_one_from_scratch(self) -> None:
        again = Cluster()
        for item in self.objects.values():
            if isinstance(item, Node):
                again.add_node(item)
            elif isinstance(item, Pod):
                again.add_pod(item)
            else:
                again.put_object(item)
        for standing, pod in self.standings.values():
            standing.refresh()
            kept = _answers(self.cluster, standing)
            kind = self.cluster.class_of(pod)
            assert kept == _from_scratch(self.cluster, kind)
            assert kept == _from_scratch(self.cluster, kind, once=True)
            assert kept == _from_scratch(self.cluster, self.cluster.stand_ins.of(kind))
            other = self.cluster.class_of(_with_index(pod, "1"))
            stand_in = self.cluster.stand_ins.of(other)
            if stand_in is not other:
                assert _from_scratch(self.cluster, other) == _from_scratch(self.cluster, stand_in)
            assert kept == _from_scratch(again, again.class_of(pod))
            best = _best(self.cluster, kind)
            assert standing.choose() == best
            assert Placer(self.cluster, DECIDING.profile, cache=False).choose(kind) == best


Answers = dict[str, tuple[bool, int | None]]


def _answers(cluster: Cluster, standing: VerdictCache) -> Answers:
    """Node name -> whether it is feasible, and its total if so."""
    return _by_name(cluster, standing.feasible, standing.total)


def _by_name(cluster: Cluster, feasible: Any, total: Any) -> Answers:
    return {
        name: (bool(feasible[row]), int(total[row]) if feasible[row] else None)
        for name, row in cluster.nodes.rows.items()
    }


def _from_scratch(cluster: Cluster, kind: PodClass, *, once: bool = False) -> Answers:
    view = View(cluster, once=once)
    filtered = run_filters(DECIDING.profile, kind, view)
    total: Any = np.zeros(view.size, np.int64)
    if filtered.feasible.any():
        total = run_scorers(DECIDING.profile, kind, view, filtered.feasible).total
    return _by_name(cluster, filtered.feasible, total)


def _best(cluster: Cluster, kind: PodClass) -> int:
    answers = _from_scratch(cluster, kind)
    rows = {cluster.nodes.rows[name]: total for name, (feasible, total) in answers.items() if feasible}
    if not rows:
        return NOWHERE
    highest = max(total for total in rows.values() if total is not None)
    return min(row for row, total in rows.items() if total == highest)


class SteadyNodes(ClusterHistory):
    """Nodes stay as they are: nothing is built anew, and every answer must be mended."""

    node_comes_or_changes = node_goes = namespace_is_labelled = None  # type: ignore[assignment]

    @initialize(made=st.lists(nodes, min_size=3, max_size=len(NODES)))
    def nodes_come(self, made: list[dict[str, Any]]) -> None:
        for name, shape in zip(NODES, made, strict=False):
            node = make_node(name, shape)
            self.objects[f"Node /{name}"] = node
            self.cluster.add_node(node)


class NarrowLimits(SteadyNodes):
    """Next to nothing may be kept: whatever has a limit is at it all the time."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        for module, limit, value in (
            (cluster_module, "TOUCHED_LIMIT", 3),
            (cluster_module, "IDLE_CLASSES", 2),
            (topology_module, "TALLY_BYTES", 64),
            (terms_module, "COUNTED_BYTES", 64),
            (view_module, "MEMO_CELLS", 40),
            (standing_module, "FEW_ROWS", 1),
        ):
            self._patch.setattr(module, limit, value)
        super().__init__()

    def teardown(self) -> None:
        self._patch.undo()


TestClusterHistory = ClusterHistory.TestCase
TestClusterHistory.settings = settings(max_examples=50, stateful_step_count=25)
TestSteadyNodes = SteadyNodes.TestCase
TestSteadyNodes.settings = settings(max_examples=60, stateful_step_count=25)
TestNarrowLimits = NarrowLimits.TestCase
TestNarrowLimits.settings = settings(max_examples=40, stateful_step_count=20)
