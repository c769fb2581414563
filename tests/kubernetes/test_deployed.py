"""The scheduler's own image on a real kubelet: `make deploy-scheduler` runs it there as pods, it schedules the pods of
the three journeys, and `make remove-scheduler` leaves nothing of it."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.rights import ROOT
from kubernetes import images, kubelet_node, parts
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import wait_until
from kubernetes.real_node import WITHIN_S, Node, joined
from kubernetes.test_journeys import IMAGE as JOURNEYS_IMAGE
from tools.image.__main__ import BUILD, NAME, build
from tools.image.debian import missing
from web.serving import first, visiting

NO_IP = None if shutil.which("ip") else "not here: ip (iproute2)"
ABSENT = kubelet_node.missing() or parts.missing() or missing() or NO_IP
pytestmark = pytest.mark.skipif(ABSENT is not None, reason=f"a deployed scheduler: {ABSENT}")
SERVICE = "10.96.0.1"
"""The address of the Service `default/kubernetes`, which containers are given."""
ROLLOUT = "300s"
MAKE_S = 900.0
JOURNEYS = ("basic", "priority", "group")
PROCESS_STATUS = """
lines = dict(line.split(":", 1) for line in open("/proc/1/status"))
print(lines["Uid"].split()[0], lines["CapEff"], lines["NoNewPrivs"], lines["Seccomp"])
"""
VIEWER = "default:viewer"
GOODBYE_S = 0.3
"""How long aiohttp takes to close its TLS connections after its session is closed."""
INSIDE = ("--namespace", "situate-system")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    home = tmp_path_factory.mktemp("deployed")
    with service_address(), joined(home, "--address", SERVICE, "--port", "443") as here:
        here.runtime.load(images.pause(home / "journeys.tar", JOURNEYS_IMAGE))
        yield here


@contextmanager
def service_address() -> Iterator[None]:
    """No kube-proxy is here to forward to the server what is sent to its Service: the server itself has the address."""
    address = (f"{SERVICE}/32", "dev", "lo")
    subprocess.run(["ip", "address", "replace", *address], check=True, timeout=10)
    try:
        yield
    finally:
        subprocess.run(["ip", "address", "delete", *address], check=True, timeout=10)


def make(cluster: OwnCluster, *words: str) -> str:
    """What make says, with the cluster's kubeconfig."""
    leaks = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in leaks}
    environment |= {"KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{parts.folder()}:{environment['PATH']}"}
    command = ["make", *words, f"KUBECONFIG={cluster.kubeconfig}"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=MAKE_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is downloaded stays where `make image` has it."""
    home = tmp_path_factory.mktemp("image")
    build(NAME, home / "situate.tar", home / "work", BUILD)
    return home / "situate.tar"


def test_it_is_deployed_schedules_the_next_pods_and_is_removed(node: Node, archive: Path) -> None:
    node.runtime.load(archive)
    said = make(node.cluster, "deploy-scheduler", f"IMAGE={NAME}", "VARIANT=preemption", f"WAIT={ROLLOUT}")
    assert 'deployment "situate" successfully rolled out' in said

    replicas = node.get("pods", *INSIDE)["items"]
    assert len(replicas) == 2
    for one in replicas:
        [container] = one["status"]["containerStatuses"]
        assert (container["ready"], container["restartCount"], one["spec"]["nodeName"]) == (True, 0, "real")
        assert container["image"] == NAME
        assert "hostNetwork" not in one["spec"]
        name = one["metadata"]["name"]
        status = node.kubectl("exec", *INSIDE, name, "--", "/usr/bin/python3", "-c", PROCESS_STATUS).split()
        assert status == ["65532", "0000000000000000", "1", "2"], "user, capabilities, no new privileges, a filter"
    names = [one["metadata"]["name"] for one in replicas]
    assert all("Caches are synced" in node.kubectl("logs", *INSIDE, name) for name in names)
    leader = node.get("lease", "situate", *INSIDE)["spec"]["holderIdentity"]
    assert any(leader.startswith(name) for name in names)

    for journey in JOURNEYS:
        said = make(node.cluster, f"{journey}-integration-test")
        assert "scheduler: situate;" in said
        assert "1 passed" in said

    said = make(node.cluster, "remove-scheduler", f"WAIT={ROLLOUT}")
    assert said.startswith("removing situate from"), said
    assert "NotFound" in error(node, "get", "namespace", "situate-system")
    containers = {one["status"]["containerStatuses"][0]["containerID"].partition("//")[2] for one in replicas}
    wait_until(lambda: not containers & set(node.runtime.tasks()), "its containers to end", WITHIN_S)


def test_the_page_runs_beside_it_and_shows_what_a_token_may_read(node: Node, archive: Path) -> None:
    node.runtime.load(archive)
    overlay = str(ROOT / "deploy/kustomize/overlays/web")
    node.kubectl("apply", "--server-side", "-k", overlay)
    node.kubectl("create", "serviceaccount", "viewer")
    node.kubectl(
        "create", "clusterrolebinding", "viewer", "--clusterrole=cluster-admin", "--serviceaccount=default:viewer"
    )
    token = node.kubectl("create", "token", "viewer").strip()
    assert "successfully rolled out" in node.kubectl("rollout", "status", "deployment/situate-web", *INSIDE)
    with node.forwarded("service/situate-web", 443, *INSIDE) as local:
        nodes, refused = asyncio.run(look(f"https://localhost:{local}", token))
    assert (nodes, refused) == (["real"], 403)
    [page] = node.get("pods", *INSIDE, "-l", "app.kubernetes.io/component=web")["items"]
    assert page["status"]["containerStatuses"][0]["restartCount"] == 0
    assert token not in node.kubectl("logs", *INSIDE, page["metadata"]["name"])
    node.kubectl("delete", "-k", overlay, f"--timeout={ROLLOUT}")
    node.kubectl("delete", "clusterrolebinding/viewer", "serviceaccount/viewer")


async def look(url: str, token: str) -> tuple[list[str], int]:
    """The names of the nodes on the page's map for who has this token, and how a token that is not one is answered."""
    async with visiting(url) as somebody:
        refused, _ = await somebody.post("/api/login", {"token": "nonsense"})
        code, found = await somebody.post("/api/login", {"token": token})
        assert code == 200, found
        shown = await first(somebody, "map", "map")
    await asyncio.sleep(GOODBYE_S)
    return shown["names"], refused


def error(node: Node, *words: str) -> str:
    with pytest.raises(AssertionError) as raised:
        node.kubectl(*words)
    return str(raised.value)


def test_another_build_has_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "situate.tar"
    build(NAME, again, tmp_path / "work", BUILD)
    assert again.read_bytes() == archive.read_bytes()
