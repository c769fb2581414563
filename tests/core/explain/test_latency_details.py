"""Of a pod that is too far from a place: how far nodes are, and that a higher limit that is offered is high enough."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.engine.framework import Framework, build_frameworks
from situate.core.explain.explanation import Explanation, explain
from situate.core.explain.latency_details import ms
from situate.core.explain.suggestions import ActionKind
from situate.core.model.annotations import LATENCY_LIMIT_MS, LATENCY_TO
from situate.core.place.filtering import run_filters
from situate.core.plugins.latency import ZONE
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.wire.config import config_of


def deciding(zones: dict[str, float]) -> Framework:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "Latency"}]}},
                "pluginConfig": [{"name": "Latency", "args": {"places": {"eu": {"zones": zones}}}}],
            }
        ],
    }
    return build_frameworks(config_of(config))["default-scheduler"]


def cluster_of(**cpus: str) -> Cluster:
    """A node in each zone."""
    cluster = Cluster()
    for zone, cpu in cpus.items():
        cluster.add_node(node(f"n-{zone}", labels={ZONE: zone}, cpu=cpu, memory="8Gi", pods="10"))
    return cluster


def asked(cluster: Cluster, profile: Framework, limit: str, cpu: str = "1") -> Explanation:
    return explain(cluster, profile, pod("web", cpu=cpu, annotations={LATENCY_TO: "eu", LATENCY_LIMIT_MS: limit}))


def test_the_closest_nodes_are_named_with_how_far_they_are() -> None:
    said = asked(cluster_of(a="4", b="4", c="4"), deciding({"a": 30, "b": 12.5}), "10")
    assert said.message.startswith(
        "0/3 nodes are available: 1 node(s) had no known latency to the pod's place, "
        "2 node(s) exceeded the pod's latency limit."
    )
    texts = [one.text for verdict in said.verdicts for one in verdict.details]
    assert sorted(texts) == [
        "may be 10 ms from eu; closest: n-b is 12.5 ms away; n-a is 30 ms away",
        "the latency to eu is unknown",
    ]


def test_the_limit_that_is_offered_is_that_of_the_closest_node() -> None:
    said = asked(cluster_of(a="4", b="4", c="4"), deciding({"a": 30, "b": 12.5}), "10")
    (step,) = said.suggestions[0].actions
    assert (step.kind, step.value) == (ActionKind.RAISE_LIMIT, "12.5")
    assert step.text == "allow 12.5 ms to eu instead of 10"
    assert step.field == f"metadata.annotations[{LATENCY_LIMIT_MS}]"


def test_where_room_is_short_as_well_both_are_offered_together() -> None:
    said = asked(cluster_of(a="1"), deciding({"a": 30}), "10", cpu="2")
    assert [step.kind for step in said.suggestions[0].actions] == [ActionKind.ASK_LESS, ActionKind.RAISE_LIMIT]


zones = st.dictionaries(st.sampled_from("abc"), st.integers(0, 99_999).map(lambda micros: micros / 1_000))


@settings(max_examples=60, deadline=None)
@given(zones, st.dictionaries(st.sampled_from("abcd"), st.sampled_from("124"), min_size=1), st.integers(0, 99_999))
def test_every_way_that_is_offered_makes_the_pod_fit(
    table: dict[str, float], cpus: dict[str, str], micros: int
) -> None:
    cluster, profile = cluster_of(**cpus), deciding(table or {"z": 1})
    said = asked(cluster, profile, ms(micros), cpu="2")
    for way in said.suggestions:
        changed = Cluster()
        for name in cluster.nodes.rows:
            row = cluster.nodes.rows[name]
            held = way.nodes.get(name, cluster.nodes.objects[row])
            assert held is not None
            changed.add_node(held)
        for one in way.nodes.values():
            changed.add_node(one)
        assert run_filters(profile.profile, changed.class_of(way.pod), View(changed)).feasible.any(), way.text


def test_milliseconds_are_written_exactly() -> None:
    assert [ms(micros) for micros in (0, 1, 1_000, 12_500, 100_000)] == ["0", "0.001", "1", "12.5", "100"]
