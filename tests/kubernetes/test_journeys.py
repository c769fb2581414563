"""The three journeys of a user, on a real API server with kwok's kubelets: by situate, and by kube-scheduler, its peer;
and by situate as on a reader's own cluster, of which a journey knows a kubeconfig and no more.

`make basic-integration-test`, `make priority-integration-test` and `make group-integration-test` run situate's, and say
what happens. With KUBECONFIG they run on that cluster, with the scheduler that is there.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kubernetes.api import Json
from kubernetes.cluster import Cluster
from kubernetes.objects import GROUPS_API, pod, pod_group, priority_class
from kubernetes.parts import Part, wait_until
from kubernetes.reader_cluster import PUBLISHED, ReaderCluster, UnsuitableError
from kubernetes.story import Story

Start = Callable[[Cluster], Part]
KUBECONFIG = os.environ.get("JOURNEYS_KUBECONFIG", "")
"""The reader's cluster; empty: one is started here."""
WITHIN_S = 120.0
"""For a pod to run: a real node may have to pull its image first."""
IMAGE = "registry.k8s.io/pause:3.10"
LEAST_FREE = 100
"""Thousandths of a CPU that a node must have free."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a journey takes place: a cluster, and a node with room for so many pods of `cpu` each."""

    cluster: Cluster
    story: Story
    cpu: str
    node: str = ""
    """Where the pods have to go; empty: anywhere."""
    scheduler: str = ""
    mark: str = ""
    """Makes names unique that have no namespace."""
    groups_api: str = GROUPS_API

    def pod(self, name: str, **fields: Any) -> Json:
        made = pod(name, cpu=self.cpu, memory="16Mi", scheduler=self.scheduler, **fields)
        if self.node:
            field = {"key": "metadata.name", "operator": "In", "values": [self.node]}
            required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            made["spec"] |= {
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
                "terminationGracePeriodSeconds": 0,
            }
            made["spec"]["containers"][0]["image"] = IMAGE
        return made

    def group(self, name: str, count: int) -> Json:
        return pod_group(name, min_count=count) | {"apiVersion": self.groups_api}


Staging = Callable[[str, int, str, int], Stage]
"""(title, nodes, CPUs of each, how many pods are to fill them) → the stage."""

OWN = ["situate", "kube-scheduler"]
READER = "reader"

if KUBECONFIG:

    @pytest.fixture(params=[READER])
    def staging(tmp_path: Path) -> Iterator[Staging]:
        """The reader's cluster, and the scheduler that is there."""
        with reader_cluster(tmp_path, KUBECONFIG, os.environ.get("SCHEDULER", "")) as there:
            yield lambda title, _nodes, _cpu, pods: reader_stage(there, title, pods)

else:

    @pytest.fixture(params=OWN)
    def staging(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Iterator[Staging]:
        """A cluster and a scheduler of our own; as reader's, it is known by its kubeconfig alone."""
        if request.param != READER:
            start: Start = Cluster.situate if request.param == "situate" else Cluster.kube_scheduler
            yield lambda title, nodes, cpu, _pods: own_stage(cluster, start, title, nodes, cpu)
            return
        cluster.hollow_nodes(3, cpu="3")
        cluster.kwok()
        cluster.situate({"profiles": [{"schedulerName": "situate"}]}, kubeconfig=cluster.kubeconfig)
        wait_until(lambda: answers(cluster, PUBLISHED), "the scheduler to publish its configuration")
        with reader_cluster(tmp_path, str(cluster.kubeconfig)) as there:
            yield lambda title, _nodes, _cpu, pods: reader_stage(there, title, pods)
        classes = cluster.api.items("/apis/scheduling.k8s.io/v1/priorityclasses")
        assert [one["metadata"]["name"] for one in classes if not one["metadata"]["name"].startswith("system-")] == []
        assert cluster.pods(there.namespace) == []


def answers(cluster: Cluster, path: str) -> bool:
    try:
        return bool(cluster.api.get(path))
    except Exception:  # noqa: BLE001 - it is not there yet
        return False


@contextmanager
def reader_cluster(home: Path, kubeconfig: str, scheduler: str = "") -> Iterator[ReaderCluster]:
    try:
        with ReaderCluster(home, kubeconfig, f"situate-journey-{secrets.token_hex(3)}", scheduler) as there:
            yield there
    except UnsuitableError as error:
        pytest.fail(str(error), pytrace=False)


def own_stage(cluster: Cluster, start: Start, title: str, nodes: int, cpu: str) -> Stage:
    """Nodes, kubelets and a scheduler; nothing else."""
    story = Story(cluster, title)
    story.tell(f"a real API server, {cluster.api.get('/version')['gitVersion']}, at {cluster.url}")
    cluster.hollow_nodes(nodes, cpu=cpu)
    cluster.kwok()
    story.tell(f"nodes ready, with kwok's kubelets: {nodes} of {cpu} CPUs")
    scheduler = start(cluster)
    story.tell(f"{scheduler.name} is ready, process {scheduler.pid}")
    return Stage(cluster, story, cpu="1")


def reader_stage(cluster: ReaderCluster, title: str, pods: int) -> Stage:
    """One node's free CPU, in so many parts."""
    story = Story(cluster, title)
    story.tell(f"your cluster, {cluster.api.get('/version')['gitVersion']}, at {cluster.url}")
    story.tell(f"scheduler: {cluster.scheduler_name}; namespace, removed at the end: {cluster.namespace}")
    node, free = cluster.roomiest_node()
    if free < LEAST_FREE:
        pytest.fail(f"no node has {LEAST_FREE}m CPU free", pytrace=False)
    story.tell(f"the pods go to {node}, which has {free}m CPU free")
    return Stage(
        cluster,
        story,
        cpu=f"{free // pods}m",
        node=node,
        scheduler=cluster.scheduler_name,
        mark=f"{cluster.namespace}-",
    )


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


@pytest.mark.parametrize("staging", [READER] if KUBECONFIG else [*OWN, READER], indirect=True)
def test_basic_a_pod_is_scheduled_and_runs(staging: Staging) -> None:
    stage = staging("a pod is scheduled and runs", 3, "4", 8)
    cluster, story = stage.cluster, stage.story
    cluster.create(stage.pod("web"))
    story.tell(f"created the pod web, which asks for {stage.cpu} CPU")

    cluster.wait_for_phase("web", within_s=WITHIN_S)
    node = cluster.bound()["web"]
    story.tell(f"web runs on {node}")
    wait_until(lambda: "web" in events(cluster, "Scheduled"), "the event that says so")
    story.show_pods()
    story.show_events()

    assert scheduled_condition(cluster, "web")[0] == "True"
    assert events(cluster, "Scheduled")["web"] == f"Successfully assigned {cluster.namespace}/web to {node}"


def test_priority_a_high_pod_takes_the_place_of_one_low_pod(staging: Staging) -> None:
    stage = staging("a high-priority pod takes the place of one of three low ones", 1, "3", 3)
    cluster, story = stage.cluster, stage.story
    if isinstance(cluster, ReaderCluster) and not cluster.preempts():
        pytest.fail(f"{cluster.scheduler_name} evicts nobody: make deploy-scheduler VARIANT=preemption", pytrace=False)
    # Below everybody's default, so that on a reader's cluster nobody else has to go.
    lower, higher = (f"{stage.mark}{name}" for name in ("low", "high"))
    cluster.create(priority_class(lower, -2000), priority_class(higher, -1000))
    low = [f"low-{number}" for number in range(3)]
    cluster.create(*(stage.pod(name, priorityClassName=lower) for name in low))
    story.tell(f"created three pods of priority -2000, of {stage.cpu} CPU each: the node is full")
    cluster.wait_for_phase(*low, within_s=WITHIN_S)
    story.show_pods()

    cluster.create(stage.pod("high", priorityClassName=higher))
    story.tell("created one pod of priority -1000")
    cluster.wait_for_phase("high", within_s=WITHIN_S)
    left = sorted(cluster.bound())
    victims = [name for name in low if name not in left]
    story.tell(f"high runs; {', '.join(victims)} had to go")
    wait_until(lambda: events(cluster, "Preempted").keys() >= set(victims), "the event that says so")
    story.show_pods()
    story.show_events()

    assert len(victims) == 1
    assert len(left) == 3
    assert cluster.bound()["high"] == (stage.node or "node-0")
    assert list(events(cluster, "Preempted")) == victims


def test_group_a_gang_is_scheduled_whole_or_not_at_all(staging: Staging) -> None:
    stage = staging("a gang that fits is scheduled whole; otherwise, none of it is", 2, "2", 4)
    cluster, story = stage.cluster, stage.story
    if isinstance(cluster, ReaderCluster):
        stage = replace(stage, groups_api=groups_api(cluster))
    first, second = [f"first-{number}" for number in range(3)], [f"second-{number}" for number in range(3)]
    cluster.create(stage.group("first", 3), stage.group("second", 3))
    cluster.create(*(stage.pod(name, group="first") for name in first))
    story.tell(f"created the gang first: three pods of {stage.cpu} CPU each, all or none, with room for four")
    cluster.wait_for_phase(*first, within_s=WITHIN_S)
    story.tell("all three run")

    cluster.create(*(stage.pod(name, group="second") for name in second))
    story.tell("created the gang second, as large, with room for one")
    wait_until(lambda: all(scheduled_condition(cluster, name)[0] == "False" for name in second), "second to be refused")
    story.tell("second was tried and refused; one pod of it would have fitted, and was not bound")
    story.show_pods()
    assert sorted(cluster.bound()) == first
    assert all(scheduled_condition(cluster, name)[1] == "Unschedulable" for name in second)

    for name in first:
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}")
    story.tell("deleted the gang first")
    cluster.wait_for_phase(*second, within_s=WITHIN_S)
    story.tell("second has room now, and runs whole")
    story.show_pods()
    story.show_events()
    assert sorted(cluster.bound()) == second


def groups_api(cluster: ReaderCluster) -> str:
    try:
        return cluster.groups_api()
    except UnsuitableError as error:
        pytest.fail(str(error), pytrace=False)
