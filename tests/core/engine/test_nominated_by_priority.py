"""The promises that a pod sees are those of the ledger: of its priority or above, but its own."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.changes import PodRef
from situate.core.engine import in_flight, nominated_by_priority
from situate.core.engine.in_flight import Nominations
from situate.core.engine.nominated_by_priority import NominatedByPriority
from situate.core.preempt import NominatedPods
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import CPU, PODS
from situate.core.state.cluster import Cluster

CPUS = ("1", "2")


def entry(cluster: Cluster, name: str, priority: int = 0, cpu: str = "1") -> QueuedPod:
    made = pod(name, uid=name, priority=priority, cpu=cpu)
    return QueuedPod(PodRef("default", name, name), made, cluster.class_of(made), 0, 0)


def expected(cluster: Cluster, nominations: Nominations, who: QueuedPod) -> tuple[Any, list[int], list[int]]:
    rows: dict[int, list[int]] = {}
    cpu, pods = [0] * cluster.nodes.size, [0] * cluster.nodes.size
    for name, row in cluster.nodes.rows.items():
        for one in nominations.weighing_on(name, who):
            rows.setdefault(row, []).append(one.kind.id)
            cpu[row] += one.kind.requests.milli_cpu
            pods[row] += 1
    return {row: sorted(kinds) for row, kinds in rows.items()}, cpu, pods


def seen(nominated: NominatedPods, size: int) -> tuple[Any, list[int], list[int]]:
    loads = [load.tolist() if (load := nominated.load(column)) is not None else [0] * size for column in (CPU, PODS)]
    return {row: sorted(kind.id for kind in kinds) for row, kinds in nominated.by_row.items()}, loads[0], loads[1]


MOVES = st.lists(
    st.tuples(
        st.sampled_from(("promise", "promise", "promise", "end", "node", "look")),
        st.integers(0, 5),
        st.integers(0, 3),
        st.sampled_from((0, 5, 10)),
        st.sampled_from(CPUS),
    ),
    max_size=30,
)


@settings(max_examples=80)
@given(MOVES, st.sampled_from((1, 1 << 12)))
def test_what_is_kept_follows_the_ledger(moves: list[tuple[str, int, int, int, str]], remembered: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_flight, "MOVES_LIMIT", remembered)
        cluster, nominations = Cluster(), Nominations()
        for at in range(3):
            cluster.add_node(node(f"n{at}", cpu="8"))
        kept = NominatedByPriority(cluster, nominations)
        for what, which, where, priority, cpu in moves:
            who = entry(cluster, f"p{which}", priority, cpu)
            match what:
                case "promise":
                    nominations.add(who, f"n{where}", 0)
                case "end":
                    nominations.remove(who.key)
                case "node":
                    if not cluster.remove_node(f"n{where}"):
                        cluster.add_node(node(f"n{where}", cpu="8"))
                case _:
                    assert seen(kept.seen_by(who), cluster.nodes.size) == expected(cluster, nominations, who)
        for priority in (0, 5, 10):
            who = entry(cluster, "p0", priority)
            assert seen(kept.seen_by(who), cluster.nodes.size) == expected(cluster, nominations, who)


def test_the_version_is_another_after_every_promise_and_nought_while_there_is_none() -> None:
    cluster, nominations = Cluster(), Nominations()
    cluster.add_node(node("n0", cpu="8"))
    kept = NominatedByPriority(cluster, nominations)
    who = entry(cluster, "who")
    assert kept.seen_by(who).version == 0
    nominations.add(entry(cluster, "other"), "n0", 0)
    first = kept.seen_by(who).version
    nominations.add(entry(cluster, "another"), "n0", 0)
    assert 0 != first != kept.seen_by(who).version != 0


def test_sums_are_kept_for_some_priorities_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nominated_by_priority, "PRIORITIES", 1)
    cluster, nominations = Cluster(), Nominations()
    cluster.add_node(node("n0", cpu="8"))
    nominations.add(entry(cluster, "other", 7), "n0", 0)
    kept = NominatedByPriority(cluster, nominations)
    low, high = entry(cluster, "low", 1), entry(cluster, "high", 9)
    first = kept.seen_by(low)
    assert kept.seen_by(low) is first
    assert not kept.seen_by(high)
    assert kept.seen_by(low) is not first
