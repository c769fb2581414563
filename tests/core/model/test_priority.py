"""A pod's priority comes from the class it names."""

import pytest

from builders import pod
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PriorityClass
from situate.core.model.priority import UnknownPriorityClassError, priority_classes, with_priority


def named(name: str, value: int, *, default: bool = False, policy: str = "PreemptLowerPriority") -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=default, preemption_policy=policy)


NONE = priority_classes(())
SOME = priority_classes((named("high", 1000), named("polite", 500, policy="Never"), named("usual", 7, default=True)))


def test_a_class_gives_priority_and_preemption_policy() -> None:
    spec = with_priority(pod(priority_class_name="polite"), SOME).spec
    assert (spec.priority, spec.preemption_policy) == (500, "Never")


def test_what_the_pod_says_itself_stays() -> None:
    asking = pod(priority=3, priority_class_name="high", preemption_policy="Never")
    assert with_priority(asking, SOME) is asking
    assert (
        with_priority(pod(priority_class_name="high", preemption_policy="Never"), SOME).spec.preemption_policy
        == "Never"
    )


def test_a_pod_without_a_class_is_of_the_default_one() -> None:
    spec = with_priority(pod(), SOME).spec
    assert (spec.priority, spec.priority_class_name) == (7, "usual")


def test_without_a_default_class_nothing_changes() -> None:
    asking = pod()
    assert with_priority(asking, NONE) is asking


def test_of_several_defaults_the_lowest_counts() -> None:
    classes = priority_classes((named("b", 9, default=True), named("a", 4, default=True), named("c", 6, default=True)))
    assert with_priority(pod(), classes).spec.priority == 4


@pytest.mark.parametrize(
    "name, value", [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
)
def test_every_cluster_has_the_system_classes(name: str, value: int) -> None:
    assert with_priority(pod(priority_class_name=name), NONE).spec.priority == value


def test_an_unknown_class_is_an_error_in_kubernetes_words() -> None:
    with pytest.raises(UnknownPriorityClassError) as caught:
        with_priority(pod(priority_class_name="nope"), SOME)
    assert str(caught.value) == "no PriorityClass with name nope was found"
    assert caught.value.name == "nope"
