"""controller-runtime's own tests, with envtest started on `situate envtest assets`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from kubernetes.judges.common import BUILD, PARTS, SITUATE, Outcome, copy_module, run
from kubernetes.judges.ginkgo import read_report

MODULE = "sigs.k8s.io/controller-runtime"
VERSION = "v0.24.1"
LIMIT_S = 900.0
"""Of one package."""


def controller_runtime(only: Sequence[str] = ()) -> Outcome:
    """`only`: parts of the packages' names."""
    source, outcome = copy_module(MODULE, VERSION), Outcome()
    assets = BUILD / "assets"
    subprocess.run([SITUATE, "envtest", "assets", assets], check=True, capture_output=True)
    if not (assets / "kubectl").exists():
        (assets / "kubectl").symlink_to(PARTS.absolute() / "kubectl")
    for package in _packages(source):
        if not only or any(part in package for part in only):
            outcome.add(_run_package(source, package, assets))
    return outcome


def _packages(source: Path) -> Iterator[str]:
    """Those with a suite of Ginkgo."""
    found = {str(path.parent.relative_to(source)) for path in (source / "pkg").rglob("*_suite_test.go")}
    yield from sorted(found)


def _run_package(source: Path, package: str, assets: Path) -> Outcome:
    name = package.replace("/", "-")
    program = BUILD / "controller-runtime" / f"{name}.test"
    log, report = program.with_suffix(".log"), program.with_suffix(".json")
    build: list[str | Path] = ["go", "test", "-vet=off", "-c", "-o", program, f"./{package}"]
    if run(build, source, LIMIT_S, log):
        return Outcome(failed={f"{package}: build": "it does not build; see its log"})
    report.unlink(missing_ok=True)
    flags = [f"-ginkgo.json-report={report}", "-ginkgo.timeout=800s"]
    code = run([program, *flags], source / package, LIMIT_S, log, {"KUBEBUILDER_ASSETS": str(assets)})
    outcome = read_report(report, f"{package}: ")
    if code and not outcome.failed:
        outcome.failed[f"{package}: ends"] = f"exit code {code}"
    print(f"  {package}: {len(outcome.passed)} passed, {len(outcome.failed)} failed", flush=True)
    return outcome
