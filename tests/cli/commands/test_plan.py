"""`situate plan`: what it says of files and of clusters, how it exits, and what it says to wrong input."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from builders import manifest
from kube.served import served
from situate.cli import main

ROOT = Path(__file__).parents[3]
CLUSTER = str(ROOT / "examples" / "plan" / "cluster.yaml")
WORKLOAD = str(ROOT / "examples" / "plan" / "workload.yaml")
SHAPES = str(ROOT / "examples" / "plan" / "shapes.yaml")
LARGE = str(ROOT / "examples" / "plan" / "large.yaml")
ZONE = "topology.kubernetes.io/zone"


def plan(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, ["plan", *words], input=stdin, catch_exceptions=False)


def told(*words: str, code: int = 0, stdin: str = "") -> dict[str, Any]:
    result = plan(*words, "-o", "json", stdin=stdin)
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*words: str, stdin: str = "") -> str:
    result = plan(*words, stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    return line


def listed(*objects: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def node(name: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
    return manifest("Node", name, metadata={"labels": labels}, status={"allocatable": room})


def pod(name: str, *, cpu: str = "1", owner: str = "ReplicaSet", metadata: Any = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": "web-1", "uid": "u", "controller": True}
    meta = {"namespace": "default", "ownerReferences": [reference] if owner else [], **(metadata or {})}
    return manifest("Pod", name, metadata=meta, spec={"containers": containers} | spec)


def deployment(name: str = "web", replicas: int = 3, cpu: str = "1") -> dict[str, Any]:
    template = pod("x", cpu=cpu)["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": template},
        },
    }


# ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_fit_says_how_many_where_and_what_stops_the_next() -> None:
    said = told("fit", "web-6d4f-0", "-f", CLUSTER)
    assert said["fits"] == 4
    assert said["byNode"] == {"node-a1": 1, "node-a2": 1, "node-b2": 2}
    assert said["byZone"] == {"zone-a": 2, "zone-b": 2}
    assert said["next"]["message"].startswith("0/4 nodes are available: 4 Insufficient cpu.")


def test_fit_takes_the_template_of_a_deployment_in_the_dump() -> None:
    said = told("fit", "deploy/web", "-f", "-", stdin=listed(node("n1"), deployment(cpu="2")))
    assert (said["workload"], said["fits"]) == ("Deployment default/web", 2)


def test_fit_exits_with_1_if_fewer_fit_than_asked() -> None:
    assert told("fit", "-w", LARGE, "-f", CLUSTER, "--at-least", "1", code=1)["fits"] == 0
    assert told("fit", "-w", LARGE, "-f", CLUSTER, "--at-least", "0")["fits"] == 0


def test_fit_can_place_what_waits_before() -> None:
    objects = listed(node("n1"), pod("waits", cpu="3"), deployment())
    assert told("fit", "deploy/web", "-f", "-", stdin=objects)["fits"] == 4
    said = told("fit", "deploy/web", "-f", "-", "--waiting-first", stdin=objects)
    assert (said["fits"], said["waitingFirst"]) == (1, [{"pod": "default/waits", "node": "n1"}])


def test_fit_takes_a_claim_of_each_pods_own_to_be_made_anew() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    objects = listed(node("n1"), pod("db-0", owner="StatefulSet", volumes=volumes))
    said = told("fit", "db-0", "-f", "-", stdin=objects)
    assert said["fits"] == 4
    assert "assumes that claims of a pod's own are provisioned wherever it goes" in said["notes"]


def test_fit_knows_the_priority_of_a_class(tmp_path: Path) -> None:
    manifested = tmp_path / "pod.json"
    manifested.write_text(json.dumps(pod("vital", cpu="4", owner="", priorityClassName="vital")))
    vital = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "vital"}, "value": 9}
    objects = [node("n1"), pod("old", nodeName="n1")]
    said = told("fit", "-w", str(manifested), "-f", "-", code=1, stdin=listed(*objects, vital))
    assert (said["fits"], said["next"]["evicts"]) == (0, ["default/old"])
    line = refused("fit", "-w", str(manifested), "-f", "-", stdin=listed(*objects))
    assert line.endswith("spec.priorityClassName: no PriorityClass with name vital was found")


def test_fit_says_what_the_nodes_in_use_come_to_where_prices_are_known(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    args = {"prices": [{"node": "n1", "price": 0.50}, {"node": "n2", "price": 0.25}]}
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [
                    {
                        "plugins": {"score": {"enabled": [{"name": "Cost", "weight": 1}]}},
                        "pluginConfig": [{"name": "Cost", "args": args}],
                    }
                ],
            }
        )
    )
    objects = listed(node("n1"), node("n2"), deployment())
    said = told("fit", "deploy/web", "-f", "-", "--config", str(config), stdin=objects)
    assert (said["money"]["before"]["anHour"], said["money"]["after"]["anHour"]) == ("0.00", "0.75")


# ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nodes_says_how_many_of_which_shapes_and_below_what_nothing_would_do() -> None:
    said = told("nodes", "-w", WORKLOAD, "--shapes", SHAPES, "--zone", "zone-a", "--zone", "zone-b")
    assert said["nodes"] >= said["atLeast"] >= 3
    assert sum(shape["nodes"] for shape in said["shapes"]) == said["nodes"]
    assert float(said["money"]["atLeast"]) <= float(said["money"]["anHour"])


def test_nodes_is_about_what_waits_where_no_workload_is_given() -> None:
    objects = listed(node("n1"), pod("old", cpu="3", nodeName="n1"), pod("a", cpu="3"), pod("b", cpu="3"))
    said = told("nodes", "-f", "-", stdin=objects)
    assert (said["pods"], said["nodes"], said["atLeast"]) == (2, 2, 2)


def test_nodes_can_say_how_small_a_cluster_could_be() -> None:
    said = told("nodes", "--all-pods", "-f", CLUSTER)
    assert (said["before"], said["nodes"], said["atLeast"]) == (4, 3, 3)


def test_nodes_like_one_that_is_there(tmp_path: Path) -> None:
    cluster, workload = tmp_path / "cluster.json", tmp_path / "workload.json"
    cluster.write_text(listed(node("n1"), node("n2", cpu="16")))
    workload.write_text(json.dumps(deployment(replicas=8, cpu="2")))
    words = ["nodes", "-w", str(workload), "-f", str(cluster), "--from-empty"]
    assert told(*words, "--like", "n2")["shapes"] == [{"name": "n2-like", "nodes": 1, "price": None}]
    assert refused(*words, "--group-by", "size") == f"error: {cluster}: no node has the label size"


def test_nodes_exits_with_1_if_no_number_of_them_would_do() -> None:
    said = told("nodes", "-f", "-", code=1, stdin=listed(node("n1"), pod("giant", cpu="64")))
    assert said["nodes"] is None
    assert said["left"][0]["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


# ── survive ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_survive_tries_every_zone_and_every_node() -> None:
    said = told("survive", "-f", CLUSTER, code=1)
    assert [(one["domain"], one["survives"]) for one in said["losses"]] == [
        ("zone-a", False),
        ("zone-b", False),
        ("node-a1", True),
        ("node-a2", True),
        ("node-b1", True),
        ("node-b2", True),
    ]
    assert [one["pod"] for one in said["losses"][0]["lost"]] == ["default/db-0"]


def test_survive_can_be_about_one_workload() -> None:
    assert told("survive", "web-6d4f-0", "-f", CLUSTER)["survives"]
    assert not told("survive", "db-0", "-f", CLUSTER, code=1)["survives"]


def test_survive_by_a_label_of_ones_own() -> None:
    said = told("survive", "--by", "rack", "-f", "-", stdin=listed(node("n1", rack="1"), node("n2", rack="2")))
    assert [(one["by"], one["domain"]) for one in said["losses"]] == [("rack", "1"), ("rack", "2")]


# ── drain ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_drain_says_what_moves_where_and_what_stays() -> None:
    said = told("drain", "node-a2", "-f", CLUSTER)
    assert said["complete"]
    assert [[(one["pod"], one["to"]) for one in wave] for wave in said["waves"]] == [[("default/db-0", "node-b2")]]
    assert [one["pod"] for one in said["stay"]] == ["default/agent-a2"]


def test_drain_chooses_nodes_by_label_and_exits_with_1_if_it_would_not_end() -> None:
    said = told("drain", "-l", f"{ZONE}=zone-b", "-f", CLUSTER, code=1)
    assert said["nodes"] == ["node-b1", "node-b2"]
    assert [one["pod"] for wave in said["waves"] for one in wave if one["to"] is None] == ["default/db-1"]


def test_drain_sees_local_storage_in_json_and_in_yaml() -> None:
    held = pod("p", nodeName="n1", volumes=[{"name": "tmp", "emptyDir": {}}])
    objects = [node("n1"), node("n2"), held]
    for stdin in (listed(*objects), yaml.safe_dump_all(objects)):
        assert "--delete-emptydir-data" in told("drain", "n1", "-f", "-", code=1, stdin=stdin)["refused"][0]["why"]
        assert told("drain", "n1", "-f", "-", "--delete-emptydir-data", stdin=stdin)["complete"]


def test_drain_says_that_it_knows_no_budgets_if_none_were_given() -> None:
    result = plan("drain", "n1", "-f", "-", stdin=listed(node("n1")))
    assert result.stderr == "note: the input has no PodDisruptionBudget: which pods budgets protect is unknown\n"


# ── defrag ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_defrag_frees_a_shape_and_says_that_nothing_was_moved() -> None:
    result = plan("defrag", "-w", LARGE, "-f", CLUSTER)
    assert result.exit_code == 0
    assert result.stdout.startswith("1 move frees room for Pod default/large on node-a2, and no plan has fewer\n")
    assert result.stderr == "nothing was moved: --apply carries the plan out\n"


def test_defrag_frees_a_node() -> None:
    said = told("defrag", "--node", "node-a1", "-f", CLUSTER)
    assert [(one["pod"], one["from"]) for one in said["moves"]] == [
        ("default/web-6d4f-0", "node-a1"),
        ("default/web-6d4f-1", "node-a1"),
    ]
    assert (said["atLeast"], said["fewest"]) == (2, True)


def test_defrag_exits_with_1_and_says_who_is_in_the_way() -> None:
    objects = listed(node("n1"), node("n2"), pod("alone", owner="", nodeName="n1"))
    result = plan("defrag", "--node", "n1", "-f", "-", stdin=objects)
    assert result.exit_code == 1
    assert "default/alone cannot move: cannot delete Pods that declare no controller" in result.stdout


# ── what is wrong with the input ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "words, line",
    [
        (["fit", "-f", CLUSTER], "name a pod or workload, or give a file with -w: one or the other"),
        (["fit", "nobody", "-f", CLUSTER], f'{CLUSTER}: pods "nobody" not found in namespace default'),
        (["fit", "deploy/nobody", "-f", CLUSTER], f"{CLUSTER}: Deployment nobody not found in namespace default"),
        (["fit", "a/b/c", "-f", CLUSTER], '"a/b/c" does not name a pod or workload: NAME, NAMESPACE/NAME or KIND/NAME'),
        (["fit", "x", "-n", "a", "-A", "-f", CLUSTER], "-n and -A: give one or the other"),
        (["drain", "-f", CLUSTER], "name nodes, or choose them with -l: one or the other"),
        (["drain", "n9", "-f", CLUSTER], f'{CLUSTER}: nodes "n9" not found'),
        (["drain", "-l", "a=b", "-f", CLUSTER], f"{CLUSTER}: no node has a=b"),
        (["survive", "--by", "rack", "-f", CLUSTER], f"{CLUSTER}: no node has the label rack"),
        (
            ["defrag", "-f", CLUSTER],
            "say what to free: give one of WORKLOAD, -w FILE, --node NAME and --any-node",
        ),
        (
            ["defrag", "--any-node", "--apply", "-f", CLUSTER],
            "--apply needs a cluster: it cannot move pods in files (-f)",
        ),
        (["nodes", "-f", CLUSTER], f"{CLUSTER}: no pod is pending: give a workload with -w, or --all-pods"),
        (["nodes", "-w", SHAPES, "-f", CLUSTER], f"{SHAPES}: kind: Required value"),
        (
            ["nodes", "-w", LARGE, "--shapes", WORKLOAD],
            f"{WORKLOAD}: expected a list `shapes`, or Node objects",
        ),
        (
            ["fit", "x", "-f", CLUSTER, "--context", "c"],
            "-f names files; --kubeconfig, --context and --cluster name a cluster",
        ),
    ],
    ids=lambda value: " ".join(value).replace(str(ROOT), "") if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line(words: list[str], line: str) -> None:
    assert refused(*words).startswith(f"error: {line}")


def test_a_selector_that_is_none_is_one_line() -> None:
    assert refused("drain", "-l", "a in b", "-f", CLUSTER).startswith("error: -l a in b: ")


@pytest.mark.parametrize(
    "shape, line",
    [
        ({"name": "s"}, "shapes[0].allocatable: Required value"),
        ({"allocatable": {}}, "shapes[0].name: Required value"),
        ({"name": "s", "allocatable": {}, "cores": 4}, "shapes[0].cores: unknown field"),
        (
            {"name": "s", "allocatable": {}, "price": "cheap"},
            'shapes[0].price: expected a price an hour, such as "0.192"',
        ),
    ],
    ids=["no room", "no name", "a field that is none", "a price that is none"],
)
def test_a_shape_that_is_wrong_is_one_line(tmp_path: Path, shape: dict[str, Any], line: str) -> None:
    file = tmp_path / "shapes.yaml"
    file.write_text(yaml.safe_dump({"shapes": [shape]}))
    assert refused("nodes", "-w", LARGE, "--shapes", str(file)).startswith(f"error: {file}: {line}")


# ── a cluster ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "web"],
        ["survive"],
        ["drain", "n1"],
        ["defrag", "--any-node"],
        ["nodes", "--all-pods"],
    ],
    ids=lambda words: words[0],
)
def test_a_live_cluster_is_only_read_and_says_what_files_say(tmp_path: Path, words: list[str]) -> None:
    objects = [node("n1"), node("n2"), pod("web", nodeName="n1"), pod("old", nodeName="n2", cpu="2")]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": ""}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    with served(*objects) as (server, address):
        config["clusters"] = [{"name": "c", "cluster": {"server": address}}]
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        live = plan(*words, "-o", "json", "--kubeconfig", str(tmp_path / "kubeconfig"))
        asked = {one.method for one in server.requests}
    offline = plan(*words, "-f", "-", "-o", "json", stdin=listed(*objects))
    assert asked == {"GET"}
    assert live.exit_code == offline.exit_code == 0, live.output
    assert json.loads(live.stdout) | {"notes": []} == json.loads(offline.stdout) | {"notes": []}


# ── drift ───────────────────────────────────────────────────────────────────────────────────────────────────────────

DRIFT = str(ROOT / "examples" / "plan" / "drift.yaml")


def test_drift_says_who_has_drifted_and_what_would_happen() -> None:
    said = told("drift", "-f", DRIFT, code=1)
    assert [(one["pod"], one["node"], one["action"]) for one in said["pods"]] == [
        ("default/batch-0", "node-1", "evict"),
        ("default/db-0", "node-2", "wait"),
        ("default/once", "node-2", "never"),
    ]
    assert said["pods"][1]["why"] == "The disruption budget db needs 1 healthy pods and has 1 currently"


def test_drift_finds_none_in_a_cluster_that_is_as_it_was() -> None:
    assert told("drift", "-f", CLUSTER)["pods"] == []
    assert "no pod has drifted" in plan("drift", "-f", CLUSTER).stdout


def test_drift_names_what_it_cannot_read() -> None:
    assert "no Node found" in refused("drift", "-f", "-", stdin=listed(pod("a")))
    broken = manifest("PodDisruptionBudget", "b", spec={"selector": 3})
    assert "PodDisruptionBudget b" in refused("drift", "-f", "-", stdin=listed(node("n1"), broken))


def test_drift_reads_a_live_cluster(tmp_path: Path) -> None:
    with served(node("n1"), pod("a", nodeName="n1", nodeSelector={"disk": "ssd"})) as (server, address):
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        said = told("drift", "--kubeconfig", str(tmp_path / "kubeconfig"), code=1)
        assert {one.method for one in server.requests} == {"GET"}
    assert [(one["pod"], one["action"]) for one in said["pods"]] == [("default/a", "evict")]
