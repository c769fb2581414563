"""Pods with claims of one template share verdicts, and get the nodes that they would get without."""

from __future__ import annotations

from random import Random

import pytest

from device_builders import claim, device, device_class, exactly, first_of, node, owned_by, pod_with, slice_of
from situate.core.engine.framework import default_framework
from situate.core.place.placer import Placer
from situate.core.place.selecting import NOWHERE
from situate.core.plugins.dynamic_resources import DynamicResources, decide
from situate.core.plugins.support.device_demand import written_claims
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

TWO_OR_ONE = first_of("r", {"name": "two", "count": 2}, {"name": "one", "count": 1})
REQUESTS = (exactly(), exactly(count=2), TWO_OR_ONE, exactly(selector='device.attributes["gpu.example.com"].x == 1'))


def loaded(rng: Random) -> Cluster:
    cluster = Cluster()
    cluster.put_object(device_class())
    for at in range(6):
        cluster.add_node(node(f"n{at}"))
        devices = [device(f"g{k}", attributes={"x": {"int": rng.randint(0, 1)}}) for k in range(rng.randint(0, 4))]
        cluster.put_object(slice_of(f"n{at}", *devices))
    cluster.put_object(slice_of("", device("far", attributes={"x": {"int": 1}}), name="far", pool="far", allNodes=True))
    return cluster


@pytest.mark.parametrize("seed", range(6))
def test_pods_get_the_nodes_that_they_would_get_without(seed: int) -> None:
    rng = Random(seed)
    cluster = loaded(rng)
    profile = default_framework().profile
    shared, alone = Placer(cluster, profile), Placer(cluster, profile, cache=False)
    for number in range(25):
        name = f"p{number}"
        cluster.put_object(claim(f"{name}-c", rng.choice(REQUESTS), ownerReferences=owned_by(name)))
        pod = pod_with(name, f"{name}-c", generated=True)
        kind = cluster.class_of(pod)
        row = shared.choose(kind)
        assert row == alone.choose(kind)
        if row == NOWHERE:
            continue
        decided = decide(DynamicResources(), kind, View(cluster), row)
        assert decided is not None
        cluster.put(pod, kind, row)
        for one in written_claims(decided, pod.metadata):
            cluster.put_object(one)
        if rng.random() < 0.2:
            at = rng.randrange(6)
            before = cluster.objects.devices.slices[f"n{at}-slice"]
            more = [device(f"g{k}", attributes={"x": {"int": 1}}) for k in range(5)]
            assert cluster.put_object(slice_of(f"n{at}", *more)) or before.spec.devices


def test_a_pool_that_is_being_updated_on_one_node_fails_pods_whose_verdicts_are_cached() -> None:
    cluster = Cluster()
    cluster.put_object(device_class())
    for name in ("n0", "n1"):
        cluster.add_node(node(name))
        cluster.put_object(slice_of(name, device("g0"), device("g1")))
    every = exactly(allocationMode="All", count=0)
    profile = default_framework().profile
    shared, alone = Placer(cluster, profile), Placer(cluster, profile, cache=False)

    def choices(name: str) -> tuple[int, int]:
        cluster.put_object(claim(f"{name}-c", every, ownerReferences=owned_by(name)))
        kind = cluster.class_of(pod_with(name, f"{name}-c", generated=True))
        return shared.choose(kind), alone.choose(kind)

    for name in ("a", "b", "c"):  # from the second on, the verdicts are cached
        assert choices(name) == (0, 0)
    cluster.put_object(slice_of("n1", device("g0"), device("g1"), count=2))
    assert choices("d") == (NOWHERE, NOWHERE)
    cluster.put_object(slice_of("n1", device("g0"), device("g1"), generation=2))
    assert choices("e") == (0, 0)
