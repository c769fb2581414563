"""Standing answers: what is asked again after a change, and that nothing is left old at any limit."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

from builders import node, pod, selector
from situate.core.contract import FITS, Codes, DomainChecker, Failure, Reason, Refusal, Scores, Verdict, Wake
from situate.core.engine.framework import default_framework
from situate.core.model.labels import EVERYTHING
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import TopologySpreadConstraint
from situate.core.model.storage import StorageClass
from situate.core.model.workloads import Service, ServiceSpec
from situate.core.place import verdict_cache as standing_module
from situate.core.place.filtering import run_filters
from situate.core.place.profile import Profile, Weighted
from situate.core.place.scoring import totals
from situate.core.place.selecting import NOWHERE
from situate.core.place.verdict_cache import VerdictCache
from situate.core.plugins.pod_topology_spread import PodTopologySpread
from situate.core.state import cluster as cluster_module
from situate.core.state import topology
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.matching import pods_in
from situate.core.state.topology_counts import count_pods
from situate.core.state.view import View

DEFAULT = default_framework().profile


def cluster_of(**rooms: str) -> Cluster:
    """Node name -> cpus."""
    cluster = Cluster()
    for name, cpu in rooms.items():
        cluster.add_node(node(name, cpu=cpu, memory="64Gi", pods="100", labels={"host": name, "zone": name[0]}))
    return cluster


def fresh(cluster: Cluster, profile: Profile, kind: PodClass) -> list[int]:
    """Total by row, -1 where a pod does not fit; from scratch."""
    view = View(cluster)
    feasible = run_filters(profile, kind, view).feasible
    if not feasible.any():
        return [-1] * view.size
    total: list[int] = np.where(feasible, totals(profile, kind, view, feasible), -1).tolist()
    return total


def kept(standing: VerdictCache) -> list[int]:
    standing.refresh()
    total: list[int] = np.where(standing.feasible, standing.total, -1).tolist()
    return total


# -- the heap ------------------------------------------------------------------------------------------------------


def test_a_node_that_comes_free_again_and_again_stays_among_those_to_choose_from() -> None:
    """Entries of the heap that no longer hold are thrown out at times: what was just put in must not go with them."""
    cluster = cluster_of(big="10", small="1")
    waiting = cluster.class_of(pod(cpu="1"))
    standing = VerdictCache(cluster, DEFAULT, waiting)
    for _ in range(100):
        cluster.add_pod(pod("x", cpu="1", node_name="small"))
        assert standing.choose() == 0
        cluster.remove_pod("default/x")
        assert standing.choose() == 0
        cluster.add_pod(pod("y", cpu="10", node_name="big"))
        assert standing.choose() == 1, "the small one is free"
        cluster.remove_pod("default/y")


def test_a_row_that_moves_up_and_down_is_chosen_by_where_it_is_now() -> None:
    cluster = cluster_of(a="8", b="8", c="8")
    waiting = cluster.class_of(pod(cpu="1"))
    standing = VerdictCache(cluster, DEFAULT, waiting)
    rng = np.random.default_rng(7)
    for step in range(300):
        name = f"p{rng.integers(12)}"
        if not cluster.remove_pod(f"default/{name}"):
            cluster.add_pod(pod(name, cpu=str(rng.integers(1, 5)), node_name="abc"[rng.integers(3)]))
        expected = fresh(cluster, DEFAULT, waiting)
        best = int(np.argmax(expected)) if max(expected) >= 0 else NOWHERE
        assert standing.choose() == best, step


# -- limits --------------------------------------------------------------------------------------------------------


def spread(key: str, app: str = "web") -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=1, topology_key=key, when_unsatisfiable="DoNotSchedule", label_selector=selector(app=app)
    )


def test_tallies_that_are_dropped_while_they_are_read_leave_no_old_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "TALLY_BYTES", 0)
    cluster = cluster_of(a1="8", a2="8", b1="8")
    waiting = cluster.class_of(
        pod(labels={"app": "web"}, topology_spread_constraints=(spread("zone"), spread("host"), spread("host", "db")))
    )
    standing = VerdictCache(cluster, DEFAULT, waiting)
    for at, name in enumerate(("a1", "b1", "a2", "a1", "b1")):
        cluster.add_pod(pod(f"p{at}", labels={"app": "web"}, node_name=name))
        assert kept(standing) == fresh(cluster, DEFAULT, waiting)


def test_a_reader_that_fell_too_far_behind_starts_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "TOUCHED_LIMIT", 3)
    cluster = cluster_of(a="8", b="8")
    waiting = cluster.class_of(pod(cpu="1"))
    standing = VerdictCache(cluster, DEFAULT, waiting)
    for at in range(16):
        cluster.add_pod(pod(f"p{at}", cpu="300m", node_name="ab"[at % 2]))
        if at % 7 == 6:
            assert kept(standing) == fresh(cluster, DEFAULT, waiting)
    assert kept(standing) == fresh(cluster, DEFAULT, waiting)


@pytest.mark.parametrize("few_rows", [0, 64], ids=["all at once", "one by one"])
def test_rows_that_change_are_mended(few_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_module, "FEW_ROWS", few_rows)
    cluster = cluster_of(a1="8", a2="8", b1="8", b2="8")
    waiting = cluster.class_of(pod(labels={"app": "web"}, topology_spread_constraints=(spread("zone"), spread("host"))))
    standing = VerdictCache(cluster, DEFAULT, waiting)
    for at, name in enumerate(("a1", "b1", "a2", "b2", "b2", "a1")):
        cluster.add_pod(pod(f"p{at}", labels={"app": "web"}, node_name=name))
        assert kept(standing) == fresh(cluster, DEFAULT, waiting)
    for at in (4, 0, 2):
        cluster.remove_pod(f"default/p{at}")
        assert kept(standing) == fresh(cluster, DEFAULT, waiting)


ZONES = 6


def zoned(nodes: int) -> Cluster:
    """Nodes in zones by turns; one has no zone, one does not count, and one has left its row."""
    cluster = Cluster()
    for at in range(nodes):
        labels = {} if at == 3 else {"zone": f"z{at % ZONES}"}
        cluster.add_node(node(f"n{at}", cpu="4", memory="8Gi", pods="100", labels=labels, unschedulable=at == 4))
    cluster.remove_node("n8")
    return cluster


@pytest.mark.parametrize("few_domains", [1, ZONES], ids=["whole columns", "domain by domain"])
@pytest.mark.parametrize("few_rows", [0, 64], ids=["all at once", "one by one"])
def test_the_rows_of_domains_that_change_are_mended(
    few_rows: int, few_domains: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing_module, "FEW_ROWS", few_rows)
    monkeypatch.setattr(standing_module, "FEW_DOMAINS", few_domains)
    cluster = zoned(25)
    like: dict[str, Any] = {"cpu": "1", "labels": {"app": "web"}, "topology_spread_constraints": (spread("zone"),)}
    waiting = cluster.class_of(pod(**like))
    standing = VerdictCache(cluster, DEFAULT, waiting)
    at_spread = [plugin.name for plugin in DEFAULT.filters].index("PodTopologySpread")
    rng = np.random.default_rng(11)
    running: list[str] = []
    for step in range(200):
        row = standing.choose()
        if running and (row == NOWHERE or rng.random() < 0.4):
            cluster.remove_pod(f"default/{running.pop(rng.integers(len(running)))}")
        else:
            running.append(f"p{step}")
            cluster.put(pod(running[-1], **like), waiting, row)
        assert kept(standing) == standing.rank.tolist() == fresh(cluster, DEFAULT, waiting)
        np.testing.assert_equal(
            standing.codes[at_spread], run_filters(DEFAULT, waiting, View(cluster)).codes[at_spread]
        )


def test_an_answer_by_domain_is_another_column_only_if_it_is_another_answer() -> None:
    cluster = zoned(25)
    waiting = cluster.class_of(
        pod(labels={"app": "web"}, topology_spread_constraints=(msgspec.structs.replace(spread("zone"), max_skew=2),))
    )
    standing = VerdictCache(cluster, DEFAULT, waiting)
    at_spread = [plugin.name for plugin in DEFAULT.filters].index("PodTopologySpread")
    standing.refresh()
    free = standing.codes[at_spread]
    cluster.add_pod(pod("p0", labels={"app": "web"}, node_name="n0"))
    standing.refresh()
    assert standing.codes[at_spread] is free, "one more is allowed"
    cluster.add_pod(pod("p1", labels={"app": "web"}, node_name="n6"))
    standing.refresh()
    crowded = standing.codes[at_spread]
    assert crowded is not None
    assert free is not None
    assert (crowded[0], free[0]) == (1, FITS), "who kept the earlier answer still has it"


def test_a_filter_whose_plan_follows_from_services_may_sit_out_and_come_back() -> None:
    constraint = msgspec.structs.replace(spread("zone"), label_selector=None)
    plugin = PodTopologySpread(default_constraints=(constraint,), system_defaulted=False)
    profile = Profile("default-scheduler", filters=(plugin,), scorers=())
    service = Service(metadata=ObjectMeta(name="web", namespace="default"), spec=ServiceSpec(selector={"app": "web"}))
    cluster = zoned(25)
    cluster.put_object(service)
    waiting = cluster.class_of(pod(labels={"app": "web"}))
    standing = VerdictCache(cluster, profile, waiting)
    for at in range(3):
        cluster.add_pod(pod(f"p{at}", labels={"app": "web"}, node_name="n0"))
        assert kept(standing) == fresh(cluster, profile, waiting)
        assert min(kept(standing)) == -1
        cluster.forget_object(service)
        assert kept(standing) == fresh(cluster, profile, waiting)
        cluster.put_object(service)
        assert kept(standing) == fresh(cluster, profile, waiting)


# -- what is asked again -------------------------------------------------------------------------------------------

NO: Reason = Reason("no", eviction_helps=True)


class Probe:
    """A filter and scorer that counts how often it is asked, and reads what it is told to."""

    name: ClassVar[str] = "Probe"
    reasons: ClassVar[tuple[Reason, ...]] = (NO,)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset()

    def __init__(self, read: Any = None, answer: Any = None, scores: Any = None) -> None:
        self._read = read or (lambda view: None)
        self._answer = answer or (lambda view: np.zeros(view.size, np.uint8))
        self._scores = scores or (lambda view: np.zeros(view.size, np.int64))
        self.checked = self.scored = 0

    def check(self, pod: PodClass, view: View) -> Verdict:
        self.checked += 1
        self._read(view)
        verdict: Verdict = self._answer(view)
        return verdict

    def score(self, pod: PodClass, view: View) -> Scores | None:
        self.scored += 1
        self._read(view)
        scores: Scores | None = self._scores(view)
        return scores


def profile_of(probe: Probe, weight: int = 1) -> Profile:
    return Profile("default-scheduler", (probe,), (Weighted(probe, weight),))


CHANGES: dict[str, Any] = {
    "a pod is bound": lambda cluster: cluster.add_pod(pod("p", node_name="a")),
    "a node changes": lambda cluster: cluster.add_node(node("a", cpu="3")),
    "storage changes": lambda cluster: cluster.put_object(StorageClass(metadata=ObjectMeta(name="fast"))),
    "a service changes": lambda cluster: cluster.put_object(Service(metadata=ObjectMeta(name="s", namespace="x"))),
}
READS: dict[str, Any] = {
    "nodes alone": (lambda view: view.allocatable(0), {"a node changes"}),
    "the load": (lambda view: view.requested(0), {"a node changes", "a pod is bound"}),
    "storage": (lambda view: view.storage, {"a node changes", "storage changes"}),
    "services": (lambda view: view.workloads, {"a node changes", "a service changes"}),
}


@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("happens", CHANGES)
def test_a_plugin_is_asked_again_when_something_it_read_has_moved(what: str, happens: str) -> None:
    read, by = READS[what]
    probe = Probe(read)
    cluster = cluster_of(a="4", b="4")
    standing = VerdictCache(cluster, profile_of(probe), cluster.class_of(pod("w")))
    assert (probe.checked, probe.scored) == (1, 1)
    standing.refresh()
    assert (probe.checked, probe.scored) == (1, 1)
    CHANGES[happens](cluster)
    for _ in range(2):
        standing.refresh()
        expected = 2 if happens in by else 1
        assert (probe.checked, probe.scored) == (expected, expected)


def test_who_says_the_same_again_is_seen_to_say_the_same() -> None:
    probe = Probe(read=lambda view: view.requested(0))
    cluster = cluster_of(a="4", b="4")
    standing = VerdictCache(cluster, profile_of(probe), cluster.class_of(pod("w")))
    (codes,), (scores,) = standing.codes, standing.base_scores
    cluster.add_pod(pod("p", node_name="a"))
    standing.refresh()
    assert (probe.checked, probe.scored) == (2, 2)
    assert standing.codes[0] is codes
    assert standing.base_scores[0] is scores


def test_a_scorer_that_read_which_nodes_are_feasible_is_asked_again_when_that_changes() -> None:
    probe = Probe(scores=lambda view: view.feasible * 10)
    fits = default_framework().profile.filters
    cluster = cluster_of(a="2", b="4")
    standing = VerdictCache(cluster, Profile("s", fits, (Weighted(probe, 3),)), cluster.class_of(pod("w", cpu="1")))
    cluster.add_pod(pod("p", cpu="1", node_name="a"))
    standing.refresh()
    assert probe.scored == 1
    cluster.add_pod(pod("q", cpu="1", node_name="a"))
    assert kept(standing) == [-1, 30]
    assert probe.scored == 2


def test_nobody_is_asked_for_scores_while_no_node_is_feasible() -> None:
    probe = Probe(read=lambda view: view.requested(0))
    fits = default_framework().profile.filters
    cluster = cluster_of(a="1")
    cluster.add_pod(pod("p", cpu="1", node_name="a"))
    standing = VerdictCache(cluster, Profile("s", fits, (Weighted(probe, 1),)), cluster.class_of(pod("w", cpu="1")))
    assert (standing.choose(), probe.scored) == (NOWHERE, 0)
    cluster.add_pod(pod("q", node_name="a"))
    assert (standing.choose(), probe.scored) == (NOWHERE, 0)
    cluster.remove_pod("default/p")
    assert (standing.choose(), probe.scored) == (0, 1)
    cluster.add_pod(pod("p", cpu="1", node_name="a"))
    assert (standing.choose(), probe.scored) == (NOWHERE, 1)


@pytest.mark.parametrize("stop", [Refusal("not now"), Failure("broken")], ids=["turned away", "failed"])
def test_a_pod_that_is_turned_away_is_looked_at_again_once_what_was_read_has_moved(stop: Verdict) -> None:
    probe = Probe(
        read=lambda view: view.storage,
        answer=lambda view: None if "fast" in view.storage.classes else stop,
        scores=lambda view: np.full(view.size, 5),
    )
    cluster = cluster_of(a="4", b="4")
    standing = VerdictCache(cluster, profile_of(probe), cluster.class_of(pod("w")))
    assert (standing.choose(), kept(standing)) == (NOWHERE, [-1, -1])
    cluster.add_pod(pod("p", node_name="a"))
    assert (standing.choose(), probe.checked) == (NOWHERE, 1)
    cluster.put_object(StorageClass(metadata=ObjectMeta(name="fast")))
    assert (standing.choose(), kept(standing)) == (0, [5, 5])
    cluster.forget_object(StorageClass(metadata=ObjectMeta(name="fast")))
    assert (standing.choose(), kept(standing)) == (NOWHERE, [-1, -1])


def test_a_scorer_may_sit_out_and_come_back() -> None:
    def scores(view: View) -> Scores | None:
        return np.arange(view.size) if view.storage.classes else None

    cluster = cluster_of(a="4", b="4")
    standing = VerdictCache(cluster, profile_of(Probe(scores=scores), weight=2), cluster.class_of(pod("w")))
    fast = StorageClass(metadata=ObjectMeta(name="fast"))
    assert kept(standing) == [0, 0]
    cluster.put_object(fast)
    assert (kept(standing), standing.choose()) == ([0, 2], 1)
    cluster.forget_object(fast)
    assert (kept(standing), standing.choose()) == ([0, 0], 0)


class ByRow:
    """Refuses a node with two pods, scores one with none; and can say so for one row."""

    name: ClassVar[str] = "ByRow"
    reasons: ClassVar[tuple[Reason, ...]] = (NO,)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset()

    def __init__(self) -> None:
        self.whole = self.rows = 0

    def check(self, pod: PodClass, view: View) -> Codes:
        self.whole += 1
        return (view.requested(3) >= 2).astype(np.uint8)

    def checker_at(self, pod: PodClass, view: View) -> Any:
        def check_at(row: int) -> int:
            self.rows += 1
            return int(view.requested(3)[row] >= 2)

        return check_at

    def score(self, pod: PodClass, view: View) -> Scores:
        self.whole += 1
        return np.where(view.requested(3) == 0, 100, 0)

    def scorer_at(self, pod: PodClass, view: View) -> Any:
        def score_at(row: int) -> int:
            self.rows += 1
            return 100 if view.requested(3)[row] == 0 else 0

        return score_at


def test_a_plugin_that_can_answer_for_one_row_is_asked_about_the_touched_rows_alone() -> None:
    plugin = ByRow()
    cluster = cluster_of(a="4", b="4", c="4")
    profile = Profile("s", (plugin,), (Weighted(plugin, 2),))
    waiting = cluster.class_of(pod("w"))
    standing = VerdictCache(cluster, profile, waiting)
    assert (plugin.whole, plugin.rows) == (2, 0)
    for at, (name, asked) in enumerate((("a", 2), ("b", 4), ("a", 5))):
        cluster.add_pod(pod(f"p{at}", node_name=name))
        standing.refresh()
        assert (plugin.whole, plugin.rows) == (2, asked), "where it does not fit, it is not scored"
    assert kept(standing) == [-1, 0, 200]
    assert standing.codes[0] is not None
    assert standing.codes[0].tolist() == [1, FITS, FITS]
    assert kept(standing) == fresh(cluster, profile, waiting)


class ByZone:
    """Refuses zones that hold a pod; and can say so by zone. Counts how often it is asked either way."""

    name: ClassVar[str] = "ByZone"
    reasons: ClassVar[tuple[Reason, ...]] = (NO,)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset()

    def __init__(self) -> None:
        self.checked = self.asked = 0

    def check(self, pod: PodClass, view: View) -> Codes:
        self.checked += 1
        return self._taken(view)[view.label("zone")[0]]

    def domain_checker(self, pod: PodClass, view: View) -> DomainChecker:
        def by_zone(view: View) -> Codes:
            self.asked += 1
            return self._taken(view)

        return DomainChecker("zone", by_zone)

    def _taken(self, view: View) -> Codes:
        return (count_pods(view, pods_in("default", EVERYTHING), "zone", counts_leaving=True) > 0).astype(np.uint8)


def test_a_filter_that_can_answer_by_domain_is_asked_so_when_a_count_has_moved_and_not_otherwise() -> None:
    by_zone = ByZone()
    cluster = cluster_of(a1="4", a2="4", b1="4")
    standing = VerdictCache(cluster, Profile("s", (by_zone,), ()), cluster.class_of(pod("w")))
    cluster.add_pod(pod("p", node_name="a1"))
    for _ in range(2):
        assert kept(standing) == [-1, -1, 0]
    assert (by_zone.checked, by_zone.asked) == (1, 2)
    cluster.remove_pod("default/p")
    for _ in range(2):
        assert kept(standing) == [0, 0, 0]
    assert (by_zone.checked, by_zone.asked) == (1, 3)


def test_its_size_grows_with_the_answers_it_keeps() -> None:
    cluster = cluster_of(**{f"n{at}": "4" for at in range(50)})
    waiting = cluster.class_of(pod("w"))
    nothing = VerdictCache(cluster, Profile("s", (), ()), waiting).nbytes
    something = VerdictCache(cluster, profile_of(Probe()), waiting).nbytes
    assert something == nothing + 50 + 50 * 8


def test_a_cluster_without_nodes_has_a_place_for_nobody() -> None:
    cluster = Cluster()
    standing = VerdictCache(cluster, DEFAULT, cluster.class_of(pod("w")))
    assert [standing.choose() for _ in range(4)] == [NOWHERE] * 4
    cluster.add_node(node("a", pods="1"))
    assert standing.choose() == 0
