"""Hostile clients for a few seconds; `make hostile-clients` has all kinds, for longer, and compares times."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2]
KINDS = ("stalled bodies", "path floods")
WITHIN_S = 120.0
MIB = 1 << 20


def test_beside_hostile_clients_pods_are_bound_leases_renewed_and_memory_is_bounded() -> None:
    chosen = [word for kind in KINDS for word in ("--kind", kind)]
    flags = ["--seconds", "2", "--rate", "20", "--store", "memory", "--late", "30", "--json", *chosen]
    command = [sys.executable, "-m", "server.hostile.suite", *flags]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    assert [row["kind"] for row in rows] == list(KINDS)
    for row in rows:
        assert row["errors"] == [], row
        assert row["bound"] > 0, row
        assert row["sent"] > 0, row
        assert row["renewed"] > 0, row
        assert row["lost"] == 0, row
        assert row["peak_bytes"] - row["before_bytes"] < 200 * MIB, row
