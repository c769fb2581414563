"""PrioritySort puts the higher priority first, and of two alike the one that has waited longer."""

from hypothesis import given
from hypothesis import strategies as st

from situate.core.plugins.priority_sort import PrioritySort

ENTRIES = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**53))


@given(ENTRIES, ENTRIES)
def test_the_smaller_key_is_the_pod_that_kubernetes_would_pop_first(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    first = one[0] > other[0] or (one[0] == other[0] and one[1] < other[1])
    assert (PrioritySort().key(*one) < PrioritySort().key(*other)) == first
