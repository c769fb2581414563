"""Cost: cheapest placement first.

An unused node costs its full price from now on. A node in use costs nothing more, but still counts with a part of its
price, so that the cheaper of two nodes in use fills up first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Scores
from situate.core.model.base import Int32
from situate.core.model.field_errors import child, forbidden, index, required
from situate.core.plugins.support.arguments import ArgModel, PluginArgs, label_name_problems, range_problems
from situate.core.plugins.support.normalize import highest, scaled
from situate.core.plugins.support.prices import (
    INSTANCE_TYPE,
    MILLIONTHS,
    NO_PRICES,
    UNKNOWN,
    Price,
    PriceList,
    in_use,
    price_column,
)
from situate.core.state.classes import PodClass
from situate.core.state.view import View

WHOLE: Final = 100
MAX_PRICE: Final = 1_000_000_000
"""So that a sum of millionths fits a column."""


class PriceSpec(ArgModel, frozen=True, kw_only=True):
    """The price of an hour of some nodes: one by name, or all with an instance type or a label."""

    node: str = ""
    instance_type: str = ""
    label: str = ""
    value: str = ""
    price: float | None = None

    omit_empty = ("node", "instance_type", "label", "value")

    def validate(self, path: str) -> list[str]:
        problems = []
        named = [name for name in (self.node, self.instance_type, self.label) if name]
        if len(named) != 1:
            problems.append(required(path, "exactly one of node, instanceType and label says what the price is of"))
        if self.label:
            problems += label_name_problems(child(path, "label"), self.label)
        elif self.value:
            problems.append(forbidden(child(path, "value"), "may only be given together with label"))
        if self.price is None:
            problems.append(required(child(path, "price")))
        else:
            problems += range_problems(child(path, "price"), self.price, 0, MAX_PRICE)
        return problems

    def parse(self) -> Price:
        price = round((self.price or 0) * MILLIONTHS)
        if self.instance_type:
            return Price(price, label=INSTANCE_TYPE, value=self.instance_type)
        return Price(price, self.node, self.label, self.value)


class CostArgs(PluginArgs, frozen=True, kw_only=True):
    """`price_label`: the label with a node's own price. `in_use_percent`: what a node in use counts for."""

    currency: str = "USD"
    price_label: str = ""
    prices: tuple[PriceSpec, ...] = ()
    in_use_percent: Int32 = 10

    omit_empty = ("price_label", "prices")

    def validate(self, path: str) -> list[str]:
        problems: list[str] = []
        if not self.price_label and not self.prices:
            problems.append(required(child(path, "prices"), "or priceLabel: without either no node has a price"))
        if self.price_label:
            problems += label_name_problems(child(path, "priceLabel"), self.price_label)
        for i, spec in enumerate(self.prices):
            problems += spec.validate(index(child(path, "prices"), i))
        return problems + range_problems(child(path, "inUsePercent"), self.in_use_percent, 0, WHOLE)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cheaper the node, the higher the score, relative to the most expensive feasible node.

    A node without a price counts as the most expensive. Does not score if no feasible node has a price.
    """

    prices: PriceList = NO_PRICES
    in_use_percent: int = 10
    """The percentage of its price that a node in use counts with."""

    name: ClassVar[str] = "Cost"

    @classmethod
    def from_args(cls, args: CostArgs, points: frozenset[str]) -> Cost:
        prices = PriceList(args.currency, args.price_label, tuple(spec.parse() for spec in args.prices))
        return cls(prices, args.in_use_percent)

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
