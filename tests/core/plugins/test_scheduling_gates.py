"""SchedulingGates keeps a pod out of the queue while it has gates."""

from situate.core.contract import Refusal
from situate.core.model.pod import PodSchedulingGate, PodSpec
from situate.core.plugins.scheduling_gates import SchedulingGates


def admit(*gates: str) -> Refusal | None:
    return SchedulingGates().admit(PodSpec(scheduling_gates=tuple(PodSchedulingGate(name=name) for name in gates)))


def test_a_pod_without_gates_may_queue() -> None:
    assert admit() is None


def test_a_gated_pod_waits_and_its_gates_are_named_in_order() -> None:
    assert admit("quota") == Refusal("waiting for scheduling gates: [quota]", eviction_helps=False)
    assert admit("b", "a") == Refusal("waiting for scheduling gates: [b a]", eviction_helps=False)
