"""Namespaces take turns with the transitions of their pods."""

from situate.agent.hollow_pods import PodTransition
from situate.agent.hollow_transitions import PlannedTransitions, TrackedPod

RUNNING = PodTransition("running", 0)


def plan(transitions: PlannedTransitions, namespace: str, name: str) -> None:
    tracked = transitions.pods[namespace, name] = TrackedPod(f"uid-{name}", "n1", 1)
    transitions.plan((namespace, name), RUNNING, tracked, 0)


def test_a_thousand_pods_of_one_namespace_delay_the_pods_of_another_on_the_same_node_by_one_each() -> None:
    transitions = PlannedTransitions()
    for number in range(1_000):
        plan(transitions, "busy", f"p{number}")
    plan(transitions, "quiet", "a")
    plan(transitions, "quiet", "b")
    assert [key for key, _, _ in transitions.more(5)] == [
        ("busy", "p0"),
        ("quiet", "a"),
        ("busy", "p1"),
        ("quiet", "b"),
        ("busy", "p2"),
    ]
