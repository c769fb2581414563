"""A run fills the cluster: nobody has what is not there, and what is allocated is what was placed."""

from collections.abc import Sequence

import numpy as np
import pytest

from situate.core.model.gpu import GPU_RESOURCE
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.sim.openb import experiment
from situate.sim.openb.experiment import MARKS, OpenbRun, arrivals, capacity, run
from situate.sim.openb.policies import POLICIES, configuration, profile_of
from situate.sim.openb.trace_files import TraceNode, TracePod, TraceRequest
from trace_openb import CAPACITY, NODES, PODS


def played(
    policy: str, seed: int = 42, nodes: Sequence[TraceNode] = NODES, pods: Sequence[TracePod] = PODS, **how: bool
) -> OpenbRun:
    return run(nodes, pods, policy, profile_of(configuration(policy, pods)), seed, **how)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_fills_devices_and_none_of_them_twice(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters: list[Cluster] = []

    class Kept(Cluster):
        def __init__(self) -> None:
            super().__init__()
            clusters.append(self)

    monkeypatch.setattr(experiment, "Cluster", Kept)
    outcome = played(policy)
    view = View(clusters[0])
    free = view.devices(GPU_RESOURCE).free
    assert CAPACITY - int(free.sum()) == outcome.allocated[-1]
    assert (view.requested(0) <= view.allocatable(0)).all()
    assert (np.array([len(pods) for pods in clusters[0].nodes.pods]).sum()) == outcome.placed
    assert outcome.pods == len(arrivals(PODS, 42, CAPACITY * 130 // 100))
    assert 0.5 * CAPACITY < outcome.allocated[0] <= outcome.allocated[-1] <= CAPACITY
    assert list(outcome.allocated) == sorted(outcome.allocated)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_has_the_same_outcome(policy: str) -> None:
    assert played(policy) == played(policy)
    assert played(policy, redraw=True) == played(policy, redraw=True)


def test_pods_that_fit_nowhere_are_passed_over_and_the_next_are_tried() -> None:
    pods = (
        TracePod("large", TraceRequest(1_000, 1, 8, 1_000)),
        *(TracePod(f"p{at}", TraceRequest(1_000, 1, 1, 500)) for at in range(9)),
    )
    nodes = tuple(TraceNode(f"n{at}", 64_000, 1_024, 4, "") for at in range(6))
    outcome = played("FGD", nodes=nodes, pods=pods)
    assert outcome.placed == outcome.allocated[-1] // 500
    assert 0 < outcome.placed < outcome.pods


def test_a_share_never_spans_two_devices() -> None:
    pods = (TracePod("p", TraceRequest(1_000, 1, 1, 600)),)
    outcome = played("BestFit", nodes=(TraceNode("n", 64_000, 1_024, 4, ""),), pods=pods)
    assert (outcome.placed, outcome.allocated) == (4, (2_400,) * len(MARKS))


def test_a_pod_goes_only_to_the_models_that_it_names() -> None:
    nodes = (TraceNode("a", 64_000, 1_024, 2, "T4"), TraceNode("b", 64_000, 1_024, 2, "G2"))
    pods = (TracePod("p", TraceRequest(1_000, 1, 1, 1_000, ("G2",))),)
    for policy in POLICIES:
        assert played(policy, nodes=nodes, pods=pods).allocated[-1] == 2_000


def test_cpu_and_memory_run_out_too() -> None:
    nodes = (TraceNode("n", 4_000, 1_024, 4, ""),)
    assert played("FGD", nodes=nodes, pods=(TracePod("p", TraceRequest(1_500, 1, 1, 1_000)),)).placed == 2
    assert played("FGD", nodes=nodes, pods=(TracePod("p", TraceRequest(1, 400, 1, 1_000)),)).placed == 2


def test_what_is_allocated_is_looked_at_when_so_much_was_asked_for() -> None:
    """Ten shares of 300 are 3,000 of 3,000; three fit on each GPU, so all but the last do."""
    nodes = (TraceNode("n", 64_000, 1_024, 3, ""),)
    outcome = played("FGD", nodes=nodes, pods=(TracePod("p", TraceRequest(1, 1, 1, 300)),))
    assert MARKS == (80, 90, 100, 110, 120, 130)
    assert capacity(nodes) == 3_000
    assert (outcome.pods, outcome.placed, outcome.allocated) == (13, 9, (2_400, *[2_700] * 5))
