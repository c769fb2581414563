"""Suites of Go projects that start their API server with envtest: here, the one of `situate envtest assets`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubernetes.judges.common import BUILD, PARTS, SITUATE, JudgeError, Outcome, copy_module, run
from kubernetes.judges.ginkgo import read_report

BUILD_LIMIT_S = 3600.0
"""The first build compiles everything that a project needs."""
START_LIMIT_S = 120
"""envtest's own is 20 s. Our API server needs a second of CPU to start, which a busy machine may give it later."""
START_FILE = Path("pkg/internal/testing/process/process.go")
"""Where controller-runtime has that limit; its tests of this package do not go through envtest, which can be told."""
START_DEFAULT = re.compile(r"(ps\.StartTimeout = )\d+( \* time\.Second)")
GRACE_S = 100.0
"""What a suite has after its own limit, to write its report."""


@dataclass(frozen=True, slots=True)
class GoProject:
    module: str
    version: str
    folder: str
    """Its packages below have suites of Ginkgo."""
    limit_s: float
    """Of one package."""

    @property
    def name(self) -> str:
        return self.module.rpartition("/")[2]

    def run(self, only: Sequence[str] = ()) -> Outcome:
        """`only`: parts of the packages' names."""
        source, servers, outcome = copy_module(self.module, self.version), assets(), Outcome()
        give_time_to_start(source)
        for package in _packages(source, self.folder):
            if not only or any(part in package for part in only):
                outcome.add(self._run_package(source, package, servers))
        return outcome

    def _run_package(self, source: Path, package: str, servers: Path) -> Outcome:
        program = BUILD / self.name / f"{package.replace('/', '-')}.test"
        log, report = program.with_suffix(".log"), program.with_suffix(".json")
        build: list[str | Path] = ["go", "test", "-vet=off", "-c", "-o", program, f"./{package}"]
        if run(build, source, BUILD_LIMIT_S, log):
            return Outcome(failed={f"{package}: build": "it does not build; see its log"})
        report.unlink(missing_ok=True)
        flags = [f"-ginkgo.json-report={report}", f"-ginkgo.timeout={self.limit_s:g}s"]
        code = run([program, *flags], source / package, self.limit_s + GRACE_S, log, environment(servers))
        outcome = read_report(report, f"{package}: ")
        if code and not outcome.failed:
            outcome.failed[f"{package}: ends"] = f"exit code {code}"
        print(f"  {package}: {len(outcome.passed)} passed, {len(outcome.failed)} failed", flush=True)
        return outcome


def environment(servers: Path) -> dict[str, str]:
    return {"KUBEBUILDER_ASSETS": str(servers), "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": f"{START_LIMIT_S}s"}


def give_time_to_start(source: Path) -> None:
    """Set the limit in a copy of controller-runtime, too; other modules have none. Raises JudgeError."""
    file = source / START_FILE
    if file.exists():
        text, found = START_DEFAULT.subn(rf"\g<1>{START_LIMIT_S}\g<2>", file.read_text())
        if found != 1:
            raise JudgeError(f"{file} does not set the time to start once, but {found} times")
        file.write_text(text)


def assets() -> Path:
    """Where envtest finds its programs: ours, unless KUBEBUILDER_ASSETS names others to compare with."""
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        return Path(given).absolute()
    folder = BUILD / "assets"
    subprocess.run([SITUATE, "envtest", "assets", folder], check=True, capture_output=True)
    if not (folder / "kubectl").exists():
        (folder / "kubectl").symlink_to(PARTS.absolute() / "kubectl")
    return folder


def _packages(source: Path, folder: str) -> Iterator[str]:
    yield from sorted({str(path.parent.relative_to(source)) for path in (source / folder).rglob("*suite_test.go")})
