"""Selectors as dicts, against the selectors of the core on the same objects."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.labels import LabelSelector, LabelSelectorRequirement, parse_selector
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.label_selectors import is_empty, matches, validate_selector

KEYS, VALUES = st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "x", "y"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)
SEVERAL = st.fixed_dictionaries(
    {"key": KEYS, "operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(VALUES, min_size=1, max_size=2)}
)
BARE = st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])})
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(SEVERAL | BARE, max_size=3)}
)


@given(SELECTORS, LABELS)
def test_a_selector_matches_what_the_core_s_does(selector: dict[str, Any], labels: dict[str, str]) -> None:
    expressions = tuple(
        LabelSelectorRequirement(key=one["key"], operator=one["operator"], values=tuple(one.get("values", ())))
        for one in selector.get("matchExpressions", ())
    )
    twin = parse_selector(LabelSelector(match_labels=selector.get("matchLabels", {}), match_expressions=expressions))
    assert matches(selector, labels) == twin.matches(labels)


def test_a_selector_that_is_missing_matches_nothing_and_an_empty_one_everything() -> None:
    assert not matches(None, {})
    assert not is_empty(None)
    assert matches({}, {"a": "b"})
    assert is_empty({})


def test_a_selector_with_a_mistake_cannot_be_asked() -> None:
    causes = Causes()
    assert not validate_selector({"matchExpressions": [{"key": "a", "operator": "In"}]}, "spec.selector", causes)
    assert [cause.field for cause in causes] == ["spec.selector.matchExpressions[0].values"]
