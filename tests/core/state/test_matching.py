"""Which pods a term speaks of, by namespace and labels."""

import pytest

from builders import expression, selector
from situate.core.model.labels import EVERYTHING, NOTHING, Selector, parse_selector
from situate.core.state.matching import Matcher, PodTerm, pods_in

NAMESPACES = {"red": {"team": "red"}, "blue": {"team": "blue"}, "bare": {}}
WEB = parse_selector(selector(app="web"))
RED = parse_selector(selector(team="red"))

CASES = [
    pytest.param(("red",), None, WEB, "red", {"app": "web"}, True, id="a namespace that is named"),
    pytest.param(("red",), None, WEB, "blue", {"app": "web"}, False, id="another namespace"),
    pytest.param(("red",), None, WEB, "red", {"app": "db"}, False, id="other labels"),
    pytest.param((), RED, WEB, "red", {"app": "web"}, True, id="a namespace that is selected"),
    pytest.param((), RED, WEB, "blue", {"app": "web"}, False, id="a namespace that is not selected"),
    pytest.param(("blue",), RED, WEB, "blue", {"app": "web"}, True, id="named though not selected"),
    pytest.param((), RED, WEB, "unknown", {"app": "web"}, False, id="a namespace nobody knows has no labels"),
    pytest.param((), EVERYTHING, WEB, "unknown", {"app": "web"}, True, id="and is selected with all others"),
    pytest.param((), NOTHING, WEB, "red", {"app": "web"}, False, id="a selector that selects no namespace"),
    pytest.param((), None, WEB, "red", {"app": "web"}, False, id="no namespace at all"),
    pytest.param(("red",), None, NOTHING, "red", {}, False, id="a selector that matches no pod"),
    pytest.param(("bare",), None, EVERYTHING, "bare", {}, True, id="a selector that matches every pod"),
]


@pytest.mark.parametrize("namespaces,chooser,pods,namespace,labels,expected", CASES)
def test_a_term_speaks_of(
    namespaces: tuple[str, ...],
    chooser: Selector | None,
    pods: Selector,
    namespace: str,
    labels: dict[str, str],
    expected: bool,
) -> None:
    term = PodTerm(namespaces, chooser, pods)
    assert term.matches(namespace, labels, NAMESPACES) is expected
    assert Matcher((term,)).matches(namespace, labels, NAMESPACES) is expected


def test_a_matcher_wants_every_one_of_its_terms() -> None:
    both = Matcher((PodTerm(("red",), None, WEB), PodTerm((), RED, parse_selector(selector(tier="x")))))
    assert both.matches("red", {"app": "web", "tier": "x"}, NAMESPACES)
    assert not both.matches("red", {"app": "web"}, NAMESPACES)
    assert not both.matches("blue", {"app": "web", "tier": "x"}, NAMESPACES)


@pytest.mark.parametrize(
    "selected,anchor",
    [
        pytest.param(selector(app="web"), ("app", "web"), id="one value of a label"),
        pytest.param(selector(expression("app", "In", "web")), ("app", "web"), id="a list of one value"),
        pytest.param(selector(expression("app", "In", "web", "db")), None, id="one of two values"),
        pytest.param(selector(expression("app", "NotIn", "web")), None, id="any value but one"),
        pytest.param(selector(expression("app", "Exists")), None, id="any value"),
        pytest.param(selector(expression("a", "Exists"), tier="x"), ("tier", "x"), id="one value and more"),
    ],
)
def test_a_term_is_filed_under_the_label_that_it_cannot_do_without(
    selected: object, anchor: tuple[str, str] | None
) -> None:
    parsed = parse_selector(selected)  # type: ignore[arg-type]
    assert pods_in("default", parsed).anchor == anchor
    assert Matcher((PodTerm((), EVERYTHING, EVERYTHING), PodTerm(("default",), None, parsed))).anchor == anchor


def test_equal_questions_are_one_value() -> None:
    one = pods_in("default", parse_selector(selector(expression("app", "In", "b", "a"), tier="x")))
    other = pods_in(
        "default", parse_selector(selector(expression("tier", "In", "x"), expression("app", "In", "a", "b")))
    )
    assert one == other
    assert len({one: 1, other: 2}) == 1
