"""kube-scheduler and situate on one cluster, each with pods of its own name: neither touches the other's."""

from collections.abc import Iterable
from typing import Any

from kubernetes.cluster import Cluster
from kubernetes.drills import FAST, LONG, WITHIN_S, quiet_logs, until_settled
from kubernetes.history import History
from kubernetes.objects import Json, pod, priority_class
from kubernetes.parts import wait_until

EACH = 500 if LONG else 150
OURS = "situate"
THEIRS = "default-scheduler"
# Who writes: kube-scheduler's user agent begins with its name, ours with ours.
MANAGERS = {OURS: "situate", THEIRS: "kube-scheduler"}
CONFIG: Json = {**FAST, "profiles": [{"schedulerName": OURS}]}


def both(number: int, **fields: Any) -> list[Json]:
    """Pods of both names, in turn."""
    return [
        pod(f"{scheduler}-{row}", scheduler=scheduler, labels={"of": scheduler}, **fields)
        for row in range(number)
        for scheduler in (OURS, THEIRS)
    ]


def named(cluster: Cluster, items: Iterable[Json]) -> set[str]:
    return {f"{cluster.namespace}/{item['metadata']['name']}" for item in items}


def events(cluster: Cluster) -> list[Json]:
    return cluster.api.items(f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events")


def preempted(cluster: Cluster) -> list[Json]:
    return [event for event in events(cluster) if event["reason"] == "Preempted"]


def check_who_wrote(cluster: Cluster) -> None:
    """Of every pod, its own scheduler only has spoken, and has written."""
    for event in events(cluster):
        if event["regarding"]["kind"] == "Pod" and event["reason"] != "Preempted":
            owner = OURS if event["regarding"]["name"].startswith(OURS) else THEIRS
            assert event["reportingController"] == owner, event
    for item in cluster.pods():
        other = MANAGERS[THEIRS if item["spec"]["schedulerName"] == OURS else OURS]
        managers = {field["manager"] for field in item["metadata"]["managedFields"]}
        assert other not in managers, (item["metadata"]["name"], managers)


def test_each_binds_its_own_pods_and_no_others(cluster: Cluster) -> None:
    with History(cluster) as history:
        cluster.hollow_nodes(50, cpu="32")
        kube = cluster.kube_scheduler({"clientConnection": {"qps": 2000, "burst": 2000}})
        ours = cluster.situate(CONFIG)
        fit = both(EACH)
        # These fit nowhere: about them, too, only one of the two has anything to say.
        huge = both(2, cpu="64")
        for item in huge:
            item["metadata"]["name"] += "-huge"
        cluster.create(*fit, *huge)
        until_settled(history, named(cluster, fit))
        told = named(cluster, huge)
        wait_until(lambda: unschedulable(cluster) == told, "all that do not fit to be told", WITHIN_S)
        wait_until(
            lambda: sum(event["reason"] == "Scheduled" for event in events(cluster)) >= len(fit), "the events", WITHIN_S
        )
        assert history.waiting() == told
    check_who_wrote(cluster)
    wrote = {field["manager"] for item in cluster.pods() for field in item["metadata"]["managedFields"]}
    assert set(MANAGERS.values()) <= wrote, "nobody can be told apart"

    # One stops: its pods wait, and the other goes on.
    kube.stop()
    more = both(10)
    for item in more:
        item["metadata"]["name"] += "-more"
    cluster.create(*more)
    expected = {item["metadata"]["name"] for item in more if item["spec"]["schedulerName"] == OURS}
    cluster.wait_for_bound(*expected)
    assert {name for name in cluster.bound() if name.endswith("-more")} == expected
    quiet_logs(ours)


def unschedulable(cluster: Cluster) -> set[str]:
    found = set()
    for item in cluster.pods():
        for condition in item["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                found.add(f"{cluster.namespace}/{item['metadata']['name']}")
    return found


def test_evicting_for_its_own_pods_leaves_the_others_alone(cluster: Cluster) -> None:
    """Both kinds fill their own half of the nodes; then important pods of ours want more of our half."""
    with History(cluster) as history:
        cluster.create(priority_class("low", 100), priority_class("high", 1000))
        for owner in (OURS, THEIRS):
            cluster.hollow_nodes(3, f"node-{owner}", cpu="2", labels={"half": owner})
        cluster.kwok()
        cluster.kube_scheduler()
        ours = cluster.situate(CONFIG)
        low = both(6, cpu="1", priorityClassName="low", terminationGracePeriodSeconds=1)
        for item in low:
            item["spec"]["nodeSelector"] = {"half": item["spec"]["schedulerName"]}
        cluster.create(*low)
        until_settled(history, named(cluster, low))

        high = [
            pod(f"{OURS}-high-{row}", cpu="1", scheduler=OURS, priorityClassName="high", nodeSelector={"half": OURS})
            for row in range(4)
        ]
        cluster.create(*high)
        until_settled(history, named(cluster, high))
        gone = history.gone()
        assert len(gone) == 4
        assert all(name.startswith(f"{cluster.namespace}/{OURS}-") for name in gone)
        assert {name for name in history.pods() if THEIRS in name} == {
            f"{cluster.namespace}/{THEIRS}-{row}" for row in range(6)
        }
        wait_until(lambda: len(preempted(cluster)) == 4, "the events that say so", WITHIN_S)
        assert {event["reportingController"] for event in preempted(cluster)} == {OURS}
    check_who_wrote(cluster)
    quiet_logs(ours)
