"""Node selectors over columns choose the nodes that the scalar rules choose, one node at a time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.model.labels import Requirement
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Term, parse_terms
from situate.core.model.pod import Affinity, NodeAffinitySpec, Pod, PodSpec
from situate.core.plugins.support.node_selectors import node_selector_mask, required_affinity_mask
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


def cluster_of(**labels: dict[str, str]) -> Cluster:
    cluster = Cluster()
    for name, own in labels.items():
        cluster.add_node(Node(metadata=ObjectMeta(name=name, labels=own)))
    return cluster


def chosen(terms: tuple[Term, ...], cluster: Cluster) -> list[str]:
    view = View(cluster)
    mask = node_selector_mask(terms, view)
    return [name for name, row in cluster.nodes.rows.items() if mask[row]]


def label(key: str, operator: str, *values: str) -> tuple[Term, ...]:
    return (Term(labels=(Requirement(key, operator, values),)),)


def field(operator: str, value: str, key: str = "metadata.name") -> tuple[Term, ...]:
    return (Term(fields=(Requirement(key, operator, (value,)),)),)


CASES = [
    pytest.param(label("disk", "In", "ssd"), ["a"], id="In takes the nodes with that value"),
    pytest.param(label("disk", "In", "hdd", "ssd"), ["a", "b"], id="In takes the nodes with any of several values"),
    pytest.param(label("disk", "In", "tape"), [], id="In of a value that no node has takes none"),
    pytest.param(label("rack", "In", "r1"), [], id="In of a label that no node has takes none"),
    pytest.param(label("disk", "NotIn", "ssd"), ["b", "c"], id="NotIn takes nodes without the label too"),
    pytest.param(label("disk", "NotIn", "ssd", "hdd"), ["c"], id="NotIn of several values leaves out each of them"),
    pytest.param(label("rack", "NotIn", "r1"), ["a", "b", "c"], id="NotIn of a label that no node has takes all"),
    pytest.param(label("disk", "Exists"), ["a", "b"], id="Exists takes the nodes with the label"),
    pytest.param(label("disk", "DoesNotExist"), ["c"], id="DoesNotExist takes the nodes without the label"),
    pytest.param(label("gen", "Gt", "3"), ["b"], id="Gt compares numbers, not text"),
    pytest.param(label("gen", "Lt", "5"), ["a"], id="Lt passes over what is no number"),
    pytest.param(field("In", "b"), ["b"], id="the field metadata.name takes the node of that name"),
    pytest.param(field("In", "z"), [], id="a name that no node has takes none"),
    pytest.param(field("NotIn", "b"), ["a", "c"], id="a field with NotIn leaves out the node of that name"),
    pytest.param(field("In", "", key="spec.podCIDR"), ["a", "b", "c"], id="a field that nodes do not have is empty"),
    pytest.param(field("In", "b", key="spec.podCIDR"), [], id="a field that nodes do not have is not anything else"),
    pytest.param((), [], id="no terms take no node"),
    pytest.param((Term(),), ["a", "b", "c"], id="a term that asks nothing takes all"),
    pytest.param(label("disk", "In", "ssd") + field("In", "c"), ["a", "c"], id="terms are alternatives"),
    pytest.param(
        (
            Term(
                (Requirement("disk", "Exists"), Requirement("gen", "Gt", ("3",))),
                (Requirement("metadata.name", "NotIn", ("a",)),),
            ),
        ),
        ["b"],
        id="requirements of one term hold together",
    ),
]


@pytest.mark.parametrize("terms,expected", CASES)
def test_terms_choose(terms: tuple[Term, ...], expected: list[str]) -> None:
    cluster = cluster_of(a={"disk": "ssd", "gen": "3"}, b={"disk": "hdd", "gen": "10"}, c={"gen": "new"})
    assert chosen(terms, cluster) == expected


VALUES = st.sampled_from(["", "1", "2", "10", "-3", "+4", "x", "9223372036854775808"])
NUMBERS = st.sampled_from(["0", "1", "2", "-3", "+4"])
KEYS = st.sampled_from(["k1", "k2", "k3"])
NAMES = st.sampled_from(["n0", "n1", "n2", "n9"])
REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, op, values: Requirement(key, op, tuple(sorted(values))),
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.sets(VALUES, min_size=1),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(lambda key, op, value: Requirement(key, op, (value,)), KEYS, st.sampled_from(["Gt", "Lt"]), NUMBERS),
)
FIELDS = st.builds(
    lambda key, op, value: Requirement(key, op, (value,)),
    st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
    st.sampled_from(["In", "NotIn"]),
    NAMES,
)
TERMS = st.lists(
    st.builds(Term, st.lists(REQUIREMENTS, max_size=3).map(tuple), st.lists(FIELDS, max_size=2).map(tuple)), max_size=3
).map(tuple)
NODES = st.lists(st.dictionaries(KEYS, VALUES), min_size=1, max_size=6)


@settings(max_examples=150)
@given(NODES, TERMS)
def test_the_mask_is_what_each_node_would_be_told_alone(nodes: list[dict[str, str]], terms: tuple[Term, ...]) -> None:
    cluster = cluster_of(**{f"n{at}": labels for at, labels in enumerate(nodes)})
    expected = [any(term.matches(labels, f"n{at}") for term in terms) for at, labels in enumerate(nodes)]
    assert node_selector_mask(terms, View(cluster)).tolist() == expected
    assert [node_selector_mask(terms, View(cluster).at(row)).tolist() for row in range(len(nodes))] == [
        [one] for one in expected
    ]


def pod(selector: dict[str, str] | None = None, required: NodeSelector | None = None) -> Pod:
    rules = NodeAffinitySpec(required_during_scheduling_ignored_during_execution=required)
    affinity = None if required is None else Affinity(node_affinity=rules)
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default"),
        spec=PodSpec(node_selector=selector or {}, affinity=affinity),
    )


def needs(*requirements: NodeSelectorRequirement) -> NodeSelector:
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=requirements),))


def allowed(asking: Pod, cluster: Cluster, row: int | None = None) -> list[bool] | None:
    view = View(cluster)
    mask = required_affinity_mask(cluster.class_of(asking), view if row is None else view.at(row))
    return None if mask is None else mask.tolist()


def test_a_pod_without_demands_has_no_mask() -> None:
    cluster = cluster_of(a={})
    assert allowed(pod(), cluster) is None
    preferring = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(affinity=Affinity(node_affinity=NodeAffinitySpec())))
    assert allowed(preferring, cluster) is None


def test_node_selector_and_affinity_both_hold() -> None:
    cluster = cluster_of(a={"disk": "ssd", "zone": "z1"}, b={"disk": "ssd", "zone": "z2"}, c={"zone": "z1"})
    required = needs(NodeSelectorRequirement(key="zone", operator="In", values=("z1",)))
    assert allowed(pod({"disk": "ssd"}), cluster) == [True, True, False]
    assert allowed(pod(required=required), cluster) == [True, False, True]
    assert allowed(pod({"disk": "ssd"}, required), cluster) == [True, False, False]


def test_every_label_of_a_node_selector_is_asked_for_as_it_is_written() -> None:
    cluster = cluster_of(a={"disk": "ssd", "not a label": "not a value!"}, b={"disk": "ssd"})
    assert allowed(pod({"disk": "ssd", "not a label": "not a value!"}), cluster) == [True, False]


def test_an_affinity_without_terms_matches_nothing() -> None:
    assert allowed(pod(required=NodeSelector()), cluster_of(a={}, b={})) == [False, False]


def test_a_term_that_cannot_be_parsed_matches_nothing_and_leaves_the_others_alone() -> None:
    cluster = cluster_of(a={"gen": "7"})
    bad = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="gen", operator="Gt", values=("six",)),))
    good = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="gen", operator="Exists"),))
    assert parse_terms((bad,)) == ()
    assert allowed(pod(required=NodeSelector(node_selector_terms=(bad,))), cluster) == [False]
    assert allowed(pod(required=NodeSelector(node_selector_terms=(bad, good))), cluster) == [True]


def test_the_mask_is_over_all_rows_even_from_a_narrowed_view() -> None:
    cluster = cluster_of(a={"disk": "ssd"}, b={})
    assert allowed(pod({"disk": "ssd"}), cluster, row=1) == [True, False]


def test_the_mask_follows_a_node_whose_labels_change() -> None:
    cluster = cluster_of(a={"disk": "ssd"}, b={})
    assert allowed(pod({"disk": "ssd"}), cluster) == [True, False]
    cluster.add_node(Node(metadata=ObjectMeta(name="b", labels={"disk": "ssd"})))
    cluster.remove_node("a")
    mask = allowed(pod({"disk": "ssd"}), cluster)
    assert mask is not None
    assert mask[cluster.nodes.rows["b"]]
