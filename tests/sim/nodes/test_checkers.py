"""What the checkers of simulated nodes allow, and what they do not."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from situate.core.reconcile.nodes.fencing import FAST
from situate.sim.nodes.checkers import BY_TAINT, NODES, PODS, NodeCheckers, ServerTimes
from situate.sim.nodes.pod_counts import DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.virtual_time import EPOCH_S, DriftingClock, VirtualLoop
from situate.store.transactions import Delete, Put

LATE_S = 30.0
GRACE_S = FAST.grace_ms / 1_000
PATIENCE_S = 5
UNREACHABLE = "node.kubernetes.io/unreachable"


class Written:
    """A store to which one server writes."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.log = RunLog(self.loop)
        self.checkers = NodeCheckers(self.loop, self.log, FAST, LATE_S)
        self.server = ServerTimes(DriftingClock(), GRACE_S)

    def put(self, key: str, body: dict[str, Any]) -> None:
        self.checkers.committed([Put(key, json.dumps(body).encode())], self.server)

    def delete(self, key: str) -> None:
        self.checkers.committed([Delete(key)], self.server)

    def workload(self, kind: str, name: str, size: int, owner: str = "") -> None:
        field = "completions" if kind == JOBS else "replicas"
        self.put(f"{kind}default/{name}", {"metadata": _owned("Deployment", owner), "spec": {field: size}})

    def pod(self, name: str, kind: str, owner: str, *, leaves: bool = False) -> None:
        meta = {"namespace": "default", "uid": f"uid-{name}", **_owned(kind, owner)}
        if leaves:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.put(f"{PODS}default/{name}", {"metadata": meta, "spec": {}})

    def node(self, name: str, *, given_up_at: float | None = None) -> None:
        status = {"conditions": [{"type": "Ready", "status": "True" if given_up_at is None else "Unknown"}]}
        taint = {"key": UNREACHABLE, "effect": "NoExecute"}
        if given_up_at is not None:
            taint["timeAdded"] = _time(given_up_at)
        self.put(
            f"{NODES}{name}",
            {"metadata": {}, "spec": {"taints": [] if given_up_at is None else [taint]}, "status": status},
        )

    def evict(self, name: str, node: str, *, announced_at: float | None = None) -> None:
        """Mark a pod for deletion that tolerates the loss of its node for `PATIENCE_S`."""
        toleration = {"key": UNREACHABLE, "tolerationSeconds": PATIENCE_S}
        spec = {"nodeName": node, "tolerations": [toleration]}
        meta, key = {"namespace": "default", "uid": f"uid-{name}"}, f"{PODS}default/{name}"
        self.put(key, {"metadata": meta, "spec": spec})
        condition = {"type": "DisruptionTarget", "reason": BY_TAINT}
        if announced_at is not None:
            now, self.loop.now = self.loop.now, announced_at
            self.put(key, {"metadata": meta, "spec": spec, "status": {"conditions": [condition]}})
            self.loop.now = now
        leaving = {**meta, "deletionTimestamp": _time(self.loop.now)}
        self.put(key, {"metadata": leaving, "spec": spec, "status": {"conditions": [condition]}})


def _owned(kind: str, owner: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": owner, "controller": True}]} if owner else {}


def _time(at: float) -> str:
    return datetime.fromtimestamp(EPOCH_S + at, UTC).isoformat()


@pytest.fixture
def written() -> Iterator[Written]:
    made = Written()
    yield made
    made.loop.close()


# -- pods of workloads -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, owner",
    [
        pytest.param(REPLICA_SETS, "ReplicaSet", id="a ReplicaSet"),
        pytest.param(JOBS, "Job", id="a Job"),
    ],
)
def test_one_pod_more_than_a_workload_asks_for_is_a_violation(written: Written, kind: str, owner: str) -> None:
    written.workload(kind, "one", 4)
    for name in "abcd":
        written.pod(name, owner, "one")
    assert written.log.violations == []
    written.pod("e", owner, "one")
    assert written.log.violations == ["one has 5 pods; it asked for 4"]


def test_a_pod_beyond_the_size_of_a_stateful_set_is_a_violation_and_one_that_is_replaced_is_none(
    written: Written,
) -> None:
    written.workload(STATEFUL_SETS, "db", 2)
    for name in ("db-1", "db-0"):
        written.pod(name, "StatefulSet", "db")
    assert written.log.violations == []
    written.pod("db-2", "StatefulSet", "db")
    assert written.log.violations == ["db creates pod 2; it asked for 2"]
    written.pod("db-0", "StatefulSet", "db")
    assert len(written.log.violations) == 1


def test_replica_sets_that_ask_for_more_than_size_and_surge_are_a_violation(written: Written) -> None:
    written.workload(DEPLOYMENTS, "web", 6)
    written.workload(REPLICA_SETS, "web-old", 6, "web")
    written.workload(REPLICA_SETS, "web-new", 2, "web")
    assert written.log.violations == []
    written.workload(REPLICA_SETS, "web-new", 3, "web")
    assert written.log.violations == ["the ReplicaSets of web ask for 9 pods; it asked for 6"]


def test_a_deleted_replica_set_asks_for_nothing(written: Written) -> None:
    written.workload(DEPLOYMENTS, "web", 6)
    written.workload(REPLICA_SETS, "web-old", 6, "web")
    written.delete(f"{REPLICA_SETS}default/web-old")
    written.workload(REPLICA_SETS, "web-new", 6, "web")
    assert written.log.violations == []


def test_a_new_replica_set_need_not_wait_for_the_pods_of_an_old_one(written: Written) -> None:
    written.workload(DEPLOYMENTS, "web", 6)
    written.workload(REPLICA_SETS, "web-old", 6, "web")
    written.workload(REPLICA_SETS, "web-new", 2, "web")
    for number in range(6):
        written.pod(f"old-{number}", "ReplicaSet", "web-old")
    for number in range(2):
        written.pod(f"new-{number}", "ReplicaSet", "web-new")
    written.workload(REPLICA_SETS, "web-old", 5, "web")
    written.workload(REPLICA_SETS, "web-new", 3, "web")
    written.pod("new-2", "ReplicaSet", "web-new")  # before the ReplicaSet controller deletes a pod of web-old
    assert written.log.violations == []


# -- evictions after a stall -------------------------------------------------------------------------------------------


def test_an_eviction_that_was_due_before_the_stall_may_be_written_after_it(written: Written) -> None:
    written.loop.now = 100.0
    written.node("there")
    written.node("lost", given_up_at=100.0)
    written.server.sees_again(115.0, since=110.0)
    written.loop.now = 116.0
    written.evict("one", "lost")
    assert written.log.violations == []


def test_an_eviction_that_became_due_during_the_stall_waits_for_the_grace_period(written: Written) -> None:
    written.loop.now = 100.0
    written.node("there")
    written.node("lost", given_up_at=100.0)
    written.server.sees_again(115.0, since=104.0)
    written.loop.now = 116.0
    written.evict("one", "lost")
    assert written.log.violations == ["pod default/one is evicted from lost 1.0 s after the control plane started"]


def test_an_eviction_is_not_under_way_for_ever(written: Written) -> None:
    written.loop.now = 100.0
    written.node("there")
    written.node("lost", given_up_at=100.0)
    written.server.sees_again(150.0, since=110.0)
    written.loop.now = 151.0
    written.evict("one", "lost")
    assert written.log.violations == ["pod default/one is evicted from lost 1.0 s after the control plane started"]


def test_a_new_process_writes_nothing_that_the_last_one_decided(written: Written) -> None:
    written.loop.now = 100.0
    written.node("there")
    written.node("lost", given_up_at=100.0)
    written.server.sees_again(112.0, since=110.0)
    written.server.started(115.0)
    written.loop.now = 116.0
    written.evict("one", "lost")
    assert written.log.violations == ["pod default/one is evicted from lost 1.0 s after the control plane started"]


def test_a_node_that_was_given_up_may_be_deleted_while_an_eviction_is_under_way(written: Written) -> None:
    written.loop.now = 100.0
    written.node("there")
    written.node("lost", given_up_at=100.0)
    written.delete(f"{NODES}lost")
    written.loop.now = 101.0
    written.evict("one", "lost")
    assert written.log.violations == []


def test_no_pod_is_evicted_from_a_node_that_is_deleted_and_was_well(written: Written) -> None:
    written.loop.now = 100.0
    written.node("there")
    written.delete(f"{NODES}there")
    written.loop.now = 101.0
    written.evict("one", "there")
    assert written.log.violations == ["pod default/one is evicted from there, which is not given up"]


def test_a_pod_that_was_to_be_evicted_long_ago_may_be_deleted_by_somebody_else(written: Written) -> None:
    written.node("there")
    written.loop.now = 200.0
    written.evict("one", "there", announced_at=100.0)
    assert written.log.violations == []
    written.evict("two", "there", announced_at=199.0)
    assert written.log.violations == ["pod default/two is evicted from there, which is not given up"]


def test_a_node_may_be_given_up_after_a_stall_if_that_was_decided_before(written: Written) -> None:
    written.loop.now = 100.0
    for name in ("there", "early", "late"):
        written.node(name)
    written.server.sees_again(115.0, since=110.0)
    written.loop.now = 116.0
    written.node("early", given_up_at=109.0)
    assert written.log.violations == []
    written.node("late", given_up_at=113.0)
    assert "node late is given up 1.0 s after the control plane started" in written.log.violations
