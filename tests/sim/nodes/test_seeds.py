"""Agents and the control plane in a few worlds: nothing goes wrong in them, and each is the same every time."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from situate.sim.nodes.faults import KINDS
from situate.sim.nodes.world import run

SEEDS = (1, 3, 4, 5, 6, 7, 1780, 2729)
"""In 1780, a Job waited for containers that the fence had stopped; in 2729, a Deployment still had a pod to update."""
DIGEST = "import logging; logging.disable(50); from situate.sim.nodes.world import run; print(run(6).digest)"


played = cache(run)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_goes_wrong_in_world(seed: int) -> None:
    outcome = played(seed)
    assert outcome.violations == (), "\n".join(outcome.log[-80:])
    assert outcome.starts >= outcome.pods


def test_both_profiles_and_most_faults_are_in_these_worlds() -> None:
    outcomes = [played(seed) for seed in SEEDS]
    assert {one.profile for one in outcomes} == {"fast", "kubernetes"}
    kinds = {kind for one in outcomes for kind in one.faults.split(", ")}
    assert len(kinds) > len(KINDS) / 2


def test_a_world_is_the_same_under_any_hash_seed() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "7")
    }
    assert digests == {f"{played(6).digest}\n"}
