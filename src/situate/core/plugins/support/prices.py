"""The hourly price of each node, from its own label or from a table, and the total of the nodes in use.

Prices are in millionths, so that sums are exact in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from situate.core.model.node import Node
from situate.core.state.classes import PodClass
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.view import View

MILLIONTHS: Final = 1_000_000
MOST: Final = 1_000_000_000 * MILLIONTHS
"""A higher price counts as unknown."""
UNKNOWN: Final = -1
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
NODE_OWNERS: Final = ("DaemonSet", "Node")
"""The owners of pods that run because the node exists. A static pod's owner is its Node."""

_DECIMAL: Final = re.compile(r"[0-9]{1,10}(\.[0-9]{1,12})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Price:
    """The hourly price of the node with this name, or of all nodes with this label value."""

    millionths: int
    node: str = ""
    label: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class PriceList:
    """A node's own label wins over the table; in the table, the first line that matches the node wins."""

    currency: str = "USD"
    label: str = ""
    """The label whose value is the node's own price, such as "0.192"; empty: none."""
    table: tuple[Price, ...] = ()
    _lines: dict[tuple[str, str], tuple[int, int]] = field(init=False, repr=False, compare=False)
    """(label, value), or ("", node) -> (line of the table, price)."""
    key: bytes = field(init=False, repr=False, compare=False)
    """A cheap key: the same for equal lists."""

    def __post_init__(self) -> None:
        lines: dict[tuple[str, str], tuple[int, int]] = {}
        for at, price in enumerate(self.table):
            lines.setdefault(("", price.node) if price.node else (price.label, price.value), (at, price.millionths))
        object.__setattr__(self, "_lines", lines)
        object.__setattr__(self, "key", msgspec.json.encode((self.currency, self.label, self.table)))

    def of(self, node: Node) -> int:
        """The hourly price of a node in millionths, or UNKNOWN."""
        labels = node.metadata.labels
        if self.label and (own := millionths(labels.get(self.label, ""))) != UNKNOWN:
            return own
        lines = self._lines
        found = [line for pair in (("", node.metadata.name), *labels.items()) if (line := lines.get(pair)) is not None]
        return min(found)[1] if found else UNKNOWN


NO_PRICES: Final = PriceList()


@dataclass(frozen=True, slots=True)
class NodeCost:
    """The cost of the nodes in use."""

    currency: str
    millionths: int
    """An hour."""
    nodes: int
    """How many are in use."""
    unpriced: int
    """How many of those have no price and are not in the sum."""

    @property
    def amount(self) -> str:
        """The money alone, as "1.234"."""
        return format_price(self.millionths)

    def __str__(self) -> str:
        counted = f"{self.nodes} node{'' if self.nodes == 1 else 's'} in use"
        without = f", {self.unpriced} of them without a price" if self.unpriced else ""
        return f"{self.amount} {self.currency} an hour for {counted}{without}"


def millionths(text: str) -> int:
    """Parse a price such as "0.192"; UNKNOWN if it is not a number. Truncates beyond millionths."""
    if not _DECIMAL.fullmatch(text):
        return UNKNOWN
    whole, _, part = text.partition(".")
    found = int(whole) * MILLIONTHS + int(part[:6].ljust(6, "0"))
    return found if found <= MOST else UNKNOWN


def format_price(amount: int) -> str:
    """Format millionths, with at least two decimals."""
    whole, part = divmod(amount, MILLIONTHS)
    return f"{whole}.{f'{part:06}'.rstrip('0').ljust(2, '0')}"


def hourly_cost(prices: PriceList, view: View) -> NodeCost:
    """The hourly cost of the nodes in use."""
    rows = np.flatnonzero(in_use(view) & view.present)
    found = [prices.of(node) for row in rows.tolist() if (node := view.node(row)) is not None]
    known = [price for price in found if price != UNKNOWN]
    return NodeCost(prices.currency, sum(known), len(found), len(found) - len(known))


def price_column(prices: PriceList, view: View) -> IntColumn:
    """The price of every node of the view, or UNKNOWN."""

    def compute(whole: View) -> IntColumn:
        nodes = (whole.node(row) for row in range(whole.size))
        return np.array([UNKNOWN if node is None else prices.of(node) for node in nodes], np.int64)

    return view.memo(("prices", prices.key), compute)[view.rows]


def in_use(view: View) -> Mask:
    """Which nodes have a pod other than a DaemonSet's or a static one."""
    cluster = view.cluster

    def compute(shown: View) -> Mask:
        return np.array([_any_own(shown.classes_on(row)) for row in range(shown.size)], np.bool_)

    def at(row: int) -> bool:
        return _any_own(map(cluster.pods.kind, cluster.nodes.pods[row]))

    return view.derived(("in use",), compute, at)


def _any_own(kinds: Iterable[PodClass]) -> bool:
    return any(kind.owner is None or kind.owner.kind not in NODE_OWNERS for kind in kinds)
