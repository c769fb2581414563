"""batch/v1, beyond what was recorded: how a Job may go on, and the texts about schedules and indexes."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.kinds.corpus_groups import Json, job, merged
from server.kinds.group_writes import created, strategy_of, updated
from situate.core.reconcile.cron import ScheduleError, parse_schedule
from situate.server.kinds.batch.cron_messages import schedule_problem
from situate.server.kinds.batch.indexes import IndexesError, count_indexes, overlap
from situate.server.resources import BY_KIND

STARTED = "2026-01-01T00:00:00Z"
DONE: Json = {
    "startTime": STARTED,
    "completionTime": "2026-01-01T00:05:00Z",
    "succeeded": 1,
    "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
}


def with_status(status: Json, **spec: Any) -> Json:
    return created(job(spec)).object | {"status": status}


def told(old: Json, status: Json) -> list[str]:
    return [cause.message for cause in updated(old, old | {"status": status}, "status").causes]


def test_labels_that_a_job_brings_stay_as_they_are_even_if_its_template_has_the_same() -> None:
    made = created(job(labels={"app": "a"})).object
    assert made["metadata"]["labels"] == {"app": "a"}
    assert set(made["spec"]["template"]["metadata"]["labels"]) > {"app", "job-name", "controller-uid"}


def test_the_template_of_a_job_may_not_change() -> None:
    old = created(job()).object
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    causes = updated(old, merged(copy.deepcopy(old), patch)).causes
    assert [cause.field for cause in causes] == ["spec.template"]
    assert causes[0].message.endswith(": field is immutable")


def test_only_where_pods_go_and_what_they_ask_for_may_change_while_a_job_is_suspended() -> None:
    old = created(job({"suspend": True})).object
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}, "terminationGracePeriodSeconds": 5}}}}
    causes = updated(old, merged(copy.deepcopy(old), patch)).causes
    assert [cause.field for cause in causes] == ["spec.template.spec"]


def test_a_suspended_job_with_pods_is_not_idle() -> None:
    old = with_status({"startTime": STARTED, "active": 1}, suspend=True)
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    assert [cause.field for cause in updated(old, merged(copy.deepcopy(old), patch)).causes] == ["spec.template"]


@pytest.mark.parametrize(
    "old, new, said",
    [
        pytest.param(
            DONE,
            {**DONE, "conditions": DONE["conditions"][:1]},
            "cannot disable the terminal Complete=True condition",
            id="completion is for good",
        ),
        pytest.param(
            DONE,
            {**DONE, "conditions": DONE["conditions"][1:]},
            "cannot disable the SuccessCriteriaMet=True condition",
            id="so is what it stands on",
        ),
        pytest.param(
            DONE, {**DONE, "completionTime": "2026-01-01T00:06:00Z"}, "field is immutable", id="so is its time"
        ),
        pytest.param(
            {"failed": 2}, {"failed": 1}, "cannot decrease the failed counter", id="failures are counted once"
        ),
        pytest.param({"succeeded": 2}, {}, "cannot decrease the succeeded counter", id="so are successes"),
        pytest.param(
            {"startTime": STARTED},
            {"startTime": "2026-01-02T00:00:00Z"},
            "field is immutable for unsuspended job once set",
            id="it starts once",
        ),
    ],
)
def test_a_job_does_not_go_back(old: Json, new: Json, said: str) -> None:
    assert any(message.endswith(said) for message in told(with_status(old), new))


def test_a_job_that_goes_on_after_a_pause_starts_again() -> None:
    paused = {"startTime": STARTED, "conditions": [{"type": "Suspended", "status": "True"}]}
    going = {"startTime": "2026-01-02T00:00:00Z", "conditions": [{"type": "Suspended", "status": "False"}]}
    assert told(with_status(paused), going) == []


def test_an_indexed_job_that_was_made_smaller_may_have_fewer_successes() -> None:
    old = with_status({"succeeded": 2}, completionMode="Indexed", completions=2, parallelism=2)
    assert told(old, {"succeeded": 1}) == []


def test_an_old_mistake_does_not_stand_in_the_way_of_other_changes() -> None:
    old = with_status({"completedIndexes": "7", "active": 2})
    assert told(old, {"completedIndexes": "7", "active": 1}) == []


def test_jobs_can_be_found_by_how_many_pods_succeeded() -> None:
    strategy = strategy_of(BY_KIND["batch/v1", "Job"])
    assert strategy.selectable({"status": {"succeeded": 4}}) == {"status.successful": "4"}


# ── schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────

FIELD = st.from_regex(r"\A(\*|\?|([0-9]{1,2}|mon|jan|xyz)(-([0-9]{1,2}|fri|dec|xyz))?)(/[0-9]{1,2})?\Z")
SCHEDULE = st.lists(FIELD, min_size=4, max_size=6).map(" ".join)


@given(SCHEDULE)
def test_there_are_words_for_a_schedule_if_and_only_if_it_cannot_be_read(text: str) -> None:
    try:
        parse_schedule(text)
    except ScheduleError:
        assert schedule_problem(text)
    else:
        assert schedule_problem(text) == ""


# ── indexes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

COMPLETIONS = 40


def as_text(indexes: set[int]) -> str:
    """`0-2,4`: runs of more than one as ranges."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


INDEXES = st.sets(st.integers(0, COMPLETIONS - 1))


@given(INDEXES)
def test_a_list_of_indexes_is_counted(indexes: set[int]) -> None:
    assert count_indexes(as_text(indexes), COMPLETIONS) == len(indexes)


@given(INDEXES, INDEXES)
def test_the_first_index_in_two_lists_is_found(one: set[int], other: set[int]) -> None:
    assert overlap(as_text(one), as_text(other), COMPLETIONS) == min(one & other, default=None)


@pytest.mark.parametrize("text", ["", "0-", "-1", "a", "1-1", "2-1", "1,1", "3,2", "1-2-3", "40", "0-40", "٣", "1 "])
def test_what_is_no_list_of_indexes_is_refused(text: str) -> None:
    if not text:
        assert count_indexes(text, COMPLETIONS) == 0
        return
    with pytest.raises(IndexesError):
        count_indexes(text, COMPLETIONS)
