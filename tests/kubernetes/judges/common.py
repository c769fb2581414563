"""What the suites share: where things are, Go modules, and the outcome of a run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
BUILD = Path(os.environ.get("JUDGES_CACHE") or Path.home() / ".cache" / "situate-judges")
"""Outside the repository, so that clones share what takes long to build. The Makefile names it."""
SITUATE = Path(sys.executable).with_name("situate")
PARTS = Path(os.environ.get("KUBE_ASSETS") or ROOT / "tests" / "kubernetes" / "bin")

KUBERNETES = "v1.36.4"
BUILD_S = 3600.0


class JudgeError(Exception):
    """A suite cannot be built or started."""


@dataclass
class Outcome:
    """What a suite said: each spec or group by its name."""

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    """With the first line of the reason."""
    skipped: set[str] = field(default_factory=set)

    def add(self, other: Outcome) -> None:
        self.passed |= other.passed
        self.failed |= other.failed
        self.skipped |= other.skipped

    def only(self, names: Sequence[str]) -> Outcome:
        kept = set(names)
        failed = {name: why for name, why in self.failed.items() if name in kept}
        return Outcome(self.passed & kept, failed, self.skipped & kept)

    @classmethod
    def read(cls, path: Path) -> Outcome:
        content = json.loads(path.read_text())
        return cls(set(content["passed"]), content["failed"], set(content["skipped"]))

    def write(self, path: Path) -> None:
        content = {"passed": sorted(self.passed), "failed": self.failed, "skipped": sorted(self.skipped)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1, sort_keys=True))


def module_directory(module: str, version: str) -> Path:
    """The module's source in Go's module cache."""
    said = subprocess.run(
        ["go", "mod", "download", "-json", f"{module}@{version}"], check=True, capture_output=True, text=True, cwd="/"
    )
    return Path(json.loads(said.stdout)["Dir"])


def copy_module(module: str, version: str, folders: Sequence[str] = (".",)) -> Path:
    """A copy that Go may build in: the cache is read-only, and some tests write beside their sources."""
    target = BUILD / f"{module.rpartition('/')[2]}@{version}"
    if not target.exists():
        new = target.with_name(f"{target.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        for folder in folders:
            shutil.copytree(module_directory(module, version) / folder, new / folder)
        subprocess.run(["chmod", "-R", "u+w", str(new)], check=True)
        for file in new.rglob("*"):  # modules forget that they can be run
            if file.is_file() and file.suffix != ".go" and file.read_bytes()[:2] == b"#!":
                file.chmod(0o755)
        new.rename(target)
    return target


def build_program(package: str, *, tests: bool = False) -> Path:
    """A command of Kubernetes, or the tests of a package as a program; built once for each version."""
    name = f"{package.rpartition('/')[2]}{'.test' if tests else ''}"
    module = BUILD / "module"
    module.mkdir(parents=True, exist_ok=True)
    for file in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "tests" / "kubernetes" / file, module)
    verb = ["test", "-vet=off", "-c"] if tests else ["build", "-buildvcs=false"]
    return _built(f"{name}-{KUBERNETES}", [*verb, "-mod=mod"], package, module)


def build_own(folder: Path) -> Path:
    """The command in this folder, which is a module; built again when the module has changed."""
    content = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    version = hashlib.sha256(content).hexdigest()[:12]
    return _built(f"{folder.name}-{version}", ["build", "-buildvcs=false"], ".", folder)


def _built(name: str, verb: Sequence[str], package: str, folder: Path) -> Path:
    program = BUILD / "bin" / name
    if not program.exists():
        new = program.with_name(f"{name}.new")
        command: list[str | Path] = ["nice", "go", *verb, "-trimpath", "-ldflags=-s -w", "-o", new, package]
        log = BUILD / f"{name}.build.log"
        print(f"  building {name}; the first time this takes a while", flush=True)
        if run(command, folder, BUILD_S, log):
            raise JudgeError(f"{name} does not build: see {log}")
        new.rename(program)
    return program


def run(
    command: Sequence[str | Path], cwd: Path, limit_s: float, log: Path, environment: Mapping[str, str] | None = None
) -> int:
    """The exit code; 124 if the time is up. Everything that the command started ends with it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return 124
        finally:
            _end_group(process.pid)
            process.wait()


def _end_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, 9)
