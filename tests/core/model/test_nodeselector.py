"""Node selectors: any term, every requirement; what cannot be parsed matches nothing."""

import pytest

from builders import term
from situate.core.model.labels import SelectorError
from situate.core.model.nodeselector import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    matches,
    parse_term,
    parse_terms,
)

LABELS = {"disk": "ssd", "cores": "16"}


def selects(*terms: NodeSelectorTerm, name: str = "n1") -> bool:
    return matches(NodeSelector(node_selector_terms=terms), LABELS, name)


SSD = term(("disk", "In", ("ssd", "nvme")))
HDD = term(("disk", "In", ("hdd",)))


@pytest.mark.parametrize(
    "asked, matched",
    [
        pytest.param(SSD, True, id="In"),
        pytest.param(HDD, False, id="not In"),
        pytest.param(term(("disk", "NotIn", ("hdd",))), True, id="NotIn"),
        pytest.param(term(("gpu", "NotIn", ("a",))), True, id="NotIn of an absent label"),
        pytest.param(term(("gpu", "Exists", ())), False, id="Exists of an absent label"),
        pytest.param(term(("gpu", "DoesNotExist", ())), True, id="DoesNotExist"),
        pytest.param(term(("cores", "Gt", ("15",))), True, id="Gt"),
        pytest.param(term(("cores", "Gt", ("16",))), False, id="not Gt"),
        pytest.param(term(("cores", "Lt", ("17",))), True, id="Lt"),
        pytest.param(term(("disk", "Gt", ("1",))), False, id="Gt of a label that is no number"),
        pytest.param(term(("cores", "Gt", ("many",))), False, id="Gt of a word matches nothing"),
        pytest.param(term(("cores", "Lt", ("1", "2"))), False, id="Lt of two values matches nothing"),
        pytest.param(term(("cores", "Near", ("16",))), False, id="an unknown operator matches nothing"),
        pytest.param(term(("disk", "In", ())), False, id="In of no values matches nothing"),
        pytest.param(term(("disk", "NotIn", ())), False, id="NotIn of no values matches nothing"),
        pytest.param(term(("disk", "Exists", ("ssd",))), False, id="Exists of a value matches nothing"),
        pytest.param(term(("disk", "In", ("ssd",)), ("gpu", "Exists", ())), False, id="every requirement must hold"),
        pytest.param(term(), False, id="an empty term matches nothing"),
        pytest.param(term(fields=(("metadata.name", "In", "n1"),)), True, id="the node's name"),
        pytest.param(term(fields=(("metadata.name", "In", "n2"),)), False, id="another node's name"),
        pytest.param(term(fields=(("metadata.name", "NotIn", "n2"),)), True, id="any name but one"),
        pytest.param(term(fields=(("metadata.name", "Exists", "n1"),)), False, id="fields know In and NotIn only"),
        pytest.param(term(fields=(("metadata.uid", "In", "n1"),)), False, id="a field that nodes do not have"),
        pytest.param(term(fields=(("metadata.uid", "NotIn", "n1"),)), True, id="not a field that nodes do not have"),
        pytest.param(
            term(("disk", "In", ("ssd",)), fields=(("metadata.name", "In", "n2"),)), False, id="labels and fields both"
        ),
    ],
)
def test_a_term_matches_a_node(asked: NodeSelectorTerm, matched: bool) -> None:
    assert selects(asked) is matched


def test_any_term_will_do_and_none_matches_nothing() -> None:
    assert selects(HDD, SSD)
    assert not selects(HDD, HDD)
    assert not selects()


def test_a_term_that_cannot_be_parsed_does_not_spoil_the_others() -> None:
    assert selects(term(("cores", "Gt", ("many",))), SSD)


def test_fields_take_one_value() -> None:
    two = NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1", "n2"))
    with pytest.raises(SelectorError, match="must have one element"):
        parse_term(NodeSelectorTerm(match_fields=(two,)))


def test_fields_are_not_asked_where_the_name_is_unknown() -> None:
    """So Kubernetes checks a volume's node affinity, of which it knows the labels only."""
    assert selects(term(fields=(("metadata.name", "In", "n2"),)), name="")


def test_terms_with_the_same_requirements_are_equal() -> None:
    one = term(("disk", "In", ("nvme", "ssd")), ("cores", "Gt", ("1",)))
    other = term(("cores", "Gt", ("1",)), ("disk", "In", ("ssd", "nvme", "ssd")))
    assert parse_term(one) == parse_term(other)


def test_only_terms_that_can_match_are_kept() -> None:
    kept = parse_terms((term(), SSD, term(("a b", "Exists", ())), HDD))
    assert kept == (parse_term(SSD), parse_term(HDD))
