"""`make bench`: place the benchmark workloads, and print pods a second beside kube-scheduler's.

kube-scheduler is measured in the same run if its oracle has been built (`make oracle`, which needs Go): its algorithm
at its defaults and situate take turns on the same file. Otherwise its figures are those of
docs/internals/performance.md, measured once on the machine named there. Every measurement is a fresh process; the best
of a few is given, of both, since a noisy machine only ever makes things slower.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import workloads

ROOT = Path(__file__).resolve().parent.parent
ORACLE = ROOT / "tests" / "kubernetes" / "oracle" / "oracle"
RUNS = 5
PEER_PODS = 400
"""kube-scheduler gets fewer pods to place where it looks at all nodes, so that a run takes minutes and not an hour."""


@dataclass(frozen=True, slots=True)
class Case:
    """A workload, its goal, and what kube-scheduler reached (docs/internals/performance.md names the machine)."""

    kind: str
    nodes: int
    pods: int
    goal: int
    bound: int = 0
    peer_adaptive: int | None = None
    peer_all: int | None = None
    rss_limit_mb: int | None = None
    times: int | None = None
    """How many times kube-scheduler's rate it must reach."""

    @property
    def shown_goal(self) -> str:
        if self.times is not None:
            return f"{self.times} times"
        return f"{self.goal:,}" if self.goal else f"{self.rss_limit_mb:,} MB"


CASES = (
    Case("basic", 5_000, 4_000, 60_000, peer_adaptive=872, peer_all=118),
    Case("spread", 5_000, 4_000, 10_000, peer_adaptive=333, peer_all=82),
    Case("anti", 5_000, 4_000, 20_000, peer_adaptive=112, peer_all=59),
    Case("prefaff", 5_000, 4_000, 10_000, peer_adaptive=288, peer_all=66),
    Case("prefnode", 5_000, 4_000, 10_000),
    Case("mixed", 5_000, 4_000, 10_000, peer_adaptive=284, peer_all=70),
    Case("labelled", 5_000, 4_000, 20_000),
    Case("distinct", 5_000, 4_000, 5_000, peer_adaptive=342, peer_all=89, times=20),
    Case("basic", 100_000, 4_000, 15_000),
    Case("basic", 5_000, 4_000, 0, bound=150_000, rss_limit_mb=400),
    Case("basic", 100_000, 4_000, 0, bound=1_000_000, rss_limit_mb=4_096),
)


@dataclass(frozen=True, slots=True)
class EngineCase:
    """A workload of bench/engine.py: whole steps, with queue, reservations and effects; and what it must reach."""

    kind: str
    name: str
    goal: int
    nodes: int = 5_000
    pods: int = 20_000


ENGINE_CASES = (
    EngineCase("basic", "engine, basic", 20_000),
    EngineCase("refused", "engine, a tenth cannot fit", 5_000),
    EngineCase("preempt", "engine, preemptors, 20,000 running", 1_000, pods=1_000),
    EngineCase("preempters", "engine, the same, all different", 1_000, pods=1_000),
)


def situate(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "situate", *arguments]


def measure(command: list[str]) -> dict[str, float]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def best(runs: list[dict[str, float]]) -> dict[str, float]:
    return max(runs, key=lambda result: result["pods_per_s"])


def run(case: Case, folder: Path, runs: int) -> str:
    file = folder / "workload.json"
    with file.open("w") as opened:
        workloads.write(case.kind, case.nodes, case.pods, case.bound, opened)
    ours, adaptive = in_turns(file, 1 if case.bound > 500_000 else runs, peer=is_measured(case))
    if ours["placed"] != case.pods:
        sys.exit(f"{case.kind}: {ours['placed']} of {case.pods} pods were placed")
    every = at_all_nodes(case, folder) if is_measured(case) else case.peer_all
    adaptive = case.peer_adaptive if adaptive is None else adaptive
    name = f"{case.kind}, {case.bound:,} bound" if case.bound else case.kind
    times = f"{ours['pods_per_s'] / adaptive:,.0f}" if adaptive else "–"
    row = (name, f"{case.nodes:,}", f"{ours['pods_per_s']:,}", case.shown_goal, shown(adaptive), shown(every), times)
    return "| " + " | ".join((*row, f"{ours['rss_mb']:,} MB")) + " |"


def run_engine(case: EngineCase, runs: int) -> str:
    script = Path(__file__).with_name("engine.py")
    command = [sys.executable, str(script), case.kind, str(case.nodes), str(case.pods)]
    ours = best([measure(command) for _ in range(runs)])
    row = (case.name, f"{case.nodes:,}", f"{ours['pods_per_s']:,}", f"{case.goal:,}", "–", "–", "–")
    return "| " + " | ".join((*row, f"{ours['rss_mb']:,} MB")) + " |"


def shown(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:,.0f}"


def is_measured(case: Case) -> bool:
    return ORACLE.exists() and case.peer_adaptive is not None


def in_turns(file: Path, runs: int, *, peer: bool) -> tuple[dict[str, float], float | None]:
    """The best run of situate, and kube-scheduler's best pods a second at its defaults, if it takes part."""
    ours, theirs = [], []
    for _ in range(runs):
        if peer:
            theirs.append(measure([str(ORACLE), "-bench", str(file)]))
        ours.append(measure(situate("bench", str(file))))
    return best(ours), best(theirs)["pods_per_s"] if theirs else None


def at_all_nodes(case: Case, folder: Path) -> float:
    """kube-scheduler's pods a second where it looks at all nodes, as situate does."""
    file = folder / "peer.json"
    with file.open("w") as opened:
        workloads.write(case.kind, case.nodes, PEER_PODS, case.bound, opened)
    return measure([str(ORACLE), "-bench", "-percentage", "100", str(file)])["pods_per_s"]


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        cpu = models[0] if models else cpu
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def main() -> None:
    names = [case.kind for case in (*CASES, *ENGINE_CASES)]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("only", nargs="*", help=f"kinds of workloads, of: {', '.join(dict.fromkeys(names))}; else all")
    parser.add_argument(
        "--runs", type=int, default=RUNS, help="how many, of which the best counts (default: %(default)s)"
    )
    given = parser.parse_args()
    only, runs = given.only, given.runs
    if unknown := [name for name in only if name not in names]:
        parser.error(f"no such workload: {', '.join(unknown)}")
    measured = "measured in this run" if ORACLE.exists() else "from docs/internals/performance.md"
    print(f"machine: {machine()}")
    print(f"best of {runs} runs each, in turns; kube-scheduler's figures: {measured}\n")
    print("| workload | nodes | pods/s | goal | kube-scheduler | … at all nodes | times | memory |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    free_gb = shutil.disk_usage(tempfile.gettempdir()).free >> 30
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if only and case.kind not in only:
                continue
            if case.bound > 500_000 and free_gb < 2:
                print(f"| {case.kind}, {case.bound:,} bound | left out: it needs 2 GB of disk, {free_gb} are free |")
                continue
            print(run(case, Path(folder), runs), flush=True)
    for engine_case in ENGINE_CASES:
        if only and engine_case.kind not in only:
            continue
        print(run_engine(engine_case, runs), flush=True)


if __name__ == "__main__":
    main()
