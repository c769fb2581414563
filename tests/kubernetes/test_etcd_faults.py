"""The short form of `make etcd-faults`: an outage that is longer than a lease, under load, on one etcd and server."""

import signal
import time
from pathlib import Path

from kubernetes.cluster import Cluster
from kubernetes.etcd_faults import Fault, run
from kubernetes.fault_load import FAILURES, Requests
from kubernetes.fault_world import FaultWorld

OUTAGE_S = 17.0
KNOWN_S = 2.5
"""How soon `/readyz` and the metric know of an outage."""


def said(requests: Requests, path: str) -> str:
    """What a page says, also one that says that something is wrong."""
    try:
        return requests.open("GET", path).read().decode()
    except FAILURES as error:
        return str(error)


def outage(world: FaultWorld) -> None:
    """Freeze etcd. Meanwhile the server must say so."""
    requests, member = Requests(world.servers[0]), world.etcd.members[0]
    assert "ok" in said(requests, "/readyz/store")
    assert "situate_store_available 1.0" in said(requests, "/metrics")
    requests.close()
    member.signal(signal.SIGSTOP)
    time.sleep(KNOWN_S)
    try:
        assert world.etcd.endpoints[0] in said(requests, "/readyz/store")
        requests.close()
        assert "situate_store_available 0.0" in said(requests, "/metrics")
        time.sleep(OUTAGE_S - KNOWN_S)
    finally:
        requests.close()
        member.signal(signal.SIGCONT)


def test_an_outage_that_is_longer_than_a_lease_passes_without_a_restart(control_plane: Cluster, tmp_path: Path) -> None:
    """Before, the controllers' lost lease ended the server."""
    (row,) = run(1, 1, [Fault("etcd frozen", 1, outage)], tmp_path)
    assert row.good, f"{row.line()}\n{row.problems()}"
    assert row.outage_s >= OUTAGE_S - 1, "it was an outage"
