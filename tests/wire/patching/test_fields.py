"""Sets of fields: the tree against plain Python sets of paths."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.wire.patching import PatchError
from situate.wire.patching.fields import (
    Fields,
    Path,
    difference,
    from_paths,
    from_v1,
    intersection,
    key_step,
    path_text,
    paths,
    to_v1,
    union,
    value_step,
    without,
)

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "v:1"])
PATHS = st.lists(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=8)


def as_set(fields: Fields) -> set[Path]:
    return set(paths(fields))


@given(PATHS, PATHS)
def test_sets_of_fields_are_sets_of_paths(one: list[Path], other: list[Path]) -> None:
    left, right = from_paths(one), from_paths(other)
    assert as_set(left) == set(one)
    assert as_set(union(left, right)) == set(one) | set(other)
    assert as_set(intersection(left, right)) == set(one) & set(other)
    assert as_set(difference(left, right)) == set(one) - set(other)
    outside = {path for path in one if not any(path[: len(gone)] == gone for gone in other)}
    assert as_set(without(left, right)) == outside


@given(PATHS)
def test_a_set_survives_the_wire(some: list[Path]) -> None:
    fields = from_paths(some)
    assert from_v1(to_v1(fields)) == fields


@given(PATHS, PATHS)
def test_equal_sets_are_written_alike(one: list[Path], other: list[Path]) -> None:
    left, right = union(from_paths(one), from_paths(other)), from_paths([*reversed(other), *one])
    assert list(to_v1(left)) == list(to_v1(right))
    assert left == right


def test_fields_come_before_items_and_these_before_scalars_in_natural_order() -> None:
    steps = ["v:10", "v:2", 'v:"a"', 'k:{"port":9}', 'k:{"port":10}', "f:b", "f:a"]
    found = [path[0] for path in paths(from_paths((step,) for step in steps))]
    assert found == ["f:a", "f:b", 'k:{"port":9}', 'k:{"port":10}', "v:2", "v:10", 'v:"a"']


def test_what_is_in_the_set_itself_and_inside_is_marked_with_a_dot() -> None:
    fields = from_paths([("f:labels",), ("f:labels", "f:a")])
    assert to_v1(fields) == {"f:labels": {".": {}, "f:a": {}}}


@pytest.mark.parametrize(
    "path, text",
    [
        pytest.param(("f:spec", "f:replicas"), ".spec.replicas", id="fields"),
        pytest.param(
            ("f:ports", key_step({"protocol": "TCP", "containerPort": 80})),
            '.ports[containerPort=80,protocol="TCP"]',
            id="keys in alphabetical order",
        ),
        pytest.param(("f:finalizers", value_step("a/b")), '.finalizers[="a/b"]', id="a scalar"),
        pytest.param(("f:x", "i:3"), ".x[3]", id="an index"),
    ],
)
def test_a_path_in_a_message(path: Path, text: str) -> None:
    assert path_text(path) == text


def test_keys_are_the_same_however_they_are_spelled() -> None:
    assert from_v1({'k:{"b": 1, "a":"x"}': {}}) == from_v1({'k:{"a":"x","b":1}': {}})


def test_go_escapes_what_html_minds() -> None:
    assert value_step("<&>") == 'v:"\\u003c\\u0026\\u003e"'


def test_steps_of_unknown_kinds_are_left_out() -> None:
    assert to_v1(from_v1({"f:a": {"q:future": {}}, "f:b": {}})) == {"f:a": {}, "f:b": {}}


@pytest.mark.parametrize(
    "tree",
    [
        [],
        {"f:a": 1},
        {"plain": {}},
        {"k:[1]": {}},
        {"k:{": {}},
        {"v:nope": {}},
        {"i:x": {}},
        {"i:null": {}},
        {"i:1e400": {}},
        {"i:-1": {}},
        {"": {}},
    ],
    ids=repr,
)
def test_what_is_no_set_is_refused(tree: Any) -> None:
    with pytest.raises(PatchError):
        from_v1(tree)
