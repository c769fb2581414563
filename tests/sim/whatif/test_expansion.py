"""Workloads become the pods that their controllers would make."""

from typing import Any

import pytest

from builders import node, taint
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PriorityClass
from situate.core.model.priority import priority_classes
from situate.sim.whatif.distributions import Distribution, DistributionKind
from situate.sim.whatif.expansion import SourceLocation, WorkloadExpander, letters
from situate.sim.whatif.script import NextPod, PodSet
from situate.wire.errors import InputError

CLASSES = priority_classes([PriorityClass(metadata=ObjectMeta(name="vip"), value=100)])
CONTAINERS = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]


def template(**more: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "web"}, **more.pop("metadata", {})},
        "spec": {"containers": CONTAINERS, **more},
    }


def expanded(kind: str, spec: dict[str, Any], nodes: Any = ()) -> PodSet:
    expander = WorkloadExpander(CLASSES, nodes)
    body = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}
    return expander.expand(kind, body, SourceLocation("w.yaml"))


def test_a_deployment_has_pods_of_a_replica_set_of_its_own() -> None:
    expander = WorkloadExpander(CLASSES, ())
    body = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 3, "template": template()}}
    group = expander.expand("Deployment", body, SourceLocation("w.yaml"))
    pods = [group.member(number) for number in range(3)]
    (made,) = expander.named
    owner = pods[0].metadata.owner_references[0]
    assert (group.first, group.total, group.next, group.lasting) == (3, 3, NextPod.NEVER, True)
    assert (owner.kind, owner.name, owner.controller) == ("ReplicaSet", made.metadata.name, True)
    assert made.metadata.name.startswith("web-")
    assert len({pod.metadata.name for pod in pods}) == 3
    assert all(pod.metadata.name.startswith(f"{owner.name}-") for pod in pods)
    assert pods[0].metadata.labels["pod-template-hash"] == owner.name.removeprefix("web-")
    assert pods[0].spec is pods[1].spec


def test_a_stateful_set_makes_one_after_another_with_a_claim_each() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    group = expanded("StatefulSet", {"replicas": 2, "template": template(), "volumeClaimTemplates": claims})
    assert (group.first, group.total, group.next, group.named) == (1, 2, NextPod.BOUND, True)
    second = group.member(1)
    assert second.metadata.name == "web-1"
    assert second.metadata.labels["apps.kubernetes.io/pod-index"] == "1"
    assert [
        volume.persistent_volume_claim.claim_name for volume in second.spec.volumes if volume.persistent_volume_claim
    ] == ["data-web-1"]
    assert [claim.metadata.name for claim in group.claims(1)] == ["data-web-1"]


def test_one_that_may_go_in_parallel_does() -> None:
    group = expanded("StatefulSet", {"replicas": 4, "template": template(), "podManagementPolicy": "Parallel"})
    assert (group.first, group.next) == (4, NextPod.NEVER)


def test_a_job_has_so_many_at_a_time_until_so_many_are_done() -> None:
    group = expanded("Job", {"parallelism": 2, "completions": 5, "template": template()})
    assert (group.first, group.total, group.next, group.lasting) == (2, 5, NextPod.FINISHED, False)
    assert group.member(0).metadata.labels["job-name"] == "web"
    assert expanded("Job", {"parallelism": 3, "template": template()}).total == 3
    assert expanded("Job", {"parallelism": 3, "suspend": True, "template": template()}).total == 0


def test_an_indexed_job_has_a_pod_of_a_name_for_each_index() -> None:
    group = expanded("Job", {"completions": 2, "completionMode": "Indexed", "template": template()})
    assert group.member(1).metadata.name.startswith("web-1-")
    assert group.member(1).metadata.labels["batch.kubernetes.io/job-completion-index"] == "1"
    assert group.named


def test_a_daemon_set_has_a_pod_for_each_node_that_it_is_for() -> None:
    nodes = [
        node("plain"),
        node("cordoned", unschedulable=True, taints=(taint("node.kubernetes.io/unschedulable", effect="NoSchedule"),)),
        node("tainted", taints=(taint("gpu", effect="NoSchedule"),)),
        node("other", labels={"os": "windows"}),
    ]
    group = expanded("DaemonSet", {"template": template()}, nodes)
    assert (group.total, group.daemon) == (3, True)
    fields = [
        term.match_fields[0].values[0]
        for number in range(3)
        if (affinity := group.member(number).spec.affinity) is not None
        and affinity.node_affinity is not None
        and (required := affinity.node_affinity.required_during_scheduling_ignored_during_execution) is not None
        for term in required.node_selector_terms
    ]
    assert fields == ["plain", "cordoned", "other"]


def test_a_priority_is_that_of_the_class() -> None:
    assert expanded("ReplicaSet", {"template": template(priorityClassName="vip")}).member(0).spec.priority == 100


def test_how_long_a_pod_runs_may_be_said_on_it() -> None:
    said = template(metadata={"annotations": {"situate.dev/duration": "exp:5m"}})
    assert expanded("Job", {"template": said}).duration == Distribution(DistributionKind.EXPONENTIAL, 300_000)


@pytest.mark.parametrize(
    "kind, body, told",
    [
        pytest.param("Deployment", {"metadata": {}}, "w.yaml: Deployment: metadata.name: Required value", id="no name"),
        pytest.param(
            "Deployment",
            {"metadata": {"name": "x"}},
            "w.yaml: Deployment x: spec.template.spec: Required value",
            id="none",
        ),
        pytest.param(
            "Job",
            {"metadata": {"name": "x"}, "spec": {"parallelism": "two", "template": template()}},
            "w.yaml: Job x: spec.parallelism: expected an integer, got a string",
            id="a word for a number",
        ),
        pytest.param(
            "Deployment",
            {"metadata": {"name": "x"}, "spec": {"replicas": -1, "template": template()}},
            "w.yaml: Deployment default/x: spec.replicas: -1 is not between 0 and 1,000,000",
            id="below none",
        ),
        pytest.param(
            "Deployment",
            {"metadata": {"name": "x"}, "spec": {"template": template(priorityClassName="no")}},
            "w.yaml: Deployment default/x: spec.priorityClassName: no PriorityClass with name no was found",
            id="a class that is not there",
        ),
        pytest.param(
            "Job",
            {
                "metadata": {"name": "x"},
                "spec": {"template": template(metadata={"annotations": {"situate.dev/duration": "ever"}})},
            },
            'w.yaml: Job default/x: metadata.annotations[situate.dev/duration]: "ever" is not a duration',
            id="a duration that is none",
        ),
        pytest.param(
            "Pod",
            {"metadata": {"name": "x"}, "spec": {"containers": CONTAINERS, "nodeName": "n1"}},
            "w.yaml: Pod default/x: is already bound: use -f for a snapshot",
            id="a bound pod",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_the_object(kind: str, body: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as raised:
        WorkloadExpander(CLASSES, ()).expand(kind, body, SourceLocation("w.yaml"))
    assert str(raised.value).startswith(told)


def test_no_two_of_a_hundred_thousand_pods_of_a_workload_have_one_name() -> None:
    assert len({letters("default/web", number) for number in range(100_000)}) == 100_000
