"""The specs of the conformance suite that need a real kubelet, against a plane with one.

All of it runs in namespaces of its own: see pod_network. Workers share the plane, as specs that are not serial may.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from kubernetes import kubelet_node
from kubernetes.judges import pod_images, pod_network
from kubernetes.judges.common import BUILD, ROOT, JudgeError, Outcome, build_own, build_program
from kubernetes.judges.conformance import Work, all_specs
from kubernetes.judges.left import ON_HOLLOW_NODES, read_left
from kubernetes.judges.node_plane import node_plane
from kubernetes.own_cluster import OwnCluster
from tools.image import debian

FOLDER = BUILD / "conformance-kubelet"
NODES = 1
LIMIT_S = 600.0
"""Of one spec: one that waits in vain for a pod gives up after five minutes by itself, and says why."""
ALL_S = 4 * 3600.0
IMAGES = "k8s.io/kubernetes/test/images"
BUILT = (f"{IMAGES}/agnhost", f"{IMAGES}/nonewprivs", "k8s.io/kubernetes/cmd/kube-proxy")
NEEDED = ("unshare", "ip", "iptables")
COREDNS = ROOT / "tests" / "kubernetes" / "coredns"


def conformance_kubelet(only: Sequence[str] = ()) -> Outcome:
    """`only`: parts of the specs' names. Without it, what needs a real kubelet."""
    absent = missing()
    if absent:
        raise JudgeError(absent)
    all_specs(build_program("k8s.io/kubernetes/test/e2e", tests=True), FOLDER)
    pod_images.archives(FOLDER, _programs())
    report = FOLDER / "outcome.json"
    report.unlink(missing_ok=True)
    words = [word for part in only for word in ("--only", part)]
    inside = pod_network.alone([sys.executable, "-m", "kubernetes.judges.conformance_kubelet", *words])
    subprocess.run([str(word) for word in inside], cwd=ROOT, check=True, timeout=ALL_S)
    if not report.exists():
        raise JudgeError(f"the run has left no {report}")
    return Outcome.read(report)


def missing() -> str | None:
    """Why no kubelet can be judged here, or None."""
    absent = ", ".join(name for name in NEEDED if shutil.which(name) is None)
    return kubelet_node.missing() or debian.missing() or (f"not here: {absent}" if absent else None)


def _programs() -> dict[str, Path]:
    """What goes into images, and kube-proxy, by name; built once."""
    made = {package.rpartition("/")[2]: build_program(package) for package in BUILT}
    return made | {"coredns": build_own(COREDNS)}


def _specs(program: Path, only: Sequence[str]) -> list[str]:
    left = read_left().get("conformance", {})
    names = all_specs(program, FOLDER)
    if only:
        return [name for name in names if any(part in name for part in only)]
    return [name for name in names if left.get(name) in ON_HOLLOW_NODES]


def _inside(only: Sequence[str]) -> None:
    pod_network.prepare()
    program = build_program("k8s.io/kubernetes/test/e2e", tests=True)
    programs = _programs()
    archives = pod_images.archives(FOLDER, programs)
    with node_plane(FOLDER / "plane", programs["kube-proxy"], archives) as cluster:

        def shared(_: int) -> AbstractContextManager[OwnCluster]:
            return nullcontext(cluster)

        Work(program, FOLDER, NODES, shared, LIMIT_S).run(_specs(program, only)).write(FOLDER / "outcome.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[])
    _inside(parser.parse_args().only)
