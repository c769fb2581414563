"""`situate place`: who is placed, in which order, what each one sees of those before it, and what is printed."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from builders import manifest
from situate.cli import main

ROOT = Path(__file__).parents[3]
EXAMPLES = ["-f", str(ROOT / "examples" / "cluster.yaml"), "-f", str(ROOT / "examples" / "workload.yaml")]
COMMANDS = (ROOT / "docs" / "reference" / "commands.md").read_text()


def node(name: str, *, cpu: str = "4", **fields: Any) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
    return manifest("Node", name, status={"allocatable": room}, **fields)


def pod(name: str, *, cpu: str = "1", status: Any = None, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]
    return manifest("Pod", name, metadata=metadata or {}, spec={"containers": containers} | spec, status=status or {})


def on(node_name: str, name: str, **fields: Any) -> dict[str, Any]:
    return pod(name, nodeName=node_name, **fields)


def place(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> Result:
    """Run the command on these objects."""
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return CliRunner().invoke(main, ["place", "-f", "-", *arguments], input=data, catch_exceptions=False)


def found(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """What the command says of each waiting pod, in its order."""
    result = place(*objects, arguments=("-o", "json", *arguments))
    assert result.exit_code in (0, 1), result.output
    return {one["pod"].removeprefix("default/"): one for one in json.loads(result.stdout)["pods"]}


def nodes_of(*objects: dict[str, Any]) -> dict[str, str | None]:
    return {name: one["node"] for name, one in found(*objects).items()}


# ── who is decided, and when ────────────────────────────────────────────────────────────────────────────────────────


def created(at: str) -> dict[str, str]:
    return {"creationTimestamp": f"2025-01-01T{at}:00Z"}


def test_groups_of_other_schedulers_are_read_and_what_has_no_effect_is_named() -> None:
    kinds = {"scheduling.volcano.sh": "v1beta1", "scheduling.run.ai": "v2alpha2"}
    groups = [
        manifest("PodGroup", name, spec={"minMember": 1, "queue": "q"}) | {"apiVersion": f"{group}/{version}"}
        for group, version in kinds.items()
        for name in ("a", "b")
    ]
    said = place(node("n1"), pod("web"), *groups).stderr
    for group in kinds:
        assert f"2 PodGroups of {group}: no effect: spec.queue (situate has no queues" in said
    assert "ignored" not in said


def test_pods_are_decided_by_priority_then_by_age_then_as_they_stand() -> None:
    pods = [
        pod("new"),
        pod("late", metadata=created("09:00")),
        pod("early", metadata=created("08:00")),
        pod("urgent", priority=10, metadata=created("10:00")),
        pod("newer"),
        pod("whenever", priority=-1, metadata=created("07:00")),
    ]
    assert list(found(node("n1"), *pods)) == ["urgent", "early", "late", "new", "newer", "whenever"]


def test_each_pod_sees_those_before_it() -> None:
    pods = [pod(f"web-{n}", cpu="3") for n in range(3)]
    assert nodes_of(node("n1"), node("n2"), *pods) == {"web-0": "n1", "web-1": "n2", "web-2": None}


def test_pods_that_are_bound_are_counted_and_not_decided() -> None:
    assert nodes_of(node("n1"), node("n2"), on("n1", "old", cpu="4"), pod("web")) == {"web": "n2"}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_finished_hold_nothing_and_want_nothing(phase: str) -> None:
    finished = {"phase": phase}
    objects = [node("n1"), on("n1", "old", cpu="4", status=finished), pod("done", status=finished), pod("web")]
    assert nodes_of(*objects) == {"web": "n1"}


@pytest.mark.parametrize(
    "waiting, outcome, message",
    [
        pytest.param(
            pod("web", schedulingGates=[{"name": "a.io/x"}, {"name": "a.io/y"}]),
            "gated",
            "waiting for scheduling gates: [a.io/x a.io/y]",
            id="one with gates",
        ),
        pytest.param(
            pod("web", metadata={"deletionTimestamp": "2025-01-01T00:00:00Z"}),
            "leaving",
            "skip schedule deleting pod: default/web",
            id="one that is being deleted",
        ),
        pytest.param(
            pod("web", schedulerName="theirs"), "foreign", "waits for scheduler theirs", id="one of another scheduler"
        ),
    ],
)
def test_a_pod_that_is_not_looked_at(waiting: dict[str, Any], outcome: str, message: str) -> None:
    result = place(node("n1"), waiting, pod("other"))
    assert (result.exit_code, message in result.stdout) == (0, True)
    said = found(node("n1"), waiting, pod("other"))
    assert (said["web"]["outcome"], said["web"]["node"], said["web"]["message"]) == (outcome, None, message)
    assert said["other"]["node"] == "n1"


def test_a_profile_decides_for_the_pods_that_name_it(tmp_path: Path) -> None:
    packed = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "packer", "pluginConfig": [packed]}]
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config | {"profiles": profiles}))
    objects = [node("n1"), node("n2"), on("n2", "old", cpu="2"), pod("spreads"), pod("packs", schedulerName="packer")]
    said = found(*objects, arguments=("--config", str(tmp_path / "config.yaml")))
    assert (said["spreads"]["node"], said["packs"]["node"]) == ("n1", "n2")


def test_a_node_that_is_nominated_goes_first() -> None:
    objects = [node("n1"), node("n2", cpu="2"), pod("web", status={"nominatedNodeName": "n2"})]
    assert nodes_of(*objects) == {"web": "n2"}
    assert "nominated" in place(*objects).stdout


def test_a_nominated_node_that_does_not_fit_is_not_insisted_on() -> None:
    assert nodes_of(node("n1"), node("n2", cpu="0"), pod("web", status={"nominatedNodeName": "n2"})) == {"web": "n1"}


# ── preemption ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_victims_leave_and_the_pod_takes_their_node() -> None:
    said = found(
        node("n1"), on("n1", "old", cpu="3", priority=-1), pod("web", cpu="2", priority=5), pod("late", cpu="2")
    )
    assert (said["web"]["outcome"], said["web"]["node"], said["web"]["evicted"]) == (
        "preempting",
        "n1",
        ["default/old"],
    )
    assert said["web"]["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert (said["late"]["outcome"], said["late"]["node"]) == ("placed", "n1")


def test_a_pod_placed_before_is_not_evicted_by_a_later_one() -> None:
    assert nodes_of(node("n1"), pod("first", cpu="4", priority=5), pod("second", cpu="4", priority=5)) == {
        "first": "n1",
        "second": None,
    }


def test_what_a_budget_allows_is_less_after_an_eviction() -> None:
    # Two of the three nodes hold pods of the budget, which allows one disruption: the second preemption goes round it.
    guarded = {"labels": {"app": "db"}}
    objects = [
        manifest(
            "PodDisruptionBudget",
            "db",
            namespace="default",
            spec={"selector": {"matchLabels": {"app": "db"}}},
            status={"disruptionsAllowed": 1},
        ),
        *(node(name) for name in ("n1", "n2", "n3")),
        on("n1", "db-1", cpu="4", priority=-2, metadata=guarded),
        on("n2", "db-2", cpu="4", priority=-2, metadata=guarded),
        on("n3", "other", cpu="4", priority=-1),
        pod("first", cpu="4", priority=5),
        pod("second", cpu="4", priority=5),
    ]
    said = found(*objects)
    assert [said[name]["evicted"] for name in ("first", "second")] == [["default/db-1"], ["default/other"]]


def test_pods_that_are_leaving_make_room_and_are_not_called_victims() -> None:
    leaving = {"deletionTimestamp": "2025-01-01T00:00:00Z"}
    objects = [node("n1"), on("n1", "old", cpu="4", priority=-1, metadata=leaving), pod("web", cpu="4", priority=5)]
    said = found(*objects, pod("late", cpu="1"))
    assert (said["web"]["node"], said["web"]["evicted"], said["late"]["node"]) == ("n1", [], None)
    assert "takes the room of pods that are being deleted" in place(*objects).stdout


# ── volumes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LATE = manifest(
    "StorageClass", "late", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer"
)
MADE = manifest("StorageClass", "made", provisioner="example.com/disks", volumeBindingMode="WaitForFirstConsumer")


def claim(name: str, storage_class: str) -> dict[str, Any]:
    asked = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"], "resources": asked}
    return manifest("PersistentVolumeClaim", name, namespace="default", spec=spec)


def volume(name: str, node_name: str) -> dict[str, Any]:
    label = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [label]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "nodeAffinity": {"required": required},
    }
    return manifest("PersistentVolume", name, spec=spec, status={"phase": "Available"})


def labelled(name: str) -> dict[str, Any]:
    return node(name, metadata={"labels": {"kubernetes.io/hostname": name}})


def using(name: str, claim_name: str) -> dict[str, Any]:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}])


def test_a_volume_is_given_to_one_claim_only() -> None:
    objects = [LATE, labelled("n1"), labelled("n2"), volume("v1", "n1"), volume("v2", "n2")]
    pods = [using("a", "ca"), using("b", "cb"), using("c", "cc")]
    claims = [claim(name, "late") for name in ("ca", "cb", "cc")]
    said = found(*objects, *claims, *pods)
    assert sorted(str(said[name]["node"]) for name in ("a", "b")) == ["n1", "n2"]
    assert said["c"]["node"] is None
    assert "2 node(s) didn't find available persistent volumes to bind" in said["c"]["message"]


def test_a_claim_whose_volume_is_to_be_made_binds_the_next_pod_to_the_same_node() -> None:
    objects = [MADE, labelled("n1"), labelled("n2"), claim("shared", "made")]
    assert nodes_of(*objects, using("a", "shared"), pod("between", cpu="2"), using("b", "shared")) == {
        "a": "n1",
        "between": "n2",
        "b": "n1",
    }


# ── as kube-scheduler decides ───────────────────────────────────────────────────────────────────────────────────────


def recorded(family: str, count: int) -> list[Any]:
    """The first pod of some recorded clusters, with kube-scheduler's verdict on it."""
    data = ROOT / "tests" / "conformance" / "data"
    files = [gzip.decompress((data / f"{family}.{kind}.jsonl.gz").read_bytes()) for kind in ("scenarios", "verdicts")]
    pairs = zip(*(text.splitlines()[:count] for text in files), strict=True)
    return [
        pytest.param(scenario["objects"], scenario["pending"][0], verdict["pods"][0], id=f"{scenario['id']}")
        for scenario, verdict in ((json.loads(one), json.loads(other)) for one, other in pairs)
    ]


@pytest.mark.parametrize(
    "objects, waiting, verdict", [*recorded("mixed", 5), *recorded("preempt", 5), *recorded("volumes", 5)]
)
def test_every_node_is_told_as_kube_scheduler_told_it(
    objects: list[Any], waiting: dict[str, Any], verdict: dict[str, Any]
) -> None:
    result = place(*objects, waiting, arguments=("-o", "json", "--every-node"))
    (said,) = json.loads(result.stdout)["pods"]
    fit = {one["node"]: one for one in said["nodes"] if "score" in one}
    assert list(fit) == verdict["feasible"]
    refused = {one["node"]: one for one in said["nodes"] if "reasons" in one and one["plugin"] is not None}
    told = {name: (one["plugin"], one["code"], sorted(one["reasons"])) for name, one in refused.items()}
    assert told == {
        n: (one["plugin"], one["code"], one["reasons"]) for n, one in (verdict.get("rejected") or {}).items()
    }
    assert {name: one["score"] for name, one in fit.items()} == (verdict.get("total") or {})
    assert said["message"] == (verdict.get("message") or "")
    assert said["node"] == (verdict.get("chosen") or verdict.get("nominated"))
    assert said["evicted"] == (verdict.get("victims") or [])


# ── what is read ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_stands_for_its_manifests_in_order_of_name(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps(pod("from-b")))
    (tmp_path / "a.yml").write_text(yaml.safe_dump(pod("from-a")))
    (tmp_path / "c.yaml").write_text(yaml.safe_dump_all([node("n1"), pod("from-c"), None]))
    (tmp_path / "notes.txt").write_text("{")
    (tmp_path / "sub.yaml").mkdir()
    result = CliRunner().invoke(main, ["place", "-f", str(tmp_path), "-o", "json"])
    assert [one["pod"] for one in json.loads(result.stdout)["pods"]] == [f"default/from-{x}" for x in "abc"]


def test_files_together_are_one_cluster(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(node("n1")))
    arguments = ["place", "-f", str(tmp_path / "cluster.json"), "-f", "-", "-o", "json"]
    result = CliRunner().invoke(main, arguments, input=yaml.safe_dump(pod("web")))
    assert json.loads(result.stdout)["pods"][0]["node"] == "n1"


def test_what_was_read_and_does_not_count_is_noted() -> None:
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web"}}
    result = place(node("n1"), cron, cron, on("gone", "old"), pod("web"))
    assert result.exit_code == 0
    assert result.stderr == (
        "note: ignored 2 CronJob (batch/v1): `place` reads pods and the workloads that make them\n"
        "note: 1 bound pod is on a node that the input does not have; it is not counted\n"
    )


# ── what is printed ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "pods, code",
    [
        pytest.param([pod("web")], 0, id="all are placed"),
        pytest.param([pod("web", cpu="4"), pod("late")], 1, id="one fits nowhere"),
        pytest.param([pod("web", schedulingGates=[{"name": "a.io/x"}])], 0, id="one is gated"),
        pytest.param([], 0, id="nobody waits"),
    ],
)
@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml"])
def test_the_exit_code_says_whether_a_pod_fits_nowhere(output: str, pods: list[dict[str, Any]], code: int) -> None:
    assert place(node("n1"), *pods, arguments=("-o", output)).exit_code == code


def test_a_table_has_a_row_for_each_pod_and_a_line_of_sums() -> None:
    result = place(node("n1"), node("n2"), on("n1", "old", cpu="2"), pod("web"), pod("giant", cpu="64"))
    assert result.stdout.splitlines() == [
        "POD            NODE  SCORE  WHY",
        "default/web    n2      454  2 of 2 nodes fit; 25 ahead of n1",
        "default/giant  -         -  0/2 nodes are available: 2 Insufficient cpu.",
        "",
        "2 pods, 2 nodes: 1 placed, 1 fit nowhere",
    ]


@pytest.mark.parametrize(
    "objects, why",
    [
        pytest.param([node("n1"), pod("web")], "the only one of 1 node that fits", id="the only node"),
        pytest.param(
            [node("n1"), node("n2"), pod("web")], "2 of 2 nodes fit; tied with n2, the first wins", id="a tie"
        ),
        pytest.param([pod("web")], "no nodes available to schedule pods", id="no nodes"),
        pytest.param([node("n1")], "no pod is pending", id="no pods"),
        pytest.param(
            [node("n1"), on("n1", "old", cpu="4", priority=-1), pod("web")],
            "evicts default/old; before that, 0/1 nodes are available: 1 Insufficient cpu.",
            id="an eviction",
        ),
    ],
)
def test_a_table_says_why(objects: list[dict[str, Any]], why: str) -> None:
    assert why in " ".join(place(*objects).stdout.split())


def test_wide_adds_scores_and_who_was_refused_for_what() -> None:
    nodes = [node(f"n{number}", spec={"unschedulable": number > 1}) for number in range(1, 7)]
    lines = place(*nodes, pod("web"), pod("giant", cpu="64"), arguments=("-o", "wide")).stdout
    assert "scores: TaintToleration 300, NodeResourcesFit 86" in lines
    assert "refused: 5 node(s) were unschedulable: n2, n3, n4 and 2 more" in lines
    assert "preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling." in " ".join(lines.split())


@pytest.mark.parametrize("output, width", [("table", 100), ("wide", 160)])
def test_a_table_that_is_not_for_a_terminal_has_a_fixed_width(
    monkeypatch: pytest.MonkeyPatch, output: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = CliRunner().invoke(main, ["place", *EXAMPLES, "-o", output]).stdout.splitlines()
    assert width - 15 < max(len(line) for line in lines) <= width


def test_a_very_long_name_leaves_room_for_the_reason() -> None:
    name = "a" * 200
    lines = place(node("n1"), pod(name)).stdout.splitlines()
    assert max(len(line) for line in lines) <= 100
    assert "the only one of 1 node" in " ".join(lines)


def test_nothing_that_a_terminal_would_obey_is_printed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from situate.core.contract import Refusal\n"
        "class Loud:\n"
        "    def check(self, pod, view): return Refusal('\\x1b[31mno [bold]way[/bold] :smile:')\n"
    )
    plugins = {"multiPoint": {"enabled": [{"name": "mine.py:Loud"}]}}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config | {"profiles": [{"plugins": plugins}]}))
    result = place(node("n1"), pod("web"), arguments=("--config", str(tmp_path / "config.yaml")))
    assert r"0/1 nodes are available: \x1b[31mno [bold]way[/bold] :smile:." in result.stdout


def test_yaml_says_what_json_says() -> None:
    as_json, as_yaml = (CliRunner().invoke(main, ["place", *EXAMPLES, "-o", out]).stdout for out in ("json", "yaml"))
    assert yaml.safe_load(as_yaml) == json.loads(as_json)


def test_yaml_quotes_names_that_look_like_something_else() -> None:
    result = place(node("on"), node("1e3"), pod("web"), arguments=("-o", "yaml", "--every-node"))
    assert 'node: "on"' in result.stdout
    assert 'node: "1e3"' in result.stdout


def documented(heading: str) -> set[str]:
    """The keys of a table in docs/reference/commands.md, under a line of its own that introduces it."""
    table = COMMANDS.partition(f"{heading}\n\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_the_keys_are_those_of_the_page() -> None:
    arguments = ["place", *EXAMPLES, "-o", "json", "--every-node"]
    said = json.loads(CliRunner().invoke(main, arguments).stdout)
    assert set(said) == {"summary", "pods"}
    assert set(said["summary"]) == documented("Keys of `summary`:")
    keys = {frozenset(one) for one in said["pods"] if one["feasible"] is not None}
    assert keys == {frozenset(documented("Keys of each of `pods`:"))}
    refusals = [refusal for one in said["pods"] for refusal in one["refusals"]]
    assert {frozenset(one) for one in refusals} == {frozenset(documented("Keys of each of `refusals`:"))}
    nodes = {frozenset(one) for pod in said["pods"] for one in pod.get("nodes", [])}
    assert nodes == {frozenset({"node", "score", "scores"}), frozenset({"node", "plugin", "code", "reasons"})}


def test_every_key_is_there_whatever_the_outcome() -> None:
    said = json.loads(CliRunner().invoke(main, ["place", *EXAMPLES, "-o", "json"]).stdout)["pods"]
    assert len({one["outcome"] for one in said}) == 4
    assert len({frozenset(one) for one in said}) == 1


def test_many_pods_that_fit_nowhere_are_told_alike() -> None:
    said = found(node("n1"), *(pod(f"giant-{number}", cpu="64") for number in range(50)))
    assert len({json.dumps({**one, "pod": ""}) for one in said.values()}) == 1


def test_what_another_version_would_change_is_a_table() -> None:
    low, high = on("n1", "low", cpu="4", priority=1), pod("high", cpu="4", priority=9)
    flag = ("--compare-kubernetes-version", "1.37")
    objects = (node("n1"), low, high, pod("huge", cpu="99"), pod("small", cpu="0"))
    result = place(*objects, arguments=flag)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["POD", "CHANGE", "VERSION", "NODE", "MESSAGE"]
    assert [line.split()[:4] for line in lines[1:4:2]] == [
        ["default/high", "message", "1.36", "n1"],
        ["default/huge", "message", "1.36", "-"],
    ]
    assert "found a potential placement for pod on node n1, preempting 1 victims" in lines[2]
    assert lines[-1] == "3 pods decided: 2 would change from 1.36 to 1.37"
    told = json.loads(place(*objects, arguments=(*flag, "-o", "json")).stdout)
    assert (told["pods"], told["from"], told["to"]) == (3, "1.36", "1.37")
    assert [(one["pod"], one["change"], one["after"]["outcome"]) for one in told["changes"]] == [
        ("default/high", "message", "preempting"),
        ("default/huge", "message", "refused"),
    ]


def test_a_version_changes_nothing_compared_with_itself() -> None:
    both = ("--kubernetes-version", "1.37", "--compare-kubernetes-version", "1.37")
    result = place(node("n1"), pod("huge", cpu="99"), arguments=both)
    assert result.stdout == "1 pod decided: 0 would change from 1.37 to 1.37\n"


# ── workloads ───────────────────────────────────────────────────────────────────────────────────────────────────────


def workload(kind: str, name: str, *, cpu: str = "1", **fields: Any) -> dict[str, Any]:
    """A workload whose pods ask for this."""
    containers = [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]
    marks = {"app": name}
    spec = {"template": {"metadata": {"labels": marks}, "spec": {"containers": containers}}} | fields
    if kind != "Job":
        spec["selector"] = {"matchLabels": marks}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def owned(kind: str, owner: str, name: str, labels: Any = None, **fields: Any) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
    return on("n1", name, metadata={"ownerReferences": [reference], "labels": labels or {}}, **fields)


def test_a_workload_makes_its_pods_as_its_controller_would() -> None:
    nodes = [node("n1"), node("n2")]
    made = found(*nodes, workload("Deployment", "web", replicas=3))
    assert [name.rpartition("-")[0].rpartition("-")[0] for name in made] == ["web"] * 3
    assert list(found(*nodes, workload("StatefulSet", "db", replicas=2))) == ["db-0", "db-1"]
    daemons = found(*nodes, workload("DaemonSet", "log"))
    assert [one["node"] for one in daemons.values()] == ["n1", "n2"]
    assert len(found(*nodes, workload("Job", "sum", parallelism=2, completions=5))) == 2
    assert len(found(*nodes, workload("ReplicaSet", "rs", replicas=2))) == 2


def test_only_pods_that_do_not_exist_yet_are_made() -> None:
    web = owned("ReplicaSet", "web-5d8f", "web-5d8f-x", {"pod-template-hash": "5d8f", "app": "web"})
    assert len(found(node("n1"), web, workload("Deployment", "web", replicas=3))) == 2
    first = owned("StatefulSet", "db", "db-0")
    assert list(found(node("n1"), first, workload("StatefulSet", "db", replicas=2))) == ["db-1"]
    log = owned("DaemonSet", "log", "log-a")
    assert [one["node"] for one in found(node("n1"), node("n2"), log, workload("DaemonSet", "log")).values()] == ["n2"]
    job = workload("Job", "sum", parallelism=2, completions=3) | {"status": {"succeeded": 2}}
    assert len(found(node("n1"), job)) == 1
    ended = workload("Job", "sum") | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert found(node("n1"), ended) == {}


def test_a_replica_set_of_a_deployment_makes_nothing_of_its_own() -> None:
    deployment = workload("Deployment", "web", replicas=2)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    replicas = workload("ReplicaSet", "web-5d8f", replicas=2)
    replicas["metadata"]["ownerReferences"] = [reference]
    assert len(found(node("n1"), deployment, replicas)) == 2


def test_a_note_counts_the_pods_that_were_made() -> None:
    said = place(node("n1"), workload("Deployment", "web", replicas=2))
    assert said.stderr == "note: made 2 pods of 1 workload, as the controllers would\n"


def test_a_workload_with_a_priority_class_that_only_pods_name_gets_its_value() -> None:
    running = on("n1", "a", priorityClassName="high", priority=7)
    wanted = workload("Deployment", "web")
    wanted["spec"]["template"]["spec"]["priorityClassName"] = "high"
    assert [one["priority"] for one in found(node("n1"), running, wanted).values()] == [7]
