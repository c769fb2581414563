"""The three journeys of a user, on a real API server with kwok's kubelets: by situate, and by kube-scheduler, its peer.

`make basic-integration-test`, `make priority-integration-test` and `make group-integration-test` run situate's, and say
what happens.
"""

from collections.abc import Callable

import pytest

from kubernetes.cluster import Cluster
from kubernetes.objects import pod, pod_group, priority_class
from kubernetes.parts import Part, wait_until
from kubernetes.story import Story

Start = Callable[[Cluster], Part]


@pytest.fixture(params=["situate", "kube-scheduler"])
def start(request: pytest.FixtureRequest) -> Start:
    """What starts the scheduler."""
    return Cluster.situate if request.param == "situate" else Cluster.kube_scheduler


def stage(cluster: Cluster, start: Start, title: str, nodes: int, cpu: str) -> Story:
    """Nodes, kubelets and a scheduler; nothing else."""
    story = Story(cluster, title)
    story.tell(f"a real API server, {cluster.api.get('/version')['gitVersion']}, at {cluster.url}")
    cluster.hollow_nodes(nodes, cpu=cpu)
    cluster.kwok()
    story.tell(f"nodes ready, with kwok's kubelets: {nodes} of {cpu} CPUs")
    scheduler = start(cluster)
    story.tell(f"{scheduler.name} is ready, process {scheduler.pid}")
    return story


def events(cluster: Cluster, reason: str) -> dict[str, str]:
    """Of whom → what was said, for the events with this reason."""
    found = cluster.api.items(f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events")
    return {event["regarding"]["name"]: event["note"] for event in found if event["reason"] == reason}


def scheduled_condition(cluster: Cluster, name: str) -> tuple[str, str, str]:
    """Status, reason and message of PodScheduled; empty while there is none."""
    found = cluster.pod(name) or {"status": {}}
    for each in found["status"].get("conditions", []):
        if each["type"] == "PodScheduled":
            return each["status"], each.get("reason", ""), each.get("message", "")
    return "", "", ""


def test_basic_a_pod_is_scheduled_and_runs(cluster: Cluster, start: Start) -> None:
    story = stage(cluster, start, "a pod is scheduled and runs", nodes=3, cpu="4")
    cluster.create(pod("web", cpu="500m"))
    story.tell("created the pod web, which asks for half a CPU")

    cluster.wait_for_phase("web")
    node = cluster.bound()["web"]
    story.tell(f"web runs on {node}")
    wait_until(lambda: "web" in events(cluster, "Scheduled"), "the event that says so")
    story.show_pods()
    story.show_events()

    assert scheduled_condition(cluster, "web")[0] == "True"
    assert events(cluster, "Scheduled")["web"] == f"Successfully assigned {cluster.namespace}/web to {node}"


def test_priority_a_high_pod_takes_the_place_of_one_low_pod(cluster: Cluster, start: Start) -> None:
    story = stage(cluster, start, "a high-priority pod takes the place of one of three low ones", nodes=1, cpu="3")
    cluster.create(priority_class("low", 100), priority_class("high", 1000))
    low = [f"low-{number}" for number in range(3)]
    cluster.create(*(pod(name, cpu="1", priorityClassName="low") for name in low))
    story.tell("created three pods of priority 100, of one CPU each: the node is full")
    cluster.wait_for_phase(*low)
    story.show_pods()

    cluster.create(pod("high", cpu="1", priorityClassName="high"))
    story.tell("created one pod of priority 1000")
    cluster.wait_for_phase("high")
    left = sorted(cluster.bound())
    victims = [name for name in low if name not in left]
    story.tell(f"high runs; {', '.join(victims)} had to go")
    wait_until(lambda: events(cluster, "Preempted").keys() >= set(victims), "the event that says so")
    story.show_pods()
    story.show_events()

    assert len(victims) == 1
    assert len(left) == 3
    assert cluster.bound()["high"] == "node-0"
    assert list(events(cluster, "Preempted")) == victims


def test_group_a_gang_is_scheduled_whole_or_not_at_all(cluster: Cluster, start: Start) -> None:
    story = stage(cluster, start, "a gang that fits is scheduled whole; otherwise, none of it is", nodes=2, cpu="2")
    first, second = [f"first-{number}" for number in range(3)], [f"second-{number}" for number in range(3)]
    cluster.create(pod_group("first", min_count=3), pod_group("second", min_count=3))
    cluster.create(*(pod(name, cpu="1", group="first") for name in first))
    story.tell("created the gang first: three pods of one CPU each, all or none, with four CPUs free")
    cluster.wait_for_phase(*first)
    story.tell("all three run")

    cluster.create(*(pod(name, cpu="1", group="second") for name in second))
    story.tell("created the gang second, as large, with one CPU free")
    wait_until(lambda: all(scheduled_condition(cluster, name)[0] == "False" for name in second), "second to be refused")
    story.tell("second was tried and refused; one pod of it would have fitted, and was not bound")
    story.show_pods()
    assert sorted(cluster.bound()) == first
    assert all(scheduled_condition(cluster, name)[1] == "Unschedulable" for name in second)

    for name in first:
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}")
    story.tell("deleted the gang first")
    cluster.wait_for_phase(*second, within_s=60)
    story.tell("second has room now, and runs whole")
    story.show_pods()
    story.show_events()
    assert sorted(cluster.bound()) == second
