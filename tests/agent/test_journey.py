"""`situate up --process-node`, from one command to a web server and back: what a person would do on the first day."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.world import PYTHON, processes_with
from situate.agent.ports import free_port
from situate.cli.control_plane.homes import shared_homes
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.kubeconfig import find_access

KUBECTL = Path(__file__).parents[1] / "kubernetes" / "bin" / "kubectl"
WITHIN_S = 40.0
STRATEGIC = "application/strategic-merge-patch+json"


class Cluster:
    """One that is up in a directory, and everything it runs is gone at the end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def situate(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "situate", *words],
            cwd=self.directory,
            env={**os.environ, "PATH": os.defpath},  # containers inherit it, and must be able to reach what it names
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> bytes:
        access = find_access(str(self.directory / ".situate" / "kubeconfig"), None, None)

        async def send() -> bytes:
            async with Client(access, qps=-1) as client:
                data = None if body is None else json.dumps(body).encode()
                return await client.request(method, path, body=data, content_type=content_type)

        return asyncio.run(send())

    def api(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        return json.loads(self.request(method, path, body, content_type))

    def pods(self, selector: str = "app=web") -> list[dict[str, Any]]:
        found = self.api("GET", f"/api/v1/namespaces/default/pods?labelSelector={selector}")
        return [one for one in found["items"] if "deletionTimestamp" not in one["metadata"]]

    def ready(self) -> list[dict[str, Any]]:
        return [one for one in self.pods() if _condition(one, "Ready") == "True"]

    def logs(self, pod: str) -> str:
        """Read with kubectl where it is built, and from the API otherwise."""
        if not KUBECTL.exists():
            return self.request("GET", f"/api/v1/namespaces/default/pods/{pod}/log").decode()
        kubeconfig = str(self.directory / ".situate" / "kubeconfig")
        done = subprocess.run(
            [str(KUBECTL), "--kubeconfig", kubeconfig, "logs", pod], capture_output=True, text=True, check=True
        )
        return done.stdout

    def patch(self, path: str, body: Any) -> None:
        self.api("PATCH", path, body, STRATEGIC)


def _condition(pod: dict[str, Any], kind: str) -> str:
    conditions = {one["type"]: one["status"] for one in pod.get("status", {}).get("conditions", ())}
    return str(conditions.get(kind))


def until(check: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not check():
        assert time.monotonic() < deadline, "it does not become so"
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    said = made.situate("up", "--process-node", "--nodes", "0", "--port", "0")
    assert "this machine" in said
    log = (tmp_path / ".situate" / "server.log").read_text()
    assert (
        "This machine is a node: anyone who may create pods in this cluster can run commands on this machine as" in log
    )
    try:
        yield made
    finally:
        made.situate("down", "--delete")
        assert not list(tmp_path.glob(".situate*"))
        assert not shared_homes(tmp_path / ".situate").exists()


def manifests(mark: str) -> str:
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "containers": [
                        {
                            "name": "web",
                            "image": "python",
                            "command": [PYTHON, "-u", "-m", "http.server", "--directory", "."],
                            "args": ["$(SITUATE_PORT_HTTP)"],
                            "env": [{"name": "MARK", "value": mark}],
                            "ports": [{"name": "http", "containerPort": free_port(0)}],
                            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                            "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1},
                        }
                    ],
                },
            },
        },
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum"},
        "spec": {
            "template": {
                "metadata": {"labels": {"app": "sum"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "sum", "image": "none", "command": ["sh", "-c", "echo $((40 + 2))"]}],
                },
            }
        },
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [web, job]})


def port_of(cluster: Cluster, pod: str) -> int:
    found = re.search(r"port (\d+)", cluster.logs(pod))
    assert found, "it says where it listens"
    return int(found[1])


def serves(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2) as answer:
        return bool(answer.status == 200)
    return False


def test_a_web_server_and_a_job_from_apply_to_delete(cluster: Cluster) -> None:
    deployment = "/apis/apps/v1/namespaces/default/deployments/web"
    (cluster.directory / "web.json").write_text(manifests("first"))
    # 1. It runs, and can be reached.
    cluster.situate("apply", "-f", "web.json")
    until(lambda: len(cluster.ready()) == 3)
    ports = {one["metadata"]["name"]: port_of(cluster, one["metadata"]["name"]) for one in cluster.ready()}
    assert len(set(ports.values())) == 3
    assert all(serves(port) for port in ports.values())
    # 2. The job is done, and its log says what.
    until(lambda: cluster.pods("app=sum")[0]["status"]["phase"] == "Succeeded")
    assert cluster.logs(cluster.pods("app=sum")[0]["metadata"]["name"]) == "42\n"
    until(lambda: cluster.api("GET", "/apis/batch/v1/namespaces/default/jobs/sum")["status"].get("succeeded") == 1)
    # 3. What is killed runs again.
    name, port = next(iter(ports.items()))
    (process,) = [one for one in processes_with(f"\0{port}\0") if _is_server(one)]
    os.kill(process, signal.SIGKILL)
    until(lambda: _of(cluster, name)["restartCount"] == 1 and serves(port))
    assert _of(cluster, name)["lastState"]["terminated"]["exitCode"] == 137
    # 4. More of it.
    cluster.patch(deployment, {"spec": {"replicas": 4}})
    until(lambda: len(cluster.ready()) == 4)
    # 5. Another version of it, with never fewer than three.
    env = [{"name": "MARK", "value": "second"}]
    template = {"spec": {"template": {"spec": {"containers": [{"name": "web", "env": env}]}}}}
    cluster.patch(deployment, template)
    fewest = 4

    def rolled() -> bool:
        nonlocal fewest
        ready = cluster.ready()
        fewest = min(fewest, len(ready))
        return len(ready) == len(cluster.pods()) == 4 and all(_version(one) == "second" for one in ready)

    until(rolled)
    assert fewest >= 3
    # 6. Drained, nothing runs here; let in again, all of it does.
    (node,) = cluster.api("GET", "/api/v1/nodes")["items"]
    where = f"/api/v1/nodes/{node['metadata']['name']}"
    cluster.patch(where, {"spec": {"unschedulable": True}})
    for one in cluster.pods():
        pod = one["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
        cluster.api("POST", f"/api/v1/namespaces/default/pods/{pod}/eviction", eviction)
    until(lambda: len(cluster.pods()) == 4 and not any("nodeName" in one["spec"] for one in cluster.pods()))
    until(lambda: not _servers(cluster))
    cluster.patch(where, {"spec": {"unschedulable": False}})
    until(lambda: len(cluster.ready()) == 4)
    # 7. Deleted, nothing is left of it.
    cluster.situate("delete", "-f", "web.json")
    until(lambda: not cluster.pods() and not _servers(cluster))
    until(lambda: not list((cluster.directory / ".situate" / "node" / "pods").iterdir()))


def test_pods_outlive_a_server_that_is_killed_and_end_when_the_cluster_goes_down(cluster: Cluster) -> None:
    (cluster.directory / "web.json").write_text(manifests("first"))
    cluster.situate("apply", "-f", "web.json")
    until(lambda: len(cluster.ready()) == 3)
    before = _servers(cluster)
    state = json.loads((cluster.directory / ".situate" / "server.json").read_text())
    os.kill(state["pid"], signal.SIGKILL)
    until(lambda: not Path(f"/proc/{state['pid']}").exists())
    assert _servers(cluster) == before
    cluster.situate("up", "--process-node", "--nodes", "0", "--port", "0")
    until(lambda: len(cluster.ready()) == 3)
    assert _servers(cluster) == before
    assert all(one["status"]["containerStatuses"][0]["restartCount"] == 0 for one in cluster.ready())
    cluster.situate("down")
    assert not _servers(cluster)


def test_a_volume_can_be_used_wherever_the_cluster_is(cluster: Cluster) -> None:
    """Also if root starts it below a directory that only root may enter, as pytest's are."""
    said = "id -u; echo data > $SITUATE_VOLUME_V/f && cat $SITUATE_VOLUME_V/f"
    runs = {"name": "c", "image": "i", "command": ["/bin/sh", "-c", said]}
    spec = {"restartPolicy": "Never", "containers": [runs], "volumes": [{"name": "v", "emptyDir": {}}]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "v", "labels": {"app": "v"}}, "spec": spec}
    cluster.api("POST", "/api/v1/namespaces/default/pods", made)
    until(lambda: cluster.pods("app=v")[0]["status"]["phase"] == "Succeeded")
    lines = cluster.logs("v").splitlines()
    assert lines[:2] == [str(os.getuid() or 65_534), "data"]


def test_a_node_in_a_process_of_its_own(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.situate("up", "--nodes", "0", "--port", "0")
    words = [sys.executable, "-m", "situate", "node", "--process", "--name", "own", "--dir", "own"]
    words += ["--kubeconfig", str(_as_node(cluster, "own"))]
    try:
        with subprocess.Popen(words, cwd=tmp_path) as agent:
            try:
                (tmp_path / "web.json").write_text(manifests("first"))
                cluster.situate("apply", "-f", "web.json")
                until(lambda: len(cluster.ready()) == 3)
                assert all(port_of(cluster, one["metadata"]["name"]) for one in cluster.ready())
            finally:
                agent.send_signal(signal.SIGTERM)
        before = _servers(cluster)
        assert len(before) == 3
        assert {one["metadata"]["annotations"]["situate.dev/binding-version"] for one in cluster.pods()} == {"1"}
        with pytest.raises(ApiError, match="error dialing backend: the kubelet of node own"):
            cluster.api("GET", f"/api/v1/namespaces/default/pods/{cluster.pods()[0]['metadata']['name']}/log")
        with subprocess.Popen(words, cwd=tmp_path) as agent:
            try:
                cluster.situate("delete", "-f", "web.json")
                until(lambda: not cluster.pods() and not _servers(cluster))
                until(lambda: not list((tmp_path / "own" / "pods").iterdir()))
            finally:
                agent.send_signal(signal.SIGTERM)
    finally:
        for one in _servers(cluster):
            os.kill(one, signal.SIGKILL)
        cluster.situate("down", "--delete")


def _as_node(cluster: Cluster, node: str) -> Path:
    """A kubeconfig of somebody who may do what this node's agent may do, and no more."""
    config = yaml.safe_load((cluster.directory / ".situate" / "kubeconfig").read_text())
    config["users"][0]["user"] |= {"as": f"system:node:{node}", "as-groups": ["system:nodes"]}
    made = cluster.directory / "node.kubeconfig"
    made.write_text(yaml.safe_dump(config))
    return made


def _servers(cluster: Cluster) -> list[int]:
    """Processes of this cluster's web servers."""
    directory, found = cluster.directory, []
    places = [directory, shared_homes(directory / ".situate"), shared_homes(directory / "own")]
    for one in processes_with("http.server"):
        with suppress(OSError):
            cwd = Path(f"/proc/{one}/cwd").readlink()
            if any(cwd.is_relative_to(place) for place in places):
                found.append(one)
    return found


def _is_server(pid: int) -> bool:
    return b"http.server" in Path(f"/proc/{pid}/cmdline").read_bytes()


def _of(cluster: Cluster, pod: str) -> dict[str, Any]:
    statuses: list[dict[str, Any]] = cluster.api("GET", f"/api/v1/namespaces/default/pods/{pod}")["status"][
        "containerStatuses"
    ]
    return statuses[0]


def _version(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["env"][0]["value"])
