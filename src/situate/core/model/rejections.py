"""Why a node does not run a pod that names it: the kubelet's reasons, for the pod's status. Pure.

The node says so itself, or the API server for it, when it stores the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from situate.core.model.ledger import Port, Short

REJECTED: Final = "Pod was rejected: {}"
OUT_OF: Final = "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"
NO_PORTS: Final = "Predicate NodePorts failed: host ports {} are taken"


class NodeRejection(NamedTuple):
    """Of a pod's status."""

    reason: str
    message: str


def unknown_node(node: str) -> NodeRejection:
    """A kubelet has this reason while it does not know its own node."""
    return NodeRejection("InvalidNodeInfo", REJECTED.format(f'node "{node}" not found'))


def not_eligible(refusals: Sequence[str]) -> NodeRejection:
    """`refusals`: what `eligibility.run_refusals` found."""
    reason = "TaintToleration" if "taint" in refusals[0] else "NodeAffinity"
    return NodeRejection(reason, REJECTED.format("; ".join(refusals)))


def out_of(short: Short) -> NodeRejection:
    text = OUT_OF.format(short.resource, short.asked, short.allocatable - short.free, short.allocatable)
    return NodeRejection(f"OutOf{short.resource}", REJECTED.format(text))


def ports_taken(ports: Iterable[Port]) -> NodeRejection:
    return NodeRejection("NodePorts", REJECTED.format(NO_PORTS.format(", ".join(ports))))
