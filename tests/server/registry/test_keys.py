"""Keys of objects, and their order."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.registry.stories import CONFIG_MAP, NODE
from situate.server.registry.keys import ObjectKey, key_of, parse_key, prefix_of
from situate.server.registry.sorted_keys import MAX_CHUNK, SortedKeys
from situate.server.resources import BY_KIND, Resource

KEYS = st.text(alphabet="abc/-", min_size=1, max_size=6)


@pytest.mark.parametrize(
    "resource, key",
    [
        pytest.param(CONFIG_MAP, "/objects/core/configmaps/ns/a", id="a namespaced object of the core group"),
        pytest.param(NODE, "/objects/core/nodes/a", id="an object without a namespace"),
        pytest.param(
            BY_KIND["apps/v1", "Deployment"], "/objects/apps/deployments/ns/a", id="an object of another group"
        ),
        pytest.param(
            BY_KIND["events.k8s.io/v1", "Event"], "/objects/core/events/ns/a", id="an event, of whichever group"
        ),
    ],
)
def test_a_key_says_where_an_object_is(resource: Resource, key: str) -> None:
    assert key_of(resource, "ns", "a") == key
    assert key.startswith(prefix_of(resource, "ns" if resource.namespaced else ""))
    assert parse_key(key) == ObjectKey(resource.stored_as, "ns" if resource.namespaced else "", "a")


@given(st.lists(st.tuples(st.booleans(), KEYS), max_size=60), KEYS, KEYS)
def test_ordered_keys_are_a_sorted_set(steps: list[tuple[bool, str]], one: str, other: str) -> None:
    keys, expected = SortedKeys(), set[str]()
    for add, key in steps:
        if add and key not in expected:
            keys.add(key)
            expected.add(key)
        elif not add and key in expected:
            keys.remove(key)
            expected.remove(key)
    start, end = sorted((one, other))
    between = sorted(key for key in expected if start <= key < end)
    assert len(keys) == len(expected)
    assert list(keys.between(start, end)) == between
    assert keys.count(start, end) == len(between)


@settings(max_examples=5)
@given(st.integers(0, 1_000))
def test_ordered_keys_stay_in_order_when_parts_are_split_and_emptied(seed: int) -> None:
    names = [f"{number:05}" for number in range(3 * MAX_CHUNK)]
    first, rest = names[::3], names[1::3] + names[2::3]
    Random(seed).shuffle(rest)
    keys = SortedKeys(first)
    for key in rest:
        keys.add(key)
    assert list(keys.between("", "a")) == names
    for key in names[MAX_CHUNK : 2 * MAX_CHUNK]:
        keys.remove(key)
    assert list(keys.between("", "a")) == names[:MAX_CHUNK] + names[2 * MAX_CHUNK :]
    assert keys.count(names[10], names[-10]) == 2 * MAX_CHUNK - 20
