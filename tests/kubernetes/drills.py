"""What the tests of faults share: crowds of pods, what must be true in the end, and limits on time."""

import os
from typing import Any

from kubernetes.cluster import Cluster, Scheduler
from kubernetes.history import History
from kubernetes.objects import Json, pod
from kubernetes.parts import wait_until
from kubernetes.proxy import FaultProxy

# `make fault-test` has more of everything, and leases of the usual length.
LONG = os.environ.get("FAULTS") == "long"
WITHIN_S = 120.0

FAST: Json = {"clientConnection": {"qps": 2000, "burst": 2000}}


def limit(seconds: float) -> float:
    """A limit that holds on an idle machine; where others work too, it is as much longer as each CPU has to do."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def behind(cluster: Cluster, proxy: FaultProxy, config: Json, *flags: str) -> Scheduler:
    """situate, which sees the cluster through a proxy."""
    kubeconfig = cluster.kubeconfig_for(cluster.tokens["system:kube-scheduler"], server=proxy.url)
    return cluster.situate(config, kubeconfig=kubeconfig, flags=flags)


def crowd(cluster: Cluster, prefix: str, number: int, **fields: Any) -> set[str]:
    """So many pods of one CPU; their names as the witness has them."""
    made = [f"{prefix}-{one}" for one in range(number)]
    cluster.create(*(pod(name, **{"cpu": "1", **fields}) for name in made))
    return {f"{cluster.namespace}/{name}" for name in made}


def until_bound(history: History, number: int, within_s: float = WITHIN_S) -> None:
    wait_until(lambda: len(history.binds()) >= number, f"{number} binds", within_s)


def until_settled(history: History, wanted: set[str], within_s: float = WITHIN_S) -> None:
    """All of them are bound, and nothing went wrong on the way."""

    def settled() -> bool:
        there = history.pods()
        return all(name in there and there[name].node for name in wanted)

    try:
        wait_until(settled, f"{len(wanted)} pods to be bound", within_s)
    except TimeoutError:
        left = sorted(name for name in wanted if name in history.waiting())
        lost = sorted(wanted - history.pods().keys())
        raise AssertionError(f"waiting: {left[:5]} of {len(left)}; lost: {lost[:5]} of {len(lost)}") from None
    assert history.problems() == []
    assert history.waiting_though_they_fit() == []


def quiet_logs(*schedulers: Scheduler) -> None:
    for scheduler in schedulers:
        assert "Traceback" not in scheduler.said(), scheduler.tail(60)
