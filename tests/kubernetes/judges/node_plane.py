"""A control plane with one real node: kubelet, containerd, kube-proxy, and CoreDNS in a pod. Run it in pod_network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kubernetes.cluster import answers
from kubernetes.judges import pod_images, pod_network
from kubernetes.judges.common import PARTS, JudgeError
from kubernetes.judges.planes import plane
from kubernetes.kubelet_node import Containerd, Kubelet
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import Part, wait_until

NODE = "real"
DNS_ADDRESS = "10.96.0.10"
PROXY_PORT = 10256
READY_S = 240.0
DNS = Path(__file__).with_name("coredns.yaml")
KUBELET = {
    "clusterDNS": [DNS_ADDRESS],
    "clusterDomain": "cluster.local",
    "makeIPTablesUtilChains": True,
    "syncFrequency": "10s",
}


@contextmanager
def node_plane(home: Path, proxy: Path, images: Sequence[Path]) -> Iterator[OwnCluster]:
    """`proxy`: the program. `images`: archives that containerd is given."""
    shutil.rmtree(home, ignore_errors=True)
    address = ("--address", pod_network.NODE_ADDRESS, "--port", "6443")
    flags = (*address, "--with", "scheduler", "--with", "controllers", "--nodes", "0")
    with (
        plane(home / "server", *flags) as cluster,
        Containerd(home / "c", network=pod_network.network(home), snapshotter="overlayfs") as runtime,
    ):
        for archive in images:
            runtime.load(archive)
        resolver = home / "resolv.conf"
        resolver.write_text("")
        bootstrap = home / "bootstrap.kubeconfig"
        made = [sys.executable, "-m", "situate", "token", "create", "--dir", str(cluster.home)]
        bootstrap.write_text(subprocess.run(made, capture_output=True, text=True, check=True).stdout)
        kubelet = Kubelet(
            home / "k",
            runtime,
            cluster.certificate,
            name=NODE,
            bootstrap=bootstrap,
            config=KUBELET | {"resolvConf": str(resolver)},
            flags=("--node-ip", pod_network.NODE_ADDRESS),
        )
        forwarding = _proxy(home, cluster, proxy)
        with kubelet:
            try:
                cluster.wait_for_nodes(1, READY_S)
                forwarding.start(lambda: answers(f"http://127.0.0.1:{PROXY_PORT}/livez"), READY_S)
                _apply(cluster, DNS.read_text().replace("IMAGE", pod_images.COREDNS))
                wait_until(lambda: _has_dns(cluster), "CoreDNS to be ready", READY_S)
                yield cluster
            finally:
                forwarding.kill()


def _proxy(home: Path, cluster: OwnCluster, program: Path) -> Part:
    """As a process beside the kubelet, with the rights that Kubernetes gives its user and no others.

    The limits of connection tracking are the machine's, and stay as they are.
    """
    kubeconfig = cluster.kubeconfig_for(cluster.tokens["system:kube-proxy"], name="kube-proxy")
    command: list[str | Path] = [program, "--kubeconfig", kubeconfig, "--hostname-override", NODE]
    command += [f"--cluster-cidr={pod_network.PODS}", "--proxy-mode=iptables", "--v=2"]
    command += ["--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s"]
    command += ["--conntrack-tcp-timeout-close-wait=0s", f"--healthz-bind-address=127.0.0.1:{PROXY_PORT}"]
    return Part("kube-proxy", command, home / "kube-proxy.log")


def _apply(cluster: OwnCluster, manifest: str) -> None:
    done = _kubectl(cluster, "apply", "-f", "-", stdin=manifest)
    if done.returncode:
        raise JudgeError(f"kubectl apply: {done.stderr}")


def _has_dns(cluster: OwnCluster) -> bool:
    asked = ("get", "deployment", "coredns", "-n", "kube-system", "-o", "jsonpath={.status.readyReplicas}")
    return _kubectl(cluster, *asked).stdout == "1"


def _kubectl(cluster: OwnCluster, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [PARTS / "kubectl", "--kubeconfig", cluster.kubeconfig, *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
