"""The short form of `make etcd-faults`: an outage that is longer than a lease, under load, on one etcd and server."""

from pathlib import Path

from kubernetes.cluster import Cluster
from kubernetes.etcd_faults import Fault, freeze, only_member, run

OUTAGE_S = 17.0


def test_an_outage_that_is_longer_than_a_lease_passes_without_a_restart(control_plane: Cluster, tmp_path: Path) -> None:
    """Before, the controllers' lost lease ended the server."""
    (row,) = run(1, 1, [Fault("etcd frozen", 1, freeze(only_member, OUTAGE_S))], tmp_path)
    assert row.good, f"{row.line()}\n{row.problems()}"
    assert row.outage_s >= OUTAGE_S - 1, "it was an outage"
