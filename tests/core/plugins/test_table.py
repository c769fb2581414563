"""The table: every plugin that situate carries is made under its name, from the arguments of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from situate.core.config.defaults import BUILT_IN_POINTS, with_defaults
from situate.core.config.resolve import ResolvedProfile, resolve
from situate.core.config.types import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)
from situate.core.contract import MAX_SCORE, RULED_OUT, Filter, Scorer, Wake
from situate.core.model.pod import NodeAffinitySpec as Rules
from situate.core.model.pod import TopologySpreadConstraint
from situate.core.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from situate.core.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from situate.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from situate.core.plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
    RequestedToCapacityRatio,
    ScoringStrategy,
)
from situate.core.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from situate.core.plugins.support.arguments import CPU_AND_MEMORY, ResourceSpec, UtilizationShapePoint
from situate.core.plugins.support.resource_scoring import Scoring, ShapePoint
from situate.core.plugins.table import BUILT_IN


def resolved(*config: PluginConfig, **points: PluginSet) -> ResolvedProfile:
    profile = KubeSchedulerProfile(plugin_config=config, plugins=Plugins(**points))
    (found,) = resolve(with_defaults(KubeSchedulerConfiguration(profiles=(profile,))), BUILT_IN_POINTS)
    return found


def made(name: str, args: Any = None, **points: PluginSet) -> Any:
    config = () if args is None else (PluginConfig(name=name, args=args),)
    profile = resolved(*config, **points)
    return BUILT_IN[name].build(profile.args.get(name), profile.points_of(name))


MADE = [spec.name for spec in BUILT_IN.values() if spec.plugin is not None]


@pytest.mark.parametrize("name", MADE)
def test_a_plugin_answers_under_its_name(name: str) -> None:
    plugin = made(name)
    assert plugin.name == name
    assert isinstance(plugin, Filter | Scorer)


def test_whatever_can_refuse_or_rank_by_default_is_in_the_table() -> None:
    default = resolved()
    silent = {"VolumeBinding", "DynamicResources"}  # they rank under feature gates that are off, or claims
    for point, kind in (("filter", Filter), ("score", Scorer)):
        for name in default.points[point]:
            assert name in MADE, f"{name} is enabled at {point}"
            if point == "filter" or name not in silent:
                assert isinstance(made(name), kind), f"{name} is enabled at {point}"


@pytest.mark.parametrize("name", MADE)
def test_a_filter_has_reasons_that_fit_a_byte_and_waits_for_something(name: str) -> None:
    plugin = made(name)
    if isinstance(plugin, Filter):
        assert len(plugin.reasons) < RULED_OUT
        assert all(reason.text and reason.code for reason in plugin.reasons)
        assert plugin.wakes_on, "a pod that it refuses would wait for ever"
        assert all(isinstance(wake, Wake) for wake in plugin.wakes_on)


def test_node_resources_fit_is_made_from_its_arguments() -> None:
    assert made("NodeResourcesFit") == NodeResourcesFit()
    shape = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=3))
    args = NodeResourcesFitArgs(
        ignored_resources=("example.com/a",),
        ignored_resource_groups=("example.org",),
        scoring_strategy=ScoringStrategy(
            type="RequestedToCapacityRatio",
            resources=(ResourceSpec(name="cpu", weight=3),),
            requested_to_capacity_ratio=RequestedToCapacityRatio(shape=shape),
        ),
    )
    scoring = Scoring(
        "RequestedToCapacityRatio", (ResourceSpec("cpu", 3),), (ShapePoint(0, MAX_SCORE), ShapePoint(100, 30))
    )
    expected = NodeResourcesFit(frozenset({"example.com/a"}), frozenset({"example.org"}), scoring)
    assert made("NodeResourcesFit", args) == expected


def test_node_resources_balanced_allocation_is_made_from_its_arguments() -> None:
    name = "NodeResourcesBalancedAllocation"
    assert made(name) == NodeResourcesBalancedAllocation(CPU_AND_MEMORY)
    args = NodeResourcesBalancedAllocationArgs(resources=(ResourceSpec(name="memory", weight=1),))
    assert made(name, args) == NodeResourcesBalancedAllocation((ResourceSpec("memory", 1),))
    no_pre_score = PluginSet(disabled=(PluginRef(name=name),))
    assert made(name, pre_score=no_pre_score) == NodeResourcesBalancedAllocation(CPU_AND_MEMORY, may_skip=False)


def test_node_affinity_is_made_from_its_arguments() -> None:
    assert made("NodeAffinity") == NodeAffinity()
    rules = Rules()
    assert made("NodeAffinity", NodeAffinityArgs(added_affinity=rules)) == NodeAffinity(rules)
    no_pre_score = PluginSet(disabled=(PluginRef(name="NodeAffinity"),))
    assert made("NodeAffinity", pre_score=no_pre_score) == NodeAffinity(may_skip=False)


def test_inter_pod_affinity_is_made_from_its_arguments() -> None:
    assert made("InterPodAffinity") == InterPodAffinity(1, False)
    args = InterPodAffinityArgs(hard_pod_affinity_weight=7, ignore_preferred_terms_of_existing_pods=True)
    assert made("InterPodAffinity", args) == InterPodAffinity(7, True)


def test_pod_topology_spread_is_made_from_its_arguments() -> None:
    assert made("PodTopologySpread") == PodTopologySpread((), True)
    constraint = TopologySpreadConstraint(max_skew=2, topology_key="zone", when_unsatisfiable="ScheduleAnyway")
    args = PodTopologySpreadArgs(default_constraints=(constraint,), defaulting_type="List")
    assert made("PodTopologySpread", args) == PodTopologySpread((constraint,), False)
