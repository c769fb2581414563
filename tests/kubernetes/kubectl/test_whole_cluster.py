"""kubectl on a cluster of situate's alone: what needs a scheduler, controllers and nodes, and so has an outcome."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubernetes.kubectl.sides import Side, watching
from kubernetes.parts import wait_until

NODES = ("node-1", "node-2", "node-3")
SOON = "--timeout=20s"

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway,
         labelSelector: {matchLabels: {app: web}}}
      containers: [{name: main, image: "registry.test/web:1", resources: {requests: {cpu: 100m}}}]
"""

AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: "registry.test/agent:1"}]}
"""

ORDERED = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ordered}
spec:
  serviceName: ordered
  replicas: 2
  selector: {matchLabels: {app: ordered}}
  template:
    metadata: {labels: {app: ordered}}
    spec: {containers: [{name: main, image: "registry.test/ordered:1"}]}
"""

# Hollow pods that end do so after as long as they are told.
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  completions: 2
  parallelism: 2
  backoffLimit: 0
  template:
    metadata: {annotations: {hollow.situate.dev/run-for: 100ms, hollow.situate.dev/exit-code: "CODE"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: registry.test/job}]}
"""

CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: often}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {hollow.situate.dev/run-for: 100ms}}
        spec: {restartPolicy: Never, containers: [{name: main, image: registry.test/job}]}
"""

BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}
"""

TOO_BIG = """
apiVersion: v1
kind: Pod
metadata: {name: too-big}
spec: {containers: [{name: main, image: registry.test/big, resources: {requests: {cpu: "100"}}}]}
"""


class Kubectl:
    """kubectl in one namespace of the cluster."""

    def __init__(self, side: Side, namespace: str) -> None:
        self.side = side
        self.namespace = namespace

    def __call__(self, command: str, stdin: str = "") -> str:
        """What it prints; it must succeed."""
        done = self.side.run(self.namespace, command, stdin=stdin)
        assert done.code == 0, f"kubectl {command}: exit code {done.code}\n{done.out}{done.err}"
        return done.out

    def refused(self, command: str, stdin: str = "") -> str:
        """What it complains of; it must fail."""
        done = self.side.run(self.namespace, command, stdin=stdin)
        assert done.code != 0, f"kubectl {command} did not fail\n{done.out}{done.err}"
        return done.err

    def json(self, command: str) -> Any:
        return json.loads(self(f"{command} -o json"))

    def nodes_of_pods(self, selector: str) -> list[str]:
        """Where the pods are that are not being deleted."""
        items = self.json(f"get pods -l {selector}")["items"]
        return sorted(item["spec"]["nodeName"] for item in items if "deletionTimestamp" not in item["metadata"])


@pytest.fixture
def kubectl(whole: Side, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """In a namespace of the test's own, which goes with all that is in it."""
    yield from in_a_namespace(whole, request)


@pytest.fixture
def kubectl_of_machine(machine: Side, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """The same, where pods are processes."""
    yield from in_a_namespace(machine, request)


def in_a_namespace(side: Side, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:50].strip("-")
    one = Kubectl(side, name)
    one(f"create namespace {name}")
    yield one
    one(f"delete namespace {name} --wait=false")


def test_a_deployment_is_rolled_out_scaled_updated_undone_and_restarted(kubectl: Kubectl) -> None:
    assert kubectl("create -f -", WEB) == "deployment.apps/web created\n"
    assert "successfully rolled out" in kubectl(f"rollout status deployment/web {SOON}")
    assert kubectl.nodes_of_pods("app=web") == list(NODES)
    assert kubectl("scale deployment web --replicas=5") == "deployment.apps/web scaled\n"
    assert "successfully rolled out" in kubectl(f"rollout status deployment/web {SOON}")
    kubectl("set image deployment/web main=registry.test/web:2")
    assert "successfully rolled out" in kubectl(f"rollout status deployment/web {SOON}")
    images = (
        "get pods -l app=web --field-selector status.phase=Running -o jsonpath='{.items[*].spec.containers[0].image}'"
    )
    assert kubectl(images).split() == ["registry.test/web:2"] * 5
    assert kubectl("rollout history deployment/web").splitlines()[2:4] == ["1         <none>", "2         <none>"]
    assert "Image:\tregistry.test/web:2" in kubectl("rollout history deployment/web --revision=2")
    assert kubectl("rollout undo deployment/web") == "deployment.apps/web rolled back\n"
    assert "successfully rolled out" in kubectl(f"rollout status deployment/web {SOON}")
    assert kubectl(images).split() == ["registry.test/web:1"] * 5
    assert kubectl("rollout restart deployment/web") == "deployment.apps/web restarted\n"
    assert "successfully rolled out" in kubectl(f"rollout status deployment/web {SOON}")
    described = kubectl("describe deployment web")
    assert "5 desired | 5 updated | 5 total | 5 available | 0 unavailable" in described
    assert "Scaled up replica set web-" in described
    assert "NewReplicaSet:   web-" in described


def test_a_paused_deployment_waits_till_it_is_resumed(kubectl: Kubectl) -> None:
    kubectl("create -f -", WEB)
    kubectl(f"wait --for=condition=Available deployment/web {SOON}")
    kubectl("rollout pause deployment/web")
    kubectl("set env deployment/web COLOUR=blue")
    kubectl(f"wait --for=condition=Progressing=Unknown deployment/web {SOON}")
    assert "DeploymentPaused" in kubectl("describe deployment web")
    assert len(kubectl.json("get replicasets")["items"]) == 1
    kubectl("rollout resume deployment/web")
    kubectl(f"rollout status deployment/web {SOON}")
    assert len(kubectl.json("get replicasets")["items"]) == 2


def test_daemon_sets_and_stateful_sets_are_rolled_out_and_undone(kubectl: Kubectl) -> None:
    kubectl("apply -f -", AGENT + "---" + ORDERED)
    assert "successfully rolled out" in kubectl(f"rollout status daemonset/agent {SOON}")
    assert kubectl.nodes_of_pods("app=agent") == list(NODES)
    assert "2 new pods have been updated" in kubectl(f"rollout status statefulset/ordered {SOON}")
    assert kubectl("get pods -l app=ordered -o name").split() == ["pod/ordered-0", "pod/ordered-1"]
    kubectl("set image daemonset/agent main=registry.test/agent:2")
    kubectl("set image statefulset/ordered main=registry.test/ordered:2")
    kubectl(f"rollout status daemonset/agent {SOON}")
    kubectl(f"rollout status statefulset/ordered {SOON}")
    for name in ("daemonset/agent", "statefulset/ordered"):
        assert kubectl(f"rollout history {name}").splitlines()[2:4] == ["1         <none>", "2         <none>"]
        assert "rolled back" in kubectl(f"rollout undo {name}")
        kubectl(f"rollout status {name} {SOON}")
        image = kubectl(f"get {name} -o jsonpath='{{.spec.template.spec.containers[0].image}}'")
        assert image.endswith(":1")


def test_jobs_end_well_or_badly(kubectl: Kubectl) -> None:
    good, bad = (JOB.replace("NAME", name).replace("CODE", code) for name, code in (("good", "0"), ("bad", "3")))
    kubectl("create -f -", good + "---" + bad + "---" + CRON_JOB)
    kubectl("create job by-hand --from=cronjob/often")
    assert kubectl(f"wait --for=condition=complete job/good {SOON}") == "job.batch/good condition met\n"
    assert kubectl(f"wait --for=condition=failed job/bad {SOON}") == "job.batch/bad condition met\n"
    kubectl(f"wait --for=condition=complete job/by-hand {SOON}")
    assert kubectl("get job good --no-headers").split()[:3] == ["good", "Complete", "2/2"]
    assert kubectl("get job bad --no-headers").split()[:2] == ["bad", "Failed"]
    assert "BackoffLimitExceeded" in kubectl("describe job bad")
    phases = kubectl("get pods -l job-name=good -o jsonpath='{.items[*].status.phase}'")
    assert phases.split() == ["Succeeded", "Succeeded"]
    assert kubectl("get pods --field-selector status.phase=Failed -o name").count("pod/bad-") >= 1
    kubectl(f"delete job good {SOON}")
    wait_until(lambda: not kubectl("get pods -l job-name=good -o name"), "the pods of a deleted job to go")


def test_drain_keeps_to_budgets_and_leaves_daemons(kubectl: Kubectl) -> None:
    kubectl("create -f -", WEB + "---" + AGENT + "---" + BUDGET)
    kubectl(f"rollout status deployment/web {SOON}")
    kubectl(f"rollout status daemonset/agent {SOON}")
    kubectl(f"wait --for=jsonpath='{{.status.currentHealthy}}'=3 pdb/web {SOON}")
    try:
        assert "cannot delete DaemonSet-managed Pods" in kubectl.refused("drain node-2")
        blocked = kubectl.refused("drain node-2 --ignore-daemonsets --timeout=1s")
        assert "Cannot evict pod as it would violate the pod's disruption budget." in blocked
        assert kubectl.nodes_of_pods("app=web") == list(NODES)
        kubectl("""patch pdb web -p '{"spec":{"minAvailable":2}}'""")
        kubectl(f"wait --for=jsonpath='{{.status.disruptionsAllowed}}'=1 pdb/web {SOON}")
        assert kubectl(f"drain node-2 --ignore-daemonsets {SOON}").endswith("node/node-2 drained\n")
        kubectl(f"rollout status deployment/web {SOON}")
        assert set(kubectl.nodes_of_pods("app=web")) == {"node-1", "node-3"}
        assert kubectl.nodes_of_pods("app=agent") == list(NODES)
        assert kubectl("get node node-2 --no-headers").split()[1] == "Ready,SchedulingDisabled"
    finally:
        kubectl("uncordon node-2")


def test_taints_cordons_and_selectors_say_where_pods_go(kubectl: Kubectl) -> None:
    try:
        kubectl("taint node node-1 dedicated=gpu:NoSchedule")
        kubectl("cordon node-2")
        kubectl("create deployment web --image=registry.test/web --replicas=2")
        kubectl(f"rollout status deployment/web {SOON}")
        assert set(kubectl.nodes_of_pods("app=web")) == {"node-3"}
        kubectl("label node node-2 disk=ssd")
        picky = '{"spec":{"nodeSelector":{"disk":"ssd"}}}'
        kubectl(f"run picky --image=registry.test/picky --overrides='{picky}'")
        kubectl(f"wait --for=condition=PodScheduled=False pod/picky {SOON}")
        kubectl("uncordon node-2")
        kubectl(f"wait --for=condition=Ready pod/picky {SOON}")
        assert kubectl("get pod picky -o jsonpath='{.spec.nodeName}'") == "node-2"
    finally:
        kubectl("taint node node-1 dedicated-")
        kubectl("uncordon node-2")
        kubectl("label node node-2 disk-")


def test_a_pod_that_fits_nowhere_says_why(kubectl: Kubectl) -> None:
    kubectl("create -f -", TOO_BIG)
    kubectl(f"wait --for=condition=PodScheduled=False pod/too-big {SOON}")
    why = "0/3 nodes are available: 3 Insufficient cpu."
    assert why in kubectl("get pod too-big -o jsonpath='{.status.conditions[0].message}'")
    wait_until(lambda: why in kubectl("describe pod too-big"), "an event that says why")
    assert "FailedScheduling" in kubectl("get events --field-selector reason=FailedScheduling")
    assert why in kubectl("events --for=pod/too-big")
    decision = kubectl.json("get placementdecision too-big")
    assert decision["status"]["phase"] == "pending"
    assert decision["status"]["refusals"] == [{"nodes": 3, "plugin": "NodeResourcesFit", "reason": "Insufficient cpu"}]


def test_decisions_and_snapshots_are_shown(kubectl: Kubectl) -> None:
    kubectl("create -f -", WEB)
    kubectl(f"rollout status deployment/web {SOON}")
    listed = kubectl("get pld").splitlines()
    assert listed[0].split() == ["NAME", "NODE", "PHASE", "VERSION", "AGE"]
    assert sorted(line.split()[1] for line in listed[1:]) == list(NODES)
    name = listed[1].split()[0]
    decision = kubectl.json(f"get pld {name}")
    assert decision["spec"]["node"] in NODES
    assert {one["node"] for one in decision["status"]["scores"]} == set(NODES)
    assert "Snapshot Version" in kubectl(f"describe pld {name}")
    snapshots = kubectl("get nodesnapshots").splitlines()
    assert snapshots[0].split() == ["NAME", "VERSION", "PODS", "AGE"]
    assert [line.split()[0] for line in snapshots[1:]] == list(NODES)
    assert kubectl("get nsnap node-1 -o jsonpath='{.status.allocated.pods}'") >= "1"
    assert "MethodNotAllowed" in kubectl.refused("delete nsnap node-1")
    assert "bindingVersion\t<integer>" in kubectl("explain pld.spec")
    assert "plugins\t<map[string]integer>" in kubectl("explain pld.status.scores")


def test_a_node_is_described_with_its_pods_and_what_they_take(kubectl: Kubectl) -> None:
    kubectl("create -f -", WEB)
    kubectl(f"rollout status deployment/web {SOON}")
    described = kubectl("describe node node-1")
    assert f"  {kubectl.namespace}" in described.partition("Non-terminated Pods:")[2]
    assert "Allocated resources:" in described
    assert "KubeletReady" in described
    assert "HolderIdentity:  node-1" in described


def test_deletion_goes_as_far_as_it_is_told(kubectl: Kubectl) -> None:
    kubectl("create -f -", WEB)
    kubectl(f"rollout status deployment/web {SOON}")
    kubectl(f"delete deployment web --cascade=orphan {SOON}")
    replicas = kubectl.json("get replicasets")["items"]
    assert [item["metadata"].get("ownerReferences", []) for item in replicas] == [[]]
    assert len(kubectl.nodes_of_pods("app=web")) == 3
    kubectl("create -f -", WEB)
    kubectl(f"rollout status deployment/web {SOON}")
    assert len(kubectl.json("get replicasets")["items"]) == 1, "the orphan is adopted"
    kubectl(f"delete deployment web --cascade=foreground {SOON}")
    assert kubectl("get all -l app=web -o name") == ""
    kubectl("create -f -", WEB)
    kubectl(f"rollout status deployment/web {SOON}")
    kubectl(f"delete deployment web {SOON}")
    kubectl(f"wait --for=delete pods -l app=web {SOON}")
    wait_until(lambda: kubectl("get pods,replicasets,placementdecisions -o name") == "", "all that it owned to go")


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    kubectl("create namespace goes-as-a-whole")
    kubectl("-n goes-as-a-whole create -f -", WEB + "---" + AGENT)
    kubectl(f"-n goes-as-a-whole rollout status deployment/web {SOON}")
    assert 'namespace "goes-as-a-whole" deleted' in kubectl(f"delete namespace goes-as-a-whole {SOON}")
    assert "NotFound" in kubectl.refused("get namespace goes-as-a-whole")
    assert kubectl("get pods -A -l app=agent -o name") == ""


def test_a_watch_follows_a_pod_from_its_creation_to_its_end(kubectl: Kubectl) -> None:
    with watching(kubectl.side, kubectl.namespace, "get pods -w --no-headers") as lines:
        kubectl("run short --image=registry.test/short --restart=Never --annotations=hollow.situate.dev/run-for=100ms")
        kubectl(f"wait --for=jsonpath='{{.status.phase}}'=Succeeded pod/short {SOON}")
        count = 1
        while "Completed" not in lines(count)[-1]:
            count += 1
        states = [line.split()[2] for line in lines(count)]
    assert list(dict.fromkeys(states)) == ["Pending", "Running", "Completed"]


def test_a_hollow_pod_has_an_empty_log(kubectl: Kubectl) -> None:
    kubectl("create -f -", WEB)
    kubectl(f"rollout status deployment/web {SOON}")
    assert kubectl("logs deployment/web --all-containers --tail=5") == ""
    assert kubectl("logs -l app=web -f --timestamps") == ""
    assert "container other is not valid for pod" in kubectl.refused("logs deployment/web -c other")


def test_what_a_process_writes_is_its_log(kubectl_of_machine: Kubectl) -> None:
    kubectl = kubectl_of_machine
    program = "echo one; echo two; sleep 1; echo three"
    kubectl(f"run talker --image=host --restart=Never --command -- sh -c '{program}'")
    kubectl(f"wait --for=condition=Ready pod/talker {SOON}")
    assert kubectl("logs -f talker") == "one\ntwo\nthree\n"
    kubectl(f"wait --for=jsonpath='{{.status.phase}}'=Succeeded pod/talker {SOON}")
    assert kubectl("logs talker --tail=1") == "three\n"
    assert kubectl("logs talker --limit-bytes=5") == "one\nt"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z three\n", kubectl("logs talker -c talker --tail=1 --timestamps"))
    assert 'previous terminated container "talker" in pod "talker" not found' in kubectl.refused("logs talker -p")
    assert kubectl("get pod talker --no-headers").split()[2] == "Completed"


def test_a_service_account_uses_its_token(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create serviceaccount robot")
    kubectl("create role reader --verb=get,list --resource=pods")
    kubectl(f"create rolebinding robot --role=reader --serviceaccount={kubectl.namespace}:robot")
    token = kubectl("create token robot --duration=10m").strip()
    config = kubectl.json("config view --raw --minify")
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "robot.kubeconfig"
    path.write_text(json.dumps(config))
    robot = Kubectl(Side("robot", path, tmp_path), kubectl.namespace)
    assert f"system:serviceaccount:{kubectl.namespace}:robot" in robot("auth whoami")
    assert robot("auth can-i list pods") == "yes\n"
    assert robot("get pods -o name") == ""
    assert "Forbidden" in robot.refused("get secrets")
    assert "Forbidden" in robot.refused("delete pods --all -n default")
    kubectl("delete serviceaccount robot")
    assert "You must be logged in to the server" in robot.refused("get pods")


def test_what_is_not_served_is_refused_in_one_line(kubectl: Kubectl) -> None:
    kubectl("create -f -", WEB)
    kubectl(f"rollout status deployment/web {SOON}")
    pod = kubectl("get pods -o name").split()[0]
    for command, words in (
        ("get workloads", 'the server doesn\'t have a resource type "workloads"'),
        (f"exec {pod} -- true", "error: "),
        (f"port-forward {pod} 8080:80", "error: "),
    ):
        told = kubectl.refused(command, WEB)
        assert words in told, command
        assert len([line for line in told.splitlines() if line.startswith(("error", "Error"))]) == 1, told
