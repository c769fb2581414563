"""What the file leaves open is filled in as kube-scheduler fills it in."""

from typing import Any

import pytest

from situate.core.config.decode import decode
from situate.core.config.defaults import (
    BUILT_IN_POINTS,
    DEFAULT_PLUGINS,
    default_configuration,
    under_rules,
    with_defaults,
)
from situate.core.config.encode import encode
from situate.core.config.errors import ConfigError
from situate.core.config.resolve import resolve
from situate.core.config.types import (
    EXTENSION_POINTS,
    ClientConnection,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)
from situate.core.model.duration import SECOND
from situate.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocationArgs
from situate.core.plugins.node_resources_fit import NodeResourcesFitArgs
from situate.core.plugins.pod_topology_spread import PodTopologySpreadArgs
from situate.core.plugins.support.arguments import ResourceSpec
from situate.core.plugins.table import ARGS, BUILT_IN
from situate.core.versions import V1_36, V1_37

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def filled(**fields: Any) -> KubeSchedulerConfiguration:
    return with_defaults(decode(HEAD | fields))


def filled_args(plugin: str, args: dict[str, Any]) -> Any:
    config = filled(profiles=[{"pluginConfig": [{"name": plugin, "args": args}]}])
    return config.profiles[0].plugin_config[0].args


def test_the_default_plugins_are_kube_schedulers_in_its_order_and_with_its_weights() -> None:
    assert [(ref.name, ref.weight) for ref in DEFAULT_PLUGINS["1.36"].multi_point.enabled] == [
        ("SchedulingGates", 0),
        ("PrioritySort", 0),
        ("NodeUnschedulable", 0),
        ("NodeName", 0),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodePorts", 0),
        ("NodeResourcesFit", 1),
        ("VolumeRestrictions", 0),
        ("NodeVolumeLimits", 0),
        ("VolumeBinding", 0),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("DefaultBinder", 0),
        ("NodeDeclaredFeatures", 0),
    ]


def test_1_37_asks_for_the_named_node_before_it_looks_for_cordons() -> None:
    old, new = ([ref.name for ref in DEFAULT_PLUGINS[version].multi_point.enabled] for version in ("1.36", "1.37"))
    assert new == [*old[:2], "NodeName", "NodeUnschedulable", *old[4:]]


ON = {plugin.name for plugin in BUILT_IN.values() if plugin.default}


def test_plugins_behind_a_gate_exist_without_being_enabled() -> None:
    off = [(plugin.name, plugin.weight) for plugin in BUILT_IN.values() if not plugin.default]
    assert off[:3] == [("GangScheduling", 0), ("TopologyPlacementGenerator", 0), ("PodGroupPodsCount", 1)]


def test_plugins_of_our_own_exist_without_being_enabled() -> None:
    off = {plugin.name: plugin for plugin in BUILT_IN.values() if not plugin.default}
    for name in ("BinPack", "Cost", "Latency"):
        assert off[name].weight == 1
        assert "score" in off[name].points


def test_plugins_implement_extension_points_that_there_are() -> None:
    assert {point for points in BUILT_IN_POINTS.values() for point in points} <= set(EXTENSION_POINTS)
    assert all(BUILT_IN_POINTS.values())


def test_arguments_belong_to_plugins_that_there_are() -> None:
    assert set(ARGS) <= set(BUILT_IN_POINTS)


def test_with_no_configuration_there_is_one_profile_with_all_arguments() -> None:
    config = default_configuration()
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]
    assert {entry.name: entry.args for entry in config.profiles[0].plugin_config} == {
        plugin: kind() for plugin, kind in ARGS.items() if plugin in ON
    }
    assert [entry.name for entry in config.profiles[0].plugin_config] == sorted(name for name in ARGS if name in ON)


def test_a_lone_profile_needs_no_name() -> None:
    assert filled(profiles=[{}]).profiles[0].scheduler_name == "default-scheduler"


def test_an_empty_name_is_not_filled_in() -> None:
    assert filled(profiles=[{"schedulerName": ""}]).profiles[0].scheduler_name == ""


def test_of_several_profiles_none_is_named_for_you() -> None:
    names = [profile.scheduler_name for profile in filled(profiles=[{}, {"schedulerName": "b"}]).profiles]
    assert names == [None, "b"]


def test_zero_and_empty_count_as_not_given_for_the_lease_and_the_client() -> None:
    config = filled(
        leaderElection={"leaseDuration": "0s", "renewDeadline": "0s", "retryPeriod": "0s", "resourceLock": ""},
        clientConnection={"qps": 0, "burst": 0, "contentType": ""},
    )
    assert config.leader_election == LeaderElection()
    assert config.client_connection == ClientConnection()


def test_what_is_given_for_the_lease_stays() -> None:
    assert filled(leaderElection={"leaseDuration": "30s"}).leader_election.lease_duration == 30 * SECOND


@pytest.mark.parametrize(
    "fields, contention",
    [
        pytest.param({}, True, id="both are on"),
        pytest.param({"enableProfiling": False}, False, id="contention follows profiling"),
        pytest.param({"enableContentionProfiling": False}, False, id="contention alone can be off"),
        pytest.param({"enableProfiling": False, "enableContentionProfiling": True}, True, id="or on"),
    ],
)
def test_contention_profiling_follows_profiling_unless_said(fields: dict[str, Any], contention: bool) -> None:
    assert filled(**fields).enable_contention_profiling is contention


def test_given_arguments_stay_first_and_the_missing_ones_follow_by_name() -> None:
    given = [{"name": "VolumeBinding"}, {"name": "example:Mine", "args": {"a": 1}}, {"name": "InterPodAffinity"}]
    names = [entry.name for entry in filled(profiles=[{"pluginConfig": given}]).profiles[0].plugin_config]
    assert names == [
        "VolumeBinding",
        "example:Mine",
        "InterPodAffinity",
        "DefaultPreemption",
        "DynamicResources",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
    ]


def test_a_disabled_plugin_gets_no_arguments() -> None:
    plugins = Plugins(multi_point=PluginSet(disabled=(PluginRef(name="NodeAffinity"),)))
    config = with_defaults(KubeSchedulerConfiguration(profiles=(KubeSchedulerProfile(plugins=plugins),)))
    assert "NodeAffinity" not in [entry.name for entry in config.profiles[0].plugin_config]


def test_a_plugin_enabled_at_one_point_alone_gets_its_arguments() -> None:
    plugins = Plugins(
        multi_point=PluginSet(disabled=(PluginRef(name="NodeAffinity"),)),
        filter=PluginSet(enabled=(PluginRef(name="NodeAffinity"),)),
    )
    config = with_defaults(KubeSchedulerConfiguration(profiles=(KubeSchedulerProfile(plugins=plugins),)))
    assert PluginConfig(name="NodeAffinity", args=ARGS["NodeAffinity"]()) in config.profiles[0].plugin_config


def test_a_resource_without_weight_weighs_one() -> None:
    resources = [{"name": "cpu"}, {"name": "memory", "weight": 0}, {"name": "example.com/gpu", "weight": 5}]
    weighted = (
        ResourceSpec(name="cpu", weight=1),
        ResourceSpec(name="memory", weight=1),
        ResourceSpec(name="example.com/gpu", weight=5),
    )
    fit = filled_args("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "resources": resources}})
    assert fit.scoring_strategy.resources == weighted
    assert filled_args("NodeResourcesBalancedAllocation", {"resources": resources}).resources == weighted


def test_without_resources_cpu_and_memory_are_scored() -> None:
    fit = filled_args("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "resources": []}})
    assert fit.scoring_strategy.resources == NodeResourcesFitArgs().scoring_strategy.resources
    balanced = filled_args("NodeResourcesBalancedAllocation", {"resources": []})
    assert balanced == NodeResourcesBalancedAllocationArgs()


def test_a_strategy_without_type_stays_without() -> None:
    assert filled_args("NodeResourcesFit", {"scoringStrategy": {}}).scoring_strategy.type == ""


def test_an_empty_defaulting_type_is_system() -> None:
    assert filled_args("PodTopologySpread", {"defaultingType": ""}) == PodTopologySpreadArgs(defaulting_type="System")


def test_under_other_rules_a_configuration_has_the_defaults_of_that_version() -> None:
    assert under_rules(default_configuration(V1_36), V1_37) == default_configuration(V1_37)
    listed = {"enabled": [{"name": "NodeUnschedulable"}, {"name": "NodeName"}], "disabled": [{"name": "*"}]}
    chosen = filled(profiles=[{"plugins": {"multiPoint": listed}}])
    moved = under_rules(chosen, V1_37)
    assert moved.profiles[0].plugins == chosen.profiles[0].plugins, "what the file orders stays in order"
    assert moved.rules is V1_37


def test_only_1_37_has_a_post_filter_for_pod_groups() -> None:
    given = {"profiles": [{"plugins": {"podGroupPostFilter": {"disabled": [{"name": "*"}]}}}]}
    with pytest.raises(ConfigError, match=r'unknown field "profiles\[0\].plugins.podGroupPostFilter"'):
        decode(HEAD | given)
    config = with_defaults(decode(HEAD | given, V1_37))
    assert resolve(config, BUILT_IN_POINTS)[0].points["podGroupPostFilter"] == ()
    default = resolve(default_configuration(V1_37), BUILT_IN_POINTS)[0]
    assert default.points["podGroupPostFilter"] == ("DynamicResources", "DefaultPreemption")
    assert "podGroupPostFilter" in encode(config)["profiles"][0]["plugins"]
    assert "podGroupPostFilter" not in encode(default_configuration())["profiles"][0]["plugins"]
