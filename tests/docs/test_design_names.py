"""The example of docs/internals/design-names.md runs as it stands there, and the page has every name of the design."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "internals" / "design-names.md").read_text()
WITHIN_S = 120


@pytest.mark.parametrize(
    "name", "WorkloadSpec NodeState BindingState NodeSnapshot PlacementDecision SchedulingStatusView".split()
)
def test_a_name_has_its_kind_and_its_example(name: str) -> None:
    kinds, _, example = PAGE.partition("## An example that runs")
    assert re.search(rf"^\| {name} \|", kinds, re.MULTILINE)
    assert f"**{name}**" in example


def test_the_example_runs(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "situate"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m situate "$@"\n')
    command.chmod(0o755)
    typed = "".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    (tmp_path / "typed.sh").write_text(f"trap 'situate down --dir cluster >/dev/null 2>&1 || true' EXIT\n{typed}")
    environment = {"PATH": f"{command.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "NO_COLOR": "1"}
    done = subprocess.run(
        ["sh", "-ex", "typed.sh"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
