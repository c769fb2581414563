"""Jobs: counts that are exact, ends that are told as Kubernetes tells them, and indexes."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.reconcile.world import Raw, World, condition, is_live, is_over, manifest, template
from situate.core.model.batch import SuccessPolicy, SuccessRule
from situate.core.reconcile.job_indexes import INDEX, Indexes, indexes_in, indexes_of, success_rule

TRACKING = "batch.kubernetes.io/job-tracking"


def a_job(name: str = "j", restart: str = "Never", **spec: Any) -> Raw:
    return manifest("Job", name, template=template(app="j", restartPolicy=restart), **spec)


def started(seed: int = 0, runs_for: int = 3, **spec: Any) -> World:
    world = World(seed, runs_for=runs_for)
    world.create(a_job(**spec))
    return world


def status(world: World) -> Raw:
    found: Raw = world.find("Job", "j")["status"]
    return found


def live(world: World) -> list[Raw]:
    return [pod for pod in world.pods() if is_live(pod)]


def test_it_runs_as_many_at_once_as_it_says_until_enough_have_succeeded() -> None:
    world = started(completions=5, parallelism=2)
    world.watchers.append(lambda: None if len(live(world)) <= 2 else pytest.fail("too many at once"))
    world.run(25)
    end = status(world)
    assert (end["succeeded"], end.get("failed", 0), end.get("active", 0)) == (5, 0, 0)
    assert condition(world.find("Job", "j"), "Complete")["reason"] == "CompletionsReached"
    met = condition(world.find("Job", "j"), "SuccessCriteriaMet")
    assert met["message"] == "Reached expected number of succeeded pods"
    assert end["completionTime"] >= end["startTime"]
    assert world.reasons()[-1] == "Completed"
    assert len(world.pods()) == 5


def test_a_pod_is_kept_until_it_is_counted_and_not_longer() -> None:
    world = started(completions=1)
    world.settle()
    assert world.pods()[0]["metadata"]["finalizers"] == [TRACKING]
    world.run(8)
    assert not world.pods()[0]["metadata"].get("finalizers")


def test_without_completions_the_first_success_ends_it_when_the_others_are_done() -> None:
    world = started(parallelism=3)
    world.run(12)
    assert status(world)["succeeded"] == 3
    assert len(world.pods()) == 3
    assert condition(world.find("Job", "j"), "Complete")["status"] == "True"


def test_pods_that_fail_are_replaced_ever_more_slowly_until_the_limit() -> None:
    world = started(backoffLimit=2)
    world.fails = lambda _pod: True
    made: list[int] = []
    for _ in range(200):
        world.settle()
        if len(world.pods()) > len(made):
            made.append(world.now)
        world.tick()
    assert len(made) == 3
    gaps = [(later - earlier) // 1000 for earlier, later in pairwise(made)]
    assert gaps[0] >= 10
    assert gaps[1] >= 20
    job = world.find("Job", "j")
    assert condition(job, "Failed")["reason"] == "BackoffLimitExceeded"
    assert condition(job, "Failed")["message"] == "Job has reached the specified backoff limit"
    assert condition(job, "FailureTarget")["status"] == "True"
    assert job["status"]["failed"] == 3
    assert "completionTime" not in job["status"]


def test_restarts_within_a_pod_count_where_containers_are_restarted() -> None:
    world = started(restart="OnFailure", backoffLimit=3, runs_for=1000)
    world.run(3)
    name = world.names("Pod")[0]
    world.patch("Pod", name, {"status": {"containerStatuses": [{"name": "c", "restartCount": 3}]}})
    world.run(5)
    assert condition(world.find("Job", "j"), "Failed")["reason"] == "BackoffLimitExceeded"
    assert live(world) == []


def test_a_job_that_takes_too_long_is_ended_with_all_its_pods() -> None:
    world = started(parallelism=2, completions=2, activeDeadlineSeconds=30, runs_for=1000)
    world.run(3)
    world.now = max(world.requeue_at)
    world.run(5)
    job = world.find("Job", "j")
    assert condition(job, "Failed")["reason"] == "DeadlineExceeded"
    assert condition(job, "Failed")["message"] == "Job was active longer than specified deadline"
    assert (job["status"]["failed"], job["status"].get("active", 0)) == (2, 0)
    assert live(world) == []


def test_a_failed_job_is_not_finished_while_a_pod_of_it_may_run() -> None:
    world = started(activeDeadlineSeconds=5, runs_for=1000)
    world.grace = 4
    world.run(7)
    job = world.find("Job", "j")
    assert condition(job, "FailureTarget")["status"] == "True"
    assert condition(job, "Failed") == {}
    assert job["status"]["terminating"] == 1
    world.run(6)
    assert condition(world.find("Job", "j"), "Failed")["status"] == "True"


def test_when_its_time_is_over_a_finished_job_goes_and_everything_with_it() -> None:
    world = started(ttlSecondsAfterFinished=60)
    world.run(8)
    assert status(world)["succeeded"] == 1
    world.now = max(world.requeue_at)
    world.run(3)
    assert world.bodies == {}


def test_suspended_it_has_no_pods_and_resumed_it_starts_anew() -> None:
    world = started(suspend=True, parallelism=2, completions=2)
    world.run(2)
    assert world.pods() == []
    assert "startTime" not in status(world)
    assert condition(world.find("Job", "j"), "Suspended")["reason"] == "JobSuspended"
    world.patch("Job", "j", {"spec": {"suspend": False}})
    world.run(2)
    assert len(live(world)) == 2
    assert condition(world.find("Job", "j"), "Suspended")["status"] == "False"
    world.patch("Job", "j", {"spec": {"suspend": True}})
    world.run(3)
    assert live(world) == []
    assert status(world).get("failed", 0) == 0
    world.patch("Job", "j", {"spec": {"suspend": False}})
    world.run(10)
    assert status(world)["succeeded"] == 2


def test_fewer_at_once_lets_go_of_some_and_counts_none_of_them_as_failed() -> None:
    world = started(parallelism=4, completions=8, runs_for=6)
    world.run(3)
    world.patch("Job", "j", {"spec": {"parallelism": 1}})
    world.settle()
    assert len(live(world)) == 1
    world.run(80)
    assert (status(world)["succeeded"], status(world).get("failed", 0)) == (8, 0)


def test_a_pod_that_somebody_deletes_counts_as_failed_and_is_replaced() -> None:
    world = started(completions=1, runs_for=20)
    world.run(3)
    world.delete("Pod", world.names("Pod")[0])
    world.run(40)
    assert (status(world)["succeeded"], status(world)["failed"]) == (1, 1)


def test_of_an_indexed_job_each_index_succeeds_once() -> None:
    world = started(completions=4, parallelism=2, completionMode="Indexed")
    world.run(3)
    pod = world.pods()[0]
    assert pod["metadata"]["annotations"][INDEX] == pod["metadata"]["labels"][INDEX] == "0"
    assert pod["spec"]["hostname"] == "j-0"
    assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    assert pod["metadata"]["name"].startswith("j-0-")
    world.run(20)
    assert (status(world)["succeeded"], status(world)["completedIndexes"]) == (4, "0-3")
    assert len(world.pods()) == 4


def test_a_failed_index_is_tried_again() -> None:
    world = started(completions=2, parallelism=2, completionMode="Indexed")
    failed: list[str] = []

    def once(pod: Raw) -> bool:
        if pod["metadata"]["annotations"][INDEX] == "1" and not failed:
            failed.append(pod["metadata"]["name"])
            return True
        return False

    world.fails = once
    world.run(40)
    assert (status(world)["completedIndexes"], status(world)["failed"]) == ("0,1", 1)


def test_an_index_that_fails_too_often_is_given_up_and_the_others_go_on() -> None:
    world = started(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1, backoffLimit=99)
    world.fails = lambda pod: pod["metadata"]["annotations"][INDEX] == "1"
    world.run(40)
    job = world.find("Job", "j")
    assert (job["status"]["completedIndexes"], job["status"]["failedIndexes"]) == ("0,2", "1")
    assert condition(job, "Failed")["reason"] == "FailedIndexes"
    assert job["status"]["failed"] == 2


def test_a_success_policy_ends_a_job_early() -> None:
    rules = {"rules": [{"succeededIndexes": "0"}]}
    world = started(completions=3, parallelism=1, completionMode="Indexed", successPolicy=rules)
    world.run(20)
    job = world.find("Job", "j")
    assert condition(job, "Complete")["reason"] == "SuccessPolicy"
    assert condition(job, "Complete")["message"] == "Matched rules at index 0"
    assert job["status"]["completedIndexes"] == "0"


@pytest.mark.parametrize(
    "action, reason, failed",
    [
        pytest.param("FailJob", "PodFailurePolicy", 1, id="a rule may fail the Job at once"),
        pytest.param("Count", "BackoffLimitExceeded", 2, id="a rule may count as any failure"),
    ],
)
def test_a_failure_policy(action: str, reason: str, failed: int) -> None:
    rule = {"action": action, "onExitCodes": {"operator": "In", "values": [1]}}
    world = started(backoffLimit=1, podFailurePolicy={"rules": [rule]})
    world.fails = lambda _pod: True
    world.run(60)
    job = world.find("Job", "j")
    assert condition(job, "Failed")["reason"] == reason
    assert job["status"]["failed"] == failed
    if action == "FailJob":
        name = world.names("Pod")[0]
        text = f"Container c for pod default/{name} failed with exit code 1 matching FailJob rule at index 0"
        assert condition(job, "Failed")["message"] == text


def test_failures_that_the_policy_ignores_do_not_count() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    world = started(backoffLimit=0, podFailurePolicy={"rules": [rule]}, runs_for=6)
    world.run(3)
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    world.patch("Pod", world.names("Pod")[0], {"status": {"phase": "Failed", "conditions": [disrupted]}})
    world.run(40)
    assert (status(world)["succeeded"], status(world).get("failed", 0)) == (1, 0)


def test_with_a_failure_policy_a_pod_is_replaced_only_when_it_has_ended() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    world = started(podFailurePolicy={"rules": [rule]}, runs_for=50)
    world.grace = 5
    world.run(3)
    world.delete("Pod", world.names("Pod")[0])
    world.watchers.append(lambda: None if len([p for p in world.pods() if not is_over(p)]) <= 1 else pytest.fail("two"))
    world.run(40)
    assert len(live(world)) == 1


def test_a_job_that_another_controller_manages_is_left_alone() -> None:
    world = started(managedBy="example.com/other")
    assert world.settle() == 0
    assert world.pods() == []


def test_none_to_be_done_is_done_at_once() -> None:
    world = started(completions=0)
    world.run(2)
    assert condition(world.find("Job", "j"), "Complete")["status"] == "True"
    assert world.pods() == []


def test_a_job_that_is_deleted_leaves_nothing() -> None:
    world = started(parallelism=3, completions=3, runs_for=100)
    world.run(4)
    world.delete("Job", "j", propagation="Foreground")
    world.run(8)
    assert world.bodies == {}


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    completions=st.integers(1, 6),
    parallelism=st.integers(1, 4),
    indexed=st.booleans(),
    odds=st.integers(0, 30),
    limit=st.integers(0, 6),
)
def test_in_the_end_every_pod_is_counted_exactly_once(
    seed: int, completions: int, parallelism: int, indexed: bool, odds: int, limit: int
) -> None:
    mode = "Indexed" if indexed else "NonIndexed"
    world = started(seed, completions=completions, parallelism=parallelism, completionMode=mode, backoffLimit=limit)
    world.fails = lambda _pod: world.dice.randrange(100) < odds
    most: list[int] = []
    world.watchers.append(lambda: most.append(len(live(world))))
    for _ in range(70):
        world.one_pass()
        world.tick(world.dice.choice([1, 1, 20]))
    world.fails = lambda _pod: False
    for _ in range(60):
        world.settle()
        world.tick(60)
    job = world.find("Job", "j")
    pods = world.pods()
    won = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
    assert max(most, default=0) <= parallelism
    assert not any(pod["metadata"].get("finalizers") for pod in pods)
    assert not job["status"]["uncountedTerminatedPods"]
    assert condition(job, "Complete") or condition(job, "Failed")
    assert job["status"].get("active", 0) == 0
    if condition(job, "Complete"):
        assert job["status"]["succeeded"] == completions == len(won)
        assert job["status"].get("failed", 0) == len(pods) - len(won) <= limit
    else:
        assert job["status"]["failed"] > limit


@given(st.sets(st.integers(0, 40)))
def test_indexes_that_are_written_read_as_they_were(indexes: set[int]) -> None:
    written = indexes_in(str(indexes_of(indexes)), 41)
    assert [one for one in range(-1, 43) if one in written] == sorted(indexes)
    assert written.count == len(indexes)
    assert list(written.missing(41)) == [one for one in range(41) if one not in indexes]


def test_runs_of_indexes_are_written_short() -> None:
    assert str(indexes_of([0, 1, 2, 4, 6, 7])) == "0-2,4,6,7"
    assert str(Indexes()) == ""
    assert str(indexes_in("1,3-9,x", 6)) == "1,3-5"


@pytest.mark.parametrize(
    "rule, met",
    [
        pytest.param(SuccessRule(succeeded_indexes="0-2"), False, id="all that are named"),
        pytest.param(SuccessRule(succeeded_indexes="0,1"), True, id="exactly those"),
        pytest.param(SuccessRule(succeeded_count=2), True, id="any two"),
        pytest.param(SuccessRule(succeeded_count=3), False, id="any three of two"),
        pytest.param(SuccessRule(succeeded_indexes="0-5", succeeded_count=2), True, id="two of those named"),
    ],
)
def test_when_a_rule_of_a_success_policy_is_met(rule: SuccessRule, met: bool) -> None:
    found = success_rule(SuccessPolicy(rules=(rule,)), indexes_of([0, 1]), 6)
    assert (found is not None) == met


MOST = 2**31 - 1


def test_two_billion_completions_take_no_more_work_than_the_pods_that_are_made() -> None:
    world = World()
    world.create(a_job(completions=MOST, parallelism=3, completionMode="Indexed"))
    world.settle()
    assert [pod["metadata"]["annotations"][INDEX] for pod in world.pods()] == ["0", "1", "2"]
    world.patch("Job", "j", {"status": {"completedIndexes": f"0-{MOST - 3}"}})
    world.settle()
    assert world.find("Job", "j")["status"]["completedIndexes"] == f"0-{MOST - 3}"


def test_an_index_with_thousands_of_digits_is_not_an_index() -> None:
    world = World()
    world.create(a_job(completions=2, parallelism=1, completionMode="Indexed"))
    world.settle()
    (first,) = world.names("Pod")
    world.patch("Pod", first, {"metadata": {"annotations": {INDEX: "9" * 5_000}}})
    world.settle()
    assert [pod["metadata"]["annotations"][INDEX] for pod in world.pods() if is_live(pod)] == ["0"]
