"""The same input gives the same bytes, whatever order this run of Python gives its sets."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ("-f", "examples/cluster.yaml", "-f", "examples/workload.yaml")
RECORDED = ROOT / "tests" / "conformance" / "data"
SEEDS = ("1", "20250101")


def outputs(*arguments: str) -> list[bytes]:
    """What a command prints under each seed. That some pods fit nowhere, or some decisions differ, is no failure."""
    printed = []
    for seed in SEEDS:
        done = subprocess.run(
            [sys.executable, "-m", "situate", *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        printed.append(done.stdout)
    return printed


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml"])
def test_the_example_is_placed_alike_under_two_hash_seeds(output: str) -> None:
    first, second = outputs("place", *EXAMPLES, "-o", output)
    assert b"general-a2" in first
    assert first == second


def test_plugins_of_others_decide_alike_under_two_hash_seeds() -> None:
    first, second = outputs("place", *EXAMPLES, "--config", "examples/plugins/config.yaml", "-o", "wide")
    assert b"pools.py:PoolOrder" in first
    assert first == second


@pytest.mark.parametrize("family", ["mixed", "volumes", "preempt", "interpod", "defaultspread"])
def test_recorded_clusters_are_placed_alike_under_two_hash_seeds(tmp_path: Path, family: str) -> None:
    """Three recorded clusters of a family, one after the other, with all that was found on every node."""
    lines = gzip.decompress((RECORDED / f"{family}.scenarios.jsonl.gz").read_bytes()).splitlines()
    for number, line in enumerate(lines[:3]):
        scenario = json.loads(line)
        items = {"apiVersion": "v1", "kind": "List", "items": scenario["objects"] + scenario["pending"]}
        (tmp_path / f"{number}.json").write_text(json.dumps(items))
        first, second = outputs("place", "-f", str(tmp_path / f"{number}.json"), "-o", "json", "--every-node")
        assert len(json.loads(first)["pods"]) == len(scenario["pending"])
        assert first == second


def test_the_default_configuration_is_written_alike_under_two_hash_seeds() -> None:
    first, second = outputs("config", "default")
    assert first
    assert first == second
