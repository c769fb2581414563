"""Which events are worth waking a parked pod for, by who refused it."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from builders import pod
from situate.core.contract import Filter, Reason, Wake, WakeEvent
from situate.core.queue.queueing_hints import may_help, waits_for
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class Patient:
    """Waits for nodes that come, whichever."""

    name: ClassVar[str] = "Patient"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED})

    def check(self, pod: PodClass, view: View) -> None: ...


@dataclass(frozen=True, slots=True)
class Choosy:
    """Waits for pods that leave, if they had the same labels."""

    name: ClassVar[str] = "Choosy"
    reasons: ClassVar[tuple[Reason, ...]] = ()
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.POD_DELETED})

    def check(self, pod: PodClass, view: View) -> None: ...

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return event.pod is not None and event.pod.labels == pod.labels


FILTERS: dict[str, Filter] = {"Patient": Patient(), "Choosy": Choosy()}
CLUSTER = Cluster()
KIND = CLUSTER.class_of(pod(labels={"app": "a"}, priority=5))
ALIKE, UNLIKE = (
    WakeEvent(Wake.POD_DELETED, pod=CLUSTER.class_of(pod("other", labels={"app": app}))) for app in ("a", "b")
)
NODE = WakeEvent(Wake.NODE_ADDED)


@pytest.mark.parametrize(
    "rejected_by,event,expected",
    [
        pytest.param(("Patient",), NODE, True, id="what the refusing filter waits for"),
        pytest.param(("Choosy",), NODE, False, id="what another filter waits for"),
        pytest.param(("Choosy", "Patient"), NODE, True, id="what any of the refusing filters waits for"),
        pytest.param(("Choosy",), ALIKE, True, id="what a discerning filter finds worth it"),
        pytest.param(("Choosy",), UNLIKE, False, id="what it does not"),
        pytest.param((), UNLIKE, True, id="anything, where nobody in particular refused it"),
        pytest.param(("SomeExtender",), UNLIKE, True, id="anything, where one refused it who cannot say"),
        pytest.param(("Choosy", "SomeExtender"), UNLIKE, True, id="anything, where one of several cannot say"),
    ],
)
def test_a_pod_is_woken_by(rejected_by: tuple[str, ...], event: WakeEvent, expected: bool) -> None:
    assert may_help(KIND, rejected_by, event, FILTERS) is expected


@pytest.mark.parametrize("up_to,expected", [(4, False), (5, True), (6, True)])
@pytest.mark.parametrize("rejected_by", [(), ("Patient",)], ids=["by nobody in particular", "by a filter"])
def test_what_only_pods_up_to_a_priority_could_see_wakes_no_higher_one(
    rejected_by: tuple[str, ...], up_to: int, expected: bool
) -> None:
    event = WakeEvent(Wake.NODE_ADDED, up_to=up_to)
    assert may_help(KIND, rejected_by, event, FILTERS) is expected


@pytest.mark.parametrize(
    "rejected_by,kind,expected",
    [
        (("Patient",), Wake.NODE_ADDED, True),
        (("Patient",), Wake.POD_DELETED, False),
        (("Patient", "Choosy"), Wake.POD_DELETED, True),
        ((), Wake.POD_DELETED, True),
        (("SomeExtender",), Wake.POD_DELETED, True),
    ],
)
def test_the_quick_look_at_the_kind_of_an_event_lets_all_through_that_may_be_worth_it(
    rejected_by: tuple[str, ...], kind: Wake, expected: bool
) -> None:
    assert waits_for(rejected_by, kind, FILTERS) is expected
