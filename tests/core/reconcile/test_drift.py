"""Pods that no longer fit or match their node: which they are, and which of them leave."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.managed import Budget, ManagedPod
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.reconcile.drift import MOVES, PERIOD_MS, drifted_pods, move_drifted
from situate.core.reconcile.effects import EvictManagedPod, RecordEvent
from situate.core.reconcile.objects import ObjectIndex

READY = [{"type": "Ready", "status": "True"}]
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}


def node(name: str = "n1", cpu: str = "4", **fields: Any) -> list[Any]:
    meta = {"name": name, "labels": fields.pop("labels", {}), **fields.pop("metadata", {})}
    room = {"cpu": cpu, "memory": "8Gi", "pods": str(fields.pop("pods", 110))}
    status = {"allocatable": room, "conditions": fields.pop("conditions", READY)}
    return [msgspec.convert({"metadata": meta, "spec": fields, "status": status}, Node)]


def pod(name: str, cpu: str = "1", *, owner: dict[str, Any] | None = OWNER, **fields: Any) -> list[Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"u-{name}", "labels": {"app": "web"}}
    meta |= {"ownerReferences": [] if owner is None else [owner], **fields.pop("metadata", {})}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": "n1", "containers": [container], **fields}
    body = {"metadata": meta, "spec": spec, "status": {"phase": "Running", "conditions": READY}}
    return [msgspec.convert(body, kind) for kind in (Pod, ManagedPod)]


def budget(allowed: int) -> list[Any]:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1, "expectedPods": 9}
    return [
        msgspec.convert({"metadata": {"name": "b", "namespace": "default"}, "spec": spec, "status": status}, Budget)
    ]


def found(*objects: list[Any]) -> list[tuple[str, str, str]]:
    index = ObjectIndex([one for each in objects for one in each])
    return [(one.pod.metadata.name, one.action, one.why) for one in drifted_pods(index, 0)]


def required(key: str, value: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    "changed, asked, drifted",
    [
        pytest.param({"labels": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}, False, id="its label is there"),
        pytest.param({"labels": {"disk": "hdd"}}, {"nodeSelector": {"disk": "ssd"}}, True, id="its label is another"),
        pytest.param({}, {"affinity": required("disk", "ssd")}, True, id="required affinity does not match"),
        pytest.param({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, {}, True, id="a taint it does not tolerate"),
        pytest.param(
            {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
            False,
            id="a taint it tolerates",
        ),
        pytest.param({"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}, {}, False, id="a soft taint"),
        pytest.param({"taints": [{"key": "x", "effect": "NoExecute"}]}, {}, False, id="NoExecute is another's work"),
        pytest.param(
            {"unschedulable": True, "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]},
            {},
            False,
            id="a cordon moves nobody",
        ),
        pytest.param(
            {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            {"nodeSelector": {"disk": "ssd"}},
            False,
            id="a lost node is another's work",
        ),
    ],
)
def test_a_pod_that_does_not_match_any_more_leaves(
    changed: dict[str, Any], asked: dict[str, Any], drifted: bool
) -> None:
    assert found(node(**changed), pod("a", **asked)) == ([("a", "evict", "")] if drifted else [])


def test_a_node_that_shrank_keeps_the_highest_priority_and_the_oldest() -> None:
    pods = [
        pod("high", priority=10),
        pod("old", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"}),
        pod("new", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"}),
        pod("low", priority=-5),
    ]
    assert found(node(cpu="4"), *pods) == []
    assert found(node(cpu="2"), *pods) == [("low", "evict", ""), ("new", "evict", "")]
    index = ObjectIndex([one for each in (node(cpu="2"), *pods) for one in each])
    assert drifted_pods(index, 0)[0].reason == "the node has cpu 2, and its pods ask for 4"


def test_the_limit_of_pods_counts_and_a_pod_that_leaves_makes_room() -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert found(node(pods=1), pod("a"), pod("b", metadata=going)) == []
    assert [name for name, _, _ in found(node(pods=1), pod("a", priority=1), pod("b"))] == ["b"]


def test_a_small_pod_stays_if_a_larger_one_had_to_leave_anyway() -> None:
    assert found(node(cpu="2"), pod("small", cpu="100m"), pod("large", cpu="2", priority=1)) == [("small", "evict", "")]
    assert found(node(cpu="1"), pod("small", cpu="100m"), pod("large", cpu="2", priority=1)) == [
        ("large", "evict", "")
    ], "without the large one there is room for the small one"


def test_a_pod_that_moves_because_of_its_labels_makes_room_for_the_others() -> None:
    assert found(node(cpu="1"), pod("a", priority=5, nodeSelector={"disk": "ssd"}), pod("b")) == [("a", "evict", "")]


@pytest.mark.parametrize(
    "fields, why",
    [
        pytest.param({"owner": None}, "no controller would create it again", id="bare"),
        pytest.param({"owner": {**OWNER, "kind": "DaemonSet"}}, "its DaemonSet decides", id="of a DaemonSet"),
        pytest.param(
            {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "it is a static pod", id="static"
        ),
    ],
)
def test_what_nobody_would_create_elsewhere_never_leaves(fields: dict[str, Any], why: str) -> None:
    assert found(node(), pod("a", nodeSelector={"disk": "ssd"}, **fields)) == [("a", "never", why)]
    assert found(node(cpu="1"), pod("a", **fields), pod("b", priority=7)) == [("a", "never", why), ("b", "evict", "")]


def test_a_budget_is_charged_with_each_pod_and_the_others_wait() -> None:
    pods = [pod(name, nodeSelector={"disk": "ssd"}) for name in "abc"]
    answers = found(node(), budget(2), *pods)
    assert [(name, action) for name, action, _ in answers] == [("a", "evict"), ("b", "evict"), ("c", "wait")]
    assert answers[2][2].startswith("The disruption budget b")


def test_a_period_has_a_limit_and_each_eviction_an_event() -> None:
    pods = [pod(f"p{number:03}", cpu="1m", nodeSelector={"disk": "ssd"}) for number in range(MOVES + 5)]
    index = ObjectIndex([one for each in (node(), *pods) for one in each])
    result = move_drifted(index, 1_000)
    evicted = [one.ref.name for one in result.effects if isinstance(one, EvictManagedPod)]
    assert evicted == [f"p{number:03}" for number in range(MOVES)]
    assert [one.ref.name for one in result.effects if isinstance(one, RecordEvent)] == evicted
    assert result.requeue_at == 1_000 + PERIOD_MS


@given(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(-2, 2), st.booleans()), max_size=12), st.integers(0, 8_000)
)
def test_who_stays_fits_and_nobody_leaves_in_vain(asked: list[tuple[int, int, bool]], milli_cpu: int) -> None:
    pods = [
        pod(f"p{number:02}", f"{cpu}m", owner=OWNER if owned else None, priority=priority)
        for number, (cpu, priority, owned) in enumerate(asked)
    ]
    answers = found(node(cpu=f"{milli_cpu}m"), *pods)
    leaves = {name for name, action, _ in answers if action == "evict"}
    left = {f"p{number:02}": cpu for number, (cpu, _, _) in enumerate(asked) if f"p{number:02}" not in leaves}
    may_leave = {f"p{number:02}" for number, (cpu, _, owned) in enumerate(asked) if owned and cpu}
    assert sum(left.values()) <= milli_cpu or not may_leave & left.keys(), "those who stay fit, or cannot leave"
    for name in leaves:
        cpu = asked[int(name[1:])][0]
        assert cpu, "one that asks for nothing does not help"
        assert sum(left.values()) + cpu > milli_cpu, "without this one the node would still be overfull"
