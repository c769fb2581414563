"""CronJobs: a Job at each time, no two for the same, and what is done when one still runs."""

from typing import Any

import pytest
from msgspec.structs import replace

from core.reconcile.world import Raw, World, manifest, template
from situate.core.model.batch import CronJob
from situate.core.reconcile.cronjob import cron_job
from situate.core.reconcile.effects import CreateObject, DeleteObject, RecordEvent

MINUTE = 60


def started(runs_for: int = 2, **spec: Any) -> World:
    world = World(runs_for=runs_for)
    job = {"metadata": {"labels": {"from": "cron"}}, "spec": {"template": template(app="j", restartPolicy="Never")}}
    body = manifest("CronJob", "c", **{"schedule": "* * * * *", "jobTemplate": job, **spec})
    world.create(body)
    world.settle()
    return world


def minutes(world: World, count: int) -> None:
    for _ in range(count * 6):
        world.settle()
        world.tick(10)
    world.settle()


def status(world: World) -> Raw:
    found: Raw = world.find("CronJob", "c").get("status", {})
    return found


def unfinished(world: World) -> list[str]:
    return [job["metadata"]["name"] for job in world.all("Job") if not job["status"].get("completionTime")]


def test_nothing_is_started_before_the_first_time_and_it_says_when_that_is() -> None:
    world = started()
    assert world.names("Job") == []
    assert world.requeue_at[-1] == 1_700_000_040_000


def test_a_job_is_started_at_each_time_and_named_by_it() -> None:
    world = started()
    minutes(world, 1)
    (job,) = world.all("Job")
    assert job["metadata"]["name"] == "c-28333334"
    assert job["metadata"]["labels"]["from"] == "cron"
    stamped = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert stamped == status(world)["lastScheduleTime"] == "2023-11-14T22:14:00Z"
    assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"


def test_only_so_many_finished_jobs_are_kept() -> None:
    world = started(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0)
    minutes(world, 6)
    kept = world.names("Job")
    assert len(kept) <= 3
    assert kept[-1] == "c-28333339"
    assert status(world)["lastSuccessfulTime"]
    assert "SawCompletedJob" in world.reasons()


def test_times_that_were_missed_are_made_up_for_once() -> None:
    world = started()
    world.tick(3600)
    world.settle()
    assert world.names("Job") == ["c-28333393"]


def test_too_late_is_too_late() -> None:
    world = started(schedule="0 * * * *", startingDeadlineSeconds=60)
    world.tick(3600)
    world.settle()
    assert world.names("Job") == []
    world = started(schedule="0 * * * *", startingDeadlineSeconds=3600)
    world.tick(3600)
    world.settle()
    assert len(world.names("Job")) == 1


@pytest.mark.parametrize(
    "policy, running",
    [
        pytest.param("Allow", 3, id="several may run at once"),
        pytest.param("Forbid", 1, id="the next waits"),
        pytest.param("Replace", 1, id="the next replaces the last"),
    ],
)
def test_when_one_still_runs(policy: str, running: int) -> None:
    world = started(runs_for=100_000, concurrencyPolicy=policy)
    minutes(world, 3)
    assert len(unfinished(world)) == running
    assert len(status(world)["active"]) == running
    first = "c-28333334"
    assert (first in world.names("Job")) == (policy != "Replace")


def test_the_last_job_goes_before_the_one_that_replaces_it() -> None:
    world = started(runs_for=100_000, concurrencyPolicy="Replace")
    minutes(world, 1)
    world.now += 60_000
    one = world.held.get(CronJob, "default", "c")
    assert one is not None
    effects = cron_job(one, world.held, world.now).effects
    writes = [type(each) for each in effects if isinstance(each, CreateObject | DeleteObject)]
    assert writes == [DeleteObject, CreateObject]


def test_while_it_is_suspended_nothing_is_started() -> None:
    world = started(suspend=True)
    minutes(world, 2)
    assert world.names("Job") == []


def test_a_job_that_is_deleted_is_missed() -> None:
    world = started(runs_for=100_000)
    minutes(world, 1)
    world.patch("CronJob", "c", {"spec": {"suspend": True}})
    world.delete("Job", world.names("Job")[0])
    world.run(3)
    assert status(world).get("active", []) == []
    assert "MissingJob" in world.reasons()


def test_a_crash_after_the_create_does_not_start_a_second() -> None:
    world = started()
    world.tick(60)
    one = world.held.get(CronJob, "default", "c")
    assert one is not None
    create = cron_job(one, world.held, world.now).effects[0]
    assert isinstance(create, CreateObject)
    world.perform_one(create, ("Job", "default", create.ref.name))
    world.settle()
    assert len(world.names("Job")) == 1
    assert status(world)["lastScheduleTime"]


def test_in_a_time_zone_that_is_not_known_nothing_is_started() -> None:
    world = started(timeZone="Mars/Olympus")
    minutes(world, 2)
    assert world.names("Job") == []


def test_a_schedule_that_never_comes_is_reported() -> None:
    world = started()
    one = world.held.get(CronJob, "default", "c")
    assert one is not None
    never = replace(one, spec=replace(one.spec, schedule="59 23 31 2 *"))
    (event,) = cron_job(never, world.held, world.now).effects
    assert isinstance(event, RecordEvent)
    assert (event.type, event.reason) == ("Warning", "InvalidSchedule")
    assert event.message.startswith("invalid schedule: 59 23 31 2 * : ")


def test_time_zones_come_from_whoever_calls() -> None:
    world = started(schedule="0 9 * * *", timeZone="Somewhere/Else")
    one = world.held.get(CronJob, "default", "c")
    assert one is not None
    outcome = cron_job(one, world.held, world.now, lambda _zone, _at: 10 * 3600)
    assert outcome.requeue_at == 1_700_002_800_000  # 23:00 UTC, nine in the morning there


def test_when_it_is_deleted_its_jobs_and_their_pods_go() -> None:
    world = started(runs_for=100_000)
    minutes(world, 2)
    world.delete("CronJob", "c")
    world.run(6)
    assert world.bodies == {}


@pytest.mark.parametrize("last", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:01Z"])
@pytest.mark.parametrize("schedule", ["* * * * *", "0 0 29 2 *", "@every 2562047h"])
def test_a_last_time_at_the_ends_of_time_stops_nothing(last: str, schedule: str) -> None:
    world = started(schedule=schedule)
    world.patch("CronJob", "c", {"status": {"lastScheduleTime": last}})
    minutes(world, 2)
    assert len(world.all("Job")) <= 3
