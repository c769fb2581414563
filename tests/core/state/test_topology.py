"""Tallies: pods by domain, kept right, bounded, and never silently old."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, selector
from situate.core.model.labels import EVERYTHING, parse_selector
from situate.core.state import topology
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.matching import Matcher, pods_in
from situate.core.state.topology import Eligible, TopologyTally, add_up
from situate.core.state.topology_counts import count_pods
from situate.core.state.view import View

WEB, ALL = pods_in("default", parse_selector(selector(app="web"))), pods_in("default", EVERYTHING)


def cluster_of(*zones: str | None) -> Cluster:
    cluster = Cluster()
    for at, zone in enumerate(zones):
        cluster.add_node(node(f"n{at}", labels={} if zone is None else {"zone": zone}))
    return cluster


def bind(cluster: Cluster, *nodes: int, app: str = "web") -> None:
    for at in nodes:
        name = f"{app}{len(cluster.pods)}"
        cluster.add_pod(pod(name, node_name=f"n{at}", labels={"app": app}))


def read(cluster: Cluster, matcher: Matcher = WEB, key: str | None = "zone") -> TopologyTally:
    view = View(cluster)
    count_pods(view, matcher, key, counts_leaving=True)
    found = view.tallies_read[0]
    assert isinstance(found, TopologyTally)
    return found


def test_pods_are_counted_by_domain_before_and_after_the_tally_is_made() -> None:
    cluster = cluster_of("a", "b", "a", None)
    bind(cluster, 0, 0, 1, 2, 3)
    tally = read(cluster)
    assert tally.counts.tolist() == [3, 1, 0], "the last slot is for nodes without the label, and stays empty"
    bind(cluster, 1, 2)
    bind(cluster, 0, app="db")
    assert tally.counts.tolist() == [4, 2, 0]
    assert read(cluster) is tally
    assert audit(cluster) == []


def test_without_a_key_each_node_is_its_own_domain() -> None:
    cluster = cluster_of("a", None)
    bind(cluster, 0, 1, 1)
    assert read(cluster, key=None).counts.tolist() == [1, 2, 0]


def test_only_eligible_nodes_are_counted() -> None:
    cluster = cluster_of("a", "a", "b")
    bind(cluster, 0, 1, 2)
    eligible = Eligible(("first",), np.array([True, False, True]))
    assert count_pods(View(cluster), WEB, "zone", eligible, counts_leaving=True).tolist() == [1, 1, 0]
    bind(cluster, 1, 2)
    assert count_pods(View(cluster), WEB, "zone", eligible, counts_leaving=True).tolist() == [1, 2, 0]
    assert count_pods(View(cluster), WEB, "zone", counts_leaving=True).tolist() == [3, 2, 0]
    assert audit(cluster) == []


def test_a_version_moves_with_the_counts_alone() -> None:
    cluster = cluster_of("a", None)
    tally = read(cluster)
    version = tally.version
    bind(cluster, 0, app="db")
    bind(cluster, 1)
    assert tally.version == version, "another app; and a node without the label"
    bind(cluster, 0)
    assert tally.version == version + 1


def test_a_group_that_comes_later_is_counted_too() -> None:
    cluster = cluster_of("a")
    tally = read(cluster)
    cluster.add_pod(pod("new", node_name="n0", labels={"app": "web", "tier": "unheard of"}))
    assert tally.counts.tolist() == [1, 0]
    assert audit(cluster) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda cluster: cluster.add_node(node("n0", labels={"zone": "b"})), id="a node changes"),
        pytest.param(lambda cluster: cluster.add_node(node("n9")), id="a node comes"),
        pytest.param(lambda cluster: cluster.remove_node("n1"), id="a node goes"),
    ],
)
def test_tallies_are_dropped_whole_and_readers_notice_when(change: object) -> None:
    cluster = cluster_of("a", "b")
    bind(cluster, 0, 1)
    tally = read(cluster)
    version = tally.version
    change(cluster)  # type: ignore[operator]
    assert len(cluster.tallies) == 0
    assert tally.version > version
    assert read(cluster) is not tally
    assert audit(cluster) == []


def test_tallies_are_dropped_beyond_the_limit_the_least_recently_asked_for_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_of("a", "b")
    bind(cluster, 0, 1)
    size = read(cluster).counts.nbytes
    monkeypatch.setattr(topology, "TALLY_BYTES", 3 * size)
    matchers = [pods_in("default", parse_selector(selector(app=f"app{at}"))) for at in range(3)]
    web = read(cluster)
    first, second = (read(cluster, matcher) for matcher in matchers[:2])
    assert read(cluster) is web, "asked for again"
    versions = [tally.version for tally in (web, first, second)]
    read(cluster, matchers[2])
    assert len(cluster.tallies) == 3
    assert [tally.version for tally in (web, first, second)] == [versions[0], versions[1] + 1, versions[2]]
    assert (cluster.tallies.keeps(web), cluster.tallies.keeps(first)) == (True, False)
    bind(cluster, 0)
    assert read(cluster).counts.tolist() == [2, 1, 0]
    assert audit(cluster) == []


def test_one_tally_is_kept_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "TALLY_BYTES", 0)
    cluster = cluster_of("a")
    for matcher in (WEB, ALL, WEB):
        tally = read(cluster, matcher)
        bind(cluster, 0)
        assert cluster.tallies.values() == [tally]
        assert audit(cluster) == []
    assert read(cluster).counts.tolist() == [3, 0]


def test_a_reader_of_a_tally_that_was_dropped_while_it_still_read_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dropped moves no more: its reader must not take the version after the drop for the one it read."""
    monkeypatch.setattr(topology, "TALLY_BYTES", 0)
    cluster = cluster_of("a")
    view = View(cluster)
    count_pods(view, WEB, "zone", counts_leaving=True)
    count_pods(view, ALL, "zone", counts_leaving=True)
    dropped, kept = view.tallies_read
    assert dropped.version != view.versions_read[0]
    assert kept.version == view.versions_read[1]


@settings(max_examples=60)
@given(
    st.lists(st.integers(-1, 4), min_size=1, max_size=40),
    st.dictionaries(st.integers(0, 39), st.integers(1, 3), max_size=40),
    st.integers(-2, 2),
    st.booleans(),
)
def test_adding_up_few_rows_and_many_is_the_same(
    domains: list[int], placed: dict[int, int], times: int, all_eligible: bool
) -> None:
    placed = {row: amount for row, amount in placed.items() if row < len(domains)}
    eligible = None if all_eligible else np.arange(len(domains)) % 2 == 0
    expected = [0] * 6
    for row, amount in placed.items():
        if domains[row] >= 0 and (eligible is None or eligible[row]):
            expected[domains[row]] += times * amount
    for limit in (0, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(topology, "FEW_ROWS", limit)
            counts = np.zeros(6, np.int64)
            add_up(counts, np.array(domains, np.intp), placed, times, eligible)
        assert counts.tolist() == expected
