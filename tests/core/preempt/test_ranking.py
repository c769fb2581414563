"""Of several nodes, the one where the eviction does the least harm."""

import pytest

from builders import pod
from situate.core.preempt.evictable import NOT_STARTED, Evictable
from situate.core.preempt.ranking import Candidate, least_harmful
from situate.core.state.cluster import Cluster

CLUSTER = Cluster()


def candidate(row: int, *victims: tuple[int, int], violations: int = 0) -> Candidate:
    """`victims` are (priority, start)."""
    made = [
        Evictable(at, CLUSTER.class_of(pod("v", priority=priority)), start, f"default/v{at}")
        for at, (priority, start) in enumerate(victims)
    ]
    return Candidate(row, tuple(made), violations)


CASES = [
    pytest.param(
        candidate(0, (0, 5), violations=1),
        candidate(1, (900, 5), (900, 5)),
        id="fewest broken budgets before everything else",
    ),
    pytest.param(
        candidate(0, (10, 5)), candidate(1, (9, 5), (9, 5), (9, 5)), id="then the lowest of the highest priorities"
    ),
    pytest.param(candidate(0, (10, 5), (9, 5)), candidate(1, (10, 5), (8, 5)), id="then the lowest sum of priorities"),
    pytest.param(
        candidate(0, (-5, 5), (-5, 5)),
        candidate(1, (-5, 5)),
        id="one more victim is worse even if priorities are negative",
    ),
    pytest.param(
        candidate(0, (2**31 - 1, 5), (-(2**31), 9), (-(2**31), 9)),
        candidate(1, (2**31 - 1, 5), (-(2**31), 9)),
        id="then the fewest victims",
    ),
    pytest.param(
        candidate(0, (10, 5), (3, 99)), candidate(1, (10, 6), (3, 1)), id="then the latest start of the most important"
    ),
    pytest.param(
        candidate(0, (10, 5), (10, 9)),
        candidate(1, (10, 6), (10, 6)),
        id="of several, the one that started first counts",
    ),
    pytest.param(candidate(0, (10, 5)), candidate(1, (10, NOT_STARTED)), id="what has not started is the latest"),
]


@pytest.mark.parametrize("worse,better", CASES)
def test_the_better_of_two(worse: Candidate, better: Candidate) -> None:
    assert least_harmful([worse, better]) is better
    assert least_harmful([better, worse]) is better


def test_among_equals_the_first_in_node_order_is_taken() -> None:
    first, second = candidate(3, (10, 5)), candidate(7, (10, 5))
    assert least_harmful([second, first]) is first
