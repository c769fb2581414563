"""Lists of effects: in which parts they may be performed, and what is said of one that was refused."""

import pytest

from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    ObjectRef,
    RecordEvent,
    ResultBuilder,
    UpdateStatus,
    batches,
    refusal,
)

POD = ObjectRef("v1", "Pod", "default", "p", "u")


def test_creates_start_slowly_and_double_events_go_together_and_updates_one_by_one() -> None:
    create, event, status = CreateObject(POD, {}), RecordEvent(POD, "Normal", "R", "m"), UpdateStatus(POD, "1", {})
    effects: list[Effect] = [status, *[create] * 9, event, event, event, status, status]
    assert [len(part) for part in batches(effects)] == [1, 1, 2, 4, 2, 3, 1, 1]
    assert [one for part in batches(effects) for one in part] == effects


def test_no_effects_are_no_parts() -> None:
    assert list(batches([])) == []


@pytest.mark.parametrize(
    "effect, reason, message",
    [
        pytest.param(CreateObject(POD, {}), "FailedCreate", "Error creating: quota", id="a create"),
        pytest.param(DeleteObject(POD), "FailedDelete", "Error deleting: quota", id="a delete"),
    ],
)
def test_a_refused_effect_is_told_to_the_owner(effect: Effect, reason: str, message: str) -> None:
    assert refusal(POD, effect, "quota") == RecordEvent(POD, "Warning", reason, message)


def test_a_refused_status_is_nobodys_news() -> None:
    assert refusal(POD, UpdateStatus(POD, "1", {}), "conflict") is None


def test_the_earliest_time_to_look_again_counts() -> None:
    result = ResultBuilder()
    for at in (None, 50, 30, 40):
        result.requeue(at)
    assert result.done().requeue_at == 30
