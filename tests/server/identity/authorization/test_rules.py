import time
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.server.identity.authorization.escalation import COMPARED
from situate.server.identity.authorization.rules import Rule, TooManyRulesError, uncovered

WORDS = ("a", "b", "c", "*")
PATHS = ("/a", "/a/b", "/b", "/a*", "/a/*", "*", "/*")
RESOURCES = ("a", "b", "a/s", "b/s", "*/s", "*")
some = st.lists(st.sampled_from(WORDS), max_size=3).map(tuple)
rules = st.builds(
    Rule,
    some,
    some,
    st.lists(st.sampled_from(RESOURCES), max_size=3).map(tuple),
    st.lists(st.sampled_from(("x", "y")), max_size=2).map(tuple),
    st.lists(st.sampled_from(PATHS), max_size=2).map(tuple),
)


def pieces(rule: Rule) -> Iterator[Rule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or ("",):
                    yield Rule((verb,), (group,), (resource,), (name,) if name else ())
    for path in rule.paths:
        for verb in rule.verbs:
            yield Rule((verb,), paths=(path,))


def covers(owned: Rule, piece: Rule) -> bool:
    """By the words of Kubernetes' documentation, one field after the other."""
    if "*" not in owned.verbs and piece.verbs[0] not in owned.verbs:
        return False
    if owned.names and (not piece.names or piece.names[0] not in owned.names):
        return False
    if piece.paths:
        wanted = piece.paths[0]
        return any(one == wanted or (one.endswith("*") and wanted.startswith(one.rstrip("*"))) for one in owned.paths)
    if "*" not in owned.groups and piece.groups[0] not in owned.groups:
        return False
    wanted = piece.resources[0]
    _, parted, sub = wanted.partition("/")
    return "*" in owned.resources or wanted in owned.resources or (bool(parted) and f"*/{sub}" in owned.resources)


@given(st.lists(rules, max_size=4), st.lists(rules, max_size=4))
def test_what_is_missing_is_each_verb_on_a_resource_that_no_rule_covers(owned: list[Rule], wanted: list[Rule]) -> None:
    expected = [piece for rule in wanted for piece in pieces(rule) if not any(covers(one, piece) for one in owned)]
    assert uncovered(owned, wanted) == expected


def words(many: int, letter: str = "w") -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in range(many))


@pytest.mark.parametrize(
    "owned, wanted",
    [
        pytest.param([], [Rule(words(100), words(120), words(120))], id="a million combinations"),
        pytest.param([], [Rule(("get",), words(10_000), words(10_000))], id="a hundred million"),
        pytest.param([], [Rule(words(150), ("",), ("a",), words(10_000))], id="names"),
        pytest.param([], [Rule(words(15_000), paths=words(15_000, "/"))], id="paths"),
        pytest.param(
            [Rule(("get",), ("",), (word,)) for word in words(5_000)],
            [Rule(("put",), ("",), (word,)) for word in words(5_000)],
            id="many rules on both sides",
        ),
        pytest.param(
            [Rule(("get",), ("",), words(10_000))] * 100, [Rule(("get",), ("",), (*words(9_999), "z"))], id="the last"
        ),
        pytest.param(
            [Rule(("get",), paths=tuple(f"/{word}*" for word in words(10_000)))],
            [Rule(("get",), paths=words(10_000, "/x"))],
            id="many paths on both sides",
        ),
    ],
)
def test_rules_that_would_take_long_to_compare_are_given_up_soon(owned: Sequence[Rule], wanted: Sequence[Rule]) -> None:
    began = time.process_time()
    with pytest.raises(TooManyRulesError):
        uncovered(owned, wanted, COMPARED)
    assert time.process_time() - began < 2.0


def test_whoever_has_all_of_a_rule_may_grant_it_however_many_combinations_it_has() -> None:
    wanted = Rule(words(1_000), words(1_000), words(1_000))
    assert uncovered([wanted], [wanted], COMPARED) == []
    assert uncovered([Rule(("*",), ("*",), ("*",))], [wanted], COMPARED) == []
