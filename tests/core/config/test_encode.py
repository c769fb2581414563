"""A configuration is written with the fields that kube-scheduler writes, and reads back as it was."""

from typing import Any

import pytest

from situate.core.config.decode import decode
from situate.core.config.defaults import default_configuration, with_defaults
from situate.core.config.encode import encode

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

EVERYTHING: dict[str, Any] = HEAD | {
    "clientConnection": {
        "acceptContentTypes": "a",
        "burst": 7,
        "contentType": "application/json",
        "kubeconfig": "k",
        "qps": 12.5,
    },
    "delayCacheUntilActive": True,
    "enableContentionProfiling": False,
    "enableProfiling": True,
    "extenders": [
        {
            "bindVerb": "b",
            "enableHTTPS": True,
            "filterVerb": "f",
            "httpTimeout": "100ms",
            "ignorable": True,
            "managedResources": [{"ignoredByScheduler": True, "name": "example.com/x"}, {"name": "example.com/y"}],
            "nodeCacheCapable": True,
            "preemptVerb": "p",
            "prioritizeVerb": "q",
            "tlsConfig": {"caData": "aGVsbG8=", "insecure": True, "serverName": "s"},
            "urlPrefix": "https://x",
            "weight": 5,
        }
    ],
    "leaderElection": {
        "leaderElect": False,
        "leaseDuration": "1h0m0s",
        "renewDeadline": "1m0s",
        "resourceLock": "leases",
        "resourceName": "n",
        "resourceNamespace": "ns",
        "retryPeriod": "1.5s",
    },
    "parallelism": 4,
    "percentageOfNodesToScore": 50,
    "podInitialBackoffSeconds": 2,
    "podMaxBackoffSeconds": 20,
}

ARGUMENTS: dict[str, dict[str, Any]] = {
    "DefaultPreemption": {
        "minCandidateNodesAbsolute": 5,
        "minCandidateNodesPercentage": 0,
        "neverBreakBudgets": True,
    },
    "DynamicResources": {"bindingTimeout": "1s", "filterTimeout": "0s"},
    "InterPodAffinity": {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
    "NodeAffinity": {
        "addedAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"preference": {"matchExpressions": [{"key": "b", "operator": "Exists"}]}, "weight": 3}
            ],
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                    {},
                ]
            },
        }
    },
    "NodeResourcesBalancedAllocation": {"resources": [{"name": "cpu", "weight": 1}]},
    "NodeResourcesFit": {
        "ignoredResourceGroups": ["example.com"],
        "ignoredResources": ["example.org/a"],
        "scoringStrategy": {
            "requestedToCapacityRatio": {"shape": [{"score": 0, "utilization": 0}, {"score": 10, "utilization": 100}]},
            "resources": [{"name": "cpu", "weight": 5}],
            "type": "RequestedToCapacityRatio",
        },
    },
    "PodTopologySpread": {
        "defaultConstraints": [
            {
                "matchLabelKeys": ["a"],
                "maxSkew": 1,
                "minDomains": 2,
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
            }
        ],
        "defaultingType": "List",
    },
    "VolumeBinding": {"bindTimeoutSeconds": 0},
    "example:Mine": {"anything": [1, None, {"goes": "x"}]},
}


def written(document: dict[str, Any]) -> dict[str, Any]:
    return encode(with_defaults(decode(document)))


def test_every_setting_is_written_as_it_was_read() -> None:
    found = written(EVERYTHING)
    assert {key: found[key] for key in EVERYTHING} == EVERYTHING
    assert set(found) == {*EVERYTHING, "profiles"}


@pytest.mark.parametrize("plugin", sorted(ARGUMENTS))
def test_arguments_are_written_as_they_were_read(plugin: str) -> None:
    args = ARGUMENTS[plugin]
    document = HEAD | {"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}
    (found,) = (entry for entry in written(document)["profiles"][0]["pluginConfig"] if entry["name"] == plugin)
    kind = {} if ":" in plugin else {"apiVersion": HEAD["apiVersion"], "kind": f"{plugin}Args"}
    assert found == {"name": plugin, "args": kind | args}


def test_what_is_off_or_empty_is_left_out() -> None:
    found = encode(default_configuration())
    assert "extenders" not in found
    assert "delayCacheUntilActive" not in found
    (preemption,) = (e for e in found["profiles"][0]["pluginConfig"] if e["name"] == "DefaultPreemption")
    assert "neverBreakBudgets" not in preemption["args"]
    assert found["profiles"][0]["plugins"]["filter"] == {}


def test_numbers_without_fraction_are_written_without_point() -> None:
    assert repr(encode(default_configuration())["clientConnection"]["qps"]) == "50"


def test_keys_are_sorted() -> None:
    found = written(EVERYTHING)
    assert list(found) == sorted(found)
    assert list(found["extenders"][0]) == sorted(found["extenders"][0])
