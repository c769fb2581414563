"""One more node like the existing ones: a new node for each distinct shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from situate.core.explain.formatting import roughly
from situate.core.explain.suggestions import Action, ActionKind
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec
from situate.core.model.requests import allocatable
from situate.core.model.tolerations import Taint

HOSTNAME: Final = "kubernetes.io/hostname"
CONDITIONS: Final = "node.kubernetes.io/"
"""Taints with this prefix report a node's condition, not its purpose."""
SHAPES: Final = 24
"""The maximum number of shapes."""


def shapes(nodes: Iterable[Node]) -> list[tuple[Node, str]]:
    """A new node of each shape and the name of an existing one like it, smallest first.

    A shape is the allocatable resources, the labels except those that name the node, and the taints with a purpose.
    """
    listed = list(nodes)
    names = {node.metadata.name: None for node in listed}
    found: dict[tuple[object, ...], int] = {}
    like: dict[tuple[object, ...], Node] = {}
    for node in listed:
        room = tuple(sorted((name, str(amount)) for name, amount in node.status.allocatable.items()))
        key = (room, tuple(sorted(_labels(node, "").items())), _purposes(node))
        found[key] = found.get(key, 0) + 1
        like.setdefault(key, node)
    common = sorted(found, key=lambda key: -found[key])[:SHAPES]
    made = [(_new(like[key], names), like[key].metadata.name) for key in common]
    return sorted(made, key=lambda one: _size(one[0]))


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


def add_action(node: Node, like: str) -> Action:
    offered = allocatable(node)
    amounts = {"cpu": offered.milli_cpu, "memory": offered.memory, "pods": offered.pods, **offered.scalar}
    room = ", ".join(f"{roughly(name, amount)} {name}" for name, amount in amounts.items() if amount)
    labels = {key: value for key, value in node.metadata.labels.items() if value != node.metadata.name}
    value = {"allocatable": dict(node.status.allocatable), "labels": labels}
    return Action(ActionKind.ADD_NODE, f"add a node like {like} ({room})", f"Node {node.metadata.name}", "", value)
