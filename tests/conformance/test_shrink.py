"""The shrinker: what is left still has the property, and nothing of it can go."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubernetes.oracle.shrink import shrink

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["x", "y", "needle"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=4),
    max_leaves=25,
)


def needles(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(needles, value.values()))
    if isinstance(value, list):
        return sum(map(needles, value))
    return 1 if value == "needle" else 0


def removals(value: Any) -> list[Any]:
    """The value without one element or field, in all ways."""
    found: list[Any] = []
    if isinstance(value, dict):
        for key, item in value.items():
            found.append({k: v for k, v in value.items() if k != key})
            found += [value | {key: smaller} for smaller in removals(item)]
    if isinstance(value, list):
        for index, item in enumerate(value):
            found.append(value[:index] + value[index + 1 :])
            found += [[*value[:index], smaller, *value[index + 1 :]] for smaller in removals(item)]
    return found


@settings(max_examples=60)
@given(document=JSON, wanted=st.integers(0, 3))
def test_what_is_left_has_the_property_and_nothing_more_can_go(document: Any, wanted: int) -> None:
    def holds(value: Any) -> bool:
        return needles(value) >= wanted

    if not holds(document):
        return
    small = shrink(document, holds)
    assert holds(small)
    assert not any(holds(smaller) for smaller in removals(small))


def test_only_what_matters_is_left() -> None:
    document = {"pods": [{"name": f"p{i}", "spec": {"cpu": i, "memory": i}} for i in range(40)], "nodes": [1, 2, 3]}
    small = shrink(document, lambda value: any(pod.get("spec", {}).get("cpu") == 23 for pod in value.get("pods", [])))
    assert small == {"pods": [{"spec": {"cpu": 23}}]}


def test_what_is_to_be_kept_goes_only_with_its_whole() -> None:
    document = {"id": "a", "pods": [{"name": "p", "cpu": 1}, {"name": "q", "cpu": 2}]}

    def holds(value: Any) -> bool:
        return any(pod.get("cpu") == 2 for pod in value.get("pods", []))

    assert shrink(document, holds, keep=("id", "name")) == {"id": "a", "pods": [{"name": "q", "cpu": 2}]}


def test_the_document_itself_is_not_changed() -> None:
    document = {"a": [1, {"b": 2}], "c": 3}
    shrink(document, lambda value: True)
    assert document == {"a": [1, {"b": 2}], "c": 3}


@pytest.mark.parametrize("questions", [0, 1, 7])
def test_when_no_more_may_be_asked_the_smallest_so_far_is_given(questions: int) -> None:
    asked = []

    def holds(value: Any) -> bool:
        asked.append(value)
        return 99 in value

    small = shrink(list(range(100)), holds, questions=questions)
    assert len(asked) == questions
    assert 99 in small
