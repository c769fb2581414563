"""Compares situate with kube-scheduler's own plugins on clusters that nobody has seen: `make fuzz-conformance`.

Each worker makes clusters, has the oracle judge them, and compares. Where the two differ, the cluster is made as small
as it can be while they still do, shown, and kept in tests/conformance/data/found, where the tests find it.
The same seed and count give the same clusters.
"""

import argparse
import json
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any, TypeAlias

from kubernetes.oracle import devices, generate, mixtures
from kubernetes.oracle.shrink import shrink
from situate.cli.commands.conformance import counted
from situate.cli.commands.conformance.comparison import Comparison, FieldDifference, compare, profiles_of
from situate.core.versions import DEFAULT, RULES, KubernetesRules
from situate.wire.errors import InputError
from situate.wire.scenarios import decode_scenario

Json: TypeAlias = dict[str, Any]

HERE = Path(__file__).parent
FOUND = HERE.parent.parent / "conformance" / "data" / "found"

BATCH = 50
"""How many clusters a worker is given at a time: as many as there are kinds below."""
MIXTURES = 16
UNDETERMINED = "a pod that kube-scheduler itself answers differently from time to time"
ASKED_AGAIN = 12
"""How often kube-scheduler is asked before a difference is one; it walks maps in random order."""
NAMING = ("id", "objects", "pending", "apiVersion", "kind", "metadata", "name", "namespace", "topologyKey", "uid")
"""Without these a thing is not what it is, and no API server would hand it out."""
SHOWN = 5
"""How many differing clusters are made small and shown."""


def oracle_of(rules: KubernetesRules) -> Path:
    """The program that answers as this version of kube-scheduler."""
    return HERE / ("oracle" if rules is DEFAULT else f"oracle-{rules.version}")


# --- the clusters ---


def cluster(seed: str, index: int, version: str = DEFAULT.version) -> Json:
    """Of every 50: each family, each family drawn wide, and mixtures."""
    families = [*generate.FAMILIES, *devices.FAMILIES]
    turn, kind = divmod(index, 2 * len(families) + MIXTURES)
    if kind >= 2 * len(families):
        return mixtures.mixture(seed, turn * MIXTURES + kind - 2 * len(families), version)
    family, wide = families[kind % len(families)], kind >= len(families)
    drawn = f"wide/{seed}" if wide else seed
    if family in devices.FAMILIES:
        return devices.scenario(family, wide, drawn, turn, version)
    return generate.scenario(family, wide, drawn, turn)


# --- asking both ---


class Oracle:
    """The oracle program, kept running: a line in, a line out."""

    def __init__(self, rules: KubernetesRules = DEFAULT) -> None:
        self.rules = rules
        self._process = subprocess.Popen([oracle_of(rules), "-", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, lines: Sequence[bytes]) -> Iterator[Json]:
        """The verdicts on clusters, in order; take all of them. The next are judged while one is looked at."""
        writer = threading.Thread(target=self._write, args=(lines,))
        writer.start()
        for _ in lines:
            line = _pipe(self._process.stdout).readline()
            if not line:
                raise RuntimeError(f"the oracle ended with exit code {self._process.wait()}")
            yield json.loads(line)
        writer.join()

    def _write(self, lines: Sequence[bytes]) -> None:
        pipe = _pipe(self._process.stdin)
        for line in lines:
            pipe.write(line + b"\n")
        pipe.flush()

    def close(self) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise RuntimeError("the oracle has no pipes")
    return pipe


def as_line(scenario: Json) -> bytes:
    return json.dumps(scenario, separators=(",", ":")).encode()


def judged(line: bytes, verdict: Json, rules: KubernetesRules = DEFAULT) -> Comparison:
    """What differs. That one takes the input and the other does not is a difference, too."""
    invalid = verdict.get("invalid", "")
    try:
        scenario = decode_scenario(line, rules=rules)
        profiles = profiles_of(scenario)
    except InputError as error:
        return Comparison(() if invalid else (FieldDifference("", "input", "is taken", str(error)),))
    if invalid:
        return Comparison((FieldDifference("", "input", invalid, "is taken"),))
    try:
        return compare(scenario, verdict["pods"], profiles)
    except Exception as error:  # noqa: BLE001 - a defect like any other: the case is made small and kept
        return Comparison((FieldDifference("", "decision", "is made", repr(error)),))


def settled(oracle: Oracle, line: bytes, first: Comparison) -> Comparison:
    """A difference that stays, however often kube-scheduler is asked; what does not is explained."""
    left = {one.pod for one in first.differences}
    for verdict in oracle.ask([line] * ASKED_AGAIN):
        left &= {one.pod for one in judged(line, verdict, oracle.rules).differences}
    kept = tuple(one for one in first.differences if one.pod in left)
    gone = {one.pod for one in first.differences} - left
    return Comparison(kept, (*first.explained, *[UNDETERMINED] * len(gone)))


# --- what is found ---


@dataclass(slots=True)
class Tally:
    """What came of some clusters."""

    clusters: int = 0
    decisions: int = 0
    refused: int = 0
    """How many clusters neither of the two takes."""
    explained: Counter[str] = field(default_factory=Counter)
    differing: list[tuple[Json, Comparison]] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.clusters += other.clusters
        self.decisions += other.decisions
        self.refused += other.refused
        self.explained.update(other.explained)
        self.differing += other.differing

    @property
    def mismatches(self) -> int:
        return sum(len(comparison.differences) for _, comparison in self.differing)

    def told(self) -> str:
        text = f"{self.clusters} clusters, {self.decisions} decisions, {self.mismatches} mismatches"
        text += counted(self.explained)
        return f"{text}, {self.refused} refused by both" if self.refused else text


def compared(oracle: Oracle, scenarios: Sequence[Json]) -> Tally:
    tally = Tally()
    lines = [as_line(scenario) for scenario in scenarios]
    suspects = []
    for scenario, line, verdict in zip(scenarios, lines, oracle.ask(lines), strict=True):
        comparison = judged(line, verdict, oracle.rules)
        tally.clusters += 1
        tally.decisions += len(verdict["pods"])
        tally.refused += bool(verdict.get("invalid")) and not comparison.differences
        if comparison.differences:
            suspects.append((scenario, line, comparison))
        else:
            tally.explained.update(comparison.explained)
    for scenario, line, suspected in suspects:
        comparison = settled(oracle, line, suspected)
        tally.explained.update(comparison.explained)
        if comparison.differences:
            tally.differing.append((scenario, comparison))
    return tally


def kinds_of(comparison: Comparison) -> list[set[str]]:
    """What differs of each pod, without where: the fields; and of what was said of the whole pod, the words."""
    found: dict[str, set[str]] = {}
    for one in comparison.differences:
        words = json.dumps([one.expected, one.got]) if one.field in ("input", "decision", "preFilter", "error") else ""
        words = re.sub(r'\\"[^"]*\\"|[^\s]*[0-9][^\s]*', "", words)  # but no names
        found.setdefault(one.pod, set()).add(one.field + words)
    return list(found.values())


def smallest(oracle: Oracle, scenario: Json, comparison: Comparison) -> tuple[Json, Json, Comparison]:
    """The cluster made small while the same fields of some pod still differ; with its verdict, and what differs."""
    kind = kinds_of(comparison)[0]

    def differs(candidate: Json) -> bool:
        line = as_line(candidate)

        def differs_now() -> bool:
            (verdict,) = oracle.ask([line])
            return kind in kinds_of(judged(line, verdict, oracle.rules))

        return all(differs_now() for _ in range(3))  # it may have come to depend on the order of a map

    small = shrink(scenario, differs, keep=NAMING)
    (verdict,) = oracle.ask([as_line(small)])
    return small, verdict, judged(as_line(small), verdict, oracle.rules)


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(where, what) of every leaf."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}")
    elif value is not None:
        yield path, json.dumps(value, ensure_ascii=False)


def readable(comparison: Comparison) -> Iterator[str]:
    """What differs, leaf by leaf: `-` is kube-scheduler's, `+` is situate's."""
    for one in comparison.differences:
        wanted, got = dict(flat(one.expected, one.field)), dict(flat(one.got, one.field))
        for path in dict.fromkeys((*wanted, *got)):
            if wanted.get(path) != got.get(path):
                yield f"  {one.pod} {path}"
                yield f"    - {wanted.get(path, 'nothing')}"
                yield f"    + {got.get(path, 'nothing')}"


def keep(small: Json, verdict: Json, rules: KubernetesRules) -> Path:
    """Write a case where the tests find it."""
    folder = FOUND if rules is DEFAULT else FOUND.with_name(f"{FOUND.name}-{rules.version}")
    folder.mkdir(exist_ok=True)
    path = folder / f"{small['id']}.scenarios.jsonl"
    path.write_bytes(as_line(small) + b"\n")
    path.with_name(f"{small['id']}.verdicts.jsonl").write_bytes(as_line(verdict) + b"\n")
    return path


# --- the command ---

_oracle: Oracle | None = None


def work(job: tuple[str, str, range]) -> Tally:
    """One worker's batch. Its oracle goes on running until the worker ends."""
    global _oracle  # noqa: PLW0603 - one a process
    version, seed, indices = job
    if _oracle is None:
        _oracle = Oracle(RULES[version])
    return compared(_oracle, [cluster(seed, index, version) for index in indices])


def show(differing: Sequence[tuple[Json, Comparison]], rules: KubernetesRules) -> None:
    oracle = Oracle(rules)
    for scenario, comparison in differing[:SHOWN]:
        print(f"\n{scenario['id']} differs; making it small", flush=True)
        small, verdict, left = smallest(oracle, scenario, comparison)
        path = keep(small, verdict, rules)
        print(f"{path}: {len(as_line(small))} bytes of {len(as_line(scenario))}; - kube-scheduler, + situate")
        print("\n".join(readable(left)))
    oracle.close()
    for scenario, comparison in differing[SHOWN:]:
        print(f"\n{scenario['id']} differs; - kube-scheduler, + situate")
        print("\n".join(list(readable(comparison))[:12]))


def fuzz(seed: str, count: int, workers: int, rules: KubernetesRules = DEFAULT) -> Tally:
    """Compare on so many clusters, telling how far it is."""
    jobs = [(rules.version, seed, range(start, min(start + BATCH, count))) for start in range(0, count, BATCH)]
    tally, begin, told = Tally(), time.monotonic(), 0.0
    with get_context("spawn").Pool(workers) as pool:
        for part in pool.imap_unordered(work, jobs):
            tally.add(part)
            spent = time.monotonic() - begin
            if spent - told >= 10:
                told = spent
                print(f"{spent:4.0f} s: {tally.told()}", flush=True)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare with kube-scheduler on clusters made at random.")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", default="", help="what to make the clusters from; a fresh one unless told")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kubernetes-version", choices=tuple(RULES), default=DEFAULT.version)
    options = parser.parse_args()
    rules = RULES[options.kubernetes_version]
    if not oracle_of(rules).exists():
        print(f"there is no oracle to ask: make oracle KUBE={rules.version}", file=sys.stderr)
        return 2
    seed = options.seed or secrets.token_hex(4)
    print(
        f"seed {seed}; again: make fuzz-conformance COUNT={options.count} SEED={seed} VERSION={rules.version}",
        flush=True,
    )
    tally = fuzz(seed, options.count, options.workers, rules)
    show(tally.differing, rules)
    print(tally.told())
    return 1 if tally.differing else 0


if __name__ == "__main__":
    sys.exit(main())
