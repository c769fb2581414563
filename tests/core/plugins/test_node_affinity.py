"""NodeAffinity keeps a pod to the nodes it asks for, and prefers those it prefers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.contract import RULED_OUT, Codes, Refusal
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.nodeselector import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    matches,
)
from situate.core.model.pod import Affinity, Pod, PodSpec
from situate.core.model.pod import NodeAffinitySpec as Rules
from situate.core.plugins.node_affinity import NodeAffinity
from situate.core.state.cluster import Cluster
from situate.core.state.view import FEASIBLE, View

CONFLICT = Refusal("pod affinity terms conflict", eviction_helps=False)


def cluster_of(**labels: dict[str, str]) -> Cluster:
    cluster = Cluster()
    for name, own in labels.items():
        cluster.add_node(Node(metadata=ObjectMeta(name=name, labels=own)))
    return cluster


def has(key: str, *values: str) -> NodeSelectorTerm:
    operator = "In" if values else "Exists"
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


def named(*names: str, operator: str = "In") -> NodeSelectorTerm:
    one = [NodeSelectorRequirement(key="metadata.name", operator=operator, values=(name,)) for name in names]
    return NodeSelectorTerm(match_fields=tuple(one))


def rules(*required: NodeSelectorTerm, preferred: dict[NodeSelectorTerm, int] | None = None) -> Rules:
    weighted = tuple(
        PreferredSchedulingTerm(weight=weight, preference=term) for term, weight in (preferred or {}).items()
    )
    return Rules(
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=required)
        if required
        else None,
        preferred_during_scheduling_ignored_during_execution=weighted,
    )


def pod(own: Rules | None = None, selector: dict[str, str] | None = None) -> Pod:
    affinity = None if own is None else Affinity(node_affinity=own)
    return Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(affinity=affinity, node_selector=selector or {}))


def check(cluster: Cluster, asking: Pod, added: Rules | None = None) -> list[int] | Refusal | None:
    plugin, kind, view = NodeAffinity(added), cluster.class_of(asking), View(cluster)
    verdict = plugin.check(kind, view)
    if not isinstance(verdict, np.ndarray):
        return verdict
    for row in range(cluster.nodes.size):
        narrowed = plugin.check(kind, view.at(row))
        assert isinstance(narrowed, np.ndarray)
        assert narrowed.tolist() == verdict[row : row + 1].tolist()
    return list(map(int, verdict))


def score(cluster: Cluster, asking: Pod, feasible: list[bool], added: Rules | None = None) -> list[int] | None:
    view = View(cluster).scoring(np.array(feasible))
    scores = NodeAffinity(added).score(cluster.class_of(asking), view)
    return None if scores is None else scores.tolist()


THREE = {"a": {"disk": "ssd"}, "b": {"disk": "hdd", "zone": "z1"}, "c": {"zone": "z1"}}


def test_a_pod_that_asks_nothing_is_let_through() -> None:
    assert check(cluster_of(**THREE), pod()) is None
    assert check(cluster_of(**THREE), pod(rules(preferred={has("disk"): 5}))) is None


def test_where_every_node_matches_there_is_nothing_to_say() -> None:
    cluster = cluster_of(a={"disk": "ssd"}, gone={})
    cluster.remove_node("gone")
    assert check(cluster, pod(selector={"disk": "ssd"})) is None


def test_nodes_that_do_not_match_are_refused() -> None:
    cluster = cluster_of(**THREE)
    assert check(cluster, pod(selector={"disk": "ssd"})) == [0, 1, 1]
    assert check(cluster, pod(rules(has("zone")))) == [1, 0, 0]
    assert check(cluster, pod(rules(has("zone"), has("disk", "ssd")))) is None
    reason = NodeAffinity.reasons[0]
    assert (reason.text, reason.code) == (
        "node(s) didn't match Pod's node affinity/selector",
        "UnschedulableAndUnresolvable",
    )


def test_added_affinity_is_asked_first_and_has_a_text_of_its_own() -> None:
    cluster = cluster_of(**THREE)
    added = rules(has("zone"))
    assert check(cluster, pod(), added) == [2, 0, 0]
    assert check(cluster, pod(selector={"disk": "hdd"}), added) == [2, 0, 1]
    reason = NodeAffinity.reasons[1]
    assert (reason.text, reason.code) == (
        "node(s) didn't match scheduler-enforced node affinity",
        "UnschedulableAndUnresolvable",
    )


def test_two_profiles_do_not_see_each_others_added_affinity() -> None:
    cluster = cluster_of(**THREE)
    assert check(cluster, pod(), rules(has("zone"))) == [2, 0, 0]
    assert check(cluster, pod(), rules(has("disk"))) == [0, 0, 2]
    assert check(cluster, pod()) is None


def test_nodes_that_the_pod_does_not_name_are_ruled_out_unseen() -> None:
    cluster = cluster_of(**THREE)
    assert check(cluster, pod(rules(named("b")))) == [RULED_OUT, 0, RULED_OUT]
    assert check(cluster, pod(rules(named("b"), named("a")))) == [0, 0, RULED_OUT]
    assert check(cluster, pod(rules(named("elsewhere")))) == [RULED_OUT] * 3


def test_a_named_node_is_still_asked_for_everything_else() -> None:
    cluster = cluster_of(**THREE)
    assert check(cluster, pod(rules(named("b")), {"disk": "ssd"})) == [RULED_OUT, 1, RULED_OUT]
    assert check(cluster, pod(rules(named("a"))), rules(has("zone"))) == [2, RULED_OUT, RULED_OUT]


def test_several_names_in_one_requirement_rule_out_the_rest_and_then_match_nothing() -> None:
    both = NodeSelectorTerm(
        match_fields=(NodeSelectorRequirement(key="metadata.name", operator="In", values=("a", "b")),)
    )
    assert check(cluster_of(**THREE), pod(rules(both))) == [1, 1, RULED_OUT]


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param((named("b"), has("zone")), id="an alternative that names none"),
        pytest.param((named("b"), NodeSelectorTerm()), id="an empty alternative"),
    ],
)
def test_nobody_is_ruled_out_by(terms: tuple[NodeSelectorTerm, ...]) -> None:
    verdict = check(cluster_of(**THREE), pod(rules(*terms)))
    assert isinstance(verdict, list)
    assert RULED_OUT not in verdict


def test_leaving_out_a_name_refuses_that_node_and_rules_out_none() -> None:
    assert check(cluster_of(**THREE), pod(rules(named("b", operator="NotIn")))) == [0, 1, 0]


def test_terms_that_each_name_two_nodes_at_once_conflict() -> None:
    cluster = cluster_of(**THREE)
    assert check(cluster, pod(rules(named("a", "b")))) == CONFLICT
    assert check(cluster, pod(rules(named("a", "b"), named("b", "c")))) == CONFLICT
    assert check(cluster, pod(rules(named("a", "b"), named("c")))) == [RULED_OUT, RULED_OUT, 0]


def test_preferred_terms_add_up_and_the_best_feasible_node_has_100() -> None:
    cluster = cluster_of(**THREE)
    asking = pod(rules(preferred={has("disk"): 10, has("zone"): 20}))
    assert score(cluster, asking, [True, True, True]) == [33, 100, 66]
    got = score(cluster, asking, [True, False, True])
    assert got is not None
    assert (got[0], got[2]) == (50, 100)


def test_added_preferences_count_with_the_pods_own() -> None:
    cluster = cluster_of(**THREE)
    everywhere = [True, True, True]
    added = rules(preferred={has("disk", "ssd"): 30})
    assert score(cluster, pod(), everywhere, added) == [100, 0, 0]
    assert score(cluster, pod(rules(preferred={has("zone"): 60})), everywhere, added) == [50, 100, 100]


def test_without_a_preference_it_sits_out() -> None:
    assert score(cluster_of(**THREE), pod(rules(has("zone"))), [True] * 3) is None
    assert score(cluster_of(**THREE), pod(), [True] * 3, rules(has("zone"))) is None


def test_without_a_preference_all_score_0_where_the_profile_does_not_let_it_sit_out() -> None:
    cluster = cluster_of(**THREE)
    view = View(cluster).scoring(np.array([True] * 3))
    scores = NodeAffinity(may_skip=False).score(cluster.class_of(pod()), view)
    assert scores is not None
    assert scores.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "preferred",
    [
        pytest.param({has("disk"): 0}, id="weighs nothing"),
        pytest.param({NodeSelectorTerm(): 50}, id="is empty"),
        pytest.param({has("nowhere"): 50}, id="matches no node"),
    ],
)
def test_all_score_0_without_asking_who_is_feasible_when_the_preference(preferred: dict[NodeSelectorTerm, int]) -> None:
    cluster = cluster_of(**THREE)
    view = View(cluster).scoring(np.array([True, False, True]))
    scores = NodeAffinity().score(cluster.class_of(pod(rules(preferred=preferred))), view)
    assert scores is not None
    assert scores.tolist() == [0, 0, 0]
    assert not view.reads & FEASIBLE


REQUIREMENTS = st.builds(
    lambda key, value, operator: NodeSelectorRequirement(key=key, operator=operator, values=(value,)),
    st.sampled_from(["k1", "k2"]),
    st.sampled_from(["1", "2", "x"]),
    st.sampled_from(["In", "NotIn", "Gt", "Lt", "Exists"]),
)
FIELDS = st.builds(
    lambda name, operator: NodeSelectorRequirement(key="metadata.name", operator=operator, values=(name,)),
    st.sampled_from(["n0", "n1", "n7"]),
    st.sampled_from(["In", "NotIn"]),
)
TERMS = st.builds(
    lambda labels, fields: NodeSelectorTerm(match_expressions=tuple(labels), match_fields=tuple(fields)),
    st.lists(REQUIREMENTS, max_size=2),
    st.lists(FIELDS, max_size=2),
)
NODES = st.lists(
    st.tuples(st.dictionaries(st.sampled_from(["k1", "k2"]), st.sampled_from(["1", "2", "x"])), st.booleans()),
    min_size=1,
    max_size=5,
)


def verdict_of(name: str, labels: dict[str, str], terms: list[NodeSelectorTerm]) -> int:
    """What one node is told: the names in the terms are looked at first, then the terms."""
    names: set[str] | None = set()
    for term in terms:
        wanted = [set(one.values) for one in term.match_fields if one.operator == "In"]
        names = None if names is None or not wanted else names | set.intersection(*wanted)
    if names is not None and name not in names:
        return RULED_OUT
    return int(not matches(NodeSelector(node_selector_terms=tuple(terms)), labels, name))


@settings(max_examples=150)
@given(NODES, st.lists(TERMS, min_size=1, max_size=3))
def test_verdicts_are_those_of_each_node_alone(
    nodes: list[tuple[dict[str, str], bool]], terms: list[NodeSelectorTerm]
) -> None:
    labels = {f"n{at}": own for at, (own, _) in enumerate(nodes)}
    cluster = cluster_of(**labels)
    got: list[int] | Codes | Refusal | None = check(cluster, pod(rules(*terms)))
    expected = [verdict_of(name, own, terms) for name, own in labels.items()]
    if isinstance(got, Refusal):
        assert got == CONFLICT
        assert all(len({one.values for one in term.match_fields if one.operator == "In"}) > 1 for term in terms)
    else:
        assert (got or [0] * len(nodes)) == expected


@settings(max_examples=150)
@given(NODES, st.lists(st.tuples(TERMS, st.integers(0, 100)), min_size=1, max_size=3, unique_by=lambda one: one[0]))
def test_scores_are_those_of_each_node_alone(
    nodes: list[tuple[dict[str, str], bool]], preferred: list[tuple[NodeSelectorTerm, int]]
) -> None:
    cluster = cluster_of(**{f"n{at}": own for at, (own, _) in enumerate(nodes)})
    feasible = [fits for _, fits in nodes]
    got = score(cluster, pod(rules(preferred=dict(preferred))), feasible)
    assert got is not None
    sums = [
        sum(weight for term, weight in preferred if matches(NodeSelector(node_selector_terms=(term,)), own, f"n{at}"))
        for at, (own, _) in enumerate(nodes)
    ]
    top = max((one for one, fits in zip(sums, feasible, strict=True) if fits), default=0)
    for at, fits in enumerate(feasible):
        if fits:
            assert got[at] == (100 * sums[at] // top if top else 0)
