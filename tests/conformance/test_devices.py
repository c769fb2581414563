"""Recorded verdicts of kube-scheduler about devices: what each claim gets, by the rules of both releases.

The first clusters of each family with devices; `counted`, where strategies weigh resources that devices serve; and
`found`, clusters of `make fuzz-conformance` on which situate once differed. A placer that keeps its answers must choose
as one that keeps none.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from situate.cli.commands.conformance.comparison import compare, profiles_of
from situate.core.place.placer import Placer
from situate.core.state.cluster import Cluster
from situate.core.versions import RULES, KubernetesRules
from situate.wire.scenarios import Scenario, decode_scenario

DATA = Path(__file__).parent / "devices"
FAMILIES = ("dra", "drashared", "draparts", "draextended", "counted", "found")


def lines(name: str) -> list[bytes]:
    return gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).splitlines()


def recorded(family: str, rules: KubernetesRules) -> list[tuple[Scenario, list[dict[str, Any]]]]:
    verdicts = lines(f"{family}.verdicts-{rules.version}")
    return [
        (decode_scenario(scenario, family, rules), msgspec.json.decode(verdict)["pods"])
        for scenario, verdict in zip(lines(f"{family}.scenarios"), verdicts, strict=True)
    ]


@pytest.mark.parametrize("version", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_verdict_and_every_device_is_kube_schedulers(family: str, version: str) -> None:
    for scenario, expected in recorded(family, RULES[version]):
        assert compare(scenario, expected, profiles_of(scenario)).differences == (), scenario.id


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_that_are_kept_choose_the_same_nodes(family: str) -> None:
    for scenario, _ in recorded(family, RULES["1.36"]):
        cluster = Cluster()
        cluster.load(scenario.objects.nodes, scenario.objects.named(), scenario.objects.pods)
        for name, framework in profiles_of(scenario).items():
            kept, fresh = Placer(cluster, framework.profile), Placer(cluster, framework.profile, cache=False)
            for pod in scenario.pending:
                if pod.spec.scheduler_name == name:
                    kind = cluster.class_of(pod)
                    assert [kept.choose(kind) for _ in range(3)] == [fresh.choose(kind)] * 3, scenario.id
