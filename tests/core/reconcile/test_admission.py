"""What new pods and Jobs get on their way in."""

import pytest

from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PriorityClass
from situate.core.model.priority import priority_classes
from situate.core.reconcile.admission import (
    AdmissionError,
    with_default_tolerations,
    with_pod_priority,
)

HIGH = PriorityClass(metadata=ObjectMeta(name="high"), value=1000, preemption_policy="Never")
USUAL = PriorityClass(metadata=ObjectMeta(name="usual"), value=10, global_default=True)


def test_a_pod_gets_the_priority_of_its_class() -> None:
    spec = with_pod_priority({"priorityClassName": "high"}, priority_classes([HIGH]))
    assert spec == {"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "Never"}


def test_a_pod_without_a_class_gets_the_default_one() -> None:
    spec = with_pod_priority({}, priority_classes([HIGH, USUAL]))
    assert spec == {"priorityClassName": "usual", "priority": 10, "preemptionPolicy": "PreemptLowerPriority"}


def test_where_there_is_no_default_it_gets_none_and_priority_zero() -> None:
    assert with_pod_priority({}, priority_classes([HIGH])) == {
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def test_the_two_classes_of_the_system_are_always_there() -> None:
    spec = with_pod_priority({"priorityClassName": "system-node-critical"}, priority_classes([]))
    assert spec["priority"] == 2_000_001_000


@pytest.mark.parametrize(
    "spec, text",
    [
        pytest.param(
            {"priorityClassName": "low"}, "no PriorityClass with name low was found", id="a class that is not there"
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 1000 from the given PriorityClass name",
            id="a priority of its own",
        ),
        pytest.param(
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority "
            "admission controller computed Never from the given PriorityClass name",
            id="a policy of its own",
        ),
    ],
)
def test_what_is_refused(spec: dict[str, object], text: str) -> None:
    with pytest.raises(AdmissionError) as refused:
        with_pod_priority(spec, priority_classes([HIGH]))
    assert str(refused.value) == text


def test_a_pod_tolerates_a_node_that_is_away_for_five_minutes() -> None:
    added = with_default_tolerations({})["tolerations"]
    assert [(one["key"], one["effect"], one["tolerationSeconds"]) for one in added] == [
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    ]


@pytest.mark.parametrize(
    "toleration, added",
    [
        pytest.param({"operator": "Exists"}, 0, id="who tolerates everything needs nothing"),
        pytest.param(
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, 1, id="who tolerates one, the other"
        ),
        pytest.param(
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, 2, id="another effect is another taint"
        ),
        pytest.param({"key": "mine", "operator": "Exists"}, 2, id="another taint is another taint"),
    ],
)
def test_what_a_pod_tolerates_already_is_not_added(toleration: dict[str, str], added: int) -> None:
    spec = {"tolerations": [toleration]}
    assert len(with_default_tolerations(spec)["tolerations"]) == 1 + added
    assert len(spec["tolerations"]) == 1
