"""`make bench`: place the benchmark workloads, and print pods a second beside kube-scheduler's.

kube-scheduler's figures are measured in the same run if its oracle has been built (`make oracle`, which needs Go);
otherwise they are those of docs/PERFORMANCE.md, measured once on the machine named there. Every measurement is a fresh
process; the best of a few is given, since a noisy machine only ever makes things slower.
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
"""kube-scheduler gets fewer pods to place, so that a run takes minutes and not an hour."""


@dataclass(frozen=True, slots=True)
class Case:
    """A workload, what it must reach, and what kube-scheduler reached on the machine of docs/PERFORMANCE.md."""

    kind: str
    nodes: int
    pods: int
    goal: int
    bound: int = 0
    peer_adaptive: int | None = None
    peer_all: int | None = None
    rss_limit_mb: int | None = None


CASES = (
    Case("basic", 5_000, 4_000, 60_000, peer_adaptive=666, peer_all=72),
    Case("spread", 5_000, 4_000, 10_000, peer_adaptive=267, peer_all=62),
    Case("anti", 5_000, 4_000, 20_000, peer_adaptive=179, peer_all=94),
    Case("prefaff", 5_000, 4_000, 10_000, peer_adaptive=488, peer_all=95),
    Case("mixed", 5_000, 4_000, 10_000, peer_adaptive=497, peer_all=120),
    Case("distinct", 5_000, 4_000, 3_000, peer_adaptive=341, peer_all=99),
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


def best(command: list[str], runs: int) -> dict[str, float]:
    return max((measure(command) for _ in range(runs)), key=lambda result: result["pods_per_s"])


def run(case: Case, folder: Path) -> str:
    file = folder / "workload.json"
    with file.open("w") as opened:
        workloads.write(case.kind, case.nodes, case.pods, case.bound, opened)
    ours = best(situate("bench", str(file)), 1 if case.bound > 500_000 else RUNS)
    if ours["placed"] != case.pods:
        sys.exit(f"{case.kind}: {ours['placed']} of {case.pods} pods were placed")
    adaptive, every = peer(case, folder)
    name = f"{case.kind}, {case.bound:,} bound" if case.bound else case.kind
    goal = f"{case.goal:,}" if case.goal else f"{case.rss_limit_mb:,} MB"
    times = f"{ours['pods_per_s'] / adaptive:,.0f}" if adaptive else "–"
    row = (name, f"{case.nodes:,}", f"{ours['pods_per_s']:,}", goal, shown(adaptive), shown(every), times)
    return "| " + " | ".join((*row, f"{ours['rss_mb']:,} MB")) + " |"


def run_engine(case: EngineCase) -> str:
    script = Path(__file__).with_name("engine.py")
    ours = best([sys.executable, str(script), case.kind, str(case.nodes), str(case.pods)], RUNS)
    row = (case.name, f"{case.nodes:,}", f"{ours['pods_per_s']:,}", f"{case.goal:,}", "–", "–", "–")
    return "| " + " | ".join((*row, f"{ours['rss_mb']:,} MB")) + " |"


def shown(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:,.0f}"


def peer(case: Case, folder: Path) -> tuple[float | None, float | None]:
    """kube-scheduler's own pods a second: looking at a part of the nodes, as it does by default, and at all."""
    if not ORACLE.exists() or case.peer_adaptive is None:
        return case.peer_adaptive, case.peer_all
    file = folder / "peer.json"
    with file.open("w") as opened:
        workloads.write(case.kind, case.nodes, PEER_PODS, case.bound, opened)
    adaptive = measure([str(ORACLE), "-bench", str(file)])
    every = measure([str(ORACLE), "-bench", "-percentage", "100", str(file)])
    return adaptive["pods_per_s"], every["pods_per_s"]


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
    only = parser.parse_args().only
    if unknown := [name for name in only if name not in names]:
        parser.error(f"no such workload: {', '.join(unknown)}")
    measured = "measured in this run" if ORACLE.exists() else "from docs/PERFORMANCE.md"
    print(f"machine: {machine()}")
    print(f"best of {RUNS} runs; kube-scheduler's figures: {measured}\n")
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
            print(run(case, Path(folder)), flush=True)
    for engine_case in ENGINE_CASES:
        if only and engine_case.kind not in only:
            continue
        print(run_engine(engine_case), flush=True)


if __name__ == "__main__":
    main()
