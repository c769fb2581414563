"""Preemptions: who had to go, for whom, and why; from Events, and from what the pods said of themselves."""

from typing import Any

import pytest

from builders import node, pod
from situate.core.model.pod import PodCondition
from situate.core.state.cluster import Cluster
from situate.core.state.pods import DISRUPTION_TARGET
from situate.web import preemptions
from situate.web.feed import Told
from situate.web.preemptions import PreemptionNotes, _of_event, preemption_rows, waiting_messages

MESSAGE = "0/3 nodes are available: 3 Insufficient cpu."
NO_CPU = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=MESSAGE)


def event(victim: str, by: str = "high", at: str = "n1", second: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"resourceVersion": "5"},
        "reason": "Preempted",
        "message": f"Preempted by pod uid-{by} on node {at}",
        "eventTime": f"2026-01-01T00:00:{second:02}.000000Z",
        "lastTimestamp": None,
        "reportingComponent": "default-scheduler",
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": victim, "uid": f"uid-{victim}"},
        "related": {"kind": "Pod", "namespace": "default", "name": by, "uid": f"uid-{by}"},
        **more,
    }


def told(*events: dict[str, Any]) -> list[Told]:
    return [one for one in map(_of_event, events) if one is not None]


def test_victims_of_one_pod_on_one_node_share_a_row_and_the_newest_comes_first() -> None:
    found = preemption_rows(
        told(event("a", second=1), event("c", by="other", second=2), event("b", second=3)),
        PreemptionNotes(),
        {},
        Cluster(),
        {},
    )
    assert found["victims"] == 3
    first, second = found["rows"]
    assert (first["by"], first["node"], first["time"]) == ("default/high", "n1", "2026-01-01T00:00:03.000000Z")
    assert [one["pod"] for one in first["victims"]] == ["shop/a", "shop/b"]
    assert (second["by"], [one["pod"] for one in second["victims"]]) == ("default/other", ["shop/c"])


def test_priorities_and_the_reason_are_remembered_when_the_pods_are_gone() -> None:
    notes = PreemptionNotes()
    high = pod("high", uid="uid-high", priority=1000, nominated_node_name="n1", conditions=(NO_CPU,))
    victim = pod("a", namespace="shop", uid="uid-a", priority=-5, node_name="n1", conditions=(DISRUPTION_TARGET,))
    assert notes.pod_seen(high)
    assert notes.pod_seen(victim)
    assert not notes.pod_seen(victim), "nothing new"
    (row,) = preemption_rows(told(event("a")), notes, {}, Cluster(), {})["rows"]
    assert (row["state"], row["priority"], row["message"]) == ("gone", 1000, MESSAGE)
    assert row["victims"] == [{"pod": "shop/a", "priority": -5}]


def test_what_a_preemptor_was_told_before_anybody_looked_is_known_from_the_placements() -> None:
    placements = [
        {"event": "waiting", "pod": "default/high", "message": "0/3 nodes are available: 3 Too many pods."},
        {"event": "placed", "pod": "default/high", "message": MESSAGE},
        {"event": "placed", "pod": "default/high", "message": ""},
        {"event": "bound", "pod": "default/high", "message": ""},
    ]
    said = waiting_messages(placements)
    (row,) = preemption_rows(told(event("a")), PreemptionNotes(), {}, Cluster(), said)["rows"]
    assert row["message"] == MESSAGE


def test_a_row_says_what_became_of_the_preemptor() -> None:
    cluster = Cluster()
    cluster.add_node(node("n1"))
    high = pod("high", uid="uid-high", priority=7)
    (row,) = preemption_rows(told(event("a")), PreemptionNotes(), {"default/high": high}, cluster, {})["rows"]
    assert (row["state"], row["priority"]) == ("waiting", 7)
    cluster.add_pod(pod("high", uid="uid-high", priority=7, node_name="n1"))
    (row,) = preemption_rows(told(event("a")), PreemptionNotes(), {}, cluster, {})["rows"]
    assert (row["state"], row["priority"], row["placed"]) == ("bound", 7, "n1")


def test_another_pod_of_the_preemptors_name_is_not_taken_for_it() -> None:
    cluster = Cluster()
    cluster.add_node(node("n1"))
    cluster.add_pod(pod("high", uid="another", priority=7, node_name="n1"))
    (row,) = preemption_rows(told(event("a")), PreemptionNotes(), {}, cluster, {})["rows"]
    assert (row["state"], row["priority"]) == ("gone", None)
    (row,) = preemption_rows(told(event("a")), PreemptionNotes(), {"default/high": pod("high", uid="x")}, cluster, {})[
        "rows"
    ]
    assert (row["state"], row["priority"]) == ("gone", None)


@pytest.mark.parametrize(
    "change, by, node_name",
    [
        pytest.param({"related": None}, "", "n1", id="without the pod that preempts"),
        pytest.param({"message": "preempted"}, "default/high", "", id="without the node"),
    ],
)
def test_an_event_that_says_less_is_shown_with_less(change: dict[str, Any], by: str, node_name: str) -> None:
    (one,) = told(event("a", **change))
    assert (one["pod"], one["by"], one["node"]) == ("shop/a", by, node_name)


def test_events_of_other_objects_and_reasons_are_none() -> None:
    assert told(event("a", reason="Scheduled"), event("a", involvedObject={"kind": "Job", "name": "a"})) == []


def test_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemptions, "MAX_REMEMBERED", 2)
    notes = PreemptionNotes()
    for name in ("a", "b", "c"):
        notes.pod_seen(pod(name, uid=name, priority=1, node_name="n1", conditions=(DISRUPTION_TARGET,)))
    assert [notes.priority_of_victim(name) for name in ("a", "b", "c")] == [None, 1, 1]
