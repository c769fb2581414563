"""A configuration's shape is read strictly: what is unknown or of another type is named by its path."""

from typing import Any

import pytest

from situate.core.config.decode import MOST_PROBLEMS, decode
from situate.core.config.errors import ConfigError
from situate.core.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile, PluginConfig
from situate.core.model.duration import SECOND
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import NodeAffinitySpec
from situate.core.plugins.default_preemption import DefaultPreemptionArgs
from situate.core.plugins.inter_pod_affinity import InterPodAffinityArgs
from situate.core.plugins.node_affinity import NodeAffinityArgs

V1 = "kubescheduler.config.k8s.io/v1"
HEAD = {"apiVersion": V1, "kind": "KubeSchedulerConfiguration"}
ONLY = f'(only "KubeSchedulerConfiguration" of version "{V1}" is read)'


def problems_of(document: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as raised:
        decode(document)
    return raised.value.problems


def with_args(plugin: str, args: object) -> dict[str, Any]:
    return HEAD | {"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}


def args_of(document: object) -> Any:
    return decode(document).profiles[0].plugin_config[0].args


@pytest.mark.parametrize(
    "document, problem",
    [
        pytest.param(None, "Object 'Kind' is missing", id="an empty file"),
        pytest.param({"apiVersion": V1}, "Object 'Kind' is missing", id="no kind"),
        pytest.param({"kind": "KubeSchedulerConfiguration"}, "Object 'apiVersion' is missing", id="no version"),
        pytest.param(["a"], "couldn't get version/kind; expected an object, got array", id="a list"),
        pytest.param("hello", "couldn't get version/kind; expected an object, got string", id="text"),
        pytest.param(
            HEAD | {"kind": 3},
            "couldn't get version/kind; kind: Invalid value: 3: must be of type string",
            id="a number for a kind",
        ),
        pytest.param(HEAD | {"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c", id="two slashes"),
        pytest.param(
            HEAD | {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3" '
            + ONLY,
            id="an old version",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod"}, f'no kind "Pod" is registered for version "v1" {ONLY}', id="a pod"
        ),
        pytest.param(
            HEAD | {"kind": "NodeResourcesFitArgs"},
            f"couldn't decode as KubeSchedulerConfiguration, got {V1}, Kind=NodeResourcesFitArgs",
            id="a plugin's arguments",
        ),
    ],
)
def test_a_document_that_is_something_else_is_refused(document: object, problem: str) -> None:
    assert problems_of(document) == (problem,)


@pytest.mark.parametrize(
    "fields, problems",
    [
        pytest.param({"foo": 1}, ['strict decoding error: unknown field "foo"'], id="an unknown field"),
        pytest.param(
            {"Parallelism": 1}, ['strict decoding error: unknown field "Parallelism"'], id="a field in another case"
        ),
        pytest.param(
            {"zoo": 1, "profiles": [{"plugins": {"filters": {}, "filter": {"enable": []}}, "name": "x"}], "alpha": 2},
            [
                'strict decoding error: unknown field "alpha"',
                'strict decoding error: unknown field "profiles[0].name"',
                'strict decoding error: unknown field "profiles[0].plugins.filter.enable"',
                'strict decoding error: unknown field "profiles[0].plugins.filters"',
                'strict decoding error: unknown field "zoo"',
            ],
            id="all unknown fields, sorted",
        ),
        pytest.param(
            {"parallelism": "many"},
            ['parallelism: Invalid value: "many": must be of type int32'],
            id="text for a number",
        ),
        pytest.param(
            {"parallelism": 3_000_000_000},
            ["parallelism: Invalid value: 3000000000: must be of type int32"],
            id="a number that does not fit",
        ),
        pytest.param(
            {"podMaxBackoffSeconds": 2**63},
            ["podMaxBackoffSeconds: Invalid value: 9223372036854775808: must be of type int64"],
            id="a long number that does not fit",
        ),
        pytest.param({"parallelism": 1.5}, ["parallelism: Invalid value: 1.5: must be of type int32"], id="a fraction"),
        pytest.param(
            {"parallelism": True}, ["parallelism: Invalid value: true: must be of type int32"], id="a boolean"
        ),
        pytest.param(
            {"enableProfiling": 1}, ["enableProfiling: Invalid value: 1: must be of type boolean"], id="no boolean"
        ),
        pytest.param(
            {"profiles": [{"schedulerName": True}]},
            ["profiles[0].schedulerName: Invalid value: true: must be of type string"],
            id="a bare yes where a name should be",
        ),
        pytest.param({"profiles": {}}, ["profiles: Invalid value: object: must be of type array"], id="no list"),
        pytest.param(
            {"profiles": ["x", {}]}, ['profiles[0]: Invalid value: "x": must be of type object'], id="no object"
        ),
        pytest.param(
            {"leaderElection": []}, ["leaderElection: Invalid value: array: must be of type object"], id="a list for it"
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": 15}},
            ["leaderElection.leaseDuration: Invalid value: 15: must be of type string"],
            id="a number for a duration",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "15"}},
            ['leaderElection.leaseDuration: Invalid value: "15": time: missing unit in duration "15"'],
            id="a duration without unit",
        ),
        pytest.param(
            {"clientConnection": {"qps": "fast"}},
            ['clientConnection.qps: Invalid value: "fast": must be of type number'],
            id="text for a rate",
        ),
        pytest.param(
            {"clientConnection": {"qps": True}},
            ["clientConnection.qps: Invalid value: true: must be of type number"],
            id="a boolean for a rate",
        ),
        pytest.param(
            {"clientConnection": {"qps": 1e39}},
            ["clientConnection.qps: Invalid value: 1e+39: must be of type number"],
            id="a rate that does not fit",
        ),
        pytest.param(
            {"clientConnection": {"qps": float("nan")}},
            ["clientConnection.qps: Invalid value: NaN: must be of type number"],
            id="not a number",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "x", "tlsConfig": {"certData": "***"}}]},
            ['extenders[0].tlsConfig.certData: Invalid value: "***": illegal base64 data'],
            id="data that are not base64",
        ),
        pytest.param(
            {"parallelism": "x" * 5_000},
            [f'parallelism: Invalid value: "{"x" * 79}...: must be of type int32'],
            id="a long bad value is cut",
        ),
    ],
)
def test_what_is_wrong_with_the_shape_is_said_with_its_path(fields: dict[str, Any], problems: list[str]) -> None:
    assert list(problems_of(HEAD | fields)) == problems


@pytest.mark.parametrize(
    "plugin, args, problems",
    [
        pytest.param(
            "NodeResourcesFit",
            {"zed": 1, "ignoredResource": []},
            [
                'strict decoding error: unknown field "profiles[0].pluginConfig[0].args.ignoredResource"',
                'strict decoding error: unknown field "profiles[0].pluginConfig[0].args.zed"',
            ],
            id="unknown arguments",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultConstraints": [{"labelSelector": {"matchLabel": {}}}]},
            [
                (
                    "strict decoding error: unknown field "
                    '"profiles[0].pluginConfig[0].args.defaultConstraints[0].labelSelector.matchLabel"'
                )
            ],
            id="an unknown field far down",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultConstraints": [{"labelSelector": {"matchLabels": ["a"]}}]},
            [
                (
                    "profiles[0].pluginConfig[0].args.defaultConstraints[0].labelSelector.matchLabels: "
                    "Invalid value: array: must be of type object"
                )
            ],
            id="a list for labels",
        ),
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": "lots"},
            ['profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: "lots": must be of type int32'],
            id="an argument of another type",
        ),
        pytest.param(
            "InterPodAffinity",
            {"kind": "NodeResourcesFitArgs"},
            [
                (
                    "profiles[0].pluginConfig[0].args: args for plugin InterPodAffinity were not of type "
                    "InterPodAffinityArgs.kubescheduler.config.k8s.io, got "
                    "NodeResourcesFitArgs.kubescheduler.config.k8s.io"
                )
            ],
            id="another plugin's arguments",
        ),
        pytest.param(
            "InterPodAffinity",
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            [
                (
                    'profiles[0].pluginConfig[0].args: no kind "InterPodAffinityArgs" is registered for version '
                    '"kubescheduler.config.k8s.io/v1beta3"'
                )
            ],
            id="arguments of an old version",
        ),
        pytest.param(
            "InterPodAffinity",
            {"apiVersion": "a/b/c"},
            ["profiles[0].pluginConfig[0].args: unexpected GroupVersion string: a/b/c"],
            id="arguments of a version with two slashes",
        ),
        pytest.param(
            "InterPodAffinity",
            {"kind": ["x"]},
            [
                (
                    "profiles[0].pluginConfig[0].args: couldn't get version/kind; "
                    "kind: Invalid value: array: must be of type string"
                )
            ],
            id="a list for the arguments' kind",
        ),
        pytest.param(
            "InterPodAffinity",
            [1],
            ["profiles[0].pluginConfig[0].args: Invalid value: array: must be of type object"],
            id="a list for arguments",
        ),
    ],
)
def test_what_is_wrong_with_arguments_is_said_with_its_path(plugin: str, args: object, problems: list[str]) -> None:
    assert list(problems_of(with_args(plugin, args))) == problems


def test_problems_of_the_document_come_before_those_of_arguments() -> None:
    document = with_args("NodeAffinity", {"foo": 1}) | {"zoo": 1}
    assert problems_of(document) == (
        'strict decoding error: unknown field "zoo"',
        'strict decoding error: unknown field "profiles[0].pluginConfig[0].args.foo"',
    )


def test_no_more_than_a_hundred_problems_are_told() -> None:
    assert len(problems_of(HEAD | {f"field{i}": i for i in range(MOST_PROBLEMS * 3)})) == MOST_PROBLEMS


def test_an_empty_configuration_is_one() -> None:
    assert decode(HEAD) == KubeSchedulerConfiguration()


def test_null_is_as_good_as_absent() -> None:
    fields = ("parallelism", "profiles", "leaderElection", "enableContentionProfiling", "percentageOfNodesToScore")
    assert decode(HEAD | dict.fromkeys(fields)) == KubeSchedulerConfiguration()


def test_a_null_in_a_list_is_an_empty_element() -> None:
    assert decode(HEAD | {"profiles": [None]}).profiles == (KubeSchedulerProfile(),)
    fit = args_of(with_args("NodeResourcesFit", {"ignoredResources": [None]}))
    assert fit.ignored_resources == ("",)


def test_a_whole_number_may_have_a_point() -> None:
    assert decode(HEAD | {"parallelism": 2.0}).parallelism == 2


def test_fields_are_read() -> None:
    config = decode(
        HEAD
        | {
            "clientConnection": {"qps": 12, "burst": 7},
            "leaderElection": {"leaderElect": False, "leaseDuration": "30s"},
            "extenders": [{"urlPrefix": "u", "enableHTTPS": True, "tlsConfig": {"caData": "aGVsbG8="}}],
        }
    )
    assert (config.client_connection.qps, config.client_connection.burst) == (12.0, 7)
    assert (config.leader_election.leader_elect, config.leader_election.lease_duration) == (False, 30 * SECOND)
    assert config.extenders[0].enable_https
    assert config.extenders[0].tls_config is not None
    assert config.extenders[0].tls_config.ca_data == b"hello"


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({}, id="none given"),
        pytest.param(None, id="null"),
        pytest.param({"kind": "InterPodAffinityArgs"}, id="their kind alone"),
        pytest.param({"apiVersion": V1, "kind": "InterPodAffinityArgs"}, id="version and kind"),
    ],
)
def test_arguments_need_not_say_what_they_are(args: object) -> None:
    assert args_of(with_args("InterPodAffinity", args)) == InterPodAffinityArgs()


def test_node_affinity_is_read_into_the_model() -> None:
    requirement = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [requirement]}]}
    }
    term = NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",)),))
    assert args_of(with_args("NodeAffinity", {"addedAffinity": affinity})) == NodeAffinityArgs(
        added_affinity=NodeAffinitySpec(
            required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=(term,))
        )
    )


def test_the_option_that_never_breaks_a_budget_is_read() -> None:
    args = args_of(with_args("DefaultPreemption", {"neverBreakBudgets": True}))
    assert args == DefaultPreemptionArgs(never_break_budgets=True)


def test_arguments_of_a_plugin_of_others_stay_as_they_are() -> None:
    args = {"anything": [1, {"goes": None}]}
    assert decode(with_args("example.plugins:Mine", args)).profiles[0].plugin_config == (
        PluginConfig(name="example.plugins:Mine", args=args),
    )
