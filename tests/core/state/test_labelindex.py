"""The label index leaves out nothing that could match, and tries little that cannot."""

from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.labels import Requirement, Selector
from situate.core.state.labelindex import LabelIndex
from situate.core.state.matching import pods_in

KEYS, VALUES = ["app", "tier"], ["a", "b"]
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
requirements = st.one_of(
    st.builds(
        Requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["In", "NotIn"]),
        st.sets(st.sampled_from(VALUES), min_size=1).map(lambda values: tuple(sorted(values))),
    ),
    st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.lists(requirements, max_size=3).map(lambda found: Selector(tuple(found)))


@given(st.lists(selectors, max_size=8), st.lists(st.integers(0, 7)), labels)
def test_every_match_is_a_candidate_and_once(made: list[Selector], gone: list[int], asked: dict[str, str]) -> None:
    index: LabelIndex[int] = LabelIndex()
    terms = [pods_in("default", selector) for selector in made]
    for at, term in enumerate(terms):
        index.add(term.anchor, at)
    for at in gone:
        if at < len(terms):
            index.discard(terms[at].anchor, at)
    found = list(index.candidates(asked))
    matching = [at for at, term in enumerate(terms) if at not in gone and term.matches("default", asked, {})]
    assert len(found) == len(set(found))
    assert set(matching) <= set(found)
    assert not set(gone) & set(found)


def test_what_demands_another_value_is_not_tried() -> None:
    index: LabelIndex[str] = LabelIndex()
    index.add(("app", "web"), "web")
    index.add(("app", "db"), "db")
    index.add(None, "any")
    assert list(index.candidates({"app": "web", "tier": "x"})) == ["web", "any"]
    assert list(index.candidates({})) == ["any"]


def test_the_last_item_under_a_label_takes_its_shelf_along() -> None:
    index: LabelIndex[str] = LabelIndex()
    for item in ("one", "two"):
        index.add(("app", "web"), item)
    index.discard(("app", "web"), "one")
    assert list(index.candidates({"app": "web"})) == ["two"]
    index.discard(("app", "web"), "two")
    index.discard(("app", "web"), "two")
    assert index._anchored == {}
