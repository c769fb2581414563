"""Kueue's own performance test, as its `make run-performance-scheduler` runs it.

Its runner starts the API server with envtest, creates 15,000 workloads, plays their ends, and measures how Kueue's
scheduler admits them. Its checker compares that with the ranges that Kueue publishes.
"""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

from kubernetes.judges.common import BUILD, JudgeError, Outcome, run
from kubernetes.judges.go_suites import BUILD_LIMIT_S, assets, environment

FOLDER = "test/performance/scheduler"
RUN_LIMIT_S = 1800.0
"""The runner itself gives up after ten minutes."""
CHECK_LIMIT_S = 60.0
MAX_REASON = 300


def performance(source: Path, config: str) -> Outcome:
    """`config`: one of the folders below `configs`."""
    runner = go_build(source, f"./{FOLDER}/runner")
    scheduler = go_build(source, f"./{FOLDER}/minimalkueue")
    checker = go_build(source, f"./{FOLDER}/checker", tests=True)
    there, ranges = BUILD / "kueue" / config, source / FOLDER / "configs" / config
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir(parents=True)
    measured = run(
        [
            runner,
            f"--o={there}",
            f"--crds={source / 'config' / 'components' / 'crd' / 'bases'}",
            f"--generatorConfig={ranges / 'generator.yaml'}",
            f"--minimalKueue={scheduler}",
            "--withLogs=true",
            "--logToFile=true",
            "--metricsScrapeInterval=5s",
        ],
        source,  # where it looks for the Makefile
        RUN_LIMIT_S,
        there / "runner.log",
        environment(assets()),
    )
    if measured:
        return Outcome(failed={f"performance {config}: runs": f"exit code {measured}; see runner.log"})
    check: list[str | Path] = [
        "go",
        "tool",
        "test2json",
        checker,
        "-test.v=test2json",
        f"--summary={there / 'summary.yaml'}",
        f"--cmdStats={there / 'minimalkueue.stats.yaml'}",
        f"--range={ranges / 'rangespec.yaml'}",
    ]
    run(check, source, CHECK_LIMIT_S, there / "checker.json")
    for figures in (there / "minimalkueue.stats.yaml", there / "summary.yaml"):
        print(textwrap.indent(figures.read_text(), "    "), end="", flush=True)
    return read_events((there / "checker.json").read_text(), f"performance {config}: ")


def read_events(text: str, prefix: str = "") -> Outcome:
    """What test2json says, of the tests that have no tests below them."""
    ends: dict[str, str] = {}
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        event = json.loads(line)
        test = event.get("Test", "")
        if event["Action"] == "output":
            said.setdefault(test, []).append(event["Output"])
        elif event["Action"] in ("pass", "fail", "skip") and test:
            ends[test] = event["Action"]
    outcome = Outcome()
    for test, end in ends.items():
        if any(other.startswith(f"{test}/") for other in ends):
            continue
        name = prefix + test.partition("/")[2]
        if end == "pass":
            outcome.passed.add(name)
        elif end == "skip":
            outcome.skipped.add(name)
        else:
            outcome.failed[name] = _reason(said.get(test, []))
    if not ends:
        outcome.failed[f"{prefix}checker"] = _reason([text])
    return outcome


def _reason(said: Sequence[str]) -> str:
    told = (line.strip() for line in said)
    return " ".join(line for line in told if not line.startswith(("===", "---")))[:MAX_REASON]


def go_build(source: Path, package: str, *, tests: bool = False) -> Path:
    name = package.rpartition("/")[2]
    program = BUILD / "kueue" / "bin" / (f"{name}.test" if tests else name)
    verb = ["test", "-vet=off", "-c"] if tests else ["build", "-buildvcs=false"]
    if run(["go", *verb, "-o", program, package], source, BUILD_LIMIT_S, program.with_suffix(".log")):
        raise JudgeError(f"{package} does not build: see {program.with_suffix('.log')}")
    return program
