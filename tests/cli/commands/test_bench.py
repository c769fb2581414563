"""`situate bench`: the line that it prints is about what it did, with and without kept answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from situate.cli import main

ZONE = "topology.kubernetes.io/zone"


def node(name: str, zone: str) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, ZONE: zone}
    room = {"cpu": "4", "memory": "16Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": room},
    }


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": containers} | spec,
    }


NODES = [node(f"n{at}", f"z{at % 3}") for at in range(6)]


def bench(folder: Path, workload: dict[str, Any], *arguments: str) -> dict[str, Any]:
    (folder / "w.json").write_text(json.dumps({"nodes": NODES, "bound": [], "pending": []} | workload))
    result = CliRunner().invoke(main, ["bench", str(folder / "w.json"), *arguments], catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    said: dict[str, Any] = json.loads(line)
    return said


def test_the_line_has_these_keys(tmp_path: Path) -> None:
    said = bench(tmp_path, {"pending": [pod("web")]})
    assert list(said) == ["placed", "seconds", "pods_per_s", "nodes_used", "rss_mb"]
    assert said["seconds"] > 0
    assert said["pods_per_s"] > 0
    assert said["rss_mb"] > 10


@pytest.mark.parametrize("cache", ["on", "off"])
@pytest.mark.parametrize(
    "workload, placed, used",
    [
        pytest.param({"pending": [pod(f"p{at}") for at in range(12)]}, 12, 6, id="pods that spread"),
        pytest.param({"pending": [pod(f"p{at}") for at in range(30)]}, 24, 6, id="more pods than room"),
        pytest.param({"pending": [pod(f"p{at}", cpu="9") for at in range(3)]}, 0, 0, id="pods that fit nowhere"),
        pytest.param(
            {"bound": [pod(f"b{at}", cpu="4", nodeName=f"n{at}") for at in range(4)], "pending": [pod("p", cpu="4")]},
            1,
            5,
            id="a cluster that is nearly full",
        ),
        pytest.param({"pending": [pod("p", schedulerName="theirs")]}, 0, 0, id="a pod of another scheduler"),
        pytest.param({"nodes": [], "pending": [pod("p")]}, 0, 0, id="no nodes"),
        pytest.param({}, 0, 0, id="no pods"),
    ],
)
def test_as_many_are_placed_as_fit(
    tmp_path: Path, workload: dict[str, Any], placed: int, used: int, cache: str
) -> None:
    said = bench(tmp_path, workload, "--cache", cache)
    assert (said["placed"], said["nodes_used"]) == (placed, used)


def test_kept_answers_and_fresh_ones_use_as_many_nodes(tmp_path: Path) -> None:
    terms = [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pending = [pod(f"p{at}", affinity=apart) if at % 3 == 0 else pod(f"p{at}") for at in range(12)]
    kept, fresh = (bench(tmp_path, {"pending": pending}, "--cache", cache) for cache in ("on", "off"))
    assert (kept["placed"], kept["nodes_used"]) == (fresh["placed"], fresh["nodes_used"])


def test_the_configuration_decides(tmp_path: Path) -> None:
    packed = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (tmp_path / "config.json").write_text(json.dumps(config | {"profiles": [{"pluginConfig": [packed]}]}))
    workload = {"pending": [pod(f"p{at}") for at in range(4)]}
    assert bench(tmp_path, workload)["nodes_used"] == 4
    assert bench(tmp_path, workload, "--config", str(tmp_path / "config.json"))["nodes_used"] == 1
