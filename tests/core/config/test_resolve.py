"""A profile comes to plugins at each point, in order, with weights and arguments; or it is said why it does not."""

from typing import Any

import pytest

from situate.core.config.decode import decode
from situate.core.config.defaults import BUILT_IN_POINTS, default_configuration, with_defaults
from situate.core.config.errors import ConfigError
from situate.core.config.resolve import ResolvedProfile, complete, resolve
from situate.core.config.types import EXTENSION_POINTS, KubeSchedulerConfiguration
from situate.core.model.duration import MILLISECOND, SECOND
from situate.core.plugins.default_preemption import DefaultPreemptionArgs
from situate.core.plugins.inter_pod_affinity import InterPodAffinityArgs
from situate.core.plugins.node_resources_fit import NodeResourcesFitArgs
from situate.core.versions import V1_37

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
MINE = "example.plugins:Mine"
WITH_MINE = {**BUILT_IN_POINTS, MINE: frozenset({"filter", "score"})}


def config_of(**fields: Any) -> KubeSchedulerConfiguration:
    return with_defaults(decode(HEAD | fields))


def with_plugins(**plugins: Any) -> KubeSchedulerConfiguration:
    return config_of(profiles=[{"plugins": plugins}])


def resolved(config: KubeSchedulerConfiguration, known: Any = BUILT_IN_POINTS) -> ResolvedProfile:
    (profile,) = resolve(config, known)
    return profile


def enabled(*names: str, weight: int | None = None) -> dict[str, Any]:
    extra = {} if weight is None else {"weight": weight}
    return {"enabled": [{"name": name} | extra for name in names]}


def disabled(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names]}


def problems_of(config: KubeSchedulerConfiguration, known: Any = BUILT_IN_POINTS) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as raised:
        resolve(config, known)
    return raised.value.problems


def test_the_default_profile_filters_and_scores_in_kube_schedulers_order() -> None:
    profile = resolved(default_configuration())
    assert profile.scheduler_name == "default-scheduler"
    assert tuple(profile.points) == EXTENSION_POINTS[:-1], "1.36 has no podGroupPostFilter"
    assert tuple(resolved(default_configuration(V1_37)).points) == EXTENSION_POINTS
    assert profile.queue_sort == "PrioritySort"
    assert profile.filters == (
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    )
    assert profile.scorers == (
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("VolumeBinding", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    )
    assert profile.points["postFilter"] == ("DynamicResources", "DefaultPreemption")
    assert profile.placement_weights == {"NodeResourcesFit": 1}


def test_a_weight_at_score_wins_over_multi_point() -> None:
    profile = resolved(
        with_plugins(multiPoint=enabled("NodeAffinity", weight=7), score=enabled("NodeAffinity", weight=9))
    )
    assert profile.scorers[0] == ("NodeAffinity", 9)


def test_a_weight_at_multi_point_wins_over_the_default() -> None:
    assert dict(resolved(with_plugins(multiPoint=enabled("NodeAffinity", weight=7))).scorers)["NodeAffinity"] == 7


def test_a_weight_that_is_not_given_is_one() -> None:
    assert dict(resolved(with_plugins(score=enabled("NodeAffinity"))).scorers)["NodeAffinity"] == 1


def test_a_plugin_disabled_at_one_point_runs_at_the_others() -> None:
    profile = resolved(with_plugins(score=disabled("NodeAffinity")))
    assert "NodeAffinity" not in dict(profile.scorers)
    assert "NodeAffinity" in profile.filters


def test_several_profiles_come_in_the_files_order() -> None:
    config = config_of(profiles=[{"schedulerName": "b"}, {"schedulerName": "a", "plugins": {"score": disabled("*")}}])
    first, second = resolve(config, BUILT_IN_POINTS)
    assert (first.scheduler_name, second.scheduler_name) == ("b", "a")
    assert first.scorers
    assert second.scorers == ()


@pytest.mark.parametrize(
    "profile, percentage",
    [
        pytest.param({}, 20, id="the configuration's, if it has none"),
        pytest.param({"percentageOfNodesToScore": 60}, 60, id="its own, if it has one"),
        pytest.param({"percentageOfNodesToScore": 0}, 0, id="also if that is zero"),
    ],
)
def test_a_profile_looks_at_a_percentage_of_nodes(profile: dict[str, Any], percentage: int) -> None:
    config = config_of(percentageOfNodesToScore=20, profiles=[profile])
    assert resolved(config).percentage_of_nodes_to_score == percentage


def test_arguments_are_found_by_their_type() -> None:
    args = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}}
    profile = resolved(config_of(profiles=[{"pluginConfig": [args]}]))
    assert profile.args_of(InterPodAffinityArgs).hard_pod_affinity_weight == 5
    assert profile.args_of(DefaultPreemptionArgs) == DefaultPreemptionArgs()


def test_arguments_of_a_plugin_that_is_not_in_use_are_the_defaults() -> None:
    args = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}}
    config = config_of(profiles=[{"pluginConfig": [args], "plugins": {"multiPoint": disabled("InterPodAffinity")}}])
    profile = resolved(config)
    assert "InterPodAffinity" not in profile.args
    assert profile.args_of(InterPodAffinityArgs) == InterPodAffinityArgs()


# ── plugins of others ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plugin_of_others_runs_where_it_implements_something_with_its_arguments_as_they_are() -> None:
    config = config_of(
        profiles=[
            {
                "plugins": {"multiPoint": enabled(MINE, weight=4)},
                "pluginConfig": [{"name": MINE, "args": {"limit": [1, 2]}}],
            }
        ]
    )
    profile = resolved(config, WITH_MINE)
    assert profile.filters[-1] == MINE
    assert profile.scorers[-1] == (MINE, 4)
    assert MINE not in profile.points["preFilter"]
    assert profile.args[MINE] == {"limit": [1, 2]}


def test_a_plugin_of_others_that_nobody_found_does_not_exist() -> None:
    assert problems_of(with_plugins(filter=enabled(MINE))) == (
        f'profiles[0].plugins.filter: FilterPlugin "{MINE}" does not exist',
    )


@pytest.mark.parametrize("name", ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount", "DefaultBinder"])
def test_every_plugin_of_kube_scheduler_may_be_named(name: str) -> None:
    profile = resolved(with_plugins(multiPoint=enabled(name)))
    assert any(name in plugins for plugins in profile.points.values())


# ── what is wrong ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "plugins, problems",
    [
        pytest.param(
            {"filter": enabled("Foo")},
            ['profiles[0].plugins.filter: FilterPlugin "Foo" does not exist'],
            id="a plugin that does not exist",
        ),
        pytest.param(
            {"preFilter": enabled("Foo"), "bind": enabled("Bar")},
            [
                'profiles[0].plugins.preFilter: PreFilterPlugin "Foo" does not exist',
                'profiles[0].plugins.bind: BindPlugin "Bar" does not exist',
            ],
            id="two of them",
        ),
        pytest.param(
            {"multiPoint": enabled("Foo", "Bar")},
            [
                'profiles[0].plugins.multiPoint: PreFilterPlugin "Foo" does not exist',
                'profiles[0].plugins.multiPoint: PreFilterPlugin "Bar" does not exist',
            ],
            id="two under multiPoint",
        ),
        pytest.param(
            {"multiPoint": enabled("EBSLimits")},
            ['profiles[0].plugins.multiPoint: PreFilterPlugin "EBSLimits" does not exist'],
            id="a removed one under multiPoint",
        ),
        pytest.param(
            {"score": enabled("NodePorts")},
            ['profiles[0].plugins.score: plugin "NodePorts" does not extend ScorePlugin plugin'],
            id="a plugin that does nothing there",
        ),
        pytest.param(
            {"score": enabled("ImageLocality", "ImageLocality")},
            ['profiles[0].plugins.score: plugin "ImageLocality" already registered as "ScorePlugin"'],
            id="a plugin twice",
        ),
        pytest.param(
            {"multiPoint": enabled("NodeAffinity", "NodeAffinity")},
            ['profiles[0].plugins.multiPoint: plugin "NodeAffinity" already registered as "PreFilterPlugin"'],
            id="a plugin twice under multiPoint",
        ),
        pytest.param(
            {"multiPoint": disabled("*")},
            [
                (
                    "profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler "
                    'name "default-scheduler", but got 0'
                ),
                (
                    "profiles[0].plugins.bind: at least one bind plugin is needed for profile with scheduler name "
                    '"default-scheduler"'
                ),
            ],
            id="nothing that sorts or binds",
        ),
        pytest.param(
            {"score": enabled("ImageLocality", weight=-1)},
            ["profiles[0].plugins.score: score plugins: total score of Score plugins could overflow"],
            id="a negative weight",
        ),
        pytest.param(
            {"placementScore": enabled("NodeResourcesFit", weight=-1), "multiPoint": enabled("PodGroupPodsCount")},
            [
                (
                    "profiles[0].plugins.placementScore: placement score plugins: "
                    "total score of Score plugins could overflow"
                )
            ],
            id="a negative weight for placements",
        ),
    ],
)
def test_a_profile_that_cannot_run_is_refused(plugins: dict[str, Any], problems: list[str]) -> None:
    assert list(problems_of(with_plugins(**plugins))) == problems


def test_two_generators_of_placements_are_refused() -> None:
    known = {**BUILT_IN_POINTS, "Other": frozenset({"placementGenerate"})}
    config = with_plugins(multiPoint=enabled("TopologyPlacementGenerator", "Other"))
    assert problems_of(config, known) == (
        (
            "profiles[0].plugins.placementGenerate: at most one placement generate plugin is allowed for profile with "
            'scheduler name "default-scheduler"'
        ),
    )


def test_profiles_that_sort_the_queue_differently_through_multi_point_are_refused() -> None:
    known = {**BUILT_IN_POINTS, "Other": frozenset({"queueSort"})}
    multi_point = disabled("PrioritySort") | enabled("Other")
    config = config_of(
        profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "plugins": {"multiPoint": multi_point}}]
    )
    assert problems_of(config, known) == (
        'profiles[1].plugins.queueSort: different queue sort plugins for profile "b": "Other", first: "PrioritySort"',
    )


def test_profiles_that_sort_the_queue_with_different_arguments_are_refused() -> None:
    args = [{"name": "PrioritySort", "args": {"a": 1}}]
    config = config_of(profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "pluginConfig": args}])
    assert problems_of(config) == ('profiles[1].plugins.queueSort: different queue sort plugin args for profile "b"',)


def test_the_problems_of_all_profiles_are_told() -> None:
    config = config_of(
        profiles=[
            {"schedulerName": "a", "plugins": {"filter": enabled("Foo")}},
            {"schedulerName": "b"},
            {"schedulerName": "c", "plugins": {"score": enabled("Bar")}},
        ]
    )
    assert problems_of(config) == (
        'profiles[0].plugins.filter: FilterPlugin "Foo" does not exist',
        'profiles[2].plugins.score: ScorePlugin "Bar" does not exist',
    )


# ── what starting does to a configuration ───────────────────────────────────────────────────────────────────────────


def extender(*ignored: str, **fields: Any) -> dict[str, Any]:
    managed = [{"name": name, "ignoredByScheduler": True} for name in ignored]
    return {"urlPrefix": "http://x", "managedResources": [*managed, {"name": "example.com/seen"}]} | fields


def test_what_extenders_look_after_replaces_what_the_file_ignores() -> None:
    given = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/other"]}}
    config = config_of(
        extenders=[extender("example.com/a"), extender("example.com/b")],
        profiles=[{"schedulerName": "a", "pluginConfig": [given]}, {"schedulerName": "b"}],
    )
    found = [profile.args_of(NodeResourcesFitArgs).ignored_resources for profile in resolve(config, BUILT_IN_POINTS)]
    assert found == [("example.com/a", "example.com/b")] * 2


def test_an_extender_that_hides_nothing_leaves_the_files_list() -> None:
    given = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/other"]}}
    config = config_of(extenders=[extender()], profiles=[{"pluginConfig": [given]}])
    assert resolved(config).args_of(NodeResourcesFitArgs).ignored_resources == ("example.com/other",)


def test_a_profile_without_fit_cannot_be_told_what_extenders_look_after() -> None:
    config = config_of(
        extenders=[extender("example.com/a")], profiles=[{"plugins": {"multiPoint": disabled("NodeResourcesFit")}}]
    )
    assert problems_of(config) == (
        "profiles[0].pluginConfig: couldn't build extenders: can't find NodeResourcesFitArgs in plugin config",
    )


def test_extenders_have_five_seconds_unless_said() -> None:
    config = complete(config_of(extenders=[extender(), extender(httpTimeout="100ms")]))
    assert [one.http_timeout for one in config.extenders] == [5 * SECOND, 100 * MILLISECOND]


def test_only_arguments_in_use_are_kept_sorted_by_plugin() -> None:
    given = [{"name": "VolumeBinding"}, {"name": "Foo", "args": {}}, {"name": "NodePorts", "args": {"a": 1}}]
    config = complete(config_of(profiles=[{"pluginConfig": given}]))
    names = [entry.name for entry in config.profiles[0].plugin_config]
    assert names == sorted(names)
    assert "Foo" not in names
    assert "NodePorts" in names
