"""PoolOrder: fill the pools of nodes in the order given, and keep out of those that are not named."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situate.core.contract import MAX_SCORE, Codes, Reason, Scores, Wake
from situate.core.state.classes import PodClass
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class PoolOrder:
    """A node's pool is the value of one of its labels."""

    order: list[str]
    label: str = "pool"

    reasons: ClassVar[tuple[Reason, ...]] = (Reason("node(s) were in no pool of the order", eviction_helps=False),)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED, Wake.NODE_LABEL})

    def check(self, pod: PodClass, view: View) -> Codes:
        ids, pools = view.label(self.label)
        refused = [pool not in self.order for pool in pools.names]
        # One answer a pool, and a last one for nodes without the label: their id is -1.
        return np.array([*refused, True], np.uint8)[ids]

    def score(self, pod: PodClass, view: View) -> Scores:
        ids, pools = view.label(self.label)
        step = MAX_SCORE // len(self.order)
        places = [self.order.index(pool) if pool in self.order else len(self.order) for pool in pools.names]
        return np.array([*(MAX_SCORE - step * place for place in places), 0], np.int64)[ids]
