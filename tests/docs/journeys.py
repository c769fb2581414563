"""Times the three journeys of a new user, by the commands that the pages show: `make timed-journeys`.

1. From nothing to the reason why a pod waits: a venv, `pip install`, and the tutorial up to its first `situate why`.
2. From a dump of production to whether it would survive the loss of a zone: the dump, asked as a file and as a copy.
3. A policy written, compared and plotted: the whole tutorial.

Only commands are timed, not reading. CPU is that of the commands; the cluster itself is a process of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docs.test_tutorials import ROOT, Shell, Step, matches, steps, take

START: Final = ROOT / "docs" / "start"
PRODUCTION: Final = ("situate up --nodes 60 --zones 3", "export KUBECONFIG=$PWD/.situate/kubeconfig")
"""What stands for production here: 60 nodes in three zones."""
KINDS: Final = "nodes,pods,deploy,rs,sts,ds,jobs,cronjobs,pdb,pc,svc,pv,pvc,sc"
"""What a dump has, by docs/guides/copy.md."""
WORKLOADS: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 120
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: "1", memory: 1Gi}}}]}
"""
CPU: Final = re.compile(r"(\d+)m([\d.]+)s")


@dataclass(frozen=True, slots=True)
class Journey:
    name: str
    within_s: float
    travel: Callable[[Path], tuple[float, float]]
    """In an empty folder; seconds of the clock, and of CPU. Raises JourneyError."""


class JourneyError(Exception):
    """A command did not do what its page shows."""


def follow(shell: Shell, path: Sequence[Step]) -> float:
    began = time.monotonic()
    for step in path:
        code, got = take(shell, step)
        if code != step.exit_code or (step.output and not matches(step.output, got)):
            raise JourneyError(f"$ {step.line}\n" + "\n".join(got))
    return time.monotonic() - began


def cpu_of(shell: Shell) -> float:
    """Of what the shell ran and waited for."""
    _, lines = shell.run("times")
    return sum(60 * float(minutes) + float(seconds) for minutes, seconds in CPU.findall(lines[-1]))


def typed(*lines: str) -> list[Step]:
    return [Step(line) for line in lines]


# ── the journeys ────────────────────────────────────────────────────────────────────────────────────────────────────


def until_the_reason() -> list[Step]:
    """The tutorial, up to its first `situate why`."""
    page = steps(START / "why-is-it-pending.md")
    first = next(at for at, step in enumerate(page) if step.line.startswith("situate why"))
    return page[: first + 1]


def to_the_reason(folder: Path) -> tuple[float, float]:
    page = until_the_reason()
    began = time.monotonic()
    venv = folder / "venv"
    for command in ([sys.executable, "-m", "venv", str(venv)], [str(venv / "bin" / "pip"), "install", "-q", str(ROOT)]):
        subprocess.run(command, check=True)
    used = os.times()
    installed_s, installed_cpu_s = time.monotonic() - began, used.children_user + used.children_system
    with Shell(folder, python=str(venv / "bin" / "python")) as shell:
        return installed_s + follow(shell, page), installed_cpu_s + cpu_of(shell)


def to_the_loss_of_a_zone(folder: Path) -> tuple[float, float]:
    with Shell(folder) as shell:
        (folder / "here" / "work.yaml").write_text(WORKLOADS)
        follow(shell, typed(*PRODUCTION, "situate apply -f work.yaml"))
        follow(shell, [Step("situate get deployment web", ("...", "web … 120/120 …"))])
        before = cpu_of(shell)
        took_s = follow(
            shell,
            typed(
                f"situate get {KINDS} -A -o json > dump.json",
                "situate plan survive -f dump.json",
                "situate up --dir copy --from dump.json",
                "situate status --kubeconfig copy/kubeconfig",
                "situate plan survive --kubeconfig copy/kubeconfig",
            ),
        )
        used_s = cpu_of(shell) - before
        follow(shell, typed("situate down --dir copy --delete"))
        return took_s, used_s


def to_two_policies(folder: Path) -> tuple[float, float]:
    with Shell(folder) as shell:
        return follow(shell, steps(START / "compare-policies.md")), cpu_of(shell)


JOURNEYS: Final = (
    Journey("from nothing to the reason why a pod waits", 2 * 60, to_the_reason),
    Journey("from a dump to whether it would survive the loss of a zone", 5 * 60, to_the_loss_of_a_zone),
    Journey("a policy written, compared and plotted", 15 * 60, to_two_policies),
)


def main(chosen: Sequence[str]) -> int:
    late = 0
    print("| journey | took | CPU of the commands | at most |\n|---|---|---|---|")
    for at, journey in enumerate(JOURNEYS, 1):
        if chosen and str(at) not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                took_s, used_s = journey.travel(Path(folder))
            except (JourneyError, subprocess.CalledProcessError) as error:
                print(f"{journey.name}: {error}", file=sys.stderr)
                return 1
        late += took_s > journey.within_s
        print(f"| {journey.name} | {took_s:.0f} s | {used_s:.0f} s | {journey.within_s / 60:.0f} min |", flush=True)
    one, _, _ = os.getloadavg()
    print(f"\nOn {os.cpu_count()} cores, with a load of {one:.0f} at the end.")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
