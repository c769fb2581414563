"""Programs that were written for Kubernetes, with situate's own control plane in the place of kube-apiserver.

The official Python client, kwok's kubelets, kube-scheduler; and situate's own parts, each in a process of its own.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubernetes import official_client
from kubernetes.api import Json
from kubernetes.cluster import Cluster, Scheduler
from kubernetes.objects import node, pod, pod_group, priority_class
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import wait_until

CLIENT_S = 60.0
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
ELECTED = {"leaderElection": {"leaderElect": True}}


@pytest.fixture
def own(tmp_path: Path, control_plane: Cluster) -> Iterator[OwnCluster]:
    """situate's API alone. (`control_plane` is asked for so that this is left out where there are no real parts.)"""
    with OwnCluster(tmp_path / "own") as cluster:
        yield cluster


# ── the official Python client ──────────────────────────────────────────────────────────────────────────────────────

Results = dict[str, str]


def run_client(cluster: Cluster, *flags: str) -> Results:
    """Check → what went wrong."""
    cluster.namespace = cluster.new_namespace("official")
    program = str(Path(official_client.__file__))
    done = subprocess.run(
        [sys.executable, "-I", program, str(cluster.kubeconfig), cluster.namespace, *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=CLIENT_S,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["check"]: line["problem"] for line in lines} | ({"": done.stderr} if done.returncode else {})


@pytest.fixture(scope="module")
def results(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """By server. On the real one, so that the checks are known to ask for what Kubernetes does."""
    with OwnCluster(tmp_path_factory.mktemp("official")) as own:
        found = {"situate": run_client(own, "--own")}
    found["kube-apiserver"] = run_client(control_plane)
    control_plane.wipe()
    control_plane.namespace = "default"
    return found


@pytest.mark.parametrize("check", [*official_client.CHECKS, *official_client.OWN_CHECKS])
def test_the_official_python_client_works(results: dict[str, Results], check: str) -> None:
    assert results["situate"].get(check, f"it did not come to that: {results['situate'].get('')}") == ""


@pytest.mark.parametrize("check", official_client.CHECKS)
def test_what_is_asked_of_the_official_python_client_holds_for_kubernetes(
    results: dict[str, Results], check: str
) -> None:
    found = results["kube-apiserver"]
    assert found.get(check, f"it did not come to that: {found.get('')}") == ""


# ── kwok's kubelets ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_kwoks_kubelets_look_after_nodes_and_pods(own: OwnCluster) -> None:
    fresh = node("fresh")
    del fresh["status"]["conditions"]
    own.create(fresh)
    own.kwok()
    own.wait_for_nodes(1)
    own.create(pod("stays"), pod("ends", annotations={"situate.test/then": "succeed"}, restartPolicy="Never"))
    for name in ("stays", "ends"):
        target = {"apiVersion": "v1", "kind": "Node", "name": "fresh"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        own.api.post(f"/api/v1/namespaces/default/pods/{name}/binding", binding)
    own.wait_for_phase("stays")
    own.wait_for_phase("ends", phase="Succeeded")
    running = own.pod("stays")
    assert running is not None
    assert running["status"]["podIP"]
    assert [each["status"] for each in running["status"]["conditions"] if each["type"] == "Ready"] == ["True"]
    decisions = own.api.items("/apis/situate.dev/v1alpha1/namespaces/default/placementdecisions")
    assert {one["metadata"]["name"]: one["status"]["phase"] for one in decisions}["stays"] == "running"
    snapshot = own.api.get("/apis/situate.dev/v1alpha1/nodesnapshots/fresh")
    assert [one["name"] for one in snapshot["spec"]["pods"]] == ["stays"]  # one that has ended takes no room

    own.api.request("DELETE", "/api/v1/namespaces/default/pods/stays")  # with grace: its kubelet has the last word
    wait_until(lambda: own.pod("stays") is None, "the pod to be gone")
    assert "pods" not in own.api.get("/apis/situate.dev/v1alpha1/nodesnapshots/fresh").get("spec", {})


# ── schedulers ──────────────────────────────────────────────────────────────────────────────────────────────────────

Start = Callable[[OwnCluster], Scheduler]
SCHEDULERS: dict[str, tuple[Start, str]] = {
    "situate scheduler": (lambda own: own.situate(ELECTED), "kube-scheduler"),
    "situate scheduler --server": (lambda own: own.own_scheduler(), "situate-scheduler"),
    "kube-scheduler": (lambda own: own.kube_scheduler(ELECTED), "kube-scheduler"),
}
"""What starts it, and the Lease by which it is elected."""

NODES = (
    *(node(f"node-{number}", cpu="4", labels={ZONE: f"zone-{number % 3}", "pool": "main"}) for number in range(6)),
    node(
        "gpu",
        labels={"pool": "gpu"},
        taints=[{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}],
        extended={"example.com/gpu": "1"},
    ),
    node("small", cpu="1", labels={"pool": "small"}),
)
TOLERATES = [{"key": "dedicated", "operator": "Exists"}]


def near(label: str) -> Json:
    return {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": label}}}


def required(kind: str, label: str) -> Json:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [near(label)]}}


def with_gpu(name: str, **fields: Any) -> Json:
    made = pod(name, **fields)
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"]["example.com/gpu"] = "1"
    resources["limits"] = {"example.com/gpu": "1"}
    return made


def spread(name: str) -> Json:
    even = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    selects = {"labelSelector": {"matchLabels": {"app": "spread"}}}
    return pod(name, labels={"app": "spread"}, topologySpreadConstraints=[even | selects])


LARGE = 7
FIRST = (
    *(spread(f"spread-{number}") for number in range(6)),
    pod("db", labels={"app": "db"}, nodeSelector={HOST: "node-3"}),
    pod("apart-0", labels={"app": "apart"}, affinity=required("podAntiAffinity", "apart")),
    pod("apart-1", labels={"app": "apart"}, affinity=required("podAntiAffinity", "apart")),
    with_gpu("gpu", tolerations=TOLERATES),
    pod("low", cpu="1", nodeSelector={"pool": "small"}, priorityClassName="low"),
    pod("outside", nodeSelector={"pool": "nowhere"}),
    pod_group("gang", 3),
    *(pod(f"gang-{number}", cpu="2", group="gang", nodeSelector={"pool": "main"}) for number in range(3)),
    pod_group("too-large", LARGE),
    *(
        pod(f"too-large-{number}", cpu="3500m", group="too-large", nodeSelector={"pool": "main"})
        for number in range(LARGE)
    ),
)
"""Of the gang too-large, some would fit on the six main nodes, and seven cannot: nobody is bound."""
THEN = (
    pod("follower", affinity=required("podAffinity", "db")),
    with_gpu("no-toleration"),
    pod("high", cpu="1", nodeSelector={"pool": "small"}, priorityClassName="high"),
)


def scheduled_condition(found: Json) -> tuple[str, str]:
    return next(
        (
            (each["status"], each.get("reason", ""))
            for each in found["status"].get("conditions", ())
            if each["type"] == "PodScheduled"
        ),
        ("", ""),
    )


def reported(own: OwnCluster, reason: str) -> set[str]:
    events = own.api.items("/apis/events.k8s.io/v1/namespaces/default/events")
    return {event["regarding"]["name"] for event in events if event["reason"] == reason}


@pytest.mark.parametrize("which", SCHEDULERS)
def test_a_scheduler_schedules_a_mixed_workload(own: OwnCluster, which: str) -> None:
    start, lease = SCHEDULERS[which]
    own.create(*NODES, priority_class("low", 10), priority_class("high", 1000))
    own.kwok()
    scheduler = start(own)
    fits = {item["metadata"]["name"] for item in FIRST if item["kind"] == "Pod"} - {"outside"}
    fits -= {name for name in fits if name.startswith("too-large")}
    own.create(*FIRST)
    own.wait_for_phase(*fits)
    own.create(*THEN)
    own.wait_for_phase("follower", "high")

    waiting = {"outside", "no-toleration", *(f"too-large-{number}" for number in range(LARGE))}
    wait_until(lambda: waiting <= reported(own, "FailedScheduling"), "those that wait to be told why")
    bound, pods = own.bound(), {one["metadata"]["name"]: one for one in own.pods()}
    assert set(bound) == fits - {"low"} | {"follower", "high"}
    assert pods.keys() == bound.keys() | waiting, "low made room for high"
    zones = {item["metadata"]["name"]: item["metadata"]["labels"].get(ZONE, "") for item in NODES}
    assert Counter(zones[bound[f"spread-{number}"]] for number in range(6)) == {f"zone-{n}": 2 for n in range(3)}
    assert (bound["db"], bound["follower"]) == ("node-3", "node-3")
    assert bound["apart-0"] != bound["apart-1"]
    assert (bound["gpu"], bound["high"]) == ("gpu", "small")
    assert [name for name, where in bound.items() if where == "gpu"] == ["gpu"], "nobody else tolerates its taint"
    for name, found in pods.items():
        assert scheduled_condition(found) == (("True", "") if name in bound else ("False", "Unschedulable"))
    wait_until(lambda: set(bound) <= reported(own, "Scheduled"), "those that are bound to be told so")
    assert reported(own, "Preempted") == {"low"}
    spec = own.api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}")["spec"]
    assert spec["holderIdentity"]
    assert spec["renewTime"]
    assert scheduler.running


def test_binds_of_a_scheduler_for_our_own_server_say_in_which_term(own: OwnCluster) -> None:
    """A term that is not the lease's is refused: else anybody who was a leader once could bind for ever."""
    own.create(node("one"))
    first = own.own_scheduler()
    own.create(pod("a"))
    own.wait_for_bound("a")
    # Somebody takes the lease away behind its back: binds of its term are refused from then on, before it knows.
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/situate-scheduler"
    own.api.patch(path, {"spec": {"holderIdentity": "usurper", "leaseTransitions": 7}})
    own.create(pod("b"))
    assert first.wait(30) == 1, "who has lost its lease ends"
    assert set(own.bound()) == {"a"}
    assert "Leaderelection lost" in first.said()


# ── situate's own parts, each by itself ─────────────────────────────────────────────────────────────────────────────


def deployment(name: str, replicas: int, image: str) -> Json:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def job(name: str, completions: int) -> Json:
    container = {"name": "main", "image": "registry.test/job"}
    template = {
        "metadata": {"annotations": {"situate.dev/run-for": "100ms"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec = {"completions": completions, "parallelism": 2, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def apart(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    """situate's API alone, with controllers, nodes and a scheduler in processes of their own."""
    with OwnCluster(tmp_path_factory.mktemp("apart")) as cluster:
        started = [
            cluster.situate_part("controllers"),
            cluster.situate_part("node", ("--hollow", "3")),
            cluster.own_scheduler(),
        ]
        cluster.wait_for_nodes(3)
        yield cluster
        assert all(part.running for part in started), "\n".join(part.tail() for part in started if not part.running)


def test_a_deployment_rolls_out_where_every_part_is_a_process(apart: OwnCluster) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    apart.create(deployment("web", 4, "registry.test/web:1"))

    def rolled_out(image: str) -> bool:
        found = apart.api.get(path)
        status, spec = found["status"], found["spec"]["template"]["spec"]
        counts = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return seen and counts == [4, 4, 4] and spec["containers"][0]["image"] == image

    wait_until(lambda: rolled_out("registry.test/web:1"), "the first rollout")
    template = {"spec": {"containers": [{"name": "main", "image": "registry.test/web:2"}]}}
    apart.api.patch(path, {"spec": {"template": template}})
    wait_until(lambda: rolled_out("registry.test/web:2"), "the second rollout")
    wait_until(lambda: len(apart.pods()) == 4, "the old pods to be gone")
    assert {one["spec"]["containers"][0]["image"] for one in apart.pods()} == {"registry.test/web:2"}
    assert {one["status"]["phase"] for one in apart.pods()} == {"Running"}

    apart.api.delete(path)
    wait_until(lambda: apart.pods() == [], "what it owned to go after it")
    assert apart.api.items("/apis/apps/v1/namespaces/default/replicasets") == []


def test_a_job_completes_where_every_part_is_a_process(apart: OwnCluster) -> None:
    apart.create(job("sums", 3))
    path = "/apis/batch/v1/namespaces/default/jobs/sums"

    def complete() -> bool:
        conditions = apart.api.get(path)["status"].get("conditions", ())
        return any((each["type"], each["status"]) == ("Complete", "True") for each in conditions)

    wait_until(complete, "the job to be complete")
    assert apart.api.get(path)["status"]["succeeded"] == 3


def test_of_two_controllers_over_an_api_server_one_works_and_the_other_takes_over(apart: OwnCluster) -> None:
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/situate-controllers"
    holder = apart.api.get(lease)["spec"]["holderIdentity"]
    assert holder, "the first has taken the lease"

    def bound() -> int:
        return sum(one["metadata"]["name"].startswith("twice-") and "nodeName" in one["spec"] for one in apart.pods())

    second = apart.situate_part("controllers")
    wait_until(lambda: "Attempting to acquire leader lease" in second.said(), "the second to stand by")
    apart.create(deployment("twice", 5, "registry.test/web:1"))
    wait_until(lambda: bound() == 5, "its pods to be bound")
    assert apart.api.get(lease)["spec"]["holderIdentity"] == holder
    assert "Successfully acquired lease" not in second.said()
    released = apart.api.get(lease)
    released["spec"]["holderIdentity"] = ""  # as the first does when it stops
    released["spec"]["leaseTransitions"] += 1
    apart.api.put(lease, released)
    wait_until(lambda: apart.api.get(lease)["spec"]["holderIdentity"] not in ("", holder), "the second to take over")
    apart.api.patch("/apis/apps/v1/namespaces/default/deployments/twice", {"spec": {"replicas": 7}})
    wait_until(lambda: bound() == 7, "the second to work")
    apart.api.delete("/apis/apps/v1/namespaces/default/deployments/twice")
    wait_until(lambda: bound() == 0, "what it owned to go after it")


def test_a_namespace_goes_with_all_that_is_in_it(apart: OwnCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "namespace", apart.new_namespace("short-lived"))
    apart.create(deployment("web", 2, "registry.test/web:1"), pod("bare"))
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
    apart.create(config)
    wait_until(lambda: len(apart.bound()) == 3, "its pods to be bound")
    apart.api.request("DELETE", "/api/v1/namespaces/short-lived")
    names = "/api/v1/namespaces"
    wait_until(
        lambda: "short-lived" not in {one["metadata"]["name"] for one in apart.api.items(names)}, "the namespace to go"
    )
    for path in ("/api/v1/pods", "/api/v1/configmaps", "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets"):
        assert not [one for one in apart.api.items(path) if one["metadata"]["namespace"] == "short-lived"]
