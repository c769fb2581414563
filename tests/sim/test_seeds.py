"""A hundred worlds, each of at least 2,000 changes, in which the scheduler must do nothing wrong.

Nobody was rescued by the five-minute flush in any of them, and each was played until the flush had put back everybody
who was still parked. A failure names its seed: `situate sim --seed N` does it again, and `--trace` says what happened.
"""

import pytest

from situate.sim.world import CHANGES, run

SEEDS = range(1, 101)
AT_A_TIME = 5


@pytest.mark.parametrize("first", SEEDS[::AT_A_TIME], ids=lambda first: f"seeds {first} to {first + AT_A_TIME - 1}")
def test_the_scheduler_does_nothing_wrong(first: int) -> None:
    outcomes = [run(seed) for seed in range(first, first + AT_A_TIME)]
    assert [f"seed {one.seed}: {line}" for one in outcomes for line in one.violations] == []
    assert sum(one.rescued for one in outcomes) == 0
    assert min(one.changes for one in outcomes) >= CHANGES
