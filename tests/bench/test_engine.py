"""The timing of the engine: every pod of its workloads ends as it should. How fast is not asked here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "engine.py"


@pytest.mark.parametrize(
    "kind,bound,refusals,evictions",
    [
        pytest.param("basic", 60, 0, 0, id="pods that fit are bound"),
        pytest.param("confirmed", 60, 0, 0, id="and may be seen bound"),
        pytest.param("refused", 54, 6, 0, id="a tenth cannot fit, and evicts nobody"),
        pytest.param("preempt", 0, 60, 60, id="preemptors evict a victim each"),
        pytest.param("preempters", 0, 60, 60, id="so do preemptors that are all different"),
    ],
)
def test_every_pod_of_a_workload_ends_as_it_should(kind: str, bound: int, refusals: int, evictions: int) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), kind, "20", "60"], check=True, capture_output=True, text=True, timeout=60
    )
    found = json.loads(done.stdout)
    assert (found["bound"], found["refusals"], found["evictions"]) == (bound, refusals, evictions)
    assert found["pods"] == 60
    assert found["pods_per_s"] > 0


def test_an_unknown_workload_is_refused() -> None:
    command = [sys.executable, str(SCRIPT), "nothing"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "usage: engine.py" in done.stderr
