"""What `status` says of a large cluster: totals, the worst first, and how many nodes are how full."""

from __future__ import annotations

import re
from typing import Any

import pytest

from situate.cli.commands.status import _percent, _requested, _summary
from situate.cli.commands.status.text import histogram, status_lines


def node(name: str, *, ready: bool = True, cordoned: bool = False) -> dict[str, Any]:
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": str(ready)}],
    }
    return {"metadata": {"name": name}, "spec": {"unschedulable": cordoned}, "status": status}


def pod(name: str, at: str, cpu: str, phase: str = "Running") -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": at, "containers": [container]}
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": {"phase": phase}}


def summary(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> dict[str, Any]:
    return {**_summary(None, nodes, pods, _requested(pods)), "workloads": [], "namespaces": []}


def large() -> dict[str, Any]:
    """1,000 nodes: node 7 is not ready, 8 is cordoned, 9 is full, and each third has one cpu requested."""
    nodes = [node(f"n{number}", ready=number != 7, cordoned=number == 8) for number in range(1_000)]
    pods = [pod(f"p{number}", f"n{number}", "4" if number == 9 else "1") for number in range(0, 1_000, 3)]
    return summary(nodes, pods)


def test_a_large_cluster_is_totals_a_histogram_and_its_worst_nodes() -> None:
    lines = status_lines(large(), whole=False)
    assert lines[:5] == [
        "Nodes    999 of 1000 ready, 1 cordoned",
        "Pods     334: 334 Running",
        "cpu        9 %  337 of 4000 requested",
        "memory     0 %  0 of 8000Gi requested",
        "pods       4 %  334 of 10000 placed",
    ]
    named = [line.split()[0] for line in lines[lines.index("") + 12 :]]
    assert named[:3] == ["n7", "n9", "n0"]
    assert lines[-1] == "and 990 more nodes: `situate status -o wide` shows all"
    assert len(lines) < 30


def test_wide_shows_every_node_and_no_histogram() -> None:
    lines = status_lines(large(), whole=True)
    assert sum(line.startswith("n") for line in lines) == 1_000
    assert not any(line.startswith("REQUESTED") for line in lines)


def test_the_histogram_counts_every_node_once_and_its_bars_are_in_proportion() -> None:
    rows = [re.fullmatch(r"(.+?) +(\d+) *(█*)", line) for line in histogram(large()["nodes"]["held"])[1:]]
    found = {row[1]: (int(row[2]), len(row[3])) for row in rows if row is not None}
    assert {name: one for name, one in found.items() if one[0]} == {
        "empty": (665, 40),
        "1 to 25 %": (333, 21),
        "full": (1, 1),
        "not ready": (1, 1),
    }
    assert len(found) == 8


@pytest.mark.parametrize(
    "asked, room, percent",
    [(0, 10, 0), (1, 1_000, 1), (999, 1_000, 99), (1_000, 1_000, 100), (1_500, 1_000, 150), (5, 0, 0)],
)
def test_a_node_with_something_on_it_is_not_empty_and_one_with_room_is_not_full(
    asked: int, room: int, percent: int
) -> None:
    assert _percent(asked, room) == percent


def test_without_ledgers_requests_are_those_of_the_pods_that_run() -> None:
    pods = [pod("a", "n1", "1"), pod("b", "n1", "500m"), pod("done", "n1", "2", "Succeeded"), pod("waits", "", "2")]
    assert _requested(pods) == {"n1": {"cpu": 1_500, "pods": 2}}
    (held,) = summary([node("n1")], pods)["nodes"]["held"]
    assert (held["percent"], held["scarcest"], held["cpu"]) == (38, "cpu", "1500m of 4")


def test_workloads_without_trouble_are_counted() -> None:
    counts = {"desired": 2, "running": 2, "readyPods": 2, "waiting": 0, "failed": 0, "nodes": 1}
    owned = [{"workload": f"shop/deployment/w{number}", **counts} for number in range(30)]
    owned[17] |= {"waiting": 1, "running": 1}
    lines = status_lines({**summary([node("n1")], []), "workloads": owned}, whole=False)
    assert [line.split()[0] for line in lines if line.startswith("shop/")] == ["shop/deployment/w17"]
    assert "29 workloads without pods that wait or fail: `situate status -o wide` shows all" in lines
