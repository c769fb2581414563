"""Profiles: which plugins decide for which scheduler name, in which order, with which weights."""

from __future__ import annotations

import pytest

from situate.core.config.defaults import default_configuration, with_defaults
from situate.core.config.types import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)
from situate.core.contract import Codes, Reason, Scores
from situate.core.engine.framework import Framework, build_frameworks, default_framework, points_of
from situate.core.plugins.default_preemption import DefaultPreemptionArgs
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.support.errors import PluginError
from situate.core.state.classes import PodClass
from situate.core.state.view import View

FILTERS = [
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    "DynamicResources", "NodeDeclaredFeatures",
]  # fmt: skip
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def filters(deciding: Framework) -> list[str]:
    return [plugin.name for plugin in deciding.profile.filters]


def weights(deciding: Framework) -> dict[str, int]:
    return {weighted.scorer.name: weighted.weight for weighted in deciding.profile.scorers}


def configured(**points: PluginSet) -> Framework:
    profile = KubeSchedulerProfile(plugins=Plugins(**points))
    return build_frameworks(with_defaults(KubeSchedulerConfiguration(profiles=(profile,))))["default-scheduler"]


def enabled(*names: str, weight: int = 0) -> PluginSet:
    return PluginSet(enabled=tuple(PluginRef(name=name, weight=weight) for name in names))


def disabled(*names: str) -> PluginSet:
    return PluginSet(disabled=tuple(PluginRef(name=name) for name in names))


def test_by_default_the_plugins_are_those_of_kube_scheduler_in_its_order_and_with_its_weights() -> None:
    found = default_framework()
    assert filters(found) == FILTERS
    scored = {name: weight for name, weight in weights(found).items() if name in WEIGHTS}
    assert scored == WEIGHTS
    assert [name for name in weights(found) if name in WEIGHTS] == list(WEIGHTS), "in this order"
    assert found.profile.post_filters == ("DynamicResources", "DefaultPreemption")
    assert found.profile.scheduler_name == "default-scheduler"


def test_by_default_a_tenth_of_the_nodes_and_a_hundred_at_least_are_looked_at_for_victims() -> None:
    preemption = default_framework().preemption
    assert (preemption.min_candidate_nodes_percentage, preemption.min_candidate_nodes_absolute) == (10, 100)
    assert preemption.never_break_budgets is False


def test_each_scheduler_name_has_its_own_plugins() -> None:
    bare = Plugins(multi_point=disabled("*"), queue_sort=enabled("PrioritySort"), bind=enabled("DefaultBinder"))
    profiles = (KubeSchedulerProfile(scheduler_name="plain"), KubeSchedulerProfile(scheduler_name="bare", plugins=bare))
    found = build_frameworks(with_defaults(KubeSchedulerConfiguration(profiles=profiles)))
    assert list(found) == ["plain", "bare"]
    assert [deciding.profile.scheduler_name for deciding in found.values()] == ["plain", "bare"]
    assert (filters(found["plain"]), filters(found["bare"])) == (FILTERS, [])
    assert weights(found["bare"]) == {}
    assert found["bare"].profile.post_filters == ()


def test_a_plugin_that_is_disabled_at_one_point_stays_at_the_others() -> None:
    found = configured(score=disabled("TaintToleration"))
    assert filters(found) == FILTERS
    assert "TaintToleration" not in weights(found)
    found = configured(filter=disabled("NodeResourcesFit"))
    assert "NodeResourcesFit" in weights(found)
    at_filter = [plugin for plugin in found.profile.filters if isinstance(plugin, NodeResourcesFit)]
    assert at_filter == [], "it may only say no before nodes are looked at"


def test_a_weight_that_is_configured_counts() -> None:
    found = configured(score=PluginSet(
        enabled=(PluginRef(name="ImageLocality", weight=7),), disabled=(PluginRef(name="ImageLocality"),)
    ))  # fmt: skip
    assert weights(found)["ImageLocality"] == 7


def test_how_it_preempts_is_configured_for_each_profile() -> None:
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=50, min_candidate_nodes_absolute=7)
    profile = KubeSchedulerProfile(plugin_config=(PluginConfig(name="DefaultPreemption", args=args),))
    found = build_frameworks(with_defaults(KubeSchedulerConfiguration(profiles=(profile,))))["default-scheduler"]
    preemption = found.preemption
    assert (preemption.min_candidate_nodes_percentage, preemption.min_candidate_nodes_absolute) == (50, 7)


class Checks:
    reasons = (Reason("no", eviction_helps=False),)

    def check(self, pod: PodClass, view: View) -> Codes | None:
        return None


class Ranks:
    def score_one(self, pod: PodClass, node: object) -> int:
        return 0


class DoesBoth(Checks):
    def score(self, pod: PodClass, view: View) -> Scores | None:
        return None


@pytest.mark.parametrize(
    "kind,points",
    [
        pytest.param(Checks, {"preFilter", "filter"}, id="what checks may filter"),
        pytest.param(Ranks, {"preScore", "score"}, id="what scores one node may score"),
        pytest.param(DoesBoth, {"preFilter", "filter", "preScore", "score"}, id="what does both may do both"),
        pytest.param(object, set(), id="what does neither may do nothing"),
    ],
)
def test_plugins_of_others_are_for_the_points_whose_methods_they_have(kind: type, points: set[str]) -> None:
    assert points_of(kind) == points


def test_plugins_of_others_come_after_ours_and_may_turn_pods_away() -> None:
    profile = KubeSchedulerProfile(plugins=Plugins(multi_point=enabled("mine.py:Mine", weight=4)))
    config = with_defaults(KubeSchedulerConfiguration(profiles=(profile,)))
    found = build_frameworks(config, {"mine.py:Mine": DoesBoth})["default-scheduler"]
    assert filters(found) == [*FILTERS, "mine.py:Mine"]
    assert weights(found)["mine.py:Mine"] == 4
    assert found.profile.before_nodes[-1] == "mine.py:Mine"


def test_a_plugin_that_is_enabled_where_it_would_never_run_is_an_error() -> None:
    profile = KubeSchedulerProfile(plugins=Plugins(pre_filter=enabled("mine.py:Mine")))
    config = with_defaults(KubeSchedulerConfiguration(profiles=(profile,)))
    with pytest.raises(PluginError, match="is enabled at preFilter and not at filter, where it would run"):
        build_frameworks(config, {"mine.py:Mine": Checks})


def test_the_default_profile_is_that_of_the_default_configuration() -> None:
    (found,) = build_frameworks(default_configuration()).values()
    assert filters(found) == filters(default_framework())
    assert weights(found) == weights(default_framework())
