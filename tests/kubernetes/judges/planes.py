"""Control planes for the suites, in memory, with a known administrator."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kubernetes.judges.common import PARTS, SITUATE
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import Part, free_ports

ADMIN_TOKEN = "admin-token"
"""test/cmd has it in its files."""


@contextmanager
def plane(folder: Path, *flags: str) -> Iterator[OwnCluster]:
    """A fresh one; what an earlier run left in the folder is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    cluster = OwnCluster(folder, "--store", "memory", *flags)
    cluster.tokens["admin"] = ADMIN_TOKEN
    with cluster:
        try:
            yield cluster
        finally:
            cluster.apiserver.kill()  # nothing here outlives the run


@dataclass(frozen=True, slots=True)
class BarePlane:
    port: int
    certificate: Path


LEFT_OUT = "ServiceAccount"
"""The only admission plugin of those that test/cmd leaves out which we have, too."""


@contextmanager
def bare_plane(folder: Path) -> Iterator[BarePlane]:
    """As test/cmd starts kube-apiserver and kube-controller-manager: everybody may do everything, no ServiceAccount
    admission, no scheduler, and a node that nobody runs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    key, tokens, (port,) = folder / "accounts.key", folder / "tokens.csv", free_ports(1)
    subprocess.run(["openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", key], check=True)
    tokens.write_text(f'{ADMIN_TOKEN},admin,,"system:masters"\n')
    flags = {
        "authorization-mode": "RBAC,AlwaysAllow",
        "cert-dir": folder,
        "disable-admission-plugins": LEFT_OUT,
        "secure-port": port,
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "token-auth-file": tokens,
    }
    given = [f"--{name}={value}" for name, value in flags.items()]
    server = Part("kube-apiserver", [SITUATE, "envtest", "kube-apiserver", *given], folder / "server.log")
    kubeconfig = folder / "kubeconfig"
    asked: list[str | Path] = [SITUATE, "controllers", "--nodes", "kubernetes", "--kubeconfig", kubeconfig]
    controllers = Part("controllers", asked, folder / "controllers.log")
    kubectl: list[str | Path] = [PARTS / "kubectl", "--kubeconfig", kubeconfig]
    for words in (
        ["set-cluster", "it", f"--server=https://127.0.0.1:{port}", "--insecure-skip-tls-verify=true"],
        ["set-credentials", "admin", f"--token={ADMIN_TOKEN}"],
        ["set-context", "it", "--cluster=it", "--user=admin"],
        ["use-context", "it"],
    ):
        subprocess.run([*kubectl, "config", *words], check=True, capture_output=True)

    def ready() -> bool:
        return subprocess.run([*kubectl, "get", "--raw", "/readyz"], check=False, capture_output=True).returncode == 0

    try:
        server.start(ready)
        controllers.start(lambda: "Controllers' caches are synced" in controllers.said())
        subprocess.run([*kubectl, "create", "-f", "-"], input=NODE, text=True, check=True, capture_output=True)
        yield BarePlane(port, next(folder.rglob("ca.crt")))
    finally:
        controllers.kill()
        server.kill()


NODE = """{"apiVersion": "v1", "kind": "Node",
 "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}},
 "status": {"capacity": {"memory": "1Gi"}, "conditions": [{"type": "Ready", "status": "Unknown"}]}}"""
"""The condition is what the node controllers set after a minute."""
