"""What docs/guides/nodes.md has typed to run something on this machine works, as it stands there, with kubectl."""

import re
import subprocess
import sys
from pathlib import Path

from kubernetes.cluster import Cluster
from kubernetes.parts import folder

ROOT = Path(__file__).parents[2]
SECTION = "## Something that runs\n"
WITHIN_S = 180


def typed() -> str:
    """The commands of that section."""
    section = (ROOT / "docs" / "guides" / "nodes.md").read_text().partition(SECTION)[2].partition("\n## ")[0]
    found = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def test_a_web_server_and_a_job_as_the_page_has_them(tmp_path: Path, control_plane: Cluster) -> None:
    """(`control_plane` is asked for so that this is left out where there is no kubectl.)"""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "kubectl").symlink_to((folder() / "kubectl").absolute())
    # Any free port: others may have a cluster up on this machine.
    (bin_ / "situate").write_text(
        f'#!/bin/sh\n[ "$1" = up ] && set -- "$@" --port 0\nexec {sys.executable} -m situate "$@"\n'
    )
    (bin_ / "situate").chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "typed.sh").write_text(typed())
    try:
        done = subprocess.run(
            ["sh", "-ex", "typed.sh"],
            cwd=tmp_path,
            env={"PATH": f"{bin_}:/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    finally:
        subprocess.run(
            [sys.executable, "-m", "situate", "down", "--delete"], cwd=tmp_path, capture_output=True, check=False
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "\n42\n" in done.stdout
    assert "Directory listing" in done.stdout
    waiting = re.findall(r"^web-\S+ +0/1 +Pending", done.stdout, re.MULTILINE)
    assert len(waiting) == 4, done.stdout
    assert 'deployment.apps "web" deleted' in done.stdout
    assert "is down" in done.stdout
