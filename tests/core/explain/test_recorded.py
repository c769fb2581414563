"""Recorded clusters: the one line is kube-scheduler's own, and every way that is offered makes the pod fit.

A way is applied to the objects and decided anew, on a cluster made from scratch: nothing of the search is believed.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubernetes.oracle import mixtures
from situate.core.engine.framework import build_frameworks, default_framework
from situate.core.explain.explanation import Explanation, explain
from situate.core.explain.suggestions import Suggestion
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.place.filtering import run_filters
from situate.core.place.profile import Profile
from situate.core.plugins.support.claim_changes import change_claim, released_devices
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.wire.objects import Objects
from situate.wire.scenarios import Scenario, decode_scenario

DATA = Path(__file__).parents[2] / "conformance" / "data"
FAMILIES = sorted(path.name.partition(".")[0] for path in DATA.glob("*.scenarios.jsonl.gz"))
SEQUENCES = ("sequence",)
"""Families whose pods see each other: their clusters are not those of the file."""
EVERY = 4
"""Ways are looked for in every so many clusters of a family, messages in all."""


def lines(name: str) -> list[bytes]:
    return gzip.decompress((DATA / name).read_bytes()).splitlines()


def recorded(family: str) -> Iterator[tuple[Scenario, list[dict[str, Any]]]]:
    verdicts = lines(f"{family}.verdicts.jsonl.gz")
    for scenario, verdict in zip(lines(f"{family}.scenarios.jsonl.gz"), verdicts, strict=True):
        yield decode_scenario(scenario), msgspec.json.decode(verdict)["pods"]


def loaded(objects: Objects) -> Cluster:
    cluster = Cluster()
    cluster.load(objects.nodes, objects.named(), objects.pods)
    return cluster


def applied(objects: Objects, way: Suggestion) -> Cluster:
    """A cluster from scratch, with what the way changes in the objects."""
    nodes = {node.metadata.name: node for node in objects.nodes} | dict(way.nodes)
    pods = [pod for pod in objects.pods if key_of(pod.metadata) not in way.evicted]
    cluster = Cluster()
    cluster.load(nodes.values(), [*objects.named(), *way.slices], pods)
    for pod in objects.pods:
        if pod not in pods:
            for change in released_devices(cluster, pod):
                change_claim(cluster, change)
    for change in way.claims:
        change_claim(cluster, change)
    return cluster


def fits(cluster: Cluster, profile: Profile, pod: Pod) -> bool:
    return bool(run_filters(profile, cluster.class_of(pod), View(cluster)).feasible.any())


def told(family: str) -> Iterator[tuple[Scenario, Pod, dict[str, Any], Explanation, Profile]]:
    for number, (scenario, verdicts) in enumerate(recorded(family)):
        profiles = build_frameworks(scenario.config)
        cluster = loaded(scenario.objects)
        for pod, verdict in zip(scenario.pending, verdicts, strict=True):
            deciding = profiles[pod.spec.scheduler_name]
            yield (
                scenario,
                pod,
                verdict,
                explain(cluster, deciding, pod, suggestions=not number % EVERY),
                deciding.profile,
            )
        if not number % EVERY:
            assert audit(cluster) == []


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in SEQUENCES])
def test_the_one_line_is_kube_schedulers_and_every_way_that_is_offered_makes_the_pod_fit(family: str) -> None:
    refused = offered = 0
    for scenario, pod, verdict, said, profile in told(family):
        where = f"{scenario.id} {pod.metadata.name}"
        message = verdict.get("message")
        if message and not unjudged(verdict):
            refused += 1
            assert (where, said.message) == (where, message)
        for way in said.suggestions:
            offered += 1
            assert fits(applied(scenario.objects, way), profile, way.pod), f"{where}: {way.text}"
    assert not refused or offered


def unjudged(verdict: dict[str, Any]) -> bool:
    """kube-scheduler gave up on a pod because of one node, where situate refuses that node alone."""
    return any(one["code"] == "Error" for one in (verdict.get("rejected") or {}).values())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 30))
def test_on_any_cluster_every_way_makes_the_pod_fit_and_nothing_is_left_changed(seed: int) -> None:
    made = mixtures.mixture(f"why-{seed}", 0)
    made.pop("config", None)  # some are wrong on purpose
    scenario = decode_scenario(msgspec.json.encode(made))
    cluster = loaded(scenario.objects)
    profile = default_framework()
    for pod in scenario.pending[:2]:
        said = explain(cluster, profile, pod)
        for way in said.suggestions:
            assert fits(applied(scenario.objects, way), profile.profile, way.pod), way.text
        assert explain(cluster, profile, pod).message == said.message
    assert audit(cluster) == []
