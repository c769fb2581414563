"""The arguments of the plugins for GPUs are checked; what they come to; and they go into a file and back."""

from typing import Any

import pytest

from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.config.encode import encode
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.engine.framework import build_frameworks
from situate.core.model.field_errors import distinct
from situate.core.plugins.fragmentation import Fragmentation
from situate.core.plugins.gpu_share import GpuShare
from situate.core.plugins.support.gpu_mix import ExpectedPod

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def config(plugin: str, args: Any) -> KubeSchedulerConfiguration:
    enabled = {"multiPoint": {"enabled": [{"name": plugin}]}}
    profile = {"plugins": enabled, "pluginConfig": [{"name": plugin, "args": args}]}
    return with_defaults(decode(HEAD | {"profiles": [profile]}))


def problems_of(plugin: str, **args: Any) -> list[str]:
    given = next(one for one in config(plugin, args).profiles[0].plugin_config if one.name == plugin)
    return distinct(given.args.validate("args"))


@pytest.mark.parametrize(
    "plugin, args, problem",
    [
        ("GpuShare", {"device": "Any"}, 'args.device: Unsupported value: "Any"'),
        ("GpuShare", {"resource": "not a name"}, "args.resource: Invalid value"),
        ("Fragmentation", {"packing": -1}, "args.packing: Invalid value: -1: not in valid range [0, 1000000]"),
        ("Fragmentation", {"quantum": 2_000_000}, "args.quantum: Invalid value: 2000000"),
        ("Fragmentation", {"weightExponent": 9}, "args.weightExponent: Invalid value: 9"),
        ("Fragmentation", {"typicalPods": [{"weight": 0, "gpu": 1}]}, "args.typicalPods[0].weight: Invalid value: 0"),
        ("Fragmentation", {"typicalPods": [{"cpu": "much"}]}, 'args.typicalPods[0].cpu: Invalid value: "much"'),
        ("Fragmentation", {"typicalPods": [{"cpu": ["1"]}]}, "args.typicalPods[0].cpu: Invalid value"),
        ("Fragmentation", {"typicalPods": [{"memory": -1}]}, "args.typicalPods[0].memory: Invalid value"),
        ("Fragmentation", {"typicalPods": [{"gpuMilli": 1001}]}, "args.typicalPods[0].gpuMilli: Invalid value: 1001"),
        ("Fragmentation", {"typicalPods": [{"gpu": -1}]}, "args.typicalPods[0].gpu: Invalid value: -1"),
        ("Fragmentation", {"typicalPods": [{"gpu": 1, "gpuMilli": 5}]}, "args.typicalPods[0].gpuMilli: Forbidden"),
        ("Fragmentation", {"typicalPods": [{"gpu": 1, "nodes": {"a": []}}]}, "args.typicalPods[0].nodes[a]: Required"),
        (
            "Fragmentation",
            {"typicalPods": [{"gpu": 1, "nodes": {"?": ["a"]}}]},
            "args.typicalPods[0].nodes[?]: Invalid",
        ),
        ("Fragmentation", {"typicalPods": [{"gpu": 1}] * 1001}, "args.typicalPods: Invalid value: 1001"),
    ],
)
def test_what_is_wrong_is_said_by_field(plugin: str, args: dict[str, Any], problem: str) -> None:
    found = problems_of(plugin, **args)
    assert len(found) == 1
    assert found[0].startswith(problem)


ARGS: dict[str, Any] = {
    "resource": "amd.com/gpu",
    "typicalPods": [
        {"weight": 3, "cpu": "500m", "memory": "1Gi", "gpuMilli": 250, "nodes": {"model": ["A", "B"]}},
        {"cpu": 4, "gpu": 2},
        {"weight": 9, "cpu": 1},
    ],
    "packing": 0,
}


def test_what_the_arguments_of_fragmentation_come_to() -> None:
    """Typical pods without a GPU are read, and make no difference: they are left out."""
    profile = build_frameworks(config("Fragmentation", ARGS))["default-scheduler"].profile
    made = next(one for one in profile.assigners if isinstance(one, Fragmentation))
    assert made in [one.scorer for one in profile.scorers]
    assert (made.resource, made.packing, made.quantum) == ("amd.com/gpu", 0, 0)
    assert made.mix == (
        ExpectedPod(3, 500, 1 << 30, 1, 250, (("model", ("A", "B")),)),
        ExpectedPod(1, 4000, 0, 2, 1000),
    )


def test_what_the_arguments_of_gpu_share_come_to() -> None:
    profile = build_frameworks(config("GpuShare", {"device": "WorstFit"}))["default-scheduler"].profile
    assert profile.assigners == (GpuShare(device="WorstFit"),)
    assert profile.assigners[0] in profile.filters
    assert "GpuShare" in profile.before_nodes


@pytest.mark.parametrize("plugin, args", [("Fragmentation", ARGS), ("Fragmentation", {}), ("GpuShare", {})])
def test_arguments_go_there_and_back(plugin: str, args: dict[str, Any]) -> None:
    known = config(plugin, args)
    assert with_defaults(decode(encode(known))) == known


def test_both_are_off_unless_somebody_enables_them() -> None:
    profile = build_frameworks(with_defaults(KubeSchedulerConfiguration()))["default-scheduler"].profile
    assert profile.assigners == ()
    assert not [one for one in profile.filters if one.name == "GpuShare"]
