"""Gangs whose pods claim devices: each pod is planned beside the devices of those before it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from device_builders import claim, device, device_class, exactly, node, owned_by, pod_with, slice_of
from situate.core.changes import Change, NodeSeen, ObjectSeen, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import BindClaims, Effect, SetCondition
from situate.core.engine.engine import Engine
from situate.core.model.pod import Pod
from situate.core.queue.queued_pod import QueueState

LABELS = {"situate.dev/gang": "team"}


def member(name: str, size: int, made: Pod) -> Pod:
    labels = {**LABELS, "situate.dev/gang-size": str(size)}
    return replace(made, metadata=replace(made.metadata, labels=labels))


def gang(size: int, *, count: int = 1) -> list[Change]:
    found: list[Change] = []
    for at in range(size):
        name = f"p{at}"
        found.append(ObjectSeen(claim(f"{name}-c", exactly(count=count), ownerReferences=owned_by(name))))
        found.append(PodSeen(member(name, size, pod_with(name, f"{name}-c", generated=True))))
    return found


def engine(*things: Any) -> Engine:
    made = Engine(default_configuration())
    made.step(0, [ObjectSeen(device_class()), *things])
    return made


def given(effects: list[Effect]) -> dict[str, list[tuple[str, str]]]:
    """Pod -> the (pool, device) pairs that it gets."""
    return {
        ask.pod.name: [
            (one.pool, one.device)
            for part in ask.claims
            if part.allocation is not None
            for one in part.allocation.devices.results
        ]
        for ask in effects
        if isinstance(ask, BindClaims)
    }


def rack(*devices: int) -> list[Change]:
    """Nodes with this many devices."""
    found: list[Change] = []
    for at, count in enumerate(devices):
        found.append(NodeSeen(node(f"n{at}")))
        found.append(ObjectSeen(slice_of(f"n{at}", *(device(f"g{k}") for k in range(count)))))
    return found


@pytest.mark.parametrize(
    "devices, size, count",
    [
        pytest.param((2, 1), 3, 1, id="one device each"),
        pytest.param((4, 5), 4, 2, id="two devices each, and one is left over"),
        pytest.param((1,) * 6, 6, 1, id="one node each"),
    ],
)
def test_a_gang_gets_as_many_devices_as_there_are_in_one_step(devices: tuple[int, ...], size: int, count: int) -> None:
    one = engine(*rack(*devices))
    effects = one.step(1, gang(size, count=count))
    found = given(effects)
    assert len(found) == size
    every = [device for devices_of_pod in found.values() for device in devices_of_pod]
    assert len(set(every)) == len(every) == size * count
    assert not [one for one in effects if isinstance(one, SetCondition)], "no pod failed on the way"


def test_a_gang_that_wants_one_device_too_many_gets_none() -> None:
    one = engine(*rack(2, 1))
    effects = one.step(1, gang(4))
    assert given(effects) == {}
    states = {entry.state for entry in one.queue.values()}
    assert states == {QueueState.UNSCHEDULABLE}


def test_devices_that_several_nodes_reach_are_counted_once() -> None:
    far = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}
    shared = ObjectSeen(slice_of("", device("a"), device("b"), name="far", pool="far", nodeSelector=far))
    nodes = [NodeSeen(labelled(f"n{at}")) for at in range(3)]
    assert len(given(engine(*nodes, shared).step(1, gang(2)))) == 2
    assert given(engine(*nodes, shared).step(1, gang(3))) == {}


def labelled(name: str) -> Any:
    made = node(name)
    return replace(made, metadata=replace(made.metadata, labels={"kubernetes.io/hostname": name}))


def test_a_gang_waits_for_the_claims_of_all_its_pods() -> None:
    one = engine(*rack(3))
    changes = gang(2)
    missing = changes.pop(2)
    effects = one.step(1, changes)
    assert given(effects) == {}
    assert len(given(one.step(2, [missing]))) == 2
