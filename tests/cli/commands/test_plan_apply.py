"""`situate plan` on a cluster that runs: it only looks, and with `--apply` it does as it said."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from situate.cli import main

WITHIN_S = 40.0


def deployment(name: str, replicas: int, cpu: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]},
            },
        },
    }


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
LARGE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "large"},
    "spec": {"containers": [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "4"}}}]},
}


class Desk:
    """A directory in which somebody types commands; the cluster of `situate up` there is the one that is meant."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str, stdin: str = "") -> Result:
        with contextlib.chdir(self.folder):
            return CliRunner(env={"KUBECONFIG": None}).invoke(main, words, input=stdin, prog_name="situate")

    def told(self, *words: str) -> Any:
        done = self.run(*words, "-o", "json")
        assert done.exit_code == 0, f"{words}: {done.output}"
        return json.loads(done.stdout)

    def apply(self, *objects: dict[str, Any]) -> None:
        done = self.run("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
        assert done.exit_code == 0, done.output

    def pods(self) -> dict[str, str]:
        """Where ready pods are."""
        found = self.told("get", "pods")["items"]
        return {
            one["metadata"]["name"]: one["spec"].get("nodeName", "")
            for one in found
            if "deletionTimestamp" not in one["metadata"] and _is_ready(one)
        }

    def cordoned(self) -> list[str]:
        nodes = self.told("get", "nodes")["items"]
        return [one["metadata"]["name"] for one in nodes if one["spec"].get("unschedulable")]

    def until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not reached():
            assert time.monotonic() < deadline, f"never {what}: {self.pods()}"
            time.sleep(0.1)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Four nodes with room for four pods of one cpu, and six pods under a budget."""
    one = Desk(tmp_path)
    argv = [sys.executable, "-m", "situate", "up", "--port", "0", "--nodes", "4", "--zones", "2"]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    try:
        one.apply(deployment("web", 6, "1"), BUDGET)
        one.until(lambda: len(one.pods()) == 6, "all ready")
        one.until(lambda: _allowed(one) == 1, "a budget that allows one")
        yield one
    finally:
        one.run("down", "--delete")


def _is_ready(pod: dict[str, Any]) -> bool:
    return ("Ready", "True") in [(one["type"], one["status"]) for one in pod["status"].get("conditions", ())]


def _allowed(desk: Desk) -> int:
    found = desk.told("get", "poddisruptionbudgets")["items"][0].get("status", {})
    return int(found.get("disruptionsAllowed", 0))


def test_a_cluster_is_planned_for_and_the_plan_is_carried_out(desk: Desk) -> None:
    before = desk.pods()
    busiest = max(sorted(set(before.values())), key=list(before.values()).count)

    # Only looking: the drain in waves of one, as the budget has it; how many more fit.
    drained = desk.told("plan", "drain", busiest)
    assert [len(wave) for wave in drained["waves"]] == [1] * list(before.values()).count(busiest)
    assert desk.told("plan", "fit", "deploy/web")["fits"] == 4 * 4 - 6
    assert desk.told("plan", "survive")["survives"]
    preview = desk.told("plan", "defrag", "--node", busiest)
    assert desk.pods() == before
    assert desk.cordoned() == []

    # Doing it: the node is free, nobody is missing, and only that node is cordoned.
    done = desk.run("plan", "defrag", "--node", busiest, "--apply")
    assert done.exit_code == 0, done.output
    assert done.stdout.count(f" moved from {busiest} to ") == len(preview["moves"])
    after = desk.pods()
    assert (len(after), busiest in after.values()) == (6, False)
    assert desk.cordoned() == [busiest]


def test_room_for_a_shape_is_made_and_the_shape_comes_to_it(desk: Desk) -> None:
    (desk.folder / "large.yaml").write_text(yaml.safe_dump(LARGE))
    assert desk.run("plan", "fit", "-w", "large.yaml").exit_code == 1
    done = desk.run("plan", "defrag", "-w", "large.yaml", "--apply", "-o", "json")
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert (len(plan["moves"]), plan["fewest"]) == (1, True)
    assert desk.cordoned() == []
    desk.apply(LARGE)
    desk.until(lambda: desk.pods().get("large") == plan["node"], "placed where room was made")


def test_a_pod_that_may_not_leave_in_time_stops_the_plan_and_leaves_no_cordon(desk: Desk) -> None:
    before = desk.pods()
    plan = desk.told("plan", "defrag", "--any-node")
    # The budget changes its mind between the plan and the eviction: one of its pods is away.
    patched = {**BUDGET, "spec": {"minAvailable": 6, "selector": {"matchLabels": {"app": "web"}}}}
    desk.run("delete", "poddisruptionbudget", "web")
    desk.apply(patched)
    desk.until(lambda: _allowed(desk) == 0, "a budget that allows nothing")
    done = desk.run("plan", "defrag", "--node", plan["node"], "--apply", "--timeout", "1")
    assert done.exit_code == 1
    assert "default/web allows 0 disruptions" in done.output
    assert (desk.pods(), desk.cordoned()) == (before, [])
