"""Recorded verdicts of kube-scheduler, asked the way placing asks: through answers that are kept between pods.

`situate conformance` decides from scratch; tests/cli/commands/test_conformance.py runs it over the same families.
Here a placer keeps its answers while each scenario goes on, and must choose what kube-scheduler would.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from situate.cli import main
from situate.core.engine.framework import build_frameworks
from situate.core.model.pod import Pod
from situate.core.place.placer import Placer
from situate.core.place.selecting import NOWHERE
from situate.core.place.verdict_cache import VerdictCache
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.wire.scenarios import Scenario, decode_scenario

DATA = Path(__file__).parent / "data"
FILES = sorted([*DATA.rglob("*.scenarios.jsonl.gz"), *DATA.rglob("*.scenarios.jsonl")])
RECORDED = {
    "config", "defaultspread", "images", "interpod", "mixed", "nodeaffinity", "ports",
    "preempt", "resources", "sequence", "spread", "taints", "volumes",
}  # fmt: skip

FOUND = DATA / "found"
"""One cluster a file, each small, on which situate once differed: what `make fuzz-conformance` finds is put there."""

AUDITED = 10
"""Every so many scenarios, all that is kept is counted again."""


def family(path: Path) -> str:
    return str(path.relative_to(DATA)).partition(".")[0]


def lines(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()


def recorded(path: Path) -> Iterator[tuple[Scenario, list[dict[str, Any]]]]:
    verdicts = lines(path.with_name(path.name.replace(".scenarios.", ".verdicts.")))
    for scenario, verdict in zip(lines(path), verdicts, strict=True):
        yield decode_scenario(scenario), msgspec.json.decode(verdict)["pods"]


def bound(pod: Pod, node: str) -> Pod:
    replace = msgspec.structs.replace
    return replace(pod, spec=replace(pod.spec, node_name=node), status=replace(pod.status, phase="Running"))


def differences(scenario: Scenario, verdicts: list[dict[str, Any]]) -> Iterator[str]:
    """Where cached verdicts and placers differ from what was recorded."""
    cluster = Cluster()
    cluster.load(scenario.objects.nodes, scenario.objects.named(), scenario.objects.pods)
    profiles = {name: deciding.profile for name, deciding in build_frameworks(scenario.config).items()}
    placers = {name: Placer(cluster, profile) for name, profile in profiles.items()}
    standings: dict[tuple[bytes, str], VerdictCache] = {}
    for pod, wanted in zip(scenario.pending, verdicts, strict=True):
        name, kind = pod.spec.scheduler_name, cluster.class_of(pod)
        key = (kind.signature, name)
        if key not in standings:
            standings[key] = VerdictCache(cluster, profiles[name], kind)
        told = _told(standings[key], cluster)
        for field in ("feasible", "total"):
            if (wanted.get(field) or None) != (told[field] or None):
                yield f"{scenario.id} {pod.metadata.name} {field}: {wanted.get(field)} became {told[field]}"
        for _ in range(2):  # the first time nothing is kept, the second time it is
            row = placers[name].choose(kind)
            chosen = "" if row == NOWHERE else cluster.nodes.names[row]
            if chosen != wanted.get("chosen", ""):
                yield f"{scenario.id} {pod.metadata.name} chosen: {wanted.get('chosen')} became {chosen}"
        if scenario.sequence and wanted.get("chosen"):
            cluster.add_pod(bound(pod, wanted["chosen"]))


def _told(standing: VerdictCache, cluster: Cluster) -> dict[str, Any]:
    standing.refresh()
    rows = np.flatnonzero(standing.feasible).tolist()
    names, total = cluster.nodes.names, standing.total
    return {"feasible": [names[row] for row in rows], "total": {names[row]: int(total[row]) for row in rows}}


def test_all_families_are_here() -> None:
    assert {family(path) for path in FILES} >= RECORDED


@pytest.mark.parametrize("path", FILES, ids=family)
def test_kept_answers_choose_what_kube_scheduler_chose(path: Path) -> None:
    asked = 0
    for scenario, verdicts in recorded(path):
        asked += len(verdicts)
        assert list(differences(scenario, verdicts)) == []
    assert asked >= (1 if path.parent == FOUND else 50)


@pytest.mark.parametrize("path", FILES, ids=family)
def test_a_recorded_cluster_adds_up(path: Path) -> None:
    for scenario, _ in list(recorded(path))[::AUDITED]:
        cluster = Cluster()
        cluster.load(scenario.objects.nodes, scenario.objects.named(), scenario.objects.pods)
        assert audit(cluster) == []


def test_a_planted_difference_is_found() -> None:
    """The comparison above can fail: a verdict that says something else is told."""
    scenario, verdicts = next(
        (scenario, verdicts)
        for scenario, verdicts in recorded(DATA / "sequence.scenarios.jsonl.gz")
        if len(verdicts[0].get("feasible", ())) > 1
    )
    first = verdicts[0]
    for field, other in (
        ("feasible", first["feasible"][1:]),
        ("total", first["total"] | {first["chosen"]: -1}),
        ("chosen", next(name for name in first["feasible"] if name != first["chosen"])),
    ):
        found = list(differences(scenario, [first | {field: other}, *verdicts[1:]]))
        assert found
        assert found[0].startswith(f"{scenario.id} {scenario.pending[0].metadata.name} {field}: ")


def test_what_the_fuzzer_finds_is_compared() -> None:
    found = [path for path in FILES if path.parent == FOUND]
    assert len(found) == len(list(FOUND.glob("*.jsonl"))) / 2 > 0


WIDE = [path for path in FILES if path.parent != DATA]
"""More clusters, made the same way, and what was found. The 13 families themselves are compared in tests/cli."""


@pytest.mark.parametrize("path", WIDE, ids=family)
def test_situate_conformance_finds_no_difference(path: Path) -> None:
    result = CliRunner().invoke(main, ["conformance", str(path)], catch_exceptions=False)
    count = sum(len(msgspec.json.decode(line)["pending"]) for line in lines(path))
    assert (result.exit_code, result.stdout) == (0, f"{count} decisions, 0 mismatches\n")
