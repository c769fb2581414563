"""Whether this node runs a pod that was bound to it: resources, taints and affinity, checked again on the node. Pure.

A rejected pod fails at once, with the kubelet's reasons, and its controller creates another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from situate.agent.pod_status import TerminationReason
from situate.core.model.eligibility import run_refusals
from situate.core.model.ledger import allocatable_of, amounts_of, room
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.rejections import not_eligible, out_of

MOST_CONTAINERS: Final = 100
"""How many containers of one pod a node runs: each has a shim."""
TOO_MANY: Final = "Pod was rejected: it has {} containers, and this node runs at most {} of one pod"
UNEXPECTED: Final = "UnexpectedAdmissionError"
"""The kubelet's reason for rejecting a pod because of an internal error."""


def rejection(
    pod: Mapping[str, Any], others: Iterable[Mapping[str, Any]], allocatable: Mapping[str, str], node: Any
) -> TerminationReason | None:
    """`others`: the pods that run on this node. `node`: as the server has it, or None if it could not be read."""
    count = sum(len(pod["spec"].get(key) or ()) for key in ("initContainers", "containers"))
    if count > MOST_CONTAINERS:
        return TerminationReason(UNEXPECTED, TOO_MANY.format(count, MOST_CONTAINERS))
    wanted = msgspec.convert(pod, Pod)
    if node is not None and (reasons := run_refusals(wanted, msgspec.convert(node, Node))):
        return TerminationReason(*not_eligible(reasons))
    used: dict[str, int] = {}
    for other in others:
        for resource, amount in amounts_of(msgspec.convert(other, Pod)).items():
            used[resource] = used.get(resource, 0) + amount
    has = allocatable_of(msgspec.convert({"metadata": {"name": "own"}, "status": {"allocatable": allocatable}}, Node))
    short = room(has, used, amounts_of(wanted))
    return TerminationReason(*out_of(short[0])) if short else None
