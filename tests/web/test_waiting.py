"""What waits: rows of workloads, with their reasons, the longest wait first."""

import pytest

from builders import pod
from situate.core.model.meta import OwnerReference
from situate.core.model.pod import PodCondition, PodSchedulingGate
from situate.web import waiting
from situate.web.waiting import NOT_TRIED, waiting_rows

OWNER = OwnerReference(kind="ReplicaSet", name="web-1", controller=True)
MESSAGE = "0/3 nodes: Insufficient cpu"
NO_CPU = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=MESSAGE)


def test_pods_of_one_workload_with_one_reason_share_a_row() -> None:
    pods = [
        pod(f"web-1-{n}", owner_references=(OWNER,), conditions=(NO_CPU,), creation_timestamp=f"2026-01-01T00:00:0{n}Z")
        for n in (3, 1, 2)
    ]
    found = waiting_rows(pods)
    (row,) = found["rows"]
    assert (row["owner"], row["count"], row["since"]) == ("ReplicaSet/web-1", 3, "2026-01-01T00:00:01Z")
    assert row["message"] == MESSAGE
    assert row["pods"] == ["web-1-3", "web-1-1", "web-1-2"]


def test_the_longest_wait_comes_first_and_amounts_are_as_people_write_them() -> None:
    late = pod("late", cpu="1500m", memory="2Gi", creation_timestamp="2026-01-02T00:00:00Z")
    early = pod("early", requests={"nvidia.com/gpu": "2"}, creation_timestamp="2026-01-01T00:00:00Z")
    rows = waiting_rows([late, early])["rows"]
    assert [row["owner"] for row in rows] == ["Pod/early", "Pod/late"]
    assert [row["requests"] for row in rows] == [{"nvidia.com/gpu": "2"}, {"cpu": "1500m", "memory": "2Gi"}]
    assert rows[0]["message"] == NOT_TRIED


def test_a_gated_pod_says_which_gates_hold_it() -> None:
    (row,) = waiting_rows([pod("held", scheduling_gates=(PodSchedulingGate(name="quota"),))])["rows"]
    assert (row["reason"], row["message"]) == ("SchedulingGated", "it has scheduling gates: quota")


def test_a_pod_that_waits_for_victims_says_where() -> None:
    (row,) = waiting_rows([pod("important", nominated_node_name="n7", conditions=(NO_CPU,))])["rows"]
    assert row["nominated"] == ["n7"]


def test_a_pod_of_a_gang_says_which_however_it_names_it() -> None:
    pods = [pod("a", annotations={"pod-group-name": "train"}), pod("b", labels={"situate.dev/gang": "serve"}), pod("c")]
    assert {row["owner"]: row["group"] for row in waiting_rows(pods)["rows"]} == {
        "Pod/a": "train",
        "Pod/b": "serve",
        "Pod/c": "",
    }


def test_rows_are_limited_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MAX_WAITING", 2)
    found = waiting_rows([pod(f"p{n}", creation_timestamp=f"2026-01-01T00:00:0{n}Z") for n in range(5)])
    assert (found["pods"], len(found["rows"]), found["more"]) == (5, 2, 3)
