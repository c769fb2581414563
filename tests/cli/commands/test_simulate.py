"""`situate simulate`: figures for people, for programs and as a page; the same bytes each time; and what is refused."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from builders import manifest
from cli.commands.test_why import ask
from kube.served import served
from situate.cli import main

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "simulate"
ZONE = "topology.kubernetes.io/zone"


def node(name: str, *, cpu: str = "4", zone: str = "a") -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, ZONE: zone, "size": cpu}
    room = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
    return manifest("Node", name, metadata={"labels": labels}, status={"allocatable": room})


def pod(name: str, *, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return manifest("Pod", name, spec={"containers": containers} | spec)


def deployment(name: str, replicas: int, *, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name, cpu=cpu, **spec)["spec"]}
    said = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": said}


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def wrote(name: str, *objects: dict[str, Any]) -> str:
    Path(name).write_text(yaml.safe_dump_all(objects))
    return name


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments], catch_exceptions=False)


def told(*arguments: str) -> dict[str, Any]:
    result = simulate(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*arguments: str) -> str:
    result = simulate(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


# ── what is said ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_workload_on_a_snapshot_comes_to_exact_figures(there: Path) -> None:
    cluster = wrote("c.yaml", node("n1"), node("n2", zone="b"), pod("old", cpu="1", nodeName="n1"))
    workload = wrote("w.yaml", deployment("web", 4, cpu="2"))
    (one,) = told("-f", cluster, "-w", workload)["configurations"]
    assert one["pods"] == {
        "snapshot": 1,
        "arrived": 4,
        "remade": 0,
        "placed": 3,
        "running": 4,
        "pending": 1,
        "finished": 0,
        "deleted": 0,
        "evicted": 0,
    }
    assert [(each["reason"], each["pods"]) for each in one["pending"]] == [("Insufficient cpu", 1)]
    assert one["resources"]["cpu"]["utilisation"] == {"mean": 0.875, "peak": 0.875, "end": 0.875}
    assert one["resources"]["cpu"]["fragmentation"] == {"mean": 1.0, "end": 1.0}
    assert one["nodes"] == {"total": 2, "used": {"mean": 2.0, "peak": 2, "end": 2}}
    assert one["spread"]["zones"]["worst"] == 1
    assert one["wait"] == {"p50": 0.0, "p99": 0.0, "max": 0.0}
    assert one["money"] is None


def test_configurations_stand_side_by_side_under_the_names_of_their_files(there: Path) -> None:
    cluster = wrote("c.yaml", node("n1"), node("n2"), node("n3"))
    workload = wrote("w.yaml", pod("a"), pod("b"), pod("c"))
    arguments = ("-f", cluster, "-w", workload, "--config", "default", "--config", str(EXAMPLE / "pack.yaml"))
    found = {one["name"]: one["nodes"]["used"]["end"] for one in told(*arguments)["configurations"]}
    assert found == {"default": 3, "pack": 1}
    heading, *lines = simulate(*arguments).stdout.splitlines()
    assert heading.split() == ["default", "pack"]
    assert ["used,", "most", "3", "1"] in [line.split() for line in lines]


@pytest.mark.parametrize("needed, placed", [(3, 0), (2, 2)])
def test_a_group_of_another_scheduler_keeps_its_pods_together(there: Path, needed: int, placed: int) -> None:
    group = manifest("PodGroup", "train", spec={"minMember": needed, "queue": "research"})
    pods = [pod(name) for name in ("train-0", "train-1")]
    for one in pods:
        one["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "train"}
    workload = wrote("w.yaml", *pods, group | {"apiVersion": "scheduling.volcano.sh/v1beta1"})
    said = told("-f", wrote("c.yaml", node("n1")), "-w", workload)
    (one,) = said["configurations"]
    assert (one["pods"]["arrived"], one["pods"]["placed"]) == (2, placed)
    (note,) = [one for one in said["notes"] if "PodGroup" in one]
    assert note.startswith("PodGroup default/train of scheduling.volcano.sh: no effect: spec.queue (")


def test_pods_that_wait_in_the_snapshot_come_at_the_beginning(there: Path) -> None:
    (one,) = told("-f", wrote("c.yaml", node("n1"), pod("web")))["configurations"]
    assert (one["pods"]["arrived"], one["pods"]["placed"]) == (1, 1)


def test_a_trace_names_templates_beside_it(there: Path) -> None:
    (there / "traces").mkdir()
    wrote("traces/web.yaml", deployment("web", 1, cpu="3"))
    Path("traces/t.csv").write_text("time,name,template,duration\n0,a,web.yaml,60\n5,b,web.yaml,60\n")
    (one,) = told("-f", wrote("c.yaml", node("n1")), "--trace", "traces/t.csv")["configurations"]
    assert (one["seconds"], one["wait"]["max"], one["pods"]["finished"]) == (120.0, 55.0, 2)


def test_arrivals_by_lot_follow_the_seed(there: Path) -> None:
    arguments = ["-f", wrote("c.yaml", node("n1")), "-w", wrote("w.yaml", pod("a"), pod("b", cpu="2"))]
    arguments += ["--arrivals", "poisson:1", "--pods", "20", "--duration", "exp:3"]
    first, again, other = (told(*arguments, "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again
    assert first["configurations"][0]["seconds"] != other["configurations"][0]["seconds"]
    assert first["configurations"][0]["pods"]["finished"] == 20


def test_pods_of_one_workload_run_for_different_times(there: Path) -> None:
    arguments = ["-f", wrote("c.yaml", node("n1")), "-w", wrote("w.yaml", pod("a"), pod("b"))]
    (one,) = told(*arguments, "--duration", "uniform:10..1000")["configurations"]
    assert sorted(set(one["series"]["running"])) == [0, 1, 2]


def test_prices_of_a_configuration_make_money_an_hour_of_all(there: Path) -> None:
    cluster = wrote("c.yaml", node("n1"), node("n2", cpu="8"))
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "Cost"}]}},
                "pluginConfig": [{"name": "Cost", "args": {"prices": [{"node": "n1", "price": 0.25}]}}],
            }
        ],
    }
    Path("cheap.yaml").write_text(yaml.safe_dump(config))
    arguments = ("-f", cluster, "-w", wrote("w.yaml", pod("a", nodeSelector={"size": "4"})))
    for one in told(*arguments, "--config", "default", "--config", "cheap.yaml")["configurations"]:
        assert one["money"]["anHour"] == {"mean": "0.25", "peak": "0.25", "end": "0.25"}
        assert one["money"]["unpriced"] == 1


def test_what_was_not_given_is_said_and_what_cannot_be_judged(there: Path) -> None:
    claims = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    result = simulate("-f", wrote("c.yaml", node("n1")), "-w", wrote("w.yaml", pod("a", volumes=claims)))
    assert "note: the input has no Pod: all nodes count as empty" in result.stderr
    missing = "the input has no PersistentVolumeClaim, PersistentVolume or StorageClass"
    assert f"note: {missing}: claims count as missing" in result.stderr
    assert "note: the input has no CSINode: how many volumes a node may have is unknown" in result.stderr


def test_yaml_says_what_json_says(there: Path) -> None:
    arguments = ("-f", wrote("c.yaml", node("n1"), pod("web")))
    assert yaml.safe_load(simulate(*arguments, "-o", "yaml").stdout) == told(*arguments)


def test_a_live_cluster_is_only_read_and_gives_the_figures_of_files(there: Path) -> None:
    objects = [node("n1"), pod("old", cpu="3", nodeName="n1"), pod("web", cpu="2")]
    vip = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "vip"}, "value": 5}
    workload = wrote("w.yaml", pod("new", cpu="2", priorityClassName="vip"))
    with served(*objects) as (server, address):
        server.put("/apis/scheduling.k8s.io/v1/priorityclasses", vip)
        live = json.loads(ask(there, address, "simulate", "-w", workload, "-o", "json").stdout)
        asked = {one.method for one in server.requests}
    assert asked == {"GET"}
    offline = told("-f", wrote("c.yaml", *objects, vip), "-w", workload)
    assert live["configurations"] == offline["configurations"]
    assert live["configurations"][0]["pods"]["evicted"] == 1


def test_of_a_live_cluster_what_may_not_be_listed_is_said(there: Path) -> None:
    with served(node("n1"), pod("web"), hidden=("/priorityclasses", "/services")) as (_, address):
        result = ask(there, address, "simulate")
    assert result.exit_code == 0
    assert "note: cannot list priorityclasses: " in result.stderr
    assert "note: cannot list services: " in result.stderr


# ── the same input, the same bytes ──────────────────────────────────────────────────────────────────────────────────


def example(*arguments: str, seed: str) -> bytes:
    said = ["-f", "cluster.yaml", "-w", "workload.yaml", "--trace", "trace.csv", "--config", "pack.yaml"]
    done = subprocess.run(
        [sys.executable, "-m", "situate", "simulate", *said, "--config", "default", *arguments],
        cwd=EXAMPLE,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
    )
    return done.stdout


def test_the_same_input_gives_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    pages = [tmp_path / "1.html", tmp_path / "2.html"]
    printed = [example("-o", "json", "--report", str(page), seed=str(at)) for at, page in enumerate(pages, 1)]
    assert printed[0] == printed[1]
    assert pages[0].read_bytes() == pages[1].read_bytes()


# ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Page(HTMLParser):
    """What a page holds: that every tag is closed, and what it would fetch."""

    VOID = ("meta", "br", "link", "img", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.plots: list[str] = []
        self.fetched: list[str] = []
        self.headings: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag in ("script", "link", "img", "iframe", "object") or "src" in said or "href" in said:
            self.fetched.append(tag)
        if tag == "svg":
            self.plots.append(said["aria-label"] or "")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def test_the_page_is_whole_and_fetches_nothing(there: Path) -> None:
    cluster, workload = wrote("c.yaml", node("n1"), node("n2")), wrote("w.yaml", deployment("web", 9))
    arguments = ("-f", cluster, "-w", workload, "--duration", "60", "--config", "default")
    assert simulate(*arguments, "--config", str(EXAMPLE / "pack.yaml"), "--report", "r.html").exit_code == 0
    text = Path("r.html").read_text()
    page = Page(text)
    assert page.open == []
    assert page.fetched == []
    assert not re.search(r"https?://|url\(|@import", text)
    assert page.headings[:6] == [
        "Side by side",
        "Utilisation over time",
        "Nodes and pods over time",
        "Pending pods, by reason",
        "Nodes",
        "All figures",
    ]
    for what in ("utilisation of cpu", "pending pods, pack", "how full nodes are, default"):
        assert what in page.plots
    assert "prefers-color-scheme:dark" in text
    assert "Insufficient cpu" in text


def test_what_others_wrote_is_no_part_of_the_page(there: Path) -> None:
    cluster = wrote("c.yaml", node("n1"), pod("web", schedulerName="<script>alert(1)</script>&"))
    assert simulate("-f", cluster, "--report", "r.html").exit_code == 0
    assert "<script" not in Path("r.html").read_text()


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_nodes_nothing_can_be_judged(there: Path) -> None:
    line = refused("-f", wrote("c.yaml", pod("web")))
    assert line == "error: c.yaml: no Node found, so pods have nowhere to go; add `kubectl get nodes`"


def test_a_trace_that_goes_back_in_time_is_one_line(there: Path) -> None:
    Path("t.csv").write_text("time,name\n5,a\n4,b\n")
    line = refused("-f", wrote("c.yaml", node("n1")), "--trace", "t.csv")
    assert line == "error: t.csv: line 3: time: time goes back: 4 is before 5, the time of line 2"


def test_a_pod_that_is_named_twice_is_one_line(there: Path) -> None:
    Path("t.csv").write_text("time,name\n5,a\n6,a\n")
    cluster = wrote("c.yaml", node("n1"), pod("web", nodeName="n1"))
    assert "line 3: name: duplicate pod default/a" in refused("-f", cluster, "--trace", "t.csv")
    assert "its pod default/web is already in c.yaml" in refused("-f", cluster, "-w", wrote("w.yaml", pod("web")))
    twice = refused("-f", cluster, "-w", wrote("v.yaml", pod("a"), pod("a")))
    assert twice == 'error: v.yaml: Pod a: metadata.name: Duplicate value: "a": already in v.yaml'


@pytest.mark.parametrize(
    "arguments, line",
    [
        pytest.param(["--duration", "ever"], '--duration: "ever" is not a duration', id="a duration"),
        pytest.param(["--arrivals", "often"], '--arrivals: "often" does not set how pods arrive', id="arrivals"),
        pytest.param(["--until", "-5"], '--until: "-5" is not a duration', id="an end"),
        pytest.param(["--pods", "5"], "--pods needs --arrivals", id="pods alone"),
        pytest.param(
            ["--arrivals", "every:1", "--pods", "5"], "there is no workload to draw pods from", id="no workload"
        ),
        pytest.param([], "no pod arrives: give a workload (-w) or a trace (--trace)", id="nobody comes"),
        pytest.param(["--trace", "no.csv"], "no.csv: No such file or directory", id="a trace that is not there"),
        pytest.param(["--config", "no.yaml"], "no.yaml: No such file or directory", id="a configuration"),
        pytest.param(
            ["--context", "x"],
            "-f names files; --kubeconfig, --context and --cluster name a cluster",
            id="two clusters",
        ),
        pytest.param(["--report", "no/page.html"], "--report no/page.html: there is no such folder", id="a folder"),
        pytest.param(["-w", "c.yaml"], "Node n1: a node is part of the snapshot: give it with -f", id="a node"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(there: Path, arguments: list[str], line: str) -> None:
    assert line in refused("-f", wrote("c.yaml", node("n1")), *arguments)
