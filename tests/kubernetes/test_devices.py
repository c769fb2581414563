"""Devices on a real API server, and on our own: claims by template, a shared claim, an extended resource.

Whatever breaks, no device is given twice at any version of any claim, and when the pods are gone, all devices are free.
`make fault-test` kills the scheduler more often.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kubernetes.cluster import Cluster
from kubernetes.devices import (
    DRIVER,
    RESOURCE,
    Witness,
    all_claims,
    claim,
    claiming,
    deployment,
    devices_of,
    each_pod_has_its_devices,
    gpu_class,
    slice_of,
    taken,
    template,
    users_of,
    wait_for_running,
)
from kubernetes.drills import FAST, LONG, behind, limit, quiet_logs
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import minor, wait_until
from kubernetes.proxy import BINDS, Fault, FaultProxy, Faults

pytestmark = pytest.mark.usefixtures("control_plane")  # our own server needs a part too: kwok's nodes

NODES, EACH = 3, 4
KILLS = 12 if LONG else 3
WITHIN_S = 60.0
Opener = Callable[[pytest.FixtureRequest, Path], AbstractContextManager[Cluster]]


def devices(cluster: Cluster, nodes: int = NODES, each: int = EACH) -> None:
    names = cluster.hollow_nodes(nodes, cpu="32")
    cluster.create(gpu_class(), template(), *(slice_of(name, each) for name in names))


def delete_pods(cluster: Cluster) -> None:
    """Those that no controller manages."""
    for one in cluster.pods():
        if "ownerReferences" not in one["metadata"]:
            cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{one['metadata']['name']}")


def all_free(cluster: Cluster) -> bool:
    """All devices are free, and no claim but those that users made is left."""
    owned = [one for one in all_claims(cluster) if one["metadata"].get("ownerReferences")]
    return not taken(cluster) and not owned


def scale(cluster: Cluster, name: str, replicas: int) -> None:
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/{name}"
    cluster.api.patch(path, {"spec": {"replicas": replicas}})


@contextmanager
def on_kubernetes(request: pytest.FixtureRequest, _home: Path) -> Iterator[Cluster]:
    """kube-apiserver, with `situate scheduler` and `situate controllers`."""
    cluster: Cluster = request.getfixturevalue("cluster")
    cluster.situate_part("controllers")
    cluster.situate(FAST)
    yield cluster


@contextmanager
def on_our_own(_request: pytest.FixtureRequest, home: Path) -> Iterator[Cluster]:
    """`situate server`, with its scheduler and controllers in one process."""
    with OwnCluster(home / "own", "--with", "scheduler", "--with", "controllers") as cluster:
        yield cluster


@pytest.mark.parametrize("opener", [on_kubernetes, on_our_own])
def test_pods_get_devices_and_give_them_back(opener: Opener, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with opener(request, tmp_path) as cluster:
        devices(cluster)
        with Witness(cluster) as witness:
            cluster.kwok()
            cluster.create(
                claim("shared"),
                deployment("web", 6, claiming("web", by_template="one-gpu")),
                *(claiming(f"sharing-{at}", of_claim="shared") for at in range(3)),
                *(claiming(f"extended-{at}") for at in range(4)),
            )
            wait_for_running(cluster, 13, limit(WITHIN_S))
            each_pod_has_its_devices(cluster, cluster.pods())
            assert len(taken(cluster)) == len(set(taken(cluster))) == 11
            [shared] = [one for one in all_claims(cluster) if one["metadata"]["name"] == "shared"]
            assert sorted(users_of(shared)) == ["sharing-0", "sharing-1", "sharing-2"]
            extended = cluster.pod("extended-0")
            assert extended is not None
            [mapping] = extended["status"]["extendedResourceClaimStatus"]["requestMappings"]
            assert (mapping["containerName"], mapping["resourceName"]) == ("main", RESOURCE)

            # One device is left: of two more pods, one runs, and the other follows when a pod has gone.
            cluster.create(*(claiming(f"late-{at}", by_template="one-gpu") for at in range(2)))
            wait_for_running(cluster, 14, limit(WITHIN_S))
            cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/extended-0")
            wait_for_running(cluster, 14, limit(WITHIN_S))

            scale(cluster, "web", 0)
            delete_pods(cluster)
            wait_until(lambda: all_free(cluster), "all devices to be free", limit(WITHIN_S))
            scale(cluster, "web", NODES * EACH)
            wait_for_running(cluster, NODES * EACH, limit(WITHIN_S))
            assert witness.problems() == []
            assert witness.allocations >= 12 + NODES * EACH


@pytest.mark.parametrize("opener", [on_kubernetes, on_our_own])
def test_devices_are_taken_back_waited_for_and_refused(
    opener: Opener, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A claim whose node is cordoned, a device that has to be attached first; from 1.37 on, one that is tainted."""
    with opener(request, tmp_path) as cluster:
        [one, other, third] = cluster.hollow_nodes(3, cpu="32")
        conditions = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
        cluster.create(gpu_class(), slice_of(one, 1), slice_of(other, 1), claim("moved"), claim("attached"))
        cluster.kwok()
        first = claiming("first", of_claim="moved", nodeSelector={"kubernetes.io/hostname": one})
        cluster.create(first)
        wait_for_running(cluster, 1, limit(WITHIN_S))
        assert taken(cluster) == [f"{one}/gpu-0"]

        # The scheduler or the controllers take the device back, whoever is first.
        claims = f"/apis/resource.k8s.io/v1/namespaces/{cluster.namespace}/resourceclaims"
        cluster.api.patch(f"/api/v1/nodes/{one}", {"spec": {"unschedulable": True}})
        delete_pods(cluster)
        cluster.create(claiming("second", of_claim="moved"))
        wait_for_running(cluster, 1, limit(WITHIN_S))
        assert taken(cluster) == [f"{other}/gpu-0"]

        cluster.create(slice_of(third, 1, **conditions))
        cluster.create(claiming("third", of_claim="attached"))

        def waits() -> bool:
            return f"{third}/gpu-0" in taken(cluster)

        wait_until(waits, "a device that is not attached", limit(WITHIN_S))
        assert cluster.bound().keys() == {"second"}
        condition = {"type": "Attached", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        condition |= {"reason": "Done", "message": ""}
        status = {"driver": DRIVER, "pool": third, "device": "gpu-0", "conditions": [condition]}
        cluster.api.patch(f"{claims}/attached/status", {"status": {"devices": [status]}})
        wait_for_running(cluster, 2, limit(WITHIN_S))

        if minor() < 37 or isinstance(cluster, OwnCluster):
            return
        delete_pods(cluster)
        wait_until(lambda: not taken(cluster), "all devices to be free", limit(WITHIN_S))
        rule = {"deviceSelector": {"pool": other}, "taint": {"key": "broken", "effect": "NoSchedule"}}
        head = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "broken"}}
        cluster.api.post("/apis/resource.k8s.io/v1/devicetaintrules", {**head, "spec": rule})
        try:
            cluster.create(claiming("fourth", of_claim="moved"))
            wait_until(waits, "the device that is not tainted", limit(WITHIN_S))
            assert taken(cluster) == [f"{third}/gpu-0"]
        finally:
            cluster.api.delete("/apis/resource.k8s.io/v1/devicetaintrules/broken")


def unbound_with_devices(cluster: Cluster) -> list[str]:
    """Pods whose devices are written, and that have no node."""
    users = {name for one in all_claims(cluster) if devices_of(one) for name in users_of(one)}
    return [
        one["metadata"]["name"]
        for one in cluster.pods()
        if not one["spec"].get("nodeName") and one["metadata"]["name"] in users
    ]


def test_a_scheduler_that_is_killed_between_allocation_and_bind_gives_no_device_twice_and_leaks_none(
    cluster: Cluster,
) -> None:
    devices(cluster)
    cluster.kwok()
    cluster.situate_part("controllers")
    caught = 0
    with FaultProxy(cluster) as proxy, Witness(cluster) as witness:
        scheduler = behind(cluster, proxy, FAST)
        cluster.create(claim("shared"))
        for turn in range(KILLS):
            # Devices are written, binds are not.
            proxy.set(Faults(answers=(Fault(BINDS, 1.0, 503),)))
            cluster.create(
                claiming(f"a{turn}", by_template="one-gpu"),
                claiming(f"b{turn}"),
                claiming(f"c{turn}", of_claim="shared"),
            )
            wait_until(lambda: len(unbound_with_devices(cluster)) >= 2, "devices of unbound pods", limit(WITHIN_S))
            caught += len(unbound_with_devices(cluster))
            scheduler.kill()
            if turn % 2:
                delete_pods(cluster)  # while nobody schedules: the controllers clean up
            proxy.set(Faults())
            scheduler.start()
            wait_for_running(cluster, len(cluster.pods()), limit(WITHIN_S))
            each_pod_has_its_devices(cluster, cluster.pods())
            if not turn % 2:
                delete_pods(cluster)
            wait_until(lambda: all_free(cluster), "all devices to be free", limit(WITHIN_S))
        cluster.create(deployment("web", NODES * EACH, claiming("web", by_template="one-gpu")))
        wait_for_running(cluster, NODES * EACH, limit(WITHIN_S))
        assert witness.problems() == []
        assert caught >= 2 * KILLS
        quiet_logs(scheduler)


def test_a_server_that_is_killed_gives_no_device_twice_and_leaks_none(tmp_path: Path) -> None:
    flags = ("--with", "scheduler", "--with", "controllers", "--nodes", str(NODES))
    with OwnCluster(tmp_path / "own", *flags) as cluster:
        cluster.wait_for_nodes(NODES)
        names = [one["metadata"]["name"] for one in cluster.api.items("/api/v1/nodes")]
        cluster.create(gpu_class(), template(), *(slice_of(name, EACH) for name in names))
        for turn in range(KILLS):
            cluster.create(
                *(claiming(f"t{turn}-{at}", by_template="one-gpu") for at in range(6)),
                *(claiming(f"e{turn}-{at}") for at in range(6)),
            )
            wait_until(lambda: taken(cluster), "the first devices to be given", limit(WITHIN_S))
            cluster.kill_apiserver()
            cluster.start_apiserver()
            cluster.api.url = cluster.url
            cluster.api.close()
            wait_for_running(cluster, NODES * EACH, limit(WITHIN_S))
            assert len(taken(cluster)) == len(set(taken(cluster))) == NODES * EACH
            each_pod_has_its_devices(cluster, cluster.pods())
            delete_pods(cluster)
            wait_until(lambda: all_free(cluster), "all devices to be free", limit(WITHIN_S))
