"""The timing of pods with claims: every pod gets a device, and the row of the table is whole. How fast is not asked."""

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"


def test_a_row_has_both_clocks_and_the_memory(tmp_path: Path) -> None:
    code = "import sys, devices, pathlib; print(devices.run(3, 20, 5, pathlib.Path(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, cwd=BENCH)
    columns = [column.strip() for column in done.stdout.strip().strip("|").split("|")]
    assert len(columns) == 8
    assert columns[0] == "3"
    assert columns[-1].endswith(" MB")


def test_more_pods_than_devices_are_an_error(tmp_path: Path) -> None:
    code = "import sys, devices, pathlib; print(devices.run(1, 9, 5, pathlib.Path(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=BENCH)
    assert done.returncode == 1
    assert "8 of 9 pods were placed, with 8 devices" in done.stderr
