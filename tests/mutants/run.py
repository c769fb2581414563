"""Runs the tests of a file on mutants of it, and says which ones no test noticed.

    python -m mutants.run --count 60 --seed 1 --workers 2
    python -m mutants.run --only server/placing/eviction.py

Each worker has a copy of the tree. The mirrored test file runs first, then its folder, then a named wider set: a mutant
is killed by the first test that fails, by an error on import, or by the time limit. The tests must pass without a
mutant, which is tried first. The exit code is 1 if fewer than LEAST of the mutants that change behaviour are killed.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

from mutants.equivalent import reason_of
from mutants.mutate import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "situate"
AREAS = ("server/identity", "server/placing", "store", "agent", "core/engine")
LEAST = 0.95
LIMIT_S = 600.0
"""For one set of tests on one mutant; many mutants never end."""
COPIED = (
    "src",
    "tests",
    "docs",
    "mkdocs.yml",
    "tools",
    "examples",
    "deploy",
    "bench",
    "pyproject.toml",
    "Makefile",
    "README.md",
    "CHANGELOG.md",
)
LEFT_OUT = ("__pycache__", "bin", ".pytest_cache", ".hypothesis")
WIDER = {
    "server/identity": ("tests/server/faults/test_strangers.py", "tests/server/faults/test_rights.py"),
    "server/placing": ("tests/server/scheduling", "tests/agent/test_control_planes.py"),
    "store": ("tests/server/registry/test_stores.py", "tests/server/faults/test_disk_full.py"),
    "agent": ("tests/sim/nodes",),
    "core/engine": ("tests/core/gang", "tests/core/queue", "tests/scenarios", "tests/loop/scheduling"),
}
"""By area: tests elsewhere that are about it, too."""
RUNNING: set[int] = set()
"""Process groups of the tests that run now. They end with us."""
STOPPING = threading.Event()
"""No more tests are to begin."""


class Verdict(NamedTuple):
    mutant: Mutant
    killed_by: str
    """The set of tests; empty: it survived."""
    seconds: float


def candidates(only: Sequence[str]) -> list[Mutant]:
    found: list[Mutant] = []
    for area in only or AREAS:
        where = SOURCES / area
        for path in sorted(where.rglob("*.py")) if where.is_dir() else [where]:
            found += mutants_of(str(path.relative_to(SOURCES)), path.read_text())
    return found


def sets_of_tests(path: str) -> Iterator[tuple[str, ...]]:
    """Sets of tests, the nearest first."""
    folder, stem = Path("tests") / Path(path).parent, Path(path).stem
    nearest = [
        folder / f"test_{stem}.py",
        folder.parent / f"test_{stem}.py",
        *sorted(found.relative_to(ROOT) for found in (ROOT / folder.parent).glob(f"test_{Path(path).parent.name}*.py")),
    ]
    near = tuple(str(each) for each in nearest if (ROOT / each).exists())
    if near:
        yield near
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    yield (str(folder),)
    wider = tuple(test for area, tests in WIDER.items() if path.startswith(area) for test in tests)
    existing = tuple(test for test in wider if (ROOT / test).exists())
    if existing:
        yield existing


@lru_cache(maxsize=1)
def isolation() -> tuple[str, ...]:
    """As root, a namespace of processes: a mutant of the agent may kill every process that it sees."""
    command = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if os.geteuid():
        return ()
    if shutil.which(command[0]) and not subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        return (*command, "sh", "-c", '"$@" & wait $!', "sh")  # the first process has to reap orphans
    sys.exit("mutants: root needs unshare(1), since a mutant of the agent may kill every process; or be a user")


def run_tests(copy: Path, tests: Sequence[str]) -> tuple[bool, str]:
    """Whether they all passed, and the last line of what pytest said."""
    if STOPPING.is_set():
        return False, "stopped"
    command = [*isolation(), sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *tests]
    # The copy has no binaries of Kubernetes.
    assets = os.environ.get("KUBE_ASSETS") or str(ROOT / "tests" / "kubernetes" / "bin")
    environment = os.environ | {
        "KUBE_ASSETS": assets,
        "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy / 'tests'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        RUNNING.add(process.pid)
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return False, f"not done within {LIMIT_S:.0f} s"
        finally:
            RUNNING.discard(process.pid)
    lines = said.strip().splitlines() or [""]
    failed = next((line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1])
    return process.returncode == 0, failed


class Runner:
    """The mutants still to be tried, and what became of the others."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self.verdicts: list[Verdict] = []
        self.broken: list[str] = []
        """Tests that fail without any mutant."""
        self._waiting: SimpleQueue[Mutant] = SimpleQueue()
        for mutant in mutants:
            self._waiting.put(mutant)
        self._sound: dict[tuple[str, ...], bool] = {}
        self._lock = threading.Lock()

    def work(self, copy: Path) -> None:
        for each in COPIED:
            if (ROOT / each).is_dir():
                shutil.copytree(ROOT / each, copy / each, ignore=shutil.ignore_patterns(*LEFT_OUT))
            else:
                shutil.copy(ROOT / each, copy / each)
        while True:
            try:
                mutant = self._waiting.get_nowait()
            except Empty:
                return
            verdict = self._verdict(copy, mutant)
            if STOPPING.is_set():
                return
            with self._lock:
                self.verdicts.append(verdict)
                outcome = f"killed by {verdict.killed_by}" if verdict.killed_by else "SURVIVED"
                print(f"{verdict.seconds:6.1f} s  {mutant.path}:{mutant.line} ({mutant.what}) {outcome}", flush=True)

    def _verdict(self, copy: Path, mutant: Mutant) -> Verdict:
        began = time.monotonic()
        path = copy / "src" / "situate" / mutant.path
        original = path.read_text()
        for tests in sets_of_tests(mutant.path):
            if not self._is_sound(copy, tests):
                continue
            path.write_text(mutant.source(original))
            try:
                passed, said = run_tests(copy, tests)
            finally:
                path.write_text(original)
            if not passed:
                return Verdict(mutant, said, time.monotonic() - began)
        return Verdict(mutant, "", time.monotonic() - began)

    def _is_sound(self, copy: Path, tests: tuple[str, ...]) -> bool:
        known = self._sound.get(tests)
        if known is None:
            known, said = run_tests(copy, tests)
            if not known:  # a busy machine delays tests of real processes
                known, said = run_tests(copy, tests)
            self._sound[tests] = known
            if not known:
                self.broken.append(f"{' '.join(tests)}: {said}")
        return known


def _stop(*_: object) -> None:
    """Once: a second signal, as timeout(1) sends it, must not interrupt the cleaning up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="mutants to try; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="an area or a file below src/situate")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    every = candidates(asked.only)
    equivalent = [mutant for mutant in every if reason_of(mutant)]
    useful = [mutant for mutant in every if not reason_of(mutant)]
    random.Random(asked.seed).shuffle(useful)
    valid = (mutant for mutant in useful if mutant.is_valid((SOURCES / mutant.path).read_text()))
    chosen = list(islice(valid, asked.count or len(useful)))
    count = len(chosen)
    print(f"{count} of {len(useful)} mutants, seed {asked.seed}; {len(equivalent)} more change nothing", flush=True)
    runner = Runner(chosen)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        threads = []
        for number in range(asked.workers):
            copy = Path(folder) / str(number)
            copy.mkdir()
            threads.append(threading.Thread(target=runner.work, args=(copy,), daemon=True))
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:
            STOPPING.set()
            for group in list(RUNNING):
                os.killpg(group, signal.SIGKILL)
            for thread in threads:
                thread.join()  # nobody may write to the copies while they are removed
    survivors = [verdict.mutant for verdict in runner.verdicts if not verdict.killed_by]
    for mutant in sorted(survivors):
        print(f"\nsurvived: {mutant.what}\n{mutant.diff((SOURCES / mutant.path).read_text())}", end="")
    for broken in runner.broken:
        print(f"\nnot run, because it fails without a mutant: {broken}")
    share = 1 - len(survivors) / count if count else 1.0
    print(f"\n{count - len(survivors)} of {count} killed: {share:.0%}")
    return 0 if share >= LEAST and not runner.broken else 1


if __name__ == "__main__":
    sys.exit(main())
