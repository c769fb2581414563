"""Reaching volumes: the first of many choices, looked up by value, is the first that would be found one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node
from situate.core.model.labels import Requirement
from situate.core.model.nodeselector import Term
from situate.core.plugins.support.volume_topology import Terms, first_matching
from situate.core.state.view import View
from storage_builders import HOSTNAME, ZONE, cluster_of

NODES = [{HOSTNAME: "n0", ZONE: "a"}, {HOSTNAME: "n1", ZONE: "b"}, {HOSTNAME: "n2"}, {}]

pinned = st.builds(
    lambda key, value: (Term(labels=(Requirement(key, "In", (value,)),)),),
    st.sampled_from((HOSTNAME, ZONE)),
    st.sampled_from(("n0", "n1", "a", "nowhere")),
)
others: st.SearchStrategy[Terms] = st.sampled_from(
    (
        None,
        (),
        (Term(labels=()),),
        (Term(labels=(Requirement(ZONE, "In", ("a", "b")),)),),
        (Term(labels=(Requirement(ZONE, "DoesNotExist"),)),),
        (Term(labels=(Requirement(ZONE, "In", ("a",)), Requirement(HOSTNAME, "In", ("n0",)))),),
        (Term(labels=(Requirement(ZONE, "In", ("a",)),)), Term(labels=(Requirement(HOSTNAME, "In", ("n2",)),))),
    )
)


@settings(max_examples=100)
@given(st.lists(st.one_of(pinned, others), max_size=6))
def test_the_first_that_has_the_node_among_its_places(choices: list[Terms]) -> None:
    cluster = cluster_of(*(node(f"n{at}", labels=labels) for at, labels in enumerate(NODES)))

    def first(labels: dict[str, str]) -> int:
        has = [terms is None or any(term.matches(labels, "") for term in terms) for terms in choices]
        return [*has, True].index(True)

    assert first_matching(choices, View(cluster)).tolist() == [first(labels) for labels in NODES]
    assert [first_matching(choices, View(cluster).at(row)).tolist() for row in range(4)] == [
        [first(each)] for each in NODES
    ]
