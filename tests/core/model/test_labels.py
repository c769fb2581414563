"""Label selectors match as Kubernetes' do, and equal questions are equal values."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import expression, selector
from situate.core.model.integers import parse_int64
from situate.core.model.labels import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    LabelSelectorRequirement,
    Requirement,
    SelectorError,
    parse_selector,
    requirement,
)

LABELS = {"app": "web", "tier": "", "level": "10", "odd": "x1"}


@pytest.mark.parametrize(
    "asked, matches",
    [
        pytest.param(selector(app="web"), True, id="an equal label"),
        pytest.param(selector(app="db"), False, id="another value"),
        pytest.param(selector(app="web", tier="front"), False, id="all must match"),
        pytest.param(selector(tier=""), True, id="an empty value is a value"),
        pytest.param(selector(none=""), False, id="an absent label has not the empty value"),
        pytest.param(selector(expression("app", "In", "db", "web")), True, id="In one of several"),
        pytest.param(selector(expression("app", "In", "db")), False, id="In none"),
        pytest.param(selector(expression("none", "In", "db")), False, id="In needs the label"),
        pytest.param(selector(expression("app", "NotIn", "db")), True, id="NotIn another"),
        pytest.param(selector(expression("app", "NotIn", "web", "db")), False, id="NotIn its own"),
        pytest.param(selector(expression("none", "NotIn", "db")), True, id="NotIn holds without the label"),
        pytest.param(selector(expression("tier", "Exists")), True, id="Exists, though empty"),
        pytest.param(selector(expression("none", "Exists")), False, id="Exists needs the label"),
        pytest.param(selector(expression("none", "DoesNotExist")), True, id="DoesNotExist"),
        pytest.param(selector(expression("app", "DoesNotExist")), False, id="DoesNotExist, though it does"),
        pytest.param(selector(expression("app", "Exists"), app="db"), False, id="labels and expressions together"),
    ],
)
def test_a_selector_matches_labels(asked: LabelSelector, matches: bool) -> None:
    assert parse_selector(asked).matches(LABELS) is matches


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert parse_selector(None) is NOTHING
    assert parse_selector(selector()) is EVERYTHING
    for labels in ({}, LABELS):
        assert not NOTHING.matches(labels)
        assert EVERYTHING.matches(labels)


@pytest.mark.parametrize(
    "operator, bound, label, matches",
    [
        ("Gt", "9", "10", True),
        ("Gt", "10", "10", False),
        ("Lt", "11", "10", True),
        ("Lt", "10", "10", False),
        ("Gt", "-5", "-4", True),
        ("Gt", "9", "x1", False),
        ("Lt", "9", "", False),
        ("Lt", "9223372036854775807", "9223372036854775808", False),
        ("Gt", "1", "1_0", False),
        ("Gt", "1", "٣", False),
        ("Gt", "1", " 3", False),
        ("Gt", "1", "9" * 5000, False),
    ],
)
def test_comparisons_are_of_int64_text(operator: str, bound: str, label: str, matches: bool) -> None:
    # Made directly: a label value may not begin with a dash, but matching does not care.
    assert Requirement("level", operator, (bound,)).matches({"level": label}) is matches
    assert not Requirement("level", operator, (bound,)).matches({})


@pytest.mark.parametrize(
    "key, operator, values, says",
    [
        pytest.param("a b", "Exists", (), "key: Invalid value", id="a key that is no label key"),
        pytest.param("app", "In", (), "values set can't be empty", id="In without values"),
        pytest.param("app", "NotIn", (), "values set can't be empty", id="NotIn without values"),
        pytest.param("app", "Exists", ("x",), "values set must be empty", id="Exists with values"),
        pytest.param("app", "Gt", (), "exactly one value is required", id="Gt without a value"),
        pytest.param("app", "Lt", ("1", "2"), "exactly one value is required", id="Lt with two values"),
        pytest.param("app", "Gt", ("x",), "the value must be an integer", id="Gt of a word"),
        pytest.param("app", "Near", ("x",), "not a valid label selector operator", id="an operator that is none"),
        pytest.param("app", "In", ("a b",), "a valid label must be", id="a value that is no label value"),
    ],
)
def test_what_kubernetes_cannot_parse_is_an_error(key: str, operator: str, values: tuple[str, ...], says: str) -> None:
    with pytest.raises(SelectorError, match=says):
        requirement(key, operator, values)


@pytest.mark.parametrize("operator", ["Gt", "Lt", "", "in"])
def test_a_label_selector_knows_four_operators(operator: str) -> None:
    with pytest.raises(SelectorError, match="is not a valid label selector operator"):
        parse_selector(selector(expression("level", operator, "1")))


KEYS, VALUES = ("a", "b", "c"), ("", "x", "y")
expressions = st.one_of(
    st.builds(
        expression,
        st.sampled_from(KEYS),
        st.sampled_from(["In", "NotIn"]),
        *[st.sampled_from(VALUES) for _ in range(2)],
    ),
    st.builds(expression, st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"])),
)
label_sets = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


def slowly_matches(one: LabelSelectorRequirement, labels: dict[str, str]) -> bool:
    has = one.key in labels
    return {
        "In": has and labels.get(one.key) in one.values,
        "NotIn": not (has and labels.get(one.key) in one.values),
        "Exists": has,
        "DoesNotExist": not has,
    }[one.operator]


@given(st.lists(expressions, max_size=4), label_sets, label_sets)
def test_a_parsed_selector_agrees_with_reading_it_again_each_time(
    asked: list[LabelSelectorRequirement], wanted: dict[str, str], labels: dict[str, str]
) -> None:
    parsed = parse_selector(selector(*asked, **wanted))
    slowly = all(slowly_matches(one, labels) for one in asked) and wanted.items() <= labels.items()
    assert parsed.matches(labels) is slowly


@given(st.lists(expressions, max_size=3), label_sets)
def test_order_and_repetition_make_no_difference(asked: list[LabelSelectorRequirement], wanted: dict[str, str]) -> None:
    parsed = parse_selector(selector(*asked, **wanted))
    for shuffled in itertools.permutations([*asked, *asked[:1]]):
        again = parse_selector(selector(*shuffled, **dict(reversed(wanted.items()))))
        assert again == parsed
        assert {parsed: 1}[again] == 1


def test_a_label_and_an_expression_of_one_value_are_the_same_question() -> None:
    assert parse_selector(selector(app="web")) == parse_selector(selector(expression("app", "In", "web", "web")))


@pytest.mark.parametrize(
    "text, number",
    [
        ("0", 0),
        ("-12", -12),
        ("+7", 7),
        ("007", 7),
        ("", None),
        ("-", None),
        ("1.0", None),
        ("1e3", None),
        ("1_0", None),
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    assert parse_int64(text) == number
