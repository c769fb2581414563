"""The servers that kubectl talks to: kube-apiserver, situate's API alone, and situate with all its parts."""

from collections.abc import Generator, Iterator

import pytest

from kubernetes import parts
from kubernetes.cluster import Cluster
from kubernetes.kubectl.sides import Side
from kubernetes.kubectl.situate_server import RUNNING, situate_server

# Where there is no kubectl, the folder above says so.
collect_ignore_glob = [] if parts.missing() is None else ["test_*.py"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the servers said last is part of what went wrong."""
    report = yield
    if report.failed:
        report.sections += [("situate server", part.tail()) for part in RUNNING]
    return report


@pytest.fixture(scope="module")
def real(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """kube-apiserver, without controllers; empty again afterwards, since others use it, too."""
    yield Side("kube-apiserver", control_plane.kubeconfig, tmp_path_factory.mktemp("kubectl-of-kubernetes"))
    control_plane.wipe()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """situate's API and nothing else, as kube-apiserver is here."""
    with situate_server(tmp_path_factory.mktemp("bare"), "--store", "memory") as server:
        yield Side("situate", server.kubeconfig, tmp_path_factory.mktemp("kubectl-of-situate"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """situate with its scheduler, its controllers and three hollow nodes."""
    flags = ("--with", "scheduler", "--with", "controllers", "--nodes", "3")
    with situate_server(tmp_path_factory.mktemp("whole"), *flags) as server:
        yield Side("situate", server.kubeconfig, tmp_path_factory.mktemp("kubectl-of-all"))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """situate with this machine for its only node: pods are processes."""
    flags = ("--with", "scheduler", "--with", "controllers", "--process-node", "--store", "memory")
    with situate_server(tmp_path_factory.mktemp("machine"), *flags) as server:
        yield Side("situate", server.kubeconfig, tmp_path_factory.mktemp("kubectl-of-machine"))
