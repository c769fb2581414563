"""A cluster in one command, as somebody without kubectl would use it: up, apply, get, describe, delete, down."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from situate.cli import main
from situate.cli.control_plane.state import read_state

ROOT = Path(__file__).parents[3]
FIRST_STEPS = ROOT / "examples" / "up" / "first-steps.yaml"
WITHIN_S = 30.0


class Desk:
    """A directory in which somebody types commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str, stdin: str = "") -> Result:
        """In this process, which is faster than a new one for each command; but who leaves a process behind has one."""
        if words[0] == "up":
            return self._apart(*words)
        with contextlib.chdir(self.folder):
            env = {"KUBECONFIG": None, "KUBERNETES_SERVICE_HOST": None, **self._homes()}
            return CliRunner(env=env).invoke(main, words, input=stdin, prog_name="situate")

    def _apart(self, *words: str) -> Result:
        argv = [sys.executable, "-m", "situate", *words]
        env = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | self._homes()
        done = subprocess.run(argv, cwd=self.folder, env=env, capture_output=True, timeout=120, check=False)
        return Result(CliRunner(), done.stdout, done.stderr, done.stdout + done.stderr, None, done.returncode, None)

    def _homes(self) -> dict[str, str]:
        return {"HOME": str(self.folder / "home"), "XDG_DATA_HOME": str(self.folder / "data")}

    def says(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.exit_code == 0, f"{words}: {done.stdout}{done.stderr}{self.log()}"
        return done.stdout

    def refuses(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.exit_code in (1, 2), f"{words}: {done.stdout}{done.stderr}"
        lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("note: this changes")]
        assert len(lines) == 1, done.stderr
        return lines[-1]

    def log(self) -> str:
        path = self.folder / ".situate" / "server.log"
        return path.read_text()[-2_000:] if path.exists() else ""

    def until(self, expected: str, *words: str) -> str:
        deadline = time.monotonic() + WITHIN_S
        while expected not in (found := self.says(*words)):
            assert time.monotonic() < deadline, f"{words} never said {expected!r}: {found}{self.log()}"
            time.sleep(0.1)
        return found


@pytest.fixture
def desk(shared: Desk) -> Desk:
    """The shared one, up again if another test took it down."""
    if read_state(shared.folder / ".situate") is None:
        shared.says("up", "--port", "0", "--nodes", "3", "--zones", "3")
    return shared


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    one = Desk(tmp_path_factory.mktemp("desk"))
    said = one.says("up", "--port", "0", "--nodes", "3", "--zones", "3")
    assert said.startswith("A cluster with 3 hollow nodes is up at https://127.0.0.1:")
    try:
        yield one
    finally:
        one.run("down", "--delete")


def test_a_cluster_that_is_up_has_its_nodes(tmp_path: Path) -> None:
    one = Desk(tmp_path)
    one.says("up", "--port", "0", "--nodes", "2000", "--no-scheduler")
    try:
        assert len(one.says("get", "nodes", "-o", "name").splitlines()) == 2000
    finally:
        one.run("down", "--delete")


def test_a_second_cluster_in_the_same_directory_is_refused(desk: Desk) -> None:
    assert "a cluster is up already at https://127.0.0.1:" in desk.refuses("up", "--port", "0")


def test_what_is_applied_runs_and_what_cannot_says_why(desk: Desk) -> None:
    assert desk.says("apply", "-f", str(FIRST_STEPS)).splitlines() == [
        "deployment.apps/web created",
        "job.batch/report created",
        "job.batch/training created",
        "pod/too-big created",
    ]
    desk.until("web    6/6", "get", "deploy")
    desk.until("Complete", "get", "jobs")
    wide = desk.says("get", "pods", "-o", "wide")
    assert wide.splitlines()[0].split() == [
        *("NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED", "NODE", "READINESS", "GATES")
    ]
    described = desk.says("describe", "pod", "too-big")
    assert "0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient memory." in described
    assert "FailedScheduling" in described
    assert desk.says("apply", "-f", str(FIRST_STEPS)).count("unchanged") == 4


def test_the_next_steps_that_up_names_work_in_any_directory(desk: Desk, tmp_path: Path) -> None:
    steps = desk.folder / ".situate" / "first-steps.yaml"
    assert steps.read_bytes() == FIRST_STEPS.read_bytes()
    with contextlib.chdir(tmp_path):
        words = ["get", "nodes", "-o", "name"]
        done = CliRunner(env={"KUBECONFIG": str(desk.folder / ".situate" / "kubeconfig")}).invoke(main, words)
    assert done.stdout.splitlines()[0] == "node/node-1"


def test_a_command_that_changes_a_cluster_first_says_which(desk: Desk) -> None:
    server = json.loads((desk.folder / ".situate" / "server.json").read_text())["url"]
    note = f'note: this changes the cluster at {server} (.situate/kubeconfig, context "situate")\n'
    body = "{apiVersion: v1, kind: ConfigMap, metadata: {name: noted}}"
    assert desk.run("apply", "-f", "-", stdin=body).stderr == note
    assert desk.run("apply", "-f", "-", "--dry-run", stdin=body).stderr == ""
    assert desk.run("delete", "cm/noted").stderr == note


def test_what_was_applied_and_deleted_can_be_printed_for_programs(desk: Desk) -> None:
    first, second = (f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}" for name in ("one", "two"))
    both = f"{first}\n---\n{second}"
    made = json.loads(desk.says("apply", "-f", "-", "-o", "json", stdin=first))
    assert (made["kind"], made["metadata"]["name"], bool(made["metadata"]["uid"])) == ("ConfigMap", "one", True)
    assert desk.says("apply", "-f", "-", "-o", "name", stdin=both).splitlines() == ["configmap/one", "configmap/two"]
    names = desk.says("apply", "-f", "-", "-o", "jsonpath={.items[*].metadata.name}", stdin=both)
    assert names == "one two"
    assert "kind: List" in desk.says("apply", "-f", "-", "--dry-run", "-o", "yaml", stdin=both)
    assert desk.says("delete", "cm", "one", "two", "-o", "name").splitlines() == ["configmap/one", "configmap/two"]
    assert "'json' is not one of 'table', 'name'" in desk.refuses("delete", "cm", "one", "-o", "json")


def test_all_ways_to_look(desk: Desk) -> None:
    assert desk.says("get", "nodes", "-o", "name").splitlines() == ["node/node-1", "node/node-2", "node/node-3"]
    one = json.loads(desk.says("get", "node/node-1", "-o", "json"))
    assert (one["kind"], one["metadata"]["labels"]["topology.kubernetes.io/zone"]) == ("Node", "zone-1")
    assert "managedFields" not in one["metadata"]
    assert "kind: List" in desk.says("get", "nodes", "-o", "yaml")
    assert "deployments" in desk.says("get")
    assert "node/node-1" in desk.says("get", "no,cm", "-A")
    assert "No resources found in default namespace." in desk.run("get", "cronjobs").stderr
    summary = json.loads(desk.says("status", "-o", "json"))
    assert summary["nodes"]["ready"] == 3
    assert "Nodes    3 of 3 ready" in desk.says("status")


def test_what_is_wrong_is_said_in_one_line_and_changes_nothing(desk: Desk) -> None:
    assert 'the server does not have a resource "gizmos"' in desk.refuses("get", "gizmos")
    assert 'pods "nobody" not found' in desk.refuses("get", "pod", "nobody")
    assert 'the server does not have kind "Gizmo"' in desk.refuses(
        "apply", "-f", "-", stdin="{apiVersion: v1, kind: Gizmo}"
    )
    unknown = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, date: {b: c}}"
    assert "date" in desk.refuses("apply", "-f", "-", stdin=unknown)
    assert desk.run("get", "cm", "a").exit_code == 1
    assert "say what to delete" in desk.refuses("delete", "pods")


def test_a_cluster_that_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    said = Desk(tmp_path).refuses("up", "--port", "0", "--node-cpu", "lots")
    assert said.startswith("error: the control plane did not start: --node-cpu: quantities must match")


def test_a_copy_has_the_pods_where_they_ran_and_is_found_again(desk: Desk, tmp_path: Path) -> None:
    desk.says("apply", "-f", str(FIRST_STEPS))
    desk.until("6/6", "get", "deploy", "web")
    (tmp_path / "dump.yaml").write_text(desk.says("get", "nodes,pods,deploy,rs,jobs", "-A", "-o", "yaml"))
    where = ("get", "pods", "-l", "app=web", "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName};{end}")
    before, copy = desk.says(*where), Desk(tmp_path)
    said = copy.says("up", "--port", "0", "--from", "dump.yaml")
    try:
        assert said.startswith("A cluster with 3 hollow nodes is up at ")
        assert "It is a copy: 3 Nodes, " in said
        assert copy.says(*where) == before
        copy.until("6/6", "get", "deploy", "web")
        assert "this cluster has nodes already" in [copy.says("down"), copy.refuses("up", "--from", "dump.yaml")][1]
        assert copy.says("up", "--port", "0").startswith("A cluster with 3 hollow nodes is up at ")
        assert copy.says(*where) == before
    finally:
        copy.run("down", "--delete")


def test_what_is_deleted_is_gone_with_all_that_it_owns(desk: Desk) -> None:
    body = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}"
    assert desk.says("apply", "-f", "-", stdin=body) == "configmap/settings created\n"
    assert desk.says("delete", "cm/settings") == 'configmap "settings" deleted\n'
    assert 'configmaps "settings" not found' in desk.refuses("delete", "cm", "settings")
    assert desk.says("delete", "cm", "settings", "--ignore-not-found") == ""
    desk.says("apply", "-f", str(FIRST_STEPS))
    desk.says("delete", "deploy", "web")
    deadline = time.monotonic() + WITHIN_S
    while "web-" in desk.says("get", "rs,pods", "-o", "name"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_what_was_stored_is_there_again_after_a_crash(desk: Desk) -> None:
    desk.says("apply", "-f", "-", stdin="{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}, data: {a: b}}")
    state = json.loads((desk.folder / ".situate" / "server.json").read_text())
    os.kill(state["pid"], signal.SIGKILL)
    deadline = time.monotonic() + WITHIN_S
    while Path(f"/proc/{state['pid']}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "or start a cluster with `situate up`" in desk.refuses("status")
    desk.says("up", "--port", "0", "--nodes", "3")
    assert json.loads(desk.says("get", "cm", "kept", "-o", "json"))["data"] == {"a": "b"}
    desk.says(
        "apply",
        "-f",
        "-",
        stdin="{apiVersion: v1, kind: Pod, metadata: {name: later}, spec: {containers: [{name: c, image: i}]}}",
    )
    desk.until("Running", "get", "pod", "later")


def test_down_is_down_and_says_so(desk: Desk) -> None:
    assert desk.says("down").endswith(" is down.\n")
    assert desk.says("down") == "No cluster is up in .situate.\n"
    assert "no cluster found" in desk.refuses("status")
    assert "no cluster is up in .situate; `situate up` starts it" in desk.refuses("status", "--cluster", ".situate")
    assert (desk.folder / ".situate" / "store.db").exists()
    assert desk.says("down", "--delete") == ".situate is deleted.\n"


def test_a_directory_that_is_not_a_clusters_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    assert "it is not deleted" in Desk(tmp_path).refuses("down", "--dir", "precious", "--delete")
    assert (tmp_path / "precious" / "file").read_text() == "mine"
