"""The shapes of new nodes: from a file, like existing nodes, or one for each value of a label.

A file has Node objects, or a list `shapes` of name, allocatable, and optionally labels, taints and a price an hour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from fractions import Fraction
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from situate.cli import BadInput
from situate.cli.commands.plan.input import PlanInput
from situate.cli.input.files import read_file
from situate.core.explain.node_shapes import NO_SLICES, NodeSlices, local_slices, shapes
from situate.core.model.node import Node
from situate.core.plan.sizing import NodeTemplate
from situate.core.plugins.support.prices import MILLIONTHS, UNKNOWN, PriceList, millionths
from situate.wire.errors import InputError
from situate.wire.objects import decode_checked
from situate.wire.yaml import load_yaml

ZONE: Final = "topology.kubernetes.io/zone"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
MOST: Final = 60
"""How many shapes are tried, zones counted; more would take too long."""
KNOWN: Final = ("allocatable", "labels", "name", "price", "taints")


def shapes_for(
    read: PlanInput, file: str | None, like: Sequence[str], group_by: str | None, zones: Sequence[str]
) -> list[NodeTemplate]:
    """Raises BadInput and InputError."""
    if sum((file is not None, bool(like), group_by is not None)) > 1:
        raise BadInput("--shapes, --like and --group-by: give one of them")
    local = local_slices(read.cluster.objects.devices.slices.values())
    if file is not None:
        found = _from_file(file, read.prices)
    elif like:
        found = [_shape_of(f"{name}-like", read.node(name), read.prices, local) for name in dict.fromkeys(like)]
    elif group_by is not None:
        found = _by_label(read, group_by, local)
    else:
        alike = [read.node(name) for _, name in shapes(read.objects.nodes, local)]
        found = [_shape_of(f"{node.metadata.name}-like", node, read.prices, local) for node in alike]
    if not found:
        raise BadInput(f"{read.where}: no node to take a shape from: give --shapes FILE")
    found = [one for shape in found for one in _in_zones(shape, zones)]
    if len(found) > MOST:
        raise BadInput(f"{len(found)} shapes are too many, zones counted: the limit is {MOST}; choose some with --like")
    return found


def _in_zones(shape: NodeTemplate, zones: Sequence[str]) -> list[NodeTemplate]:
    made = []
    for zone in dict.fromkeys(zones):
        meta = replace(shape.node.metadata, labels={**shape.node.metadata.labels, ZONE: zone})
        made.append(changed(shape, name=f"{shape.name}-{zone}", node=replace(shape.node, metadata=meta)))
    return made or [shape]


def _by_label(read: PlanInput, label: str, local: NodeSlices) -> list[NodeTemplate]:
    first: dict[str, Node] = {}
    for node in read.objects.nodes:
        value = node.metadata.labels.get(label)
        if value:
            first.setdefault(value, node)
    if not first:
        raise BadInput(f"{read.where}: no node has the label {label}")
    return [_shape_of(value, node, read.prices, local) for value, node in sorted(first.items())]


def _shape_of(name: str, node: Node, prices: PriceList | None, local: NodeSlices = NO_SLICES) -> NodeTemplate:
    """A new node like this one, with its devices: not cordoned, and healthy."""
    made = shapes([node])[0][0]
    return NodeTemplate(name, made, _price(node, prices), tuple(local.get(node.metadata.name, ())))


def _price(node: Node, prices: PriceList | None) -> Fraction | None:
    found = UNKNOWN if prices is None else prices.of(node)
    return None if found == UNKNOWN else Fraction(found, MILLIONTHS)


def _from_file(file: str, prices: PriceList | None) -> list[NodeTemplate]:
    found: list[NodeTemplate] = []
    for document in load_yaml(read_file(file), file):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise InputError("expected an object", file=file)
        if isinstance(document.get("shapes"), list):
            found += [_written(one, number, file, prices) for number, one in enumerate(document["shapes"])]
        else:
            items = document["items"] if isinstance(document.get("items"), list) else [document]
            if any(not isinstance(one, dict) or one.get("kind") != "Node" for one in items):
                raise InputError("expected a list `shapes`, or Node objects", file=file)
            nodes = [decode_checked(Node, msgspec.json.encode(one), file=file) for one in items]
            found += [_shape_of(node.metadata.name, node, prices) for node in nodes]
    names = [shape.name for shape in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'Duplicate value: "{name}"', file=file, path="shapes")
    if not found:
        raise InputError("has no shapes: expected a list `shapes`, or Node objects", file=file)
    return found


def _written(value: Any, number: int, file: str, prices: PriceList | None) -> NodeTemplate:
    path = f"shapes[{number}]"
    if not isinstance(value, dict):
        raise InputError("expected an object", file=file, path=path)
    for key in value:
        if key not in KNOWN:
            raise InputError(f"unknown field; known are {', '.join(KNOWN)}", file=file, path=f"{path}.{key}")
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise InputError("Required value", file=file, path=f"{path}.name")
    if not isinstance(value.get("allocatable"), Mapping):
        raise InputError("Required value", file=file, path=f"{path}.allocatable")
    made = {
        "metadata": {"name": name, "labels": {INSTANCE_TYPE: name, **(value.get("labels") or {})}},
        "spec": {"taints": value.get("taints") or []},
        "status": {"allocatable": value["allocatable"]},
    }
    node = decode_checked(Node, msgspec.json.encode(made), file=file, within=path)
    if value.get("price") is None:
        return NodeTemplate(name, node, _price(node, prices))
    price = millionths(str(value["price"]))
    if price == UNKNOWN:
        raise InputError('expected a price an hour, such as "0.192"', file=file, path=f"{path}.price")
    return NodeTemplate(name, node, Fraction(price, MILLIONTHS))
