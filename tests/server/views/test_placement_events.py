"""What one revision of a decision tells: an event, or nothing new."""

from typing import Any

import pytest

from situate.server.placing.decisions import Details, PlacementDecision, decided, moved
from situate.server.placing.phases import Phase
from situate.server.views.placement_events import event_between, stored_event, with_reason

POD = {"metadata": {"name": "web-0", "namespace": "default", "uid": "u1"}}
OTHER = {"metadata": {"name": "web-0", "namespace": "default", "uid": "u2"}}


def decision(phase: Phase, before: PlacementDecision | None = None, pod: Any = POD, **fields: Any) -> PlacementDecision:
    begun = decided(pod, before, "d1", "2026-01-01T00:00:00Z")
    return moved(begun, phase, "2026-01-01T00:00:01Z", **fields)


BOUND = decision("bound", node="n1", binding_version=1, scheduler="default-scheduler")


@pytest.mark.parametrize(
    "phase, event",
    [
        ("pending", "waiting"),
        ("reserved", "placed"),
        ("bound", "bound"),
        ("running", "running"),
        ("succeeded", "succeeded"),
        ("failed", "failed"),
        ("evicted", "evicted"),
    ],
)
def test_a_phase_that_begins_is_an_event(phase: Phase, event: str) -> None:
    found = event_between(None, decision(phase, node="n1", binding_version=1))
    assert found is not None
    assert (found.event, found.phase, found.was) == (event, phase, None)
    assert found.time == "2026-01-01T00:00:01Z"


def test_the_line_says_who_where_and_which_binding() -> None:
    found = event_between(None, BOUND)
    assert found is not None
    assert (found.pod.name, found.pod.uid, found.node) == ("web-0", "u1", "n1")
    assert (found.binding_version, found.scheduler) == (1, "default-scheduler")


def test_waiting_on_for_the_same_reason_is_no_event_and_for_another_it_is() -> None:
    first = decision("pending", details=Details(reason="Unschedulable", message="full", attempts=1))
    again = decision("pending", first, details=Details(reason="Unschedulable", message="full", attempts=2))
    other = decision("pending", again, details=Details(reason="Unschedulable", message="tainted", attempts=3))
    assert event_between(first, again) is None
    found = event_between(again, other)
    assert found is not None
    assert (found.event, found.message, found.was) == ("waiting", "tainted", "pending")


def test_an_explanation_that_comes_later_is_no_event() -> None:
    assert event_between(BOUND, moved(BOUND, "bound", "later", details=Details(score=5))) is None


def test_the_end_of_a_decision_is_an_event_with_its_last_phase() -> None:
    found = event_between(BOUND, None)
    assert found is not None
    assert (found.event, found.phase, found.was) == ("gone", "bound", "bound")


def test_a_pod_that_runs_again_under_the_name_of_one_that_failed_is_a_repair() -> None:
    failed = decision("failed", BOUND, node="n1", binding_version=1)
    rebinding = decision("rebinding", failed, OTHER)
    bound = decision("bound", rebinding, OTHER, node="n2", binding_version=2)
    running = decision("running", bound, OTHER, node="n2", binding_version=2)
    told = [event_between(failed, rebinding), event_between(rebinding, bound), event_between(bound, running)]
    assert [one.event if one else None for one in told] == ["rebinding", "bound", "repaired"]
    assert told[2] is not None
    assert (told[2].phase, told[2].binding_version) == ("running", 2)
    assert told[0] is not None
    assert told[0].was is None, "another pod: nothing was decided about it before"


def test_the_reason_of_an_eviction_is_what_the_pod_was_marked_with() -> None:
    evicted = event_between(BOUND, decision("evicted", BOUND, node="n1", binding_version=1))
    assert evicted is not None
    marked = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for p9"}
    found = with_reason(evicted, {"metadata": {}, "status": {"conditions": [marked]}})
    assert (found.reason, found.message) == ("PreemptionByScheduler", "for p9")


def test_the_reason_of_a_failure_is_how_its_container_ended() -> None:
    failed = event_between(BOUND, decision("failed", BOUND, node="n1", binding_version=1))
    assert failed is not None
    ended = {"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    found = with_reason(failed, {"metadata": {}, "status": {"containerStatuses": [ended]}})
    assert found.reason == "OOMKilled"


def test_what_is_gone_has_the_time_at_which_it_was_asked_to_go() -> None:
    gone = event_between(BOUND, None)
    assert gone is not None
    meta = {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30}
    assert with_reason(gone, {"metadata": meta}).time == "2026-01-01T00:00:30Z"
    assert with_reason(gone, {"metadata": {}}).time == ""


def test_an_event_is_an_object_of_its_own_revision() -> None:
    found = event_between(None, BOUND)
    assert found is not None
    one = stored_event(found, "default", 17)
    assert (one.namespace, one.name, one.revision) == ("default", "web-0.17", 17)
    assert one.value.startswith(b'{"metadata":{"name":"web-0.17"')
