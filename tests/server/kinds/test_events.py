"""Events in the form of core/v1, under the rules of either group."""

import pytest

from server.kinds.checking import found_by
from situate.server.kinds.core.event import EVENTS_KIND, KIND
from situate.server.requests import Object

TOLD: Object = {
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "R",
    "message": "m",
    "type": "Normal",
    "count": 2,
    "source": {"component": "kubelet"},
}
NEW: Object = {
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingComponent": "example.com/c",
    "reportingInstance": "c-1",
    "action": "A",
    "reason": "R",
    "message": "m",
    "type": "Normal",
}


def test_an_old_event_may_say_nothing_of_who_reports_it() -> None:
    assert found_by(KIND.strategy.validate, TOLD) == []


def test_an_old_event_is_about_something_in_its_own_namespace() -> None:
    elsewhere = {**TOLD, "involvedObject": {"kind": "Pod", "namespace": "other"}}
    assert [cause.field for cause in found_by(KIND.strategy.validate, elsewhere)] == ["involvedObject.namespace"]
    nowhere = {**TOLD, "involvedObject": {"kind": "Node"}}
    assert found_by(KIND.strategy.validate, nowhere) == []


def test_a_new_event_by_the_old_group_names_its_reporter_by_the_old_name() -> None:
    silent = {key: value for key, value in NEW.items() if key != "reportingComponent"}
    assert found_by(KIND.strategy.validate, silent)[0].field == "reportingComponent"
    assert found_by(EVENTS_KIND.strategy.validate, silent)[0].field == "reportingController"


def test_a_new_event_is_good_in_either_form() -> None:
    assert found_by(EVENTS_KIND.strategy.validate, NEW) == []
    other = {key: value for key, value in NEW.items() if key not in ("involvedObject", "message", "reportingComponent")}
    other |= {"regarding": NEW["involvedObject"], "note": "m", "reportingController": "example.com/c"}
    assert found_by(EVENTS_KIND.strategy.validate, other) == []
    assert found_by(EVENTS_KIND.strategy.validate_update, other, NEW) == []


@pytest.mark.parametrize("name", ["reason", "message", "type", "action", "reportingInstance"])
def test_a_new_event_does_not_change_its_mind(name: str) -> None:
    changed = {**NEW, name: "Warning" if name == "type" else "other"}
    assert name in [cause.field for cause in found_by(EVENTS_KIND.strategy.validate_update, changed, NEW)]


def test_events_can_be_found_by_what_they_are_about_and_who_reports_them() -> None:
    found = KIND.strategy.selectable(TOLD)
    assert (found["involvedObject.name"], found["source"], found["reportingComponent"]) == ("p", "kubelet", "")
    assert KIND.strategy.selectable(NEW)["source"] == "example.com/c"
