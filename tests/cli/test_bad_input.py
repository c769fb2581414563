"""Input that cannot be used is one line on stderr and exit code 2, at once, with nothing on stdout and no traceback.

Every case is run as a user would run it, in a process of its own. The second it may take is of processor time, the
interpreter's start included: what the clock on the wall says depends on who else is using the machine.
"""

import gzip
import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
LIMIT_S = 1.0
HUNG_S = 60

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "web:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers} | spec}


def asking(amounts: dict[str, Any]) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "resources": {"requests": amounts}}])


def documents(*objects: Any) -> bytes:
    """JSON is YAML, and several documents of it are a file of several documents."""
    return b"\n---\n".join(json.dumps(one).encode() for one in objects)


def config(**plugins: Any) -> bytes:
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
        }
    ).encode()


def enabled(name: str) -> bytes:
    return config(multiPoint={"enabled": [{"name": name}]})


def bomb(levels: int = 12) -> bytes:
    """Ten aliases of ten aliases of ten aliases..."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines).encode()


@dataclass(frozen=True)
class Said:
    code: int
    stdout: str
    stderr: str
    cpu_s: float


def situate(folder: Path, *arguments: str, stdin: bytes = b"") -> Said:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "situate", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        timeout=HUNG_S,
        check=False,
        env=os.environ | {"COLUMNS": "80"},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode(), cpu_s)


def written(folder: Path, **files: bytes) -> Path:
    """Files by name, `__` standing for the dot."""
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data)
    return folder


def is_one_line(said: Said, line: str) -> None:
    assert (said.code, said.stdout, said.stderr) == (2, "", f"error: {line}\n")
    assert said.cpu_s < LIMIT_S


# ── situate place -f a.yaml ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "data, line",
    [
        pytest.param(b"a: b: c\n", "a.yaml: line 1, column 5: not YAML: mapping values are not allowed here", id="x"),
    ],
)
def test_probe(tmp_path: Path, data: bytes, line: str) -> None:
    is_one_line(situate(written(tmp_path, a__yaml=data), "place", "-f", "a.yaml"), line)
