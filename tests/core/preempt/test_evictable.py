"""Which pods may be evicted, and in which order of importance."""

from builders import node, pod
from situate.core.preempt.evictable import by_importance, lower_on
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def cluster_of(**pods: tuple[int | None, str | None]) -> Cluster:
    """Pods on one node, by name: (priority, start time)."""
    cluster = Cluster()
    cluster.add_node(node("n1"))
    for name, (priority, start) in pods.items():
        cluster.add_pod(pod(name, node_name="n1", priority=priority, start_time=start))
    return cluster


def ordered(cluster: Cluster, priority: int = 1000) -> list[str]:
    lower = lower_on(View(cluster), 0, priority)
    return [each.key.removeprefix("default/") for each in by_importance(lower)]


def test_a_higher_priority_is_more_important() -> None:
    assert ordered(cluster_of(low=(1, OLD), high=(2, YOUNG))) == ["high", "low"]


def test_of_one_priority_the_older_is_more_important() -> None:
    assert ordered(cluster_of(young=(1, YOUNG), old=(1, OLD))) == ["old", "young"]


def test_a_pod_that_has_not_started_is_the_youngest() -> None:
    assert ordered(cluster_of(waiting=(1, None), young=(1, YOUNG))) == ["young", "waiting"]


def test_of_pods_that_have_not_started_the_last_to_arrive_is_the_most_important() -> None:
    assert ordered(cluster_of(first=(1, None), second=(1, None), third=(1, None))) == ["third", "second", "first"]


def test_by_the_rules_of_1_37_pods_that_have_not_started_stay_in_order_of_arrival() -> None:
    cluster = cluster_of(first=(1, None), young=(1, YOUNG), second=(1, None), high=(2, None))
    lower = lower_on(View(cluster), 0, 10)
    ranked = by_importance(lower, unstarted_in_order=True)
    assert [each.key for each in ranked] == ["default/high", "default/young", "default/first", "default/second"]
    again = by_importance(ranked[:1:-1], unstarted_in_order=True, order=ranked)
    assert [each.key for each in again] == ["default/first", "default/second"], "whatever order they are given in"


def test_equals_stay_in_order_of_arrival_while_they_are_few() -> None:
    assert ordered(cluster_of(b=(1, OLD), a=(1, OLD), c=(1, OLD))) == ["b", "a", "c"]


def test_no_priority_is_priority_zero() -> None:
    assert ordered(cluster_of(below=(-1, OLD), none=(None, OLD), zero=(0, OLD))) == ["none", "zero", "below"]


def test_only_pods_of_lower_priority_may_go() -> None:
    assert ordered(cluster_of(lower=(9, OLD), equal=(10, OLD), higher=(11, OLD)), priority=10) == ["lower"]


def test_pods_that_an_overlay_took_away_are_not_there_to_evict() -> None:
    cluster = cluster_of(one=(1, OLD), other=(2, OLD))
    view = View(cluster)
    overlay = view.without([each for each in view.pods_on(0) if each.name == "one"])
    assert [each.key for each in lower_on(overlay, 0, 10)] == ["default/other"]
