"""The pods below a priority: what is kept of them is what is there."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.preempt import lower_priority
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.lower_priority import LowerPods, LowerTables
from situate.core.state.classes import CPU, PODS
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

STARTS = st.sampled_from((None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
MOVES = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, 4),
        st.sampled_from((0, 5, 10)),
        STARTS,
        st.sampled_from(("add", "add", "add", "remove", "node", "look")),
    ),
    max_size=30,
)


def same(kept: LowerPods, cluster: Cluster) -> None:
    fresh = LowerPods(View(cluster), kept.priority)
    rows = np.arange(cluster.nodes.size)
    assert kept.counts.tolist() == fresh.counts.tolist()
    columns = (CPU, PODS)
    for ours, theirs in zip(kept.taken(columns).values(), fresh.taken(columns).values(), strict=True):
        assert ours.tolist() == theirs.tolist()
    assert [kept.on(row) for row in rows.tolist()] == [fresh.on(row) for row in rows.tolist()]
    kinds, started, protected = kept.ranked(rows, Budgets(()))
    assert not protected.any()
    for row in rows.tolist():
        pods = fresh.on(row)
        assert [kept.ranks.kinds[number] for number in kinds[:, row] if number] == [each.kind for each in pods]
        assert started[: len(pods), row].tolist() == [each.started for each in pods]
        assert not kinds[len(pods) :, row].any()


@settings(max_examples=60)
@given(MOVES)
def test_what_is_kept_follows_the_cluster(moves: list[tuple[int, int, int, Any, str]]) -> None:
    cluster = Cluster()
    tables = LowerTables(cluster)
    for at in range(3):
        cluster.add_node(node(f"n{at}", cpu="8"))
    for which, where, priority, start, move in moves:
        match move:
            case "add":
                made = pod(f"p{which}", node_name=f"n{where}", cpu="1", priority=priority, start_time=start)
                cluster.add_pod(made)
            case "remove":
                cluster.remove_pod(f"default/p{which}")
            case "node":
                if not cluster.remove_node(f"n{where}"):
                    cluster.add_node(node(f"n{where}", cpu="8"))
            case _:
                same(tables.below(priority), cluster)
    for priority in (0, 5, 10, 11):
        same(tables.below(priority), cluster)


def test_tables_are_kept_for_some_priorities_only(monkeypatch: Any) -> None:
    monkeypatch.setattr(lower_priority, "TABLES", 2)
    tables = LowerTables(Cluster())
    first, second = tables.below(1), tables.below(2)
    assert tables.below(1) is first
    tables.below(3)
    assert tables.below(1) is first, "it was asked for last"
    assert tables.below(2) is not second


def test_amounts_beyond_what_a_cell_can_hold_stop_there() -> None:
    cluster = Cluster()
    cluster.add_node(node("n", cpu="1", memory="1"))
    for at in range(8):
        cluster.add_node(node(f"n{at}", cpu="1", memory="1"))
    tables = LowerTables(cluster)
    column = cluster.resources.intern("memory")
    tables.below(10).taken((column,))
    for at in range(3):
        cluster.add_pod(pod(f"p{at}", node_name="n", memory=str((1 << 63) - 1), priority=0))
    assert tables.below(10).taken((column,))[column][0] == (1 << 63) - 1
