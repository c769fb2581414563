"""One more node like the existing ones: a new node for each distinct shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from situate.core.explain.formatting import counted, roughly
from situate.core.explain.suggestions import Action, ActionKind
from situate.core.model.devices import ResourceSlice
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec
from situate.core.model.requests import allocatable
from situate.core.model.tolerations import Taint

HOSTNAME: Final = "kubernetes.io/hostname"
CONDITIONS: Final = "node.kubernetes.io/"
"""Taints with this prefix report a node's condition, not its purpose."""
SHAPES: Final = 24
"""The maximum number of shapes."""

NodeSlices: TypeAlias = Mapping[str, Sequence[ResourceSlice]]
"""Node -> the slices of its devices."""
NO_SLICES: Final[NodeSlices] = MappingProxyType({})

_encode: Final = msgspec.json.Encoder().encode


def shapes(nodes: Iterable[Node], slices: NodeSlices = NO_SLICES) -> list[tuple[Node, str]]:
    """A new node of each shape and the name of an existing one like it, smallest first.

    A shape is the allocatable resources, the labels except those that name the node, the taints with a purpose, and the
    devices, if `slices` has any.
    """
    listed = list(nodes)
    names = {node.metadata.name: None for node in listed}
    found: dict[tuple[object, ...], int] = {}
    like: dict[tuple[object, ...], Node] = {}
    for node in listed:
        room = tuple(sorted((name, str(amount)) for name, amount in node.status.allocatable.items()))
        own = slices.get(node.metadata.name, ())
        key = (room, tuple(sorted(_labels(node, "").items())), _purposes(node), tuple(map(_devices_key, own)))
        found[key] = found.get(key, 0) + 1
        like.setdefault(key, node)
    common = sorted(found, key=lambda key: -found[key])[:SHAPES]
    made = [(_new(like[key], names), like[key].metadata.name) for key in common]
    return sorted(made, key=lambda one: _size(one[0]))


def _devices_key(item: ResourceSlice) -> bytes:
    return _encode((item.spec.driver, item.spec.devices, item.spec.shared_counters))


def local_slices(slices: Iterable[ResourceSlice]) -> NodeSlices:
    """The slices of devices that are all on one node, by node."""
    found: dict[str, list[ResourceSlice]] = {}
    for item in slices:
        if item.spec.node_name:
            found.setdefault(item.spec.node_name, []).append(item)
    return found


def slices_like(slices: Iterable[ResourceSlice], name: str) -> tuple[ResourceSlice, ...]:
    """The same devices for a new node."""
    return tuple(
        replace(
            item,
            metadata=ObjectMeta(name=f"{name}-{number}-{item.spec.driver}"),
            spec=replace(
                item.spec,
                node_name=name,
                pool=replace(
                    item.spec.pool,
                    name=name if item.spec.pool.name == item.spec.node_name else f"{name}-{item.spec.pool.name}",
                ),
            ),
        )
        for number, item in enumerate(slices)
    )


def _labels(node: Node, name: str) -> dict[str, str]:
    own = node.metadata.name
    return {key: name if key == HOSTNAME or value == own else value for key, value in node.metadata.labels.items()}


def _purposes(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if not taint.key.startswith(CONDITIONS))


def _new(node: Node, names: Mapping[str, None]) -> Node:
    name, number = f"{node.metadata.name}-new", 1
    while name in names:
        number += 1
        name = f"{node.metadata.name}-new-{number}"
    return Node(
        metadata=ObjectMeta(name=name, labels=_labels(node, name)),
        spec=NodeSpec(taints=_purposes(node)),
        status=replace(node.status, images=(), conditions=()),
    )


def _size(node: Node) -> tuple[int, int, str]:
    room = allocatable(node)
    return room.milli_cpu, room.memory, node.metadata.name


def add_action(node: Node, like: str, slices: Sequence[ResourceSlice] = ()) -> Action:
    offered = allocatable(node)
    amounts = {"cpu": offered.milli_cpu, "memory": offered.memory, "pods": offered.pods, **offered.scalar}
    room = ", ".join(f"{roughly(name, amount)} {name}" for name, amount in amounts.items() if amount)
    drivers: dict[str, int] = {}
    for item in slices:
        drivers[item.spec.driver] = drivers.get(item.spec.driver, 0) + len(item.spec.devices)
    room += "".join(f", {counted(count, 'device')} of {driver}" for driver, count in drivers.items() if count)
    labels = {key: value for key, value in node.metadata.labels.items() if value != node.metadata.name}
    value = {"allocatable": dict(node.status.allocatable), "labels": labels}
    return Action(ActionKind.ADD_NODE, f"add a node like {like} ({room})", f"Node {node.metadata.name}", "", value)
