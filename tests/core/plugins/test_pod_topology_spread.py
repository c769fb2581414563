"""PodTopologySpread refuses nodes that would tip the balance, and prefers those that would not."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.contract import Failure
from situate.core.model.labels import LabelSelector, LabelSelectorRequirement
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodSpec, TopologySpreadConstraint
from situate.core.model.workloads import Service, ServiceSpec
from situate.core.plugins.pod_topology_spread import ZONE, PodTopologySpread
from situate.core.plugins.support.spread_combinations import MAX_COMBINATIONS
from situate.core.plugins.support.spread_scoring import HOSTNAME
from situate.core.state.cluster import Cluster
from situate.core.state.view import WORKLOADS, View

SYSTEM = PodTopologySpread()
WEB = LabelSelector(match_labels={"app": "web"})
FITS, TIPS, UNLABELLED = 0, 1, 2


def hard(key: str = ZONE, skew: int = 1, **fields: Any) -> TopologySpreadConstraint:
    fields = {"label_selector": WEB, "when_unsatisfiable": "DoNotSchedule", **fields}
    return TopologySpreadConstraint(max_skew=skew, topology_key=key, **fields)


def soft(key: str = ZONE, skew: int = 1, **fields: Any) -> TopologySpreadConstraint:
    return hard(key, skew, **{"when_unsatisfiable": "ScheduleAnyway", **fields})


def pod(
    *constraints: TopologySpreadConstraint,
    name: str = "new",
    namespace: str = "default",
    leaving: bool = False,
    **labels: str,
) -> Pod:
    """A pod with these labels, app=web if none are given."""
    deleted = "2026-01-01T00:00:00Z" if leaving else None
    meta = ObjectMeta(name=name, namespace=namespace, labels=labels or {"app": "web"}, deletion_timestamp=deleted)
    return Pod(metadata=meta, spec=PodSpec(topology_spread_constraints=constraints))


def choosing(chooser: Pod, **node_labels: str) -> Pod:
    """The pod with a nodeSelector."""
    return msgspec.structs.replace(chooser, spec=msgspec.structs.replace(chooser.spec, node_selector=node_labels))


def cluster_of(*zones: str | None, hosts: tuple[str | None, ...] | None = None) -> Cluster:
    """A node for each zone, n0 upwards, None for one without; hostnames are those of the nodes unless given."""
    cluster = Cluster()
    for at, zone in enumerate(zones):
        host = f"n{at}" if hosts is None else hosts[at]
        labels = {key: value for key, value in ((ZONE, zone), (HOSTNAME, host)) if value is not None}
        cluster.add_node(Node(metadata=ObjectMeta(name=f"n{at}", labels=labels)))
    return cluster


def bind(cluster: Cluster, node: int, times: int = 1, **fields: Any) -> None:
    for _ in range(times):
        made = pod(name=f"b{len(cluster.pods)}", **fields)
        cluster.add_pod(msgspec.structs.replace(made, spec=PodSpec(node_name=f"n{node}")))


def filled(cluster: Cluster, *pods: int) -> Cluster:
    """The cluster with so many web pods on its nodes."""
    for node, count in enumerate(pods):
        bind(cluster, node, count)
    return cluster


def check(cluster: Cluster, new: Pod, plugin: PodTopologySpread = SYSTEM) -> list[int] | None:
    codes = plugin.check(cluster.class_of(new), View(cluster))
    if codes is None:
        return None
    assert isinstance(codes, np.ndarray)
    return list(map(int, codes))


def score(
    cluster: Cluster, new: Pod, plugin: PodTopologySpread = SYSTEM, feasible: list[int] | None = None
) -> dict[int, int] | None:
    """The scores of the feasible nodes, all unless given."""
    rows = list(range(cluster.nodes.size)) if feasible is None else feasible
    mask = np.zeros(cluster.nodes.size, np.bool_)
    mask[rows] = True
    scores = plugin.score(cluster.class_of(new), View(cluster).scoring(mask))
    return None if scores is None else {row: int(scores[row]) for row in rows}


# -- hard constraints ------------------------------------------------------------------------------------------------


def test_a_node_is_refused_where_the_pod_would_exceed_the_skew() -> None:
    cluster = filled(cluster_of("a", "a", "b", "c"), 1, 1, 1, 0)
    assert check(cluster, pod(hard())) == [TIPS, TIPS, TIPS, FITS]
    assert check(cluster, pod(hard(skew=2))) == [TIPS, TIPS, FITS, FITS]
    assert check(cluster, pod(hard(skew=3))) == [FITS, FITS, FITS, FITS]


def test_the_reasons_are_those_of_kubernetes() -> None:
    text = "node(s) didn't match pod topology spread constraints"
    assert [(reason.text, reason.code) for reason in SYSTEM.reasons] == [
        (text, "Unschedulable"),
        (f"{text} (missing required label)", "UnschedulableAndUnresolvable"),
    ]


def test_one_row_is_judged_like_the_whole() -> None:
    cluster = filled(cluster_of("a", "b", None), 1, 0)
    kind = cluster.class_of(pod(hard()))
    codes = [SYSTEM.check(kind, View(cluster).at(row)) for row in range(3)]
    assert [list(map(int, one)) for one in codes if isinstance(one, np.ndarray)] == [[TIPS], [FITS], [UNLABELLED]]


def test_a_pod_that_does_not_match_its_own_selector_does_not_add_to_the_skew() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 0)
    assert check(cluster, pod(hard(), app="db")) == [FITS, FITS]
    bind(cluster, 0)
    assert check(cluster, pod(hard(), app="db")) == [TIPS, FITS]


def test_only_pods_of_the_same_namespace_that_are_not_being_deleted_count() -> None:
    cluster = cluster_of("a", "b")
    bind(cluster, 0, namespace="other")
    bind(cluster, 0, leaving=True)
    assert check(cluster, pod(hard())) == [FITS, FITS]


def test_the_first_constraint_that_a_node_fails_says_why() -> None:
    cluster = filled(cluster_of("a", "b", "a", None, hosts=("n0", "n1", None, "n3")), 2, 0)
    assert check(cluster, pod(hard(ZONE), hard(HOSTNAME))) == [TIPS, FITS, TIPS, UNLABELLED]
    assert check(cluster, pod(hard(HOSTNAME), hard(ZONE))) == [TIPS, FITS, UNLABELLED, UNLABELLED]


def test_nodes_without_all_keys_count_for_no_constraint() -> None:
    # The zone of n1 is the emptiest, but n1 has no hostname: the emptiest that counts is that of n0.
    cluster = filled(cluster_of("a", "b", hosts=("n0", None)), 3, 0)
    assert check(cluster, pod(hard(ZONE, 5), hard(HOSTNAME, 5))) == [FITS, UNLABELLED]
    assert check(cluster, pod(hard(ZONE, 1), hard(HOSTNAME, 5))) == [FITS, UNLABELLED]


def test_with_fewer_domains_than_wanted_the_emptiest_counts_as_empty() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 1)
    assert check(cluster, pod(hard(min_domains=2))) == [FITS, FITS]
    assert check(cluster, pod(hard(min_domains=3))) == [TIPS, TIPS]
    assert check(cluster, pod(hard(skew=2, min_domains=3))) == [FITS, FITS]


def test_without_any_domain_only_the_label_is_missed() -> None:
    assert check(cluster_of(None, None), pod(hard())) == [UNLABELLED, UNLABELLED]


def test_an_empty_selector_counts_nobody_but_the_pod_itself() -> None:
    cluster = filled(cluster_of("a", "b"), 5, 0)
    assert check(cluster, pod(hard(label_selector=LabelSelector()))) == [FITS, FITS]


def test_no_selector_matches_nobody() -> None:
    cluster = filled(cluster_of("a", "b"), 5, 0)
    assert check(cluster, pod(hard(label_selector=None, match_label_keys=("app",)))) == [FITS, FITS]


def test_only_pods_that_agree_on_the_match_label_keys_count() -> None:
    cluster = filled(cluster_of("a", "b"), 3, 0)
    bind(cluster, 1, app="web", version="2")
    constraint = hard(match_label_keys=("version",))
    assert check(cluster, pod(constraint, app="web", version="2")) == [FITS, TIPS]


def test_domains_without_an_eligible_node_do_not_count_but_their_nodes_may_fit() -> None:
    cluster = filled(cluster_of("a", "b", "c"), 2, 3, 0)
    # Zone a is alone, so 2 are the least; the pods in b are not counted either.
    assert check(cluster, choosing(pod(hard(skew=2)), **{HOSTNAME: "n0"})) == [FITS, FITS, FITS]
    assert check(cluster, pod(hard(skew=2))) == [TIPS, TIPS, FITS]


def test_domains_that_left_with_their_last_node_do_not_count() -> None:
    cluster = filled(cluster_of("a", "b", "c"), 2, 2, 0)
    assert check(cluster, pod(hard())) == [TIPS, TIPS, FITS]
    cluster.remove_node("n2")
    assert (check(cluster, pod(hard())) or [])[:2] == [FITS, FITS]


def test_a_pod_without_hard_constraints_is_refused_nowhere() -> None:
    cluster = cluster_of("a", "b")
    assert check(cluster, pod()) is None
    assert check(cluster, pod(soft())) is None


@pytest.mark.parametrize(
    "constraint, stage, step",
    [
        (hard, "PreFilter", "get constraints from pod: obtaining pod's hard"),
        (soft, "PreScore", "calculating preScoreState: obtaining pod's soft"),
    ],
)
def test_a_selector_that_cannot_be_parsed_is_a_failure(constraint: Any, stage: str, step: str) -> None:
    wrong = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    cluster = cluster_of("a")
    new = pod(constraint(label_selector=wrong))
    assert SYSTEM.check(cluster.class_of(new), View(cluster)) == Failure(
        f'{step} topology spread constraints: "Near" is not a valid label selector operator', stage
    )
    assert score(cluster, new) is None


# -- trials: pods taken away and added -------------------------------------------------------------------------------


def trial(cluster: Cluster, new: Pod, *removed: str) -> list[int]:
    rows = [cluster.pods.bound(cluster.pods.rows[f"default/{name}"]) for name in removed]
    codes = SYSTEM.check(cluster.class_of(new), View(cluster).without(rows))
    assert isinstance(codes, np.ndarray)
    return list(map(int, codes))


def test_evicting_pods_makes_room() -> None:
    cluster = filled(cluster_of("a", "b"), 2, 1)
    new = pod(hard())
    assert trial(cluster, new) == [TIPS, FITS]
    assert trial(cluster, new, "b0") == [FITS, FITS]


def test_a_pod_that_is_being_deleted_is_taken_off_a_count_it_was_not_in() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 1)
    bind(cluster, 0, leaving=True)
    # One is left in a, but Kubernetes takes it for none, and so b for too full.
    assert trial(cluster, pod(hard()), "b2") == [FITS, TIPS]


def test_an_empty_selector_counts_evicted_pods_below_nothing() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 0)
    new = pod(hard(label_selector=LabelSelector()))
    assert trial(cluster, new) == [FITS, FITS]
    assert trial(cluster, new, "b0") == [FITS, TIPS]


def test_pods_that_are_to_come_count() -> None:
    cluster = cluster_of("a", "b")
    kind = cluster.class_of(pod(hard()))
    codes = SYSTEM.check(kind, View(cluster).plus([(kind, 0)]))
    assert isinstance(codes, np.ndarray)
    assert codes.tolist() == [TIPS, FITS]


# -- soft constraints ------------------------------------------------------------------------------------------------


def test_a_domain_with_fewer_pods_scores_higher() -> None:
    cluster = filled(cluster_of("a", "b", "c"), 4, 2, 0)
    # 4, 2 and 0 pods weigh ln 5 each: 6, 3 and 0.
    assert score(cluster, pod(soft())) == {0: 0, 1: 50, 2: 100}


def test_what_the_skew_allows_is_added_everywhere() -> None:
    cluster = filled(cluster_of("a", "b", "c"), 4, 2, 0)
    # 6, 3 and 0, and 4 for each.
    assert score(cluster, pod(soft(skew=5))) == {0: 40, 1: 70, 2: 100}


def test_the_score_is_relative_to_the_feasible_nodes() -> None:
    cluster = filled(cluster_of("a", "b", "c"), 4, 2, 0)
    # Of two domains a pod weighs ln 4: 6 and 3.
    assert score(cluster, pod(soft()), feasible=[0, 1]) == {0: 50, 1: 100}
    assert score(cluster, pod(soft()), feasible=[0]) == {0: 100}


def test_nodes_without_all_keys_score_nothing() -> None:
    cluster = filled(cluster_of("a", None, "b", hosts=("n0", "n1", "n2")), 1, 0, 0)
    assert score(cluster, pod(soft())) == {0: 0, 1: 0, 2: 100}
    assert score(cluster, pod(soft(ZONE), soft(HOSTNAME))) == {0: 0, 1: 0, 2: 100}
    assert score(cluster, pod(soft()), feasible=[1]) == {1: 0}


def test_where_nobody_is_every_node_scores_in_full() -> None:
    assert score(cluster_of("a", "b"), pod(soft())) == {0: 100, 1: 100}
    assert score(cluster_of("a", "b"), pod(soft(ZONE), soft(HOSTNAME))) == {0: 100, 1: 100}


def test_hostnames_are_counted_node_by_node() -> None:
    cluster = filled(cluster_of("a", "a", "a", hosts=("same", "same", "other")), 2, 0, 1)
    # ln 5 for each pod on the node itself: 3, 0 and 2.
    assert score(cluster, pod(soft(HOSTNAME))) == {0: 0, 1: 100, 2: 33}


def test_hostnames_are_counted_on_nodes_that_the_pod_cannot_use_as_well() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 0)
    elsewhere = choosing(pod(soft(HOSTNAME)), **{HOSTNAME: "n1"})
    assert score(cluster, elsewhere) == {0: 0, 1: 100}
    assert score(cluster, choosing(pod(soft(ZONE)), **{ZONE: "b"})) == {0: 100, 1: 100}


def test_constraints_add_up() -> None:
    cluster = filled(cluster_of("a", "a", "b"), 2, 0, 1)
    # By zone ln 4 each: 2.77 and 1.39; by hostname ln 5 each: 3.22, 0 and 1.61; together 6, 3 and 3.
    assert score(cluster, pod(soft(ZONE), soft(HOSTNAME))) == {0: 50, 1: 100, 2: 100}


def test_an_empty_selector_prefers_no_node() -> None:
    cluster = filled(cluster_of("a", "b"), 5, 0)
    empty = LabelSelector()
    assert score(cluster, pod(soft(skew=2, label_selector=empty))) == {0: 100, 1: 100}
    assert score(cluster, pod(soft(HOSTNAME, 2, label_selector=empty))) == {0: 100, 1: 100}


def test_a_pod_with_hard_constraints_alone_is_not_scored() -> None:
    cluster = cluster_of("a", "b")
    cluster.put_object(service())
    assert score(cluster, pod(hard())) is None


# -- defaults --------------------------------------------------------------------------------------------------------


def service(namespace: str = "default") -> Service:
    return Service(metadata=ObjectMeta(name="web", namespace=namespace), spec=ServiceSpec(selector={"app": "web"}))


def test_the_pods_of_a_service_are_spread_by_default() -> None:
    cluster = filled(cluster_of("a", "a", "b"), 1, 1, 0)
    assert score(cluster, pod()) is None
    cluster.put_object(service())
    # By hostname ln 5 and 2, by zone 2 ln 4 and 4: 10, 10 and 6.
    assert score(cluster, pod()) == {0: 60, 1: 60, 2: 100}
    assert score(cluster, pod(app="db")) is None
    assert score(cluster, pod(namespace="other")) is None
    cluster.forget_object(service())
    assert score(cluster, pod()) is None


def test_under_the_systems_defaults_a_node_without_a_zone_is_spread_by_hostname() -> None:
    cluster = filled(cluster_of("a", None, None), 1, 1, 0)
    cluster.put_object(service())
    # No zone is a zone too, so by zone ln 4 and 4, but for the first alone; by hostname ln 5 for a pod, and 2.
    assert score(cluster, pod()) == {0: 22, 1: 77, 2: 100}


def test_a_zone_of_empty_text_holds_the_nodes_without_a_zone_as_well() -> None:
    cluster = filled(cluster_of("", None, "b", hosts=(None, None, None)), 1, 3, 1)
    cluster.put_object(service())
    # Two zones: 4 and 1 pods by ln 4, and 4; the node without one gets nothing.
    assert score(cluster, pod()) == {0: 0, 1: 100, 2: 50}


def test_nodes_without_a_zone_that_the_pod_cannot_use_are_not_in_the_zone_of_empty_text() -> None:
    cluster = Cluster()
    for at, labels in enumerate(({ZONE: "", "disk": "ssd"}, {}, {ZONE: "b", "disk": "ssd"})):
        cluster.add_node(Node(metadata=ObjectMeta(name=f"n{at}", labels=labels)))
    filled(cluster, 1, 3, 1).put_object(service())
    # One pod in each of two zones, by ln 4, and 4.
    assert score(cluster, choosing(pod(), disk="ssd")) == {0: 0, 1: 100, 2: 0}


def test_listed_defaults_take_the_place_of_the_systems() -> None:
    cluster = filled(cluster_of("a", "b", None), 1, 0, 0)
    cluster.put_object(service())
    listed = PodTopologySpread((hard(label_selector=None), soft(HOSTNAME, label_selector=None)), system_defaulted=False)
    assert check(cluster, pod(), listed) == [TIPS, FITS, UNLABELLED]
    assert score(cluster, pod(), listed) == {0: 0, 1: 100, 2: 100}
    assert check(cluster, pod(app="db"), listed) is None
    assert check(cluster, pod(soft()), listed) is None


def test_under_listed_defaults_nodes_without_all_keys_score_nothing() -> None:
    cluster = filled(cluster_of("a", None), 1, 0)
    cluster.put_object(service())
    keys = (soft(ZONE, label_selector=None), soft(HOSTNAME, label_selector=None))
    listed = PodTopologySpread(keys, system_defaulted=False)
    assert score(cluster, pod(), listed) == {0: 100, 1: 0}


def test_an_empty_list_of_defaults_spreads_nothing() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 0)
    cluster.put_object(service())
    nothing = PodTopologySpread((), system_defaulted=False)
    assert check(cluster, pod(), nothing) is None
    assert score(cluster, pod(), nothing) is None


def test_profiles_with_different_defaults_do_not_share_answers() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 0)
    cluster.put_object(service())
    by_zone = PodTopologySpread((soft(ZONE, label_selector=None),), system_defaulted=False)
    # By hostname ln 4 and 2, by zone ln 4 and 4: 9 and 6.
    assert score(cluster, pod()) == {0: 66, 1: 100}
    assert score(cluster, pod(), by_zone) == {0: 0, 1: 100}
    assert score(cluster, pod()) == {0: 66, 1: 100}


# -- what is read ----------------------------------------------------------------------------------------------------


def test_the_view_knows_what_an_answer_was_computed_from() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 0)
    own, other = View(cluster), View(cluster)
    SYSTEM.check(cluster.class_of(pod(hard())), own)
    assert (own.reads, len(own.tallies_read)) == (0, 1)
    SYSTEM.score(cluster.class_of(pod()), scoring := other.scoring(np.ones(2, np.bool_)))
    assert scoring.reads == WORKLOADS
    assert scoring.tallies_read == []


def test_the_check_under_the_systems_defaults_reads_nothing() -> None:
    cluster = filled(cluster_of("a", "b"), 1, 0)
    cluster.put_object(service())
    view = View(cluster)
    assert SYSTEM.check(cluster.class_of(pod()), view) is None
    assert (view.reads, view.tallies_read) == (0, [])


def assert_kept_equals_anew(cluster: Cluster, new: Pod, feasible: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    """What is kept from one question to the next answers as what is computed for one question alone."""
    kind = cluster.class_of(new)
    kept, anew = (SYSTEM.score(kind, View(cluster, feasible=feasible, once=once)) for once in (False, True))
    assert kept is not None
    assert anew is not None
    assert kept[feasible].tolist() == anew[feasible].tolist()


@given(data=st.data())
@settings(max_examples=60)
def test_scores_kept_by_combination_equal_those_computed_anew(data: st.DataObject) -> None:
    zones = data.draw(st.lists(st.sampled_from(("a", "b", "", None)), min_size=1, max_size=6))
    cluster = cluster_of(*zones)
    new = pod(*data.draw(st.permutations([soft(HOSTNAME, skew=3), soft(ZONE, skew=5)])))
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(0, 5))):
            bind(cluster, data.draw(st.integers(0, len(zones) - 1)))
        feasible = np.zeros(cluster.nodes.size, np.bool_)
        feasible[: len(zones)] = data.draw(st.lists(st.booleans(), min_size=len(zones), max_size=len(zones)))
        assert_kept_equals_anew(cluster, new, feasible)


def test_many_pods_on_one_node_and_many_changes_are_counted_as_well() -> None:
    cluster = filled(cluster_of(*"ab" * 80), *range(160))
    feasible = np.ones(cluster.nodes.size, np.bool_)
    for node, times in ((3, 1), (159, 1), (159, 3), (7, MAX_COMBINATIONS), (8, 1)):
        assert_kept_equals_anew(cluster, pod(soft(HOSTNAME), soft(ZONE)), feasible)
        bind(cluster, node, times)
    assert_kept_equals_anew(cluster, pod(soft(HOSTNAME), soft(ZONE)), feasible)
