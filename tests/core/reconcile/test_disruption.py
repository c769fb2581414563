"""Disruption budgets: what their status says, and who may be evicted."""

from typing import Any

import pytest
from msgspec import convert

from core.reconcile.world import Raw, World, condition, is_ready, manifest, workload
from situate.core.model.managed import Budget, ManagedPod
from situate.core.reconcile.api_values import format_time
from situate.core.reconcile.disruption import WOULD_VIOLATE, budgets_of, decide_eviction, granted
from situate.core.reconcile.objects import to_json

SELECTOR = {"matchLabels": {"app": "web"}}


def with_budget(replicas: int = 4, ticks: int = 6, kind: str = "Deployment", **spec: Any) -> World:
    world = World()
    world.create(workload(kind, replicas=replicas))
    world.create(manifest("PodDisruptionBudget", "b", selector=SELECTOR, **spec))
    world.run(ticks)
    return world


def numbers(world: World) -> tuple[int, int, int, int]:
    """Expected, desired, healthy, allowed."""
    status = world.find("PodDisruptionBudget", "b")["status"]
    keys = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    first, second, third, fourth = (status[key] for key in keys)
    return first, second, third, fourth


@pytest.mark.parametrize(
    "spec, expected",
    [
        pytest.param({"minAvailable": 3}, (4, 3, 4, 1), id="at least three"),
        pytest.param({"minAvailable": "50%"}, (4, 2, 4, 2), id="at least half"),
        pytest.param({"minAvailable": "60%"}, (4, 3, 4, 1), id="a percentage at least, rounded up"),
        pytest.param({"maxUnavailable": 1}, (4, 3, 4, 1), id="one at most"),
        pytest.param({"maxUnavailable": "30%"}, (4, 2, 4, 2), id="a percentage at most, rounded up too"),
        pytest.param({"maxUnavailable": 9}, (4, 0, 4, 4), id="more than there are"),
        pytest.param({"minAvailable": 9}, (4, 9, 4, 0), id="more at least than there are"),
    ],
)
def test_how_many_may_be_disrupted(spec: Raw, expected: tuple[int, int, int, int]) -> None:
    world = with_budget(**spec)
    assert numbers(world) == expected
    allowed = condition(world.find("PodDisruptionBudget", "b"), "DisruptionAllowed")
    enough = expected[3] > 0
    assert (allowed["status"], allowed["reason"]) == (
        ("True", "SufficientPods") if enough else ("False", "InsufficientPods")
    )


def test_percentages_are_of_what_the_owner_wants_not_of_what_there_is() -> None:
    world = with_budget(minAvailable="50%")
    world.ready_after = 1000
    world.patch("Deployment", "web", {"spec": {"replicas": 10}})
    world.run(3)
    assert numbers(world) == (10, 5, 4, 0)


def test_during_a_rollout_the_deployment_counts_once() -> None:
    world = with_budget(minAvailable="50%")
    world.ready_after = 1000
    spec = {"containers": [{"name": "c", "image": "v2"}]}
    world.patch("Deployment", "web", {"spec": {"template": {"spec": spec}}})
    world.run(3)
    assert len(world.names("ReplicaSet")) == 2
    assert numbers(world)[0] == 4


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_other_owners_have_a_size_too(kind: str) -> None:
    assert numbers(with_budget(3, 12, kind, maxUnavailable=1)) == (3, 2, 3, 1)


def test_an_owner_that_has_no_size_makes_it_fail_safe() -> None:
    world = World()
    world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}})
    world.create(workload("DaemonSet"))
    world.create(manifest("PodDisruptionBudget", "b", selector=SELECTOR, maxUnavailable=1))
    world.run(4)
    body = world.find("PodDisruptionBudget", "b")
    failed = condition(body, "DisruptionAllowed")
    assert (failed["status"], failed["reason"]) == ("False", "SyncFailed")
    assert failed["message"] == f'found no controllers for pod "{world.names("Pod")[0]}"'
    assert body["status"]["disruptionsAllowed"] == 0
    assert world.reasons().count("CalculateExpectedPodCountFailed") == 1


def test_without_pods_nobody_may_be_disrupted() -> None:
    world = with_budget(0, minAvailable=0)
    assert numbers(world) == (0, 0, 0, 0)
    assert world.reasons().count("NoPods") == 1


def test_a_pod_whose_eviction_was_granted_counts_as_gone_for_two_minutes() -> None:
    world = with_budget(maxUnavailable=2)
    name = world.names("Pod")[0]
    one = world.held.get(Budget, "default", "b")
    assert one is not None
    status = to_json(granted(one, name, world.now))
    world.patch("PodDisruptionBudget", "b", {"status": status})
    world.settle()
    assert numbers(world) == (4, 2, 3, 1)
    assert world.find("PodDisruptionBudget", "b")["status"]["disruptedPods"] == {name: format_time(world.now)}
    assert world.now + 120_000 in world.requeue_at
    world.now += 120_000
    world.settle()
    assert numbers(world) == (4, 2, 4, 2)
    assert world.reasons()[-1] == "NotDeleted"


def test_a_pod_that_is_being_deleted_is_not_healthy_and_no_longer_noted() -> None:
    world = with_budget(maxUnavailable=2)
    world.grace = 5
    name = world.names("Pod")[0]
    world.patch("PodDisruptionBudget", "b", {"status": {"disruptedPods": {name: format_time(world.now)}}})
    world.delete("Pod", name)
    world.settle()
    assert numbers(world) == (4, 2, 3, 1)
    assert "disruptedPods" not in world.find("PodDisruptionBudget", "b")["status"]


# Evictions


def a_pod(phase: str = "Running", ready: str = "True", **meta: Any) -> ManagedPod:
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    return convert({"metadata": {"name": "p", "namespace": "default", **meta}, "status": status}, ManagedPod)


def a_budget(policy: str | None = None, generation: int = 1, **status: Any) -> Budget:
    spec = {"selector": SELECTOR, **({} if policy is None else {"unhealthyPodEvictionPolicy": policy})}
    numbers = {"observedGeneration": 1, "desiredHealthy": 3, "currentHealthy": 3, **status}
    return convert({"metadata": {"name": "b", "generation": generation}, "spec": spec, "status": numbers}, Budget)


def test_with_a_disruption_left_it_may_be_evicted_and_takes_it() -> None:
    answer = decide_eviction(a_pod(), [a_budget(disruptionsAllowed=1, currentHealthy=4)])
    assert (answer.code, answer.takes) == (200, True)


def test_with_none_left_the_answer_is_too_many_requests_and_says_why() -> None:
    answer = decide_eviction(a_pod(), [a_budget()])
    assert (answer.code, answer.message) == (429, WOULD_VIOLATE)
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert answer.cause == "The disruption budget b needs 3 healthy pods and has 3 currently"


def test_a_budget_that_could_not_be_reckoned_says_that() -> None:
    failed = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no owner"}
    cause = decide_eviction(a_pod(), [a_budget(conditions=[failed])]).cause
    assert cause == "The disruption budget b does not allow evicting pods currently because it failed sync: no owner"


def test_a_budget_that_changed_and_was_not_looked_at_yet_says_wait() -> None:
    answer = decide_eviction(a_pod(), [a_budget(generation=2, disruptionsAllowed=1)])
    assert (answer.code, answer.retry_after) == (429, 10)
    assert answer.cause == "The disruption budget b is still being processed by the server."


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod("Pending"), id="one that waits"),
        pytest.param(a_pod("Succeeded"), id="one that succeeded"),
        pytest.param(a_pod("Failed"), id="one that failed"),
        pytest.param(a_pod(deletionTimestamp="2024-01-01T00:00:00Z"), id="one that is being deleted"),
    ],
)
def test_whom_no_budget_protects(pod: ManagedPod) -> None:
    answer = decide_eviction(pod, [a_budget()])
    assert (answer.code, answer.takes) == (200, False)


@pytest.mark.parametrize(
    "policy, healthy, code",
    [
        pytest.param(None, 3, 200, id="by default, if enough others are healthy"),
        pytest.param(None, 2, 429, id="by default not, if too few others are"),
        pytest.param("IfHealthyBudget", 2, 429, id="if the budget is healthy, and it is not"),
        pytest.param("AlwaysAllow", 2, 200, id="always"),
    ],
)
def test_when_a_pod_that_is_not_ready_may_be_evicted(policy: str | None, healthy: int, code: int) -> None:
    answer = decide_eviction(a_pod(ready="False"), [a_budget(policy, currentHealthy=healthy)])
    assert answer.code == code
    assert answer.same_version == (code == 200)
    assert not answer.takes


def test_two_budgets_for_one_pod_are_refused() -> None:
    answer = decide_eviction(a_pod(), [a_budget(), a_budget()])
    assert answer.code == 500
    assert answer.message.startswith("This pod has more than one PodDisruptionBudget")


def test_too_many_evictions_that_nobody_confirmed_are_refused() -> None:
    pods = {f"p{at}": None for at in range(2001)}
    answer = decide_eviction(a_pod(), [a_budget(disruptedPods=pods, disruptionsAllowed=1)])
    assert answer.code == 403


def test_the_last_disruption_that_is_granted_changes_the_condition() -> None:
    status = granted(a_budget(disruptionsAllowed=1), "p", 0)
    assert status.disruptions_allowed == 0
    assert status.conditions[0].reason == "InsufficientPods"


def test_evicting_one_after_another_never_breaks_a_budget() -> None:
    world = with_budget(5, maxUnavailable=2)

    def look() -> None:
        healthy = [pod for pod in world.pods() if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]
        assert len(healthy) >= 3

    world.watchers.append(look)
    evicted = 0
    for _ in range(40):
        world.one_pass()
        pod = world.held.get(ManagedPod, "default", world.dice.choice(world.names("Pod")))
        assert pod is not None
        answer = decide_eviction(pod, budgets_of(pod, world.held))
        if answer.code == 200:
            if answer.takes:
                one = budgets_of(pod, world.held)[0]
                world.patch("PodDisruptionBudget", "b", {"status": to_json(granted(one, pod.metadata.name, world.now))})
            world.delete("Pod", pod.metadata.name)
            look()
            evicted += 1
        world.tick()
    assert evicted > 4
