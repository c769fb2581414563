"""Headroom: leave some memory free on every node, and prefer the nodes that have the fewest pods."""

from situate.core.contract import Reason, Wake
from situate.core.plugins.support.per_node import OneNode
from situate.core.state.classes import PodClass

TOO_LITTLE = Reason("node(s) would have too little memory left", eviction_helps=True)


class Headroom:
    reasons = (TOO_LITTLE,)
    wakes_on = frozenset({Wake.NODE_ADDED, Wake.NODE_ALLOCATABLE, Wake.POD_DELETED, Wake.POD_SCALED_DOWN})

    def __init__(self, percent: int = 10) -> None:
        self.percent = percent

    def check_one(self, pod: PodClass, node: OneNode) -> Reason | None:
        left = node.free("memory") - pod.requests.memory
        return TOO_LITTLE if left * 100 < node.allocatable("memory") * self.percent else None

    def score_one(self, pod: PodClass, node: OneNode) -> int:
        return max(0, 100 - 10 * len(node.pods))
