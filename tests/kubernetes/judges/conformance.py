"""Kubernetes' conformance suite (e2e), against control planes with hollow nodes.

Batches of specs run side by side, each worker on a plane of its own. A spec that makes no progress is interrupted, and
what stood behind it in its batch gets another. Serial specs have a plane for themselves.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock

from kubernetes.judges.common import BUILD, PARTS, Outcome, build_program
from kubernetes.judges.ginkgo import read_report
from kubernetes.judges.left import NEEDS_A_KUBELET, read_left
from kubernetes.judges.planes import plane
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import PartFailedError

NODES = 5
WORKERS = 2
BATCH = 9
LIMIT_S = 90.0
"""Of one spec."""
SLOW_LIMIT_S = 720.0
SLOW = re.compile(
    r"\[Serial\]|\[Slow\]|CronJob|should not be restarted|should have monotonically increasing|500 podspec updates"
)
GRACE_S = 45.0
"""For a suite to clean up, after the interrupt."""
LONGEST_LOOK_S = 5.0
"""Time between two looks at a suite counts for no more: whoever suspends the judges suspends the suite, too."""
MAX_STARTS = 3
"""How often a spec is begun that a suite or a plane keeps from starting, as on a machine that is too busy."""
SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
SEPARATOR = b"------------------------------"
FLAGS = (
    "--provider=skeleton",
    "--allowed-not-ready-nodes=-1",
    "--e2e-verify-service-account=false",
    "--dump-logs-on-failure=false",
    "--node-schedulable-timeout=40s",
    "--ginkgo.v",
    "--ginkgo.no-color",
)


def conformance(only: Sequence[str] = ()) -> Outcome:
    """`only`: parts of the specs' names. Without it, what needs a real kubelet is not tried."""
    program, folder = build_program("k8s.io/kubernetes/test/e2e", tests=True), BUILD / "conformance"
    left = read_left().get("conformance", {})
    specs = [
        name
        for name in all_specs(program, folder)
        if (any(part in name for part in only) if only else left.get(name) != NEEDS_A_KUBELET)
    ]

    def hollow(worker: int) -> AbstractContextManager[OwnCluster]:
        return hollow_plane(folder / f"plane-{worker}")

    return Work(program, folder, NODES, hollow).run(specs)


@contextmanager
def hollow_plane(folder: Path) -> Iterator[OwnCluster]:
    with plane(folder, "--with", "scheduler", "--with", "controllers", "--nodes", str(NODES)) as cluster:
        cluster.wait_for_nodes(NODES)
        yield cluster


def all_specs(program: Path, folder: Path) -> list[str]:
    report = folder / "specs.json"
    if not report.exists():
        folder.mkdir(parents=True, exist_ok=True)
        asked = ["--ginkgo.dry-run", r"--ginkgo.focus=\[Conformance\]", f"--ginkgo.json-report={report}"]
        subprocess.run([program, *asked, "--provider=skeleton"], check=True, capture_output=True, cwd=folder)
    return sorted(read_report(report).passed)


class Work:
    """The specs that wait, which workers take in batches."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        nodes: int,
        planes: Callable[[int], AbstractContextManager[OwnCluster]],
        limit_s: float = LIMIT_S,
    ) -> None:
        """`planes`: for a worker's number. `limit_s`: of one spec that is not slow."""
        self.program = program
        self.folder = folder
        self.outcome = Outcome()
        self._waiting: deque[str] = deque()
        self._nodes = nodes
        self._planes = planes
        self._limit_s = limit_s
        self._batches = 0
        self._starts: Counter[str] = Counter()
        self._lock = Lock()

    def run(self, specs: Sequence[str]) -> Outcome:
        self._waiting.extend(name for name in specs if "[Serial]" not in name)
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(self._work, range(WORKERS)))
        self._waiting.extend(name for name in specs if "[Serial]" in name)
        self._work(0)
        return self.outcome

    def _work(self, worker: int) -> None:
        while batch := self._take():
            try:
                with self._planes(worker) as cluster:
                    while batch:
                        batch = self._take() if self._run_batch(cluster, batch) else ()
            except (PartFailedError, TimeoutError) as error:
                with self._lock:
                    self._begin_again(batch, f"the plane does not start: {error}")

    def _begin_again(self, batch: Iterable[str], why: str) -> None:
        """Have these specs wait once more, if they may; else they failed."""
        for name in batch:
            self._starts[name] += 1
            if self._starts[name] < MAX_STARTS:
                self._waiting.append(name)
            else:
                self.outcome.failed[name] = why
                print(f"  {name}: {why}", flush=True)

    def _take(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting))))

    def _run_batch(self, cluster: OwnCluster, batch: Sequence[str]) -> bool:
        """Whether it has left a report; else the plane may be at fault, too."""
        with self._lock:
            self._batches += 1
            report = self.folder / f"batch-{self._batches}.json"
        report.unlink(missing_ok=True)
        focus = "|".join(SPECIAL.sub(r"\\\g<0>", name) for name in batch)
        command: list[str | Path] = [self.program, *FLAGS, f"--num-nodes={self._nodes}"]
        command += [f"--kubeconfig={cluster.kubeconfig}", f"--kubectl-path={PARTS / 'kubectl'}"]
        command += [f"--ginkgo.focus={focus}", f"--ginkgo.json-report={report}"]
        limit_s = max(SLOW_LIMIT_S, self._limit_s) if any(SLOW.search(name) for name in batch) else self._limit_s
        _watch(command, self.folder, report.with_suffix(".log"), limit_s)
        clean, found = report.exists(), read_report(report)
        report.unlink(missing_ok=True)  # it has all 7,579 specs
        began = found.passed | found.failed.keys() | found.skipped
        again = [name for name in batch if name not in began]
        with self._lock:
            why = next(iter(found.failed.values()), "the suite does not start; see its log")
            self.outcome.add(found.only(batch))
            if len(again) == len(batch):  # rather than for ever
                self._begin_again(again, why)
            else:
                self._waiting.extend(again)
            for name in batch:
                if name in found.failed:
                    print(f"  {name}: {found.failed[name]}", flush=True)
                elif name in found.passed:
                    print(f"  passed: {name}", flush=True)
        return clean


def _watch(command: Sequence[str | Path], folder: Path, log: Path, limit_s: float) -> None:
    """Interrupt the suite once it has written no separator, as it does between specs, for so long."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        written, waited_s, interrupted, looked = 0, 0.0, False, time.monotonic()
        while True:
            try:
                process.wait(1.0)
                return
            except subprocess.TimeoutExpired:
                now, separators = time.monotonic(), log.read_bytes().count(SEPARATOR)
            waited_s, looked = waited_s + min(now - looked, LONGEST_LOOK_S), now
            if separators != written and not interrupted:
                written, waited_s = separators, 0.0
            elif interrupted and waited_s > GRACE_S:
                process.kill()
            elif not interrupted and waited_s > limit_s:
                process.send_signal(signal.SIGINT)
                waited_s, interrupted = 0.0, True
