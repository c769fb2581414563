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


def test_what_was_published_is_known_of_each_of_their_policies() -> None:
    assert published("default", "FGD") == (95.23, 95.39)
    assert published("default", "BestFit") == (92.86, 93.08)
    assert published("gpushare40", "FGD") == (93.96, 94.15)
    assert published("multigpu50", "FGD") == (97.09, 97.18)
    assert published("default", "Foresight") is None
    assert published("mine", "FGD") is None
    assert POLICIES[: len(THEIRS)] == THEIRS
