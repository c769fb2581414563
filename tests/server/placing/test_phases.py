"""The life of a binding: what a pod says of it, and which moves are legal."""

from typing import Any, get_args

import pytest

from situate.server.placing.phases import MOVES, Phase, holds_node, legal, phase_of, returns_from_end


def pod(node: str = "", phase: str = "Pending", *, going: bool = False, disrupted: bool = False, **status: Any) -> Any:
    conditions = [{"type": "DisruptionTarget", "status": "True"}] if disrupted else []
    return {
        "metadata": {"name": "p", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {})},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": conditions, **status},
    }


@pytest.mark.parametrize(
    "said, held, phase",
    [
        pytest.param(pod(), None, "pending", id="a pod that waits"),
        pytest.param(pod(nominatedNodeName="n1"), "pending", "reserved", id="one that a node is being freed for"),
        pytest.param(pod(), "reserved", "pending", id="one whose promise was taken back"),
        pytest.param(pod("n1"), "pending", "bound", id="one that has a node"),
        pytest.param(pod("n1", "Running"), "bound", "running", id="one that runs"),
        pytest.param(pod("n1", "Succeeded"), "running", "succeeded", id="one that is done"),
        pytest.param(pod("n1", "Failed"), "running", "failed", id="one that failed"),
        pytest.param(pod("n1", "Failed", reason="Evicted"), "running", "evicted", id="one that its node threw out"),
        pytest.param(pod("n1", "Running", going=True), "running", "running", id="one that is deleted runs on"),
        pytest.param(pod("n1", "Running", going=True, disrupted=True), "running", "evicted", id="one that is evicted"),
        pytest.param(pod("n1", "Running", disrupted=True), "running", "running", id="one that is about to be evicted"),
        pytest.param(
            pod("n1", "Succeeded", going=True), "evicted", "evicted", id="how it ends after that is no matter"
        ),
        pytest.param(pod(), "rebinding", "rebinding", id="one that comes after a failed one waits as such"),
    ],
)
def test_the_phase_is_read_off_the_pod(said: Any, held: Phase | None, phase: Phase) -> None:
    assert phase_of(said, held) == phase
    assert legal(held, phase)


def test_every_phase_may_stay_and_has_its_moves() -> None:
    phases = get_args(Phase)
    assert set(MOVES) == {None, *phases}
    assert all(legal(phase, phase) for phase in phases)


@pytest.mark.parametrize("ended", ["succeeded", "failed", "evicted"])
@pytest.mark.parametrize("active", ["pending", "reserved", "bound", "running"])
def test_what_has_ended_is_active_again_only_by_rebinding(ended: Phase, active: Phase) -> None:
    assert not legal(ended, active)
    assert legal(ended, "rebinding")


@pytest.mark.parametrize("bound", ["bound", "running"])
@pytest.mark.parametrize("waiting", ["pending", "reserved", "rebinding"])
def test_a_binding_is_not_given_up_without_failure_or_eviction(bound: Phase, waiting: Phase) -> None:
    assert not legal(bound, waiting)


def test_a_pod_holds_its_node_until_it_has_ended() -> None:
    assert holds_node(pod("n1", "Running", going=True)) == "n1"
    assert holds_node(pod("n1", "Succeeded")) == holds_node(pod("n1", "Failed")) == holds_node(pod()) == ""
    assert holds_node(None) == ""


def test_a_pod_that_has_ended_stays_as_it_ended() -> None:
    assert returns_from_end(pod("n1", "Failed"), pod("n1", "Running"))
    assert returns_from_end(pod("n1", "Failed"), pod("n1", "Succeeded"))
    assert not returns_from_end(pod("n1", "Failed"), pod("n1", "Failed"))
    assert not returns_from_end(pod("n1", "Running"), pod("n1", "Failed"))
