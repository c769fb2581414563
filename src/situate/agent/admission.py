"""Whether this node takes a pod that was bound to it: room and taints, asked again where it counts. Pure.

A pod that is refused fails at once, with a kubelet's reasons, and its owner makes another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from situate.agent.pod_status import TerminationReason
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.server.placing.eligibility import run_refusals
from situate.server.placing.ledger import allocatable_of, amounts_of, room

__all__ = ["refusal"]

OUT_OF: Final = "Pod was rejected: Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"
NOT_ELIGIBLE: Final = "Pod was rejected: {}"


def refusal(
    pod: Mapping[str, Any], others: Iterable[Mapping[str, Any]], allocatable: Mapping[str, str], node: Any
) -> TerminationReason | None:
    """`others`: what this node runs already. `node`: as the server has it; None: it could not be asked."""
    asked = msgspec.convert(pod, Pod)
    if node is not None and (why := run_refusals(asked, msgspec.convert(node, Node))):
        reason = "TaintToleration" if "taint" in why[0] else "NodeAffinity"
        return TerminationReason(reason, NOT_ELIGIBLE.format("; ".join(why)))
    used: dict[str, int] = {}
    for other in others:
        for resource, amount in amounts_of(msgspec.convert(other, Pod)).items():
            used[resource] = used.get(resource, 0) + amount
    has = allocatable_of(msgspec.convert({"metadata": {"name": "own"}, "status": {"allocatable": allocatable}}, Node))
    short = room(has, used, amounts_of(asked))
    if not short:
        return None
    first = short[0]
    text = OUT_OF.format(first.resource, first.asked, first.allocatable - first.free, first.allocatable)
    return TerminationReason(f"OutOf{first.resource}", text)
