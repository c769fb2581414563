"""The policies are configurations like any other, and the mix is that of the trace."""

import pytest

from situate.sim.openb.policies import POLICIES, configuration, profile_of, typical
from situate.sim.openb.published import POLICIES as THEIRS
from situate.sim.openb.published import published
from situate.sim.openb.trace_files import TracePod, TraceRequest
from trace_openb import PODS


@pytest.mark.parametrize(
    "policy, scorers, assigners",
    [
        ("Random", [], ["GpuShare"]),
        ("BestFit", ["BinPack"], ["GpuShare"]),
        ("FGD", ["Fragmentation"], ["GpuShare", "Fragmentation"]),
        ("Foresight", ["Foresight"], ["GpuShare", "Foresight"]),
    ],
)
def test_a_policy_is_a_profile_of_plugins(policy: str, scorers: list[str], assigners: list[str]) -> None:
    profile = profile_of(configuration(policy, PODS))
    assert [weighted.scorer.name for weighted in profile.scorers] == scorers
    assert [assigner.name for assigner in profile.assigners] == assigners
    assert [plugin.name for plugin in profile.filters] == ["NodeAffinity", "NodeResourcesFit", "GpuShare"]


def test_the_mix_is_the_most_common_kinds_whatever_memory_they_ask_for() -> None:
    common = [TracePod(f"a{at}", TraceRequest(1_000, at, 1, 500)) for at in range(60)]
    others = [TracePod(f"b{at}", TraceRequest(2_000, 1, 2, 1_000, ("T4",))) for at in range(30)]
    none = [TracePod(f"c{at}", TraceRequest(3_000, 1, 0, 0)) for at in range(6)]
    rare = [TracePod(f"d{at}", TraceRequest(4_000 + at, 1, 1, 1_000)) for at in range(4)]
    assert typical([*rare, *none, *others, *common]) == [
        {"weight": 60, "cpu": "1000m", "gpuMilli": 500},
        {"weight": 30, "cpu": "2000m", "gpu": 2, "nodes": {"alibabacloud.com/gpu-card-model": ["T4"]}},
        {"weight": 6, "cpu": "3000m"},
    ]


def expected_by(policy: str, trace: list[TracePod]) -> list[dict[str, object]]:
    (given,) = configuration(policy, trace)["profiles"][0]["pluginConfig"]
    found: list[dict[str, object]] = given["args"]["typicalPods"]
    return found


def test_foresight_expects_rare_pods_too_and_their_memory_unless_there_are_too_many_kinds() -> None:
    trace = [TracePod(f"a{at}", TraceRequest(1_000, 2_048, 1, 500)) for at in range(99)]
    trace.append(TracePod("b", TraceRequest(9_000, 4_096, 8, 1_000)))
    assert expected_by("FGD", trace) == [{"weight": 99, "cpu": "1000m", "gpuMilli": 500}]
    assert expected_by("Foresight", trace) == [
        {"weight": 99, "cpu": "1000m", "memory": "2048Mi", "gpuMilli": 500},
        {"weight": 1, "cpu": "9000m", "memory": "4096Mi", "gpu": 8},
    ]
    many = [TracePod(f"c{at}", TraceRequest(1_000, at, 1, 500)) for at in range(1_000)]
    assert len(expected_by("Foresight", [*trace[:1], *many[1:]])) == 1_000
    assert expected_by("Foresight", [*trace[:1], *many]) == [{"weight": 1_001, "cpu": "1000m", "gpuMilli": 500}]


def test_what_was_published_is_known_of_each_of_their_policies() -> None:
    assert published("default", "FGD") == {100: 95.23, 130: 95.39}
    assert published("default", "BestFit") == {100: 92.86, 130: 93.08}
    assert published("gpushare40", "FGD") == {100: 93.96, 130: 94.15}
    assert published("multigpu50", "FGD") == {100: 97.09, 130: 97.18}
    assert not published("default", "Foresight")
    assert not published("mine", "FGD")
    assert POLICIES[: len(THEIRS)] == THEIRS
