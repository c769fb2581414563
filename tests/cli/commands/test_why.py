"""`situate why`: what is said of a pod that waits, or is bound, from files and from a cluster; and what would help."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from builders import manifest
from kube.served import served
from situate.cli import main

ZONE = "topology.kubernetes.io/zone"
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def node(name: str, *, cpu: str = "4", labels: Any = None, **spec: Any) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
    return manifest("Node", name, metadata={"labels": labels or {}}, spec=spec, status={"allocatable": room})


def pod(name: str, *, cpu: str = "1", status: Any = None, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]
    return manifest("Pod", name, metadata=metadata or {}, spec={"containers": containers} | spec, status=status or {})


def why(name: str, *objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> Result:
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return CliRunner().invoke(main, ["why", name, "-f", "-", *arguments], input=data, catch_exceptions=False)


def told(name: str, *objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> dict[str, Any]:
    result = why(name, *objects, arguments=("-o", "json", *arguments))
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def ways(said: dict[str, Any]) -> list[str]:
    return [way["text"] for way in said["ways"]]


def verdict(said: dict[str, Any], plugin: str) -> dict[str, Any]:
    (found,) = [one for one in said["verdicts"] if one["plugin"] == plugin]
    return dict(found)


# ── what is said ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_summary_is_kube_schedulers_message_on_one_line() -> None:
    lines = why("web", node("n1"), pod("web", cpu="8")).stdout.splitlines()
    assert lines[0] == "default/web: unschedulable"
    assert lines[1].startswith("0/1 nodes are available: 1 Insufficient cpu. ")
    assert lines[1].endswith("Preemption is not helpful for scheduling.")


def test_of_resources_it_says_how_much_is_asked_for_free_and_short_and_who_holds_it() -> None:
    objects = [node("n1"), pod("small", nodeName="n1"), pod("large", cpu="1500m", nodeName="n1")]
    said = told("web", *objects, pod("web", cpu="2"))
    (closest,) = verdict(said, "NodeResourcesFit")["details"][0]["values"]["closest"]
    holders = [{"pod": "default/large", "amount": "1500m"}, {"pod": "default/small", "amount": "1"}]
    assert closest == {"node": "n1", "allocatable": "4", "free": "1500m", "short": "500m", "holders": holders}


def test_every_plugin_is_heard_on_every_node_not_only_the_first_to_refuse() -> None:
    said = told("web", node("n1", taints=[TAINT]), pod("web", cpu="8", nodeSelector={"disk": "ssd"}))
    assert [(one["plugin"], one["nodes"], one["firstOn"]) for one in said["verdicts"]] == [
        ("TaintToleration", 1, 1),
        ("NodeAffinity", 1, 0),
        ("NodeResourcesFit", 1, 0),
    ]
    assert verdict(said, "TaintToleration")["details"][0]["text"] == "taint dedicated=gpu:NoSchedule is not tolerated"
    assert verdict(said, "NodeAffinity")["details"][0]["values"]["key"] == "disk"


def test_domains_are_told_with_their_counts() -> None:
    nodes = [node("a1", labels={ZONE: "a"}), node("b1", cpu="1", labels={ZONE: "b"})]
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    labels, spread = {"labels": {"app": "web"}}, [rule | {"labelSelector": {"matchLabels": {"app": "web"}}}]
    there = [pod(f"w{n}", cpu="100m", nodeName="a1", metadata=labels) for n in range(2)]
    full = pod("full", cpu="1", nodeName="b1")
    said = told("web", *nodes, *there, full, pod("web", metadata=labels, topologySpreadConstraints=spread))
    values = verdict(said, "PodTopologySpread")["details"][0]["values"]
    assert (values["domain"], values["pods"], values["domains"]) == ("a", 2, {"a": 2, "b": 0})
    assert f"raise maxSkew of the spread by {ZONE} from 1 to 3" in ways(said)


def test_of_a_pod_that_fits_it_shows_the_scores() -> None:
    said = told("web", node("n1"), node("n2"), pod("old", nodeName="n1"), pod("web"))
    assert (said["standing"], said["node"], said["feasible"]) == ("schedulable", "n2", 2)
    assert [one["node"] for one in said["scores"]] == ["n2", "n1"]
    assert sum(said["scores"][0]["scores"].values()) == said["scores"][0]["score"]


def test_of_a_bound_pod_it_says_why_it_is_there_and_not_elsewhere() -> None:
    objects = [node("n1"), node("n2"), node("n3", taints=[TAINT]), pod("other", nodeName="n2")]
    said = told("web", *objects, pod("web", nodeName="n1"))
    assert said["message"] == "bound to n1, rank 1 of the 2 nodes of 3 that fit now"
    assert (said["standing"], said["rank"], said["ways"]) == ("bound", 1, [])
    assert verdict(said, "TaintToleration")["examples"] == ["n3"]


def test_it_says_which_changes_would_wake_the_pod() -> None:
    said = told("web", node("n1", taints=[TAINT]), pod("web"))
    changes = {one["change"] for one in said["wakesOn"]}
    assert changes == {"node added", "node's taints changed", "waiting pod's tolerations changed"}


def test_one_node_is_told_in_full() -> None:
    objects = [node("n1"), node("n2"), *(pod(f"p{n}", cpu="900m", nodeName="n1") for n in range(4)), pod("web")]
    one = told("web", *objects, arguments=("--node", "n1"))["oneNode"]
    assert (one["fits"], [v["plugin"] for v in one["verdicts"]]) == (False, ["NodeResourcesFit"])
    assert len(one["verdicts"][0]["details"][0]["values"]["closest"][0]["holders"]) == 4
    assert "TaintToleration" in one["nothingAgainst"]
    assert "Node n1 refuses it" in why("web", *objects, arguments=("--node", "n1")).stdout


def test_it_says_how_long_and_how_often() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/9 nodes"}
    waiting = pod("web", cpu="8", status={"conditions": [condition | {"lastTransitionTime": "2026-01-01T00:01:00Z"}]})
    waiting["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    about = {"kind": "Pod", "name": "web", "namespace": "default"}
    event = manifest("Event", "web.1", reason="FailedScheduling", involvedObject=about, count=5, message="0/9 nodes")
    said = told("web", node("n1"), waiting, event | {"lastTimestamp": "2026-01-01T00:09:00Z"})["waiting"]
    assert (said["since"], said["refusedSince"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")
    assert (said["reason"], said["attempts"], said["attemptsFrom"]) == ("Unschedulable", 5, "events")
    assert (said["recordedMessage"], said["lastTry"]) == ("0/9 nodes", "2026-01-01T00:09:00Z")


# ── what would help ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "objects, expected",
    [
        pytest.param([node("n1"), pod("web", cpu="5")], "ask for 1 less cpu (4 instead of 5)", id="this much less cpu"),
        pytest.param(
            [node("n1", taints=[TAINT]), pod("web")],
            "tolerate the taint dedicated=gpu:NoSchedule",
            id="this toleration",
        ),
        pytest.param([node("n1"), pod("web", nodeSelector={"disk": "ssd"})], "label node n1 disk=ssd", id="this label"),
        pytest.param(
            [node("n1"), pod("web", nodeSelector={"disk": "ssd"})],
            "drop the node selector disk=ssd",
            id="this selector dropped",
        ),
        pytest.param(
            [node("n1"), pod("old", cpu="3", nodeName="n1"), pod("web", cpu="2")],
            "evict pod default/old from node n1",
            id="this pod evicted",
        ),
        pytest.param(
            [node("n1"), pod("old", cpu="3", nodeName="n1"), pod("web", cpu="2")],
            "add a node like n1 (4 cpu, 16Gi memory, 10 pods)",
            id="one more node of this shape",
        ),
        pytest.param([node("n1", unschedulable=True), pod("web")], "uncordon node n1", id="a cordon lifted"),
        pytest.param(
            [node("n1"), pod("web", schedulingGates=[{"name": "a.io/x"}])],
            "remove the scheduling gates a.io/x",
            id="gates removed",
        ),
        pytest.param(
            [node("n1", taints=[TAINT]), pod("web", cpu="5")],
            "tolerate the taint dedicated=gpu:NoSchedule, and ask for 1 less cpu (4 instead of 5)",
            id="two things at once, where one is not enough",
        ),
    ],
)
def test_it_offers(objects: list[dict[str, Any]], expected: str) -> None:
    assert expected in ways(told("web", *objects))


def test_a_way_that_asks_for_more_than_another_is_not_offered() -> None:
    said = told("web", node("n1"), node("n2", taints=[TAINT]), pod("web", cpu="5"))
    assert ways(said) == ["ask for 1 less cpu (4 instead of 5)"]


def storage_class(mode: str, provisioner: str = "example.com/x") -> dict[str, Any]:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    return head | {"provisioner": provisioner, "volumeBindingMode": mode}


def claim(**annotations: str) -> dict[str, Any]:
    metadata = {"name": "data", "namespace": "default", "annotations": annotations}
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


SELECTED = {"volume.kubernetes.io/selected-node": "n1"}


@pytest.mark.parametrize(
    "made, wanted, lines",
    [
        pytest.param(
            storage_class("Immediate"),
            claim(),
            ['claim "data" waits for provisioner example.com/x to provide its volume'],
            id="a class that binds at once",
        ),
        pytest.param(
            storage_class("WaitForFirstConsumer"),
            claim(**SELECTED),
            ['claim "data" waits for provisioner example.com/x to provide its volume on node n1'],
            id="a node is selected",
        ),
        pytest.param(storage_class("WaitForFirstConsumer"), claim(), [], id="it is the scheduler's turn"),
        pytest.param(
            storage_class("Immediate", "kubernetes.io/no-provisioner"),
            claim(),
            ['claim "data" waits for a volume that suits it, and nobody provisions one'],
            id="nobody provisions",
        ),
    ],
)
def test_a_pod_that_waits_for_a_provisioner_says_so(
    made: dict[str, Any], wanted: dict[str, Any], lines: list[str]
) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    objects = [node("n1"), made, wanted, pod("web", volumes=volumes)]
    assert told("web", *objects)["waitingClaims"] == lines
    assert why("web", *objects).stdout.splitlines()[2 : 2 + len(lines)] == lines


def test_ways_are_not_looked_for_if_nobody_wants_them() -> None:
    assert told("web", node("n1"), pod("web", cpu="8"), arguments=("--no-ways",))["ways"] == []


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments, objects, line",
    [
        pytest.param(["web"], [node("n1")], 'error: -: pods "web" not found', id="no such pod"),
        pytest.param(
            ["web", "-n", "a"],
            [pod("web")],
            'error: -: pods "web" not found; there is one in default: choose it with -n',
            id="a pod of another namespace",
        ),
        pytest.param(
            ["a/b/c"], [pod("web")], 'error: "a/b/c" is not the name of a pod or a workload', id="no name at all"
        ),
        pytest.param(
            ["web", "--node", "n9"], [node("n1"), pod("web")], 'error: nodes "n9" not found', id="no such node"
        ),
        pytest.param(
            ["web"],
            [pod("web"), pod("web")],
            'error: standard input: Pod default/web: metadata.name: Duplicate value: "web": '
            "already in standard input, item 1",
            id="a pod that is there twice",
        ),
        pytest.param(
            ["web", "--context", "x"],
            [pod("web")],
            "error: -f names files; --kubeconfig, --context and --cluster name a cluster: give one or the other",
            id="files and a cluster",
        ),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], objects: list[dict[str, Any]], line: str) -> None:
    result = why(arguments[0], *objects, arguments=tuple(arguments[1:]))
    assert (result.exit_code, result.stderr.splitlines()) == (2, [line])


def test_a_dump_with_missing_kinds_says_which_and_what_it_cannot_judge() -> None:
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    stderr = why("web", node("n1"), pod("web", volumes=claim)).stderr
    assert stderr == (
        "note: the input has no PersistentVolumeClaim, PersistentVolume or StorageClass: its claims count as missing, "
        "and which nodes reach its volumes is unknown\n"
    )


def test_a_dump_of_an_api_server_and_a_manifest_have_the_same_answer() -> None:
    """One is read fast and believed, the other is checked."""
    objects = [node("n1"), pod("old", cpu="3", nodeName="n1"), pod("web", cpu="2")]
    plain = told("web", *objects)
    for number, one in enumerate(objects):
        one["metadata"] |= {"uid": f"u{number}", "resourceVersion": str(number + 1)}
        one["metadata"] |= {"namespace": "default"} if one["kind"] == "Pod" else {}
    assert told("web", *objects) == plain


def test_a_dump_with_an_odd_amount_is_refused_in_words() -> None:
    odd = pod("old", cpu="much", nodeName="n1")
    odd["metadata"] |= {"uid": "u", "resourceVersion": "1", "namespace": "default"}
    result = why("old", odd)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "Pod default/old: spec.containers[0].resources.requests" in result.stderr


def test_yaml_is_the_same_answer() -> None:
    objects = [node("n1"), pod("web", cpu="8")]
    data = yaml.safe_dump_all(objects)
    result = CliRunner().invoke(main, ["why", "web", "-f", "-", "-o", "yaml"], input=data, catch_exceptions=False)
    assert yaml.safe_load(result.stdout) == told("web", *objects)


# ── a cluster ───────────────────────────────────────────────────────────────────────────────────────────────────────


def ask(folder: Path, address: str, *words: str) -> Result:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    return CliRunner().invoke(main, [*words, "--kubeconfig", str(folder / "kubeconfig")], catch_exceptions=False)


def in_shop(name: str, **fields: Any) -> dict[str, Any]:
    return pod(name, metadata={"namespace": "shop"}, **fields)


def test_a_live_cluster_is_only_read_and_says_what_files_say(tmp_path: Path) -> None:
    objects = [node("n1"), in_shop("old", cpu="3", nodeName="n1"), in_shop("web", cpu="2")]
    with served(*objects) as (server, address):
        live = json.loads(ask(tmp_path, address, "why", "web", "-o", "json").stdout)
        asked = {one.method for one in server.requests}
    offline = told("shop/web", *objects)
    assert asked == {"GET"}
    assert live | {"notes": [], "waiting": {}} == offline | {"notes": [], "waiting": {}}


def test_what_may_not_be_listed_is_said_and_the_rest_is_answered(tmp_path: Path) -> None:
    with served(node("n1"), in_shop("web", cpu="8"), hidden=("/services",)) as (_, address):
        result = ask(tmp_path, address, "why", "web", "-A")
    assert (result.exit_code, "note: cannot list services: " in result.stderr) == (0, True)
    assert "0/1 nodes are available: 1 Insufficient cpu." in result.stdout


CONFIGURED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
"""


def schedulers(text: str) -> dict[str, Any]:
    metadata = {"name": "situate-schedulers", "namespace": "kube-system"}
    data = {"kube-system.situate-scheduler.json": json.dumps(yaml.safe_load(text))}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_live_cluster_is_explained_by_the_profiles_that_its_scheduler_publishes(tmp_path: Path) -> None:
    with served(node("n1"), in_shop("web", cpu="8"), schedulers(CONFIGURED)) as (_, address):
        own = ask(tmp_path, address, "why", "web")
        (tmp_path / "other.yaml").write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration"
        )
        given = ask(tmp_path, address, "why", "web", "--config", str(tmp_path / "other.yaml"))
    assert "shop/web: schedulable\n1/1 nodes are available: n1 is best\n" in own.stdout
    assert "note:" not in own.stderr
    assert "0/1 nodes are available: 1 Insufficient cpu." in given.stdout


@pytest.mark.parametrize(
    "hidden, note",
    [
        pytest.param((), "no scheduler publishes its configuration in the ConfigMap", id="none is published"),
        pytest.param(("/configmaps",), "cannot read the schedulers' configuration: ", id="it may not be read"),
    ],
)
def test_a_cluster_whose_profiles_are_unknown_is_explained_by_the_default_and_that_is_said(
    tmp_path: Path, hidden: tuple[str, ...], note: str
) -> None:
    with served(node("n1"), in_shop("web", cpu="8"), hidden=hidden) as (_, address):
        result = ask(tmp_path, address, "why", "web")
    assert result.exit_code == 0
    (line,) = [line for line in result.stderr.splitlines() if note in line]
    assert line.endswith("the default profile is assumed")
    assert "0/1 nodes are available: 1 Insufficient cpu." in result.stdout


def test_a_pod_that_no_scheduler_serves_says_so_first(tmp_path: Path) -> None:
    objects = [node("n1"), in_shop("web", schedulerName="nobody"), schedulers(CONFIGURED)]
    line = 'no known scheduler serves the schedulerName "nobody"'
    with served(*objects) as (_, address):
        result = ask(tmp_path, address, "why", "web")
        values = json.loads(ask(tmp_path, address, "why", "web", "-o", "json").stdout)
        planned = ask(tmp_path, address, "plan", "fit", "web")
        checked = ask(tmp_path, address, "check")
    assert result.stdout.splitlines()[1] == f"{line}: nobody is going to place it"
    assert (values["unserved"], values["profile"]) == (line, "default-scheduler")
    assert f"{line}: 1 pod" in planned.stderr
    assert f"{line}: 1 pod" in checked.stderr


def test_a_pod_that_the_cluster_does_not_have_is_one_line(tmp_path: Path) -> None:
    with served(node("n1")) as (_, address):
        result = ask(tmp_path, address, "why", "web")
    assert (result.exit_code, result.stderr) == (2, 'error: pods "web" not found in namespace shop\n')


def test_the_plugin_for_kubectl_is_the_same_program() -> None:
    import tomllib

    scripts = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-situate"] == scripts["situate"]


# ── everything that waits ───────────────────────────────────────────────────────────────────────────────────────────


def listed(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> Result:
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return CliRunner().invoke(main, ["why", "-f", "-", *arguments], input=data, catch_exceptions=False)


def of_deployment(name: str, number: int, **fields: Any) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-5d8f", "uid": "u", "controller": True}
    meta = {"ownerReferences": [reference], "labels": {"pod-template-hash": "5d8f"}}
    return pod(f"{name}-5d8f-{number}", metadata=meta, **fields)


def test_one_pod_waits_in_the_singular() -> None:
    assert listed(node("n1"), pod("alone")).stdout.splitlines()[0] == "1 pod of 1 workload waits"


def test_without_a_name_it_lists_what_waits_by_workload_and_reason() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "as recorded"}
    objects = [
        node("n1"),
        pod("runs", nodeName="n1"),
        *(of_deployment("web", number, cpu="8") for number in range(3)),
        pod("alone", status={"conditions": [condition]}),
        pod("done", status={"phase": "Succeeded"}),
    ]
    lines = listed(*objects).stdout.splitlines()
    assert lines[0] == "4 pods of 2 workloads wait"
    assert [line.split()[:3] for line in lines[3:5]] == [
        ["default", "deployment/web", "3"],
        ["default", "pod/alone", "1"],
    ]
    assert lines[3].endswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert lines[4].endswith("as recorded")
    assert "Preemption is not helpful" in listed(*objects, arguments=("-o", "wide")).stdout
    values = json.loads(listed(*objects, arguments=("-o", "json")).stdout)
    assert [(one["kind"], one["name"], len(one["pods"])) for one in values["waiting"]] == [
        ("Deployment", "web", 3),
        ("Pod", "alone", 1),
    ]


def test_if_nothing_waits_it_says_so() -> None:
    assert listed(node("n1"), pod("runs", nodeName="n1")).stdout == "no pod waits for a node\n"
    assert listed(node("n1"), pod("a"), arguments=("-n", "shop")).stdout == "no pod waits for a node\n"


def test_a_workload_is_explained_by_a_pod_of_it_that_waits() -> None:
    objects = [node("n1"), of_deployment("web", 1, nodeName="n1"), of_deployment("web", 2, cpu="8")]
    for word in ("deployment/web", "deploy/web", "default/deployments/web"):
        said = why(word, *objects)
        assert said.stdout.startswith("default/web-5d8f-2: unschedulable")
        assert "note: 1 of 2 pods of deployment/web wait; this is about web-5d8f-2" in said.stderr
    assert "job/web has no pods in default" in why("job/web", *objects).stderr
    group = [node("n1"), pod("m", cpu="9", schedulingGroup={"podGroupName": "gang"})]
    assert why("podgroup/gang", *group).stdout.startswith("default/m:")
    custom = [node("n1"), pod("m", cpu="9", metadata={"annotations": {"pod-group-name": "gang"}})]
    assert why("podgroup/gang", *custom).stdout.startswith("default/m:")


# ── gangs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

IN_GROUP = {"annotations": {"scheduling.k8s.io/group-name": "train"}}


def volcano(**spec: Any) -> dict[str, Any]:
    return manifest("PodGroup", "train", spec=spec) | {"apiVersion": "scheduling.volcano.sh/v1beta1"}


def test_of_a_pod_in_a_gang_it_says_what_the_gang_waits_for() -> None:
    pods = [pod(f"train-{at}", metadata=IN_GROUP) for at in range(2)]
    missing = why("train-0", node("n1"), *pods)
    assert "note: waiting for PodGroup default/train of scheduling.volcano.sh, which does not exist" in missing.stderr
    lacking = why("train-0", node("n1"), *pods, volcano(minMember=3))
    assert "note: waiting for 1 more pod of gang default/train: 2 of 3 are here" in lacking.stderr
    whole = why("train-0", node("n1"), *pods, volcano(minMember=2))
    assert "note: gang default/train is complete: its 2 pods are placed together or not at all" in whole.stderr
    assert "gang" not in why("single", node("n1"), pod("single"), volcano(minMember=3, queue="q")).stderr


def test_it_names_the_fields_of_the_pods_group_that_have_no_effect() -> None:
    said = why("train-0", node("n1"), pod("train-0", metadata=IN_GROUP), volcano(minMember=1, queue="q", invented=1))
    assert (
        "note: PodGroup default/train of scheduling.volcano.sh: no effect: "
        "spec.invented (situate does not know this field); "
        "spec.queue (situate has no queues: neither their shares nor their limits apply)"
    ) in said.stderr
    assert "no effect" not in why("single", node("n1"), pod("single"), volcano(queue="q")).stderr
