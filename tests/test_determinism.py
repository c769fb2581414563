"""The same input gives the same bytes, whatever order this run of Python gives its sets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SEEDS = ("1", "20250101")


def place(output: str, seed: str) -> bytes:
    return subprocess.run(
        [sys.executable, "-m", "situate", "place", "-f", "cluster.yaml", "-f", "workload.yaml", "-o", output],
        cwd=ROOT / "examples",
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml"])
def test_the_example_is_placed_alike_under_two_hash_seeds(output: str) -> None:
    first, second = (place(output, seed) for seed in SEEDS)
    assert first
    assert first == second
