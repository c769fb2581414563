"""How many candidates are wanted."""

import pytest

from situate.core.preempt import PreemptionOptions

CASES = [
    pytest.param(10, 100, 24, 24, id="never more than there are nodes"),
    pytest.param(10, 100, 500, 100, id="at least the absolute number"),
    pytest.param(10, 100, 5000, 500, id="the percentage, where that is more"),
    pytest.param(33, 0, 10, 3, id="a percentage is rounded down"),
    pytest.param(0, 1, 10, 1, id="one is enough if so configured"),
]


@pytest.mark.parametrize("percentage,absolute,nodes,wanted", CASES)
def test_wanted_candidates(percentage: int, absolute: int, nodes: int, wanted: int) -> None:
    assert PreemptionOptions(percentage, absolute).wanted_candidates(nodes) == wanted
