"""Cost: cheapest placement first.

A node that nobody uses yet costs its whole price from now on. One that is in use costs nothing more; it counts for a
part of its price all the same, so that of two nodes in use the cheaper one is filled first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Scores
from situate.core.plugins.support.normalize import highest, scaled
from situate.core.plugins.support.prices import NO_PRICES, UNKNOWN, PriceList, in_use, price_column
from situate.core.state.classes import PodClass
from situate.core.state.view import View

WHOLE: Final = 100


@dataclass(frozen=True, slots=True)
class Cost:
    """The cheaper, the higher the score; in proportion to the dearest feasible node. Who has no price counts as that.

    Sits out where no feasible node has a price.
    """

    prices: PriceList = NO_PRICES
    in_use_percent: int = 10
    """How much of its price a node counts for that is in use already."""

    name: ClassVar[str] = "Cost"

    def score(self, pod: PodClass, view: View) -> Scores | None:
        prices = price_column(self.prices, view)
        known = prices != UNKNOWN
        feasible = view.feasible
        if not (known & feasible).any():
            return None
        costs = prices * np.where(in_use(view), self.in_use_percent, WHOLE) // WHOLE
        top = highest(costs * known, feasible)
        costs[~known] = top
        return scaled(costs, top, reverse=True)
