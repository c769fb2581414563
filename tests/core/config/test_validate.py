"""A configuration's values are checked as kube-scheduler checks them: its texts, its order, all at once."""

from typing import Any

import pytest

from situate.core.config.decode import decode
from situate.core.config.defaults import default_configuration, with_defaults
from situate.core.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile
from situate.core.config.validate import validate

V1 = "kubescheduler.config.k8s.io/v1"
HEAD = {"apiVersion": V1, "kind": "KubeSchedulerConfiguration"}
REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{V1}")'
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def problems_of(**fields: Any) -> list[str]:
    return validate(with_defaults(decode(HEAD | fields)))


def queue_sort(*names: str, args: object = None) -> dict[str, Any]:
    profile: dict[str, Any] = {"plugins": {"queueSort": {"enabled": [{"name": name} for name in names]}}}
    return profile if args is None else profile | {"pluginConfig": [{"name": names[0], "args": args}]}


def test_the_default_configuration_is_valid() -> None:
    assert validate(default_configuration()) == []


def test_a_configuration_without_profiles_has_not_had_its_defaults_set() -> None:
    assert validate(KubeSchedulerConfiguration()) == ["profiles: Required value"]


def test_a_profile_may_have_no_plugins() -> None:
    profile = KubeSchedulerProfile(scheduler_name="a")
    assert validate(KubeSchedulerConfiguration(profiles=(profile,))) == []


@pytest.mark.parametrize(
    "fields, problems",
    [
        pytest.param(
            {"parallelism": 0},
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
            id="no parallelism",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
            id="more than all nodes",
        ),
        pytest.param(
            {"profiles": [{"percentageOfNodesToScore": -1}]},
            ["profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
            id="fewer than no nodes, in a profile",
        ),
        pytest.param(
            {"profiles": [{"nodeSample": 0}]},
            ["profiles[0].nodeSample: Invalid value: 0: must be greater than 0"],
            id="a sample of no nodes",
        ),
        pytest.param(
            {"profiles": [{"nodeSample": 5, "percentageOfNodesToScore": 50}]},
            ["profiles[0].nodeSample: Forbidden: may not be given together with percentageOfNodesToScore"],
            id="a sample and a percentage",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 50, "profiles": [{"nodeSample": 5, "percentageOfNodesToScore": 0}]},
            [],
            id="a sample is good beside a percentage that is not the profile's own",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
            id="no backoff",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 11},
            ["podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds"],
            id="a first backoff longer than the longest",
        ),
        pytest.param({"podInitialBackoffSeconds": 10}, [], id="a first backoff as long as the longest is good"),
        pytest.param(
            {"clientConnection": {"burst": -1}},
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
            id="a negative burst",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "-5s", "renewDeadline": "-10s", "retryPeriod": "-1s"}},
            [
                'leaderElection.leaseDuration: Invalid value: "-5s": must be greater than zero',
                'leaderElection.renewDeadline: Invalid value: "-10s": must be greater than zero',
                'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
            ],
            id="negative times",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "10s"}},
            ['leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
            id="a lease no longer than its renewal",
        ),
        pytest.param(
            {"leaderElection": {"resourceLock": "endpoints"}},
            ['leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"'],
            id="a lock of another kind",
        ),
        pytest.param(
            {"leaderElection": {"leaderElect": False, "resourceLock": "endpoints", "leaseDuration": "-1s"}},
            [],
            id="nothing is wrong with an election that is off",
        ),
    ],
)
def test_a_setting_out_of_range_is_told(fields: dict[str, Any], problems: list[str]) -> None:
    assert problems_of(**fields) == problems


@pytest.mark.parametrize(
    "profiles, problems",
    [
        pytest.param([{"schedulerName": ""}], ["profiles[0].schedulerName: Required value"], id="an empty name"),
        pytest.param(
            [{"schedulerName": "a"}, {}], ["profiles[1].schedulerName: Required value"], id="one of two without a name"
        ),
        pytest.param(
            [{"schedulerName": "a"}, {"schedulerName": "b"}, {"schedulerName": "a"}],
            ["profiles[2].schedulerName: Duplicate value: {}"],
            id="a name twice",
        ),
        pytest.param(
            [{"plugins": {"filter": {"enabled": [{"name": "NodePorts"}, {"name": "EBSLimits"}]}}}],
            [f'profiles[0].plugins.filter.enabled[1]: Invalid value: "EBSLimits": {REMOVED}'],
            id="a plugin that was removed",
        ),
        pytest.param(
            [
                {
                    "plugins": {
                        "postBind": {"enabled": [{"name": "CinderLimits"}]},
                        "preFilter": {"enabled": [{"name": "AzureDiskLimits"}]},
                    }
                }
            ],
            [
                f'profiles[0].plugins.preFilter.enabled[0]: Invalid value: "AzureDiskLimits": {REMOVED}',
                f'profiles[0].plugins.postBind.enabled[0]: Invalid value: "CinderLimits": {REMOVED}',
            ],
            id="two that were removed, at two points",
        ),
        pytest.param(
            [{"plugins": {"filter": {"disabled": [{"name": "EBSLimits"}]}}}], [], id="a removed plugin may be disabled"
        ),
        pytest.param(
            [{"pluginConfig": [{"name": "GCEPDLimits"}]}],
            [f'profiles[0].pluginConfig[0]: Invalid value: "GCEPDLimits": {REMOVED}'],
            id="arguments of a plugin that was removed",
        ),
        pytest.param(
            [{"pluginConfig": [{"name": "Foo"}, {"name": "Foo"}]}],
            ['profiles[0].pluginConfig[1]: Duplicate value: "Foo"'],
            id="arguments twice",
        ),
        pytest.param(
            [queue_sort("PrioritySort", "Other")],
            ["profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"],
            id="two ways to sort the queue",
        ),
        pytest.param(
            [{"schedulerName": "a"}, {"schedulerName": "b"} | queue_sort("PrioritySort")],
            [
                (
                    'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"PrioritySort","Weight":0}],'
                    '"Disabled":null}: must be the same for all profiles'
                )
            ],
            id="profiles that sort the queue differently",
        ),
        pytest.param(
            [
                {"schedulerName": "a"} | queue_sort("Q", args={"a": 1}),
                {"schedulerName": "b"} | queue_sort("Q", args={"a": 2}),
            ],
            ['profiles[1].pluginConfig.args: Invalid value: {"a":2}: queueSort must be the same for all profiles'],
            id="or with other arguments",
        ),
        pytest.param(
            [{"schedulerName": "a"} | queue_sort("Q"), {"schedulerName": "b"} | queue_sort("Q")],
            [],
            id="profiles that sort the queue alike",
        ),
        pytest.param(
            [
                {"schedulerName": "a"} | queue_sort("Q", args={"a": 1}),
                {"schedulerName": "b"} | queue_sort("Q", args={"a": 1}),
            ],
            [],
            id="and with the same arguments",
        ),
    ],
)
def test_what_is_wrong_with_profiles_is_told(profiles: list[Any], problems: list[str]) -> None:
    assert problems_of(profiles=profiles) == problems


NO_AUTHORITY = "https needs caFile or caData; or insecure: true, and then anybody can answer in the extender's place"


def managed(*names: str) -> dict[str, Any]:
    return {"urlPrefix": "http://x", "managedResources": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    "extenders, problems",
    [
        pytest.param(
            [{"prioritizeVerb": "p"}, {"prioritizeVerb": "p", "weight": -2}, {"weight": -2}],
            [
                "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
                "extenders[1].weight: Invalid value: -2: must have a positive weight applied to it",
            ],
            id="one that ranks nodes without weight",
        ),
        pytest.param(
            [{"bindVerb": "b"}, {"bindVerb": "b"}],
            [('extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind')],
            id="two that bind",
        ),
        pytest.param(
            [managed("cpu", "kubernetes.io/x", "requests.a.b/x", f"{'a.' * 126}a/x")],
            [
                'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
                (
                    "extenders[0].managedResources[1].name: "
                    'Invalid value: "kubernetes.io/x": is an invalid extended resource name'
                ),
                (
                    "extenders[0].managedResources[2].name: "
                    'Invalid value: "requests.a.b/x": is an invalid extended resource name'
                ),
                (
                    "extenders[0].managedResources[3].name: "
                    f'Invalid value: "{"a." * 126}a/x": is an invalid extended resource name'
                ),
            ],
            id="resources that are not extended ones",
        ),
        pytest.param(
            [managed("a b")],
            [f'extenders[0].managedResources[0].name: Invalid value: "a b": {NAME_RULE}'],
            id="a resource that has no such name",
        ),
        pytest.param(
            [managed("a.b/c"), managed("a.b/c")],
            [
                (
                    'extenders[1].managedResources[0].name: Invalid value: "a.b/c": '
                    "duplicate extender managed resource name"
                )
            ],
            id="a resource that two look after",
        ),
        pytest.param(
            [{"urlPrefix": "https://x"}, {"urlPrefix": "HTTPS://x", "enableHTTPS": True, "tlsConfig": {}}],
            [f"extenders[{i}].tlsConfig.caFile: Required value: {NO_AUTHORITY}" for i in (0, 1)],
            id="https without an authority",
        ),
        pytest.param(
            [{"urlPrefix": "http://x", "enableHTTPS": True, "tlsConfig": {"caFile": "ca.pem"}}],
            ['extenders[0].urlPrefix: Invalid value: "http://x": must begin with https:// if enableHTTPS is true'],
            id="https at an address that says otherwise",
        ),
        pytest.param(
            [{"urlPrefix": "https://x", "tlsConfig": {"caData": "eA==", "insecure": True}}],
            [
                (
                    "extenders[0].tlsConfig.insecure: Forbidden: "
                    "specifying a root certificates file with the insecure flag is not allowed"
                )
            ],
            id="an authority that is not asked",
        ),
    ],
)
def test_what_is_wrong_with_extenders_is_told(extenders: list[Any], problems: list[str]) -> None:
    assert problems_of(extenders=extenders) == problems


@pytest.mark.parametrize(
    "tls_config",
    [
        pytest.param({"caFile": "ca.pem"}, id="an authority in a file"),
        pytest.param({"caData": "eA=="}, id="an authority as data"),
        pytest.param({"insecure": True}, id="none, in so many words"),
    ],
)
def test_https_is_good_with(tls_config: dict[str, Any]) -> None:
    extender = {"urlPrefix": "https://x", "enableHTTPS": True, "tlsConfig": tls_config}
    assert problems_of(extenders=[extender]) == []


def test_everything_that_is_wrong_is_told_at_once_in_kube_schedulers_order() -> None:
    problems = problems_of(
        extenders=[{"prioritizeVerb": "p"}],
        podMaxBackoffSeconds=-1,
        percentageOfNodesToScore=101,
        profiles=[
            {
                "schedulerName": "a",
                "percentageOfNodesToScore": -2,
                "pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}],
            },
            {"schedulerName": "a"},
        ],
        parallelism=0,
        leaderElection={"leaseDuration": "1s", "resourceLock": "foo"},
        clientConnection={"burst": -2},
    )
    assert [problem.split(": ")[0] for problem in problems] == [
        "clientConnection.burst",
        "leaderElection.leaseDuration",
        "leaderElection.resourceLock",
        "parallelism",
        "profiles[0].percentageOfNodesToScore",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
        "profiles[1].schedulerName",
        "percentageOfNodesToScore",
        "podMaxBackoffSeconds",
        "extenders[0].weight",
    ]
